//! One segment of one row task, of all its rows of tiles: which method, in which blocks, into which rows. Generic over the vectors.

use std::ops::Range;

use upscale_simd::{
    Buffer, Computation, Input, Lanes, Output, ReadLease, Start, WriteLease, multiply_in_place,
    multiply_into,
};

use crate::finish::{Joined, finish_row};
use crate::job::{Job, Span, Ticket};
use crate::network::{Map, PICTURE};
use crate::packed::{self, TileArea};
use crate::plan::{Method, PlanLayer};
use crate::products::Products;
use crate::ranges::{Observed, WORD_MAX};
use crate::schedule::Work;
use crate::scratch::Scratch;
use crate::tiles;
use crate::winograd::{BIAS_POSITION, POSITIONS, TILE, WINDOW};
use crate::word_tiles;
use crate::words::{Words, transform_row};
use crate::{direct, narrow, picture, shuffle};

/// Pixels whose 27 numbers are gathered at a time: they stay in the first cache.
const GATHER: usize = 48;

/// A ticket, about to be computed.
pub(crate) struct Computing<'a> {
    pub(crate) job: &'a Job<'a>,
    pub(crate) scratch: &'a mut Scratch,
    pub(crate) ticket: &'a Ticket,
}

impl Computation for Computing<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        run(lanes, self.job, self.scratch, self.ticket);
    }
}

#[inline(always)]
fn run<L: Lanes>(lanes: L, job: &Job<'_>, scratch: &mut Scratch, ticket: &Ticket) {
    let layer = &job.plan.layers[ticket.layer];
    let Work::Rows { tile_row, count } = ticket.work else {
        transform_weights(lanes, job, ticket, layer);
        return;
    };
    let span = &Span {
        layer: ticket.layer,
        tile_row,
        row_count: count,
        weights_slot: ticket.weights_slot,
        segment: ticket.segment,
    };
    match layer.method {
        Method::Picture => {
            for row in 0..count {
                direct(lanes, job, scratch, &span.row(row), layer);
            }
        }
        Method::Point if layer.direct.is_none() => {
            for row in 0..count {
                point(lanes, job, &span.row(row), layer);
            }
        }
        _ => tiled(lanes, job, scratch, span, layer),
    }
}

/// One row of positions of a layer's weights.
#[inline(always)]
fn transform_weights<L: Lanes>(lanes: L, job: &Job<'_>, ticket: &Ticket, layer: &PlanLayer) {
    let mut rows = job.write_weights(ticket.weights_slot, ticket.segment);
    let numbers = (&mut *rows, layer.matrix());
    let (taps, narrow) = (layer.taps(), job.narrow(layer));
    match narrow.line {
        None => transform_row(lanes, taps, ticket.segment, numbers),
        Some(_) if narrow.rows.0 != ticket.segment => {}
        Some(line) => narrow::transform_weights(lanes, (taps, line), numbers),
    }
}

/// The segment's pixel rows of one row of tiles of the layer's output that lie in the picture.
fn output_rows<'a>(job: &'a Job<'_>, span: &Span, layer: &PlanLayer) -> Vec<WriteLease<'a>> {
    let rows = job.extent.pixel_rows(layer, span.tile_rows());
    rows.map(|y| job.write(layer.output, y, span.segment))
        .collect()
}

fn columns(job: &Job<'_>, span: &Span) -> (Range<usize>, Range<usize>) {
    let tiles = job.tiles(span.layer, span.segment);
    let pixels = job.pixels(job.plan.layers[span.layer].factor, &tiles);
    (tiles, pixels)
}

/// 3x3 over the source picture: gathers 27 numbers for each pixel, then one product. Where the map is packed, the rows are numbers first.
#[inline(always)]
fn direct<L: Lanes>(
    lanes: L,
    job: &Job<'_>,
    scratch: &mut Scratch,
    span: &Span,
    layer: &PlanLayer,
) {
    let (tiles, pixels) = columns(job, span);
    let at = job.place_in_segment(pixels.start, span.segment) * job.plan.pitch(layer.output);
    let mut output = output_rows(job, span, layer);
    let mut rows: Vec<&mut [f32]> = output.iter_mut().map(|row| &mut row[at..]).collect();
    let registers = job.plan.kernels.tiles();
    let registers = registers.filter(|_| job.plan.packed[layer.output].is_some());
    let row_len = registers.map(|_| pixels.len() * layer.channels);
    let mut numbers = std::mem::take(&mut scratch.numbers);
    let mut made = packed::rows_of_numbers(&mut rows, &mut numbers, row_len);
    picture_rows(lanes, (job, span, layer), scratch, &pixels, &mut made);
    if let Some(registers) = registers {
        let place = TileArea {
            rows: span.tile_rows(),
            columns: tiles,
        };
        let map = (layer.output, layer.channels);
        let made = (&numbers[..], &mut rows[..]);
        job.packed.store(registers, &place, map, made);
    }
    scratch.numbers = numbers;
}

/// The rows of one row of tiles as numbers.
#[inline(always)]
fn picture_rows<L: Lanes>(
    lanes: L,
    (job, span, layer): (&Job<'_>, &Span, &PlanLayer),
    scratch: &mut Scratch,
    pixels: &Range<usize>,
    rows: &mut [&mut [f32]],
) {
    let place = job.place(1, pixels.start);
    let joined = Joined::all(job, span, layer, (place, pixels.len()));
    for (row, output) in rows.iter_mut().enumerate() {
        for x in pixels.clone().step_by(GATHER) {
            let count = GATHER.min(pixels.end - x);
            let y = span.tile_row * TILE + row;
            let source = (job.source, job.plan.mean, job.plan.unshuffle);
            picture::gather(source, y, x..x + count, &mut scratch.rows);
            let at = (x - pixels.start) * layer.channels;
            let output = &mut output[at..at + count * layer.channels];
            let bias = Start::Values(&layer.bias);
            let weights = layer.part(0, layer.depth);
            let from = Input {
                numbers: &scratch.rows,
                stride: layer.depth,
            };
            let to = Output {
                numbers: &mut *output,
                stride: layer.channels,
            };
            multiply_into(lanes, from, to, count, weights, bias);
            finish_row(lanes, layer, output, &joined, row, job.place(1, x));
        }
    }
}

/// 1x1: one product per input map, each adding to the output row.
#[inline(always)]
fn point<L: Lanes>(lanes: L, job: &Job<'_>, span: &Span, layer: &PlanLayer) {
    let (_, pixels) = columns(job, span);
    let inputs = layer.inputs.iter();
    let inputs: Vec<_> = inputs
        .map(|&map| job.rows(layer, map, span.tile_row))
        .collect();
    let at = job.place_in_segment(pixels.start, span.segment) * layer.channels;
    let place = job.place(layer.factor, pixels.start);
    let joined = Joined::all(job, span, layer, (place, pixels.len()));
    let above = job.extent.rows_above(layer, span.tile_row);
    for (row, output) in (above..).zip(&mut output_rows(job, span, layer)) {
        let output = &mut output[at..at + pixels.len() * layer.channels];
        let mut start = Start::Values(&layer.bias);
        let mut first = 0;
        for (rows, &map) in inputs.iter().zip(&layer.inputs) {
            let depth = job.plan.maps[map];
            let numbers = &rows[row][place * depth..][..pixels.len() * depth];
            if let Some(observed) = &job.plan.observed {
                observed.note_inputs(span.layer, numbers);
            }
            let from = Input {
                numbers,
                stride: depth,
            };
            let to = Output {
                numbers: &mut *output,
                stride: layer.channels,
            };
            let weights = layer.part(first, depth);
            multiply_into(lanes, from, to, pixels.len(), weights, start);
            start = Start::Output;
            first += depth;
        }
        finish_row(lanes, layer, output, &joined, row, place);
    }
}

/// 3x3 over maps, up to the 64 products of every tile; one row of tiles after another. None of a layer that has no transforms.
#[inline(always)]
fn products<L: Lanes>(
    lanes: L,
    job: &Job<'_>,
    scratch: &mut Scratch,
    span: &Span,
    tiles: &Range<usize>,
) -> Products {
    let layer = &job.plan.layers[span.layer];
    let all_tiles = tiles.len() * span.row_count;
    let shape = Products::new(all_tiles, layer.depth, layer.channels);
    if layer.direct.is_some() {
        return shape;
    }
    if let Some(words) = &layer.words {
        word_products(lanes, (job, span, layer), &shape, (words, tiles), scratch);
        return shape;
    }
    let row_shape = shape.of_row(tiles.len());
    for row in 0..span.row_count {
        let place = (job, &span.row(row), layer);
        let products = &mut scratch.products[row * tiles.len() * shape.tile_stride..];
        transform_inputs(lanes, place, &row_shape, tiles.start, products);
    }
    if let Some(observed) = &job.plan.observed {
        observed.note(span.layer, &shape, &scratch.products, layer.depth);
        note_inputs(observed, (job, span, layer), tiles);
    }
    let weights = job.weights(span.weights_slot);
    let narrow = job.narrow(layer);
    for position in 0..POSITIONS {
        if !narrow.needs(position) {
            continue;
        }
        let start = if position == BIAS_POSITION {
            Start::Values(&layer.bias)
        } else {
            Start::Zero
        };
        let matrix = layer.weights(&weights[job.matrix(layer, position)]);
        let next = &weights[job.matrix(layer, (position + 1) % POSITIONS)];
        let (rows, beside) = scratch.position(&shape, position, next);
        multiply_in_place::<L, false>(lanes, rows, all_tiles, matrix, start, beside);
    }
    shape
}

/// Notes what the tiles read, before it is transformed.
fn note_inputs(
    observed: &Observed,
    (job, span, layer): (&Job<'_>, &Span, &PlanLayer),
    tiles: &Range<usize>,
) {
    let rows = (0..span.row_count).map(|row| span.row(row));
    for (row, &map) in rows.flat_map(|row| layer.inputs.iter().map(move |map| (row, map))) {
        let (rows, (at, channels)) = window(job, &row, map, tiles.start);
        let pixels = tiles.len() * TILE / layer.enlarged + 2;
        for row in rows {
            observed.note_inputs(span.layer, &row[at..row.len().min(at + pixels * channels)]);
        }
    }
}

/// All input maps of a segment of one row of tiles, as many tiles as `shape` has, from `first_tile` on.
#[inline(always)]
fn transform_inputs<L: Lanes>(
    lanes: L,
    (job, span, layer): (&Job<'_>, &Span, &PlanLayer),
    shape: &Products,
    first_tile: usize,
    products: &mut [f32],
) {
    if layer.is_interleaved {
        let windows: [_; 4] =
            std::array::from_fn(|part| window(job, span, layer.inputs[part], first_tile));
        let at = windows[0].1;
        tiles::transform_interleaved(lanes, shape, &windows.map(|(rows, _)| rows), at, products);
        return;
    }
    let mut channel = 0;
    for &map in &layer.inputs {
        debug_assert_ne!(map, PICTURE);
        let (window, at) = window(job, span, map, first_tile);
        if let Some(line) = job.narrow(layer).line {
            narrow::transform_inputs(lanes, shape, &window, at, (products, channel), line);
        } else if layer.enlarged == 1 {
            tiles::transform_inputs::<L, 1>(lanes, shape, &window, at, products, channel);
        } else {
            tiles::transform_inputs::<L, 2>(lanes, shape, &window, at, products, channel);
        }
        channel += job.plan.maps[map];
    }
}

/// The rows that a row of tiles reads, and where in them a tile begins: place (in numbers) and channels.
#[inline(always)]
fn window<'a>(
    job: &'a Job<'_>,
    span: &Span,
    map: Map,
    tile: usize,
) -> ([ReadLease<'a>; WINDOW], (usize, usize)) {
    let layer = &job.plan.layers[span.layer];
    let (channels, factor) = (job.plan.maps[map], job.plan.factors[map]);
    let place = job.place(factor, tile * TILE / layer.enlarged) - 1;
    (
        job.window(layer, map, span.tile_row),
        (place * channels, channels),
    )
}

/// As [`products`], in 16-bit integers.
#[inline(always)]
fn word_products<L: Lanes>(
    lanes: L,
    (job, span, layer): (&Job<'_>, &Span, &PlanLayer),
    shape: &Products,
    (words, tiles): (&Words, &Range<usize>),
    scratch: &mut Scratch,
) {
    let row_shape = shape.of_row(tiles.len());
    scratch.tile_scales.clear();
    scratch.tile_scales.resize(shape.tiles, 0.0);
    for (row, largest) in scratch.tile_scales.chunks_mut(tiles.len()).enumerate() {
        let place = (job, &span.row(row), layer);
        let products = &mut scratch.products[row * tiles.len() * shape.tile_stride..];
        transform_word_row(
            lanes,
            place,
            &row_shape,
            (words, tiles),
            (products, largest),
        );
    }
    let narrow = job.narrow(layer);
    for position in 0..POSITIONS {
        if !narrow.needs(position) {
            continue;
        }
        let matrix = layer.pairs(words.matrix(position));
        let next = words.matrix((position + 1) % POSITIONS);
        let (rows, beside) = scratch.position(shape, position, next);
        multiply_in_place::<L, true>(lanes, rows, shape.tiles, matrix, Start::Zero, beside);
    }
}

/// A segment of one row of tiles, scaled; `largest` becomes the tiles' own scales.
#[inline(always)]
fn transform_word_row<L: Lanes>(
    lanes: L,
    place: (&Job<'_>, &Span, &PlanLayer),
    shape: &Products,
    (words, tiles): (&Words, &Range<usize>),
    (products, largest): (&mut [f32], &mut [f32]),
) {
    // All tiles, then each whose numbers do not fit. In one loop, for each call of a transform is compiled again.
    for round in 0..=largest.len() {
        let tile = round.checked_sub(1);
        let scale = tile.map_or(1.0, |tile| word_tiles::tile_scale(largest[tile], WORD_MAX));
        if let Some(tile) = tile {
            largest[tile] = scale;
            if scale == 1.0 {
                continue;
            }
        }
        let scales = words.input_scales.map(|one| one * scale);
        let mut unread = [0.0];
        let (first, found) = match tile {
            None => (0, &mut *largest),
            Some(tile) => (tile, &mut unread[..]),
        };
        let to = (&mut products[first * shape.tile_stride..], found);
        transform_word_inputs(lanes, place, shape, tiles.start + first, &scales, to);
    }
}

/// All input maps of as many tiles as `largest` is long, from `first_tile` on.
#[inline(always)]
fn transform_word_inputs<L: Lanes>(
    lanes: L,
    (job, span, layer): (&Job<'_>, &Span, &PlanLayer),
    shape: &Products,
    first_tile: usize,
    scales: &[f32; POSITIONS],
    (products, largest): (&mut [f32], &mut [f32]),
) {
    let mut channel = 0;
    for &map in &layer.inputs {
        let (window, at) = window(job, span, map, first_tile);
        let (to, scales) = ((&mut *products, channel), (scales, &mut *largest));
        if layer.enlarged == 1 {
            word_tiles::transform_inputs::<L, 1>(lanes, shape, &window, at, to, scales);
        } else {
            word_tiles::transform_inputs::<L, 2>(lanes, shape, &window, at, to, scales);
        }
        channel += job.plan.maps[map];
    }
}

/// Over maps, but for 1x1 in single precision. The last layer's rows go to scratch, and from there onto the base.
#[inline(always)]
fn tiled<L: Lanes>(lanes: L, job: &Job<'_>, scratch: &mut Scratch, span: &Span, layer: &PlanLayer) {
    let is_last = span.layer + 1 == job.plan.layers.len();
    let (tiles, pixels) = columns(job, span);
    let at = job.place_in_segment(pixels.start, span.segment) * job.plan.pitch(layer.output);
    let place = job.place(layer.factor, pixels.start);
    let row_len = pixels.len() * job.plan.pitch(layer.output);
    let last_len = tiles.len() * TILE * layer.channels;
    let shape = products(lanes, job, scratch, span, &tiles);
    let mut last = std::mem::replace(&mut scratch.last, Buffer::zeroed(0));
    for row in 0..span.row_count {
        let (span, first) = (&span.row(row), row * tiles.len());
        let valid = job.extent.pixel_rows(layer, span.tile_rows()).len();
        // Rows above the picture are computed like the others, and go nowhere.
        let mut beyond = vec![0.0; job.extent.rows_above(layer, span.tile_row) * row_len];
        let mut output;
        let mut rows: Vec<&mut [f32]> = if is_last {
            last.chunks_mut(last_len).take(valid).collect()
        } else {
            output = output_rows(job, span, layer);
            let inside = output.iter_mut().map(|row| &mut row[at..]);
            beyond.chunks_exact_mut(row_len).chain(inside).collect()
        };
        let from = (&shape, &tiles, first);
        let to = (place, &mut rows[..]);
        finish_tiles(lanes, (job, span, layer), from, pixels.len(), scratch, to);
        if is_last {
            for (row, values) in last.chunks(last_len).take(valid).enumerate() {
                let values = (values, layer.channels);
                shuffle::write_rows(job, span, row, &pixels, values, &mut scratch.base);
            }
        }
    }
    scratch.last = last;
}

/// One row of tiles, the first of which is the `first` of the span: its sums, or what tile registers make of its inputs, finished, into rows.
#[inline(always)]
fn finish_tiles<L: Lanes>(
    lanes: L,
    (job, span, layer): (&Job<'_>, &Span, &PlanLayer),
    (shape, tiles, first): (&Products, &Range<usize>, usize),
    width: usize,
    scratch: &mut Scratch,
    to: (usize, &mut [&mut [f32]]),
) {
    if let Some(direct) = &layer.direct {
        let of = (job, span, layer, direct);
        let beside = &mut direct::Beside {
            split: &mut scratch.split,
            ahead: &mut scratch.ahead,
            numbers: &mut scratch.numbers,
        };
        return direct::row(lanes, of, (tiles, width), beside, to);
    }
    let joined = Joined::all(job, span, layer, (to.0, width));
    let input = sums(shape, (&scratch.products, &scratch.tile_scales), first);
    let shape = shape.of_row(tiles.len());
    let to = (&joined[..], to.0, to.1);
    transform_outputs(lanes, &shape, (input, width), (job, layer), to);
}

/// Products and scales of the tiles from `first` on.
fn sums<'a>(
    shape: &Products,
    (products, scales): (&'a [f32], &'a [f32]),
    first: usize,
) -> (&'a [f32], &'a [f32]) {
    let scales = scales.get(first..).unwrap_or_default();
    (&products[first * shape.tile_stride..], scales)
}

/// The sums of one row of tiles, finished, into rows; `place` is the first pixel's in the rows of maps that join.
#[inline(always)]
fn transform_outputs<L: Lanes>(
    lanes: L,
    shape: &Products,
    ((products, scales), width): ((&[f32], &[f32]), usize),
    (job, layer): (&Job<'_>, &PlanLayer),
    (joined, place, rows): (&[Joined<'_>], usize, &mut [&mut [f32]]),
) {
    if let Some(line) = job.narrow(layer).line {
        let (of, from) = ((layer, line), (products, width));
        return narrow::transform_outputs(lanes, shape, from, of, joined, place, rows);
    }
    let from = (products, scales, width);
    tiles::transform_outputs(lanes, shape, from, layer, joined, place, rows);
}

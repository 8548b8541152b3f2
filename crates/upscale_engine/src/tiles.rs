//! A run of tiles through Winograd's transforms: map rows to `[position][tile][channel]`, and back to rows.

use upscale_simd::{Lanes, ReadLease};

use crate::finish::{Joined, finish_line};
use crate::plan::PlanLayer;
use crate::products::Products;
use crate::winograd::{TILE, WINDOW, columns, crosswise, inputs, outputs};
use crate::word_tiles;

/// Bt d B of every tile. The first tile's window begins at `place` (in numbers) of rows with `channels` channels;
/// the results stand at channel `first` of each tile. With `ENLARGED` 2 every number is read as two in its row, the
/// rows being given twice by the caller.
#[inline(always)]
pub(crate) fn transform_inputs<L: Lanes, const ENLARGED: usize>(
    lanes: L,
    shape: &Products,
    window: &[ReadLease<'_>; WINDOW],
    (place, channels): (usize, usize),
    products: &mut [f32],
    first: usize,
) {
    for tile in 0..shape.tiles {
        let start = place + tile * TILE / ENLARGED * channels;
        let end = start + (WINDOW / ENLARGED + ENLARGED - 1) * channels;
        let rows: [&[f32]; WINDOW] = std::array::from_fn(|row| &window[row][start..end]);
        for channel in (0..channels).step_by(L::WIDTH) {
            let to = tile * shape.tile_stride + first + channel;
            transform_input::<L, ENLARGED>(
                lanes,
                shape,
                &rows,
                (channel, channels),
                &mut products[to..],
            );
        }
    }
}

/// As [`transform_inputs`], of four maps that are read as one twice as wide and high: see `Layer::is_interleaved`. The
/// windows are given as those of an enlarged map.
#[inline(always)]
pub(crate) fn transform_interleaved<L: Lanes>(
    lanes: L,
    shape: &Products,
    windows: &[[ReadLease<'_>; WINDOW]; 4],
    (place, channels): (usize, usize),
    products: &mut [f32],
) {
    for tile in 0..shape.tiles {
        let start = place + tile * TILE / 2 * channels;
        let end = start + (WINDOW / 2 + 1) * channels;
        // A window begins one row above its tile, and that row is odd.
        let rows: [[&[f32]; 2]; WINDOW] = std::array::from_fn(|row| {
            let first = (row + 1) % 2 * 2;
            [first, first + 1].map(|part| &windows[part][row][start..end])
        });
        for channel in (0..channels).step_by(L::WIDTH) {
            let at = (channel, channels);
            let half = [
                inputs(lanes, woven::<L>(lanes, rows[0], at)),
                inputs(lanes, woven::<L>(lanes, rows[1], at)),
                inputs(lanes, woven::<L>(lanes, rows[2], at)),
                inputs(lanes, woven::<L>(lanes, rows[3], at)),
                inputs(lanes, woven::<L>(lanes, rows[4], at)),
                inputs(lanes, woven::<L>(lanes, rows[5], at)),
                inputs(lanes, woven::<L>(lanes, rows[6], at)),
                inputs(lanes, woven::<L>(lanes, rows[7], at)),
            ];
            let to = &mut products[tile * shape.tile_stride + channel..];
            store_columns(lanes, shape, &half, to);
        }
    }
}

/// Eight neighbours in a row, taken in turn from the odd and from the even columns of a map.
#[inline(always)]
fn woven<L: Lanes>(
    lanes: L,
    [even, odd]: [&[f32]; 2],
    (channel, channels): (usize, usize),
) -> [L::V; WINDOW] {
    let [a, c, e, g] = lanes.load_line(odd, channel, channels);
    let [b, d, f, h] = lanes.load_line(even, channels + channel, channels);
    [a, b, c, d, e, f, g, h]
}

/// Rows first, then columns. The intermediate is written out in full: an array that is filled in a loop is
/// cleared beforehand, which took 5 % of the whole time.
#[inline(always)]
fn transform_input<L: Lanes, const ENLARGED: usize>(
    lanes: L,
    shape: &Products,
    rows: &[&[f32]; WINDOW],
    at: (usize, usize),
    to: &mut [f32],
) {
    let half = [
        inputs(lanes, columns::<L, ENLARGED>(lanes, rows[0], at)),
        inputs(lanes, columns::<L, ENLARGED>(lanes, rows[1], at)),
        inputs(lanes, columns::<L, ENLARGED>(lanes, rows[2], at)),
        inputs(lanes, columns::<L, ENLARGED>(lanes, rows[3], at)),
        inputs(lanes, columns::<L, ENLARGED>(lanes, rows[4], at)),
        inputs(lanes, columns::<L, ENLARGED>(lanes, rows[5], at)),
        inputs(lanes, columns::<L, ENLARGED>(lanes, rows[6], at)),
        inputs(lanes, columns::<L, ENLARGED>(lanes, rows[7], at)),
    ];
    store_columns(lanes, shape, &half, to);
}

#[inline(always)]
fn store_columns<L: Lanes>(
    lanes: L,
    shape: &Products,
    half: &[[L::V; WINDOW]; WINDOW],
    to: &mut [f32],
) {
    let stride = shape.position(WINDOW);
    for column in 0..WINDOW {
        let line = inputs(lanes, crosswise(half, column));
        lanes.store_line(line, WINDOW, to, (shape.position(column), stride));
    }
}

/// At m A of every tile, finished (`tile_scales` are those of products in 16-bit integers), into rows of `layer.channels` channels; columns from `width` on, and rows that
/// are not there, lie outside the picture. `place` is the first pixel's place in the rows of joining maps.
#[inline(always)]
pub(crate) fn transform_outputs<L: Lanes>(
    lanes: L,
    shape: &Products,
    (products, tile_scales, width): (&[f32], &[f32], usize),
    layer: &PlanLayer,
    joined: &[Joined<'_>],
    place: usize,
    rows: &mut [&mut [f32]],
) {
    let (vectors, is_words) = (layer.channels / L::WIDTH, layer.words.is_some());
    // With integers a register of channels has 64 registers of scales: tile after tile they stay in the first cache. Tile by
    // tile all channels' would be fetched anew each time (6 % of this transform); without scales that order is no slower.
    let (outer, inner) = match is_words {
        true => (vectors, shape.tiles),
        false => (shape.tiles, vectors),
    };
    for (outer, inner) in (0..outer).flat_map(|outer| (0..inner).map(move |inner| (outer, inner))) {
        let (tile, vector) = if is_words {
            (inner, outer)
        } else {
            (outer, inner)
        };
        let channel = vector * L::WIDTH;
        let columns = (width - tile * TILE).min(TILE);
        let from = &products[tile * shape.tile_stride + channel..];
        let half = match &layer.words {
            None => output_columns(lanes, shape, from),
            Some(words) => word_tiles::output_columns(lanes, shape, from, (words, channel)),
        };
        for (row, output) in rows.iter_mut().enumerate() {
            let mut line = outputs(lanes, crosswise(&half, row));
            if is_words {
                let scale = lanes.splat(1.0 / tile_scales[tile]);
                let bias = lanes.load(&layer.bias, channel);
                for value in &mut line {
                    *value = lanes.fma(*value, scale, bias);
                }
            }
            let pixel = tile * TILE * layer.channels + channel;
            let at = (row, place * layer.channels + pixel, channel);
            finish_line(lanes, layer, joined, at, &mut line, columns);
            lanes.store_line(line, columns, output, (pixel, layer.channels));
        }
    }
}

#[inline(always)]
fn output_columns<L: Lanes>(lanes: L, shape: &Products, from: &[f32]) -> [[L::V; TILE]; WINDOW] {
    let (step, stride) = (shape.position(1), shape.position(WINDOW));
    [
        outputs(lanes, lanes.load_line(from, 0, stride)),
        outputs(lanes, lanes.load_line(from, step, stride)),
        outputs(lanes, lanes.load_line(from, 2 * step, stride)),
        outputs(lanes, lanes.load_line(from, 3 * step, stride)),
        outputs(lanes, lanes.load_line(from, 4 * step, stride)),
        outputs(lanes, lanes.load_line(from, 5 * step, stride)),
        outputs(lanes, lanes.load_line(from, 6 * step, stride)),
        outputs(lanes, lanes.load_line(from, 7 * step, stride)),
    ]
}

//! A run of tiles through Winograd's transforms where products are taken in 16-bit integers (`words.rs`): numbers are
//! scaled and rounded on the way in, and scaled back on the way out.

use upscale_simd::{CHANNEL_UNIT, Lanes, ReadLease};

use crate::products::Products;
use crate::winograd::{POSITIONS, TILE, WINDOW, columns, crosswise, inputs, outputs};
use crate::words::Words;

/// What brings a tile with such a largest magnitude down to `most`: 1 or a power of two below. NaN where nothing does.
pub(crate) fn tile_scale(largest: f32, most: f32) -> f32 {
    if largest <= most {
        return 1.0;
    }
    match largest.is_finite() {
        true => (most / largest).log2().floor().exp2(),
        false => f32::NAN,
    }
}

/// As [`crate::tiles::transform_inputs`], of as many tiles as `largest` is long, times `scales`, in 16-bit integers.
/// Raises `largest` to the largest magnitude of each tile.
#[inline(always)]
pub(crate) fn transform_inputs<L: Lanes, const ENLARGED: usize>(
    lanes: L,
    shape: &Products,
    window: &[ReadLease<'_>; WINDOW],
    (place, channels): (usize, usize),
    (products, first): (&mut [f32], usize),
    (scales, largest): (&[f32; POSITIONS], &mut [f32]),
) {
    for (tile, largest) in largest.iter_mut().enumerate() {
        let start = place + tile * TILE / ENLARGED * channels;
        let end = start + (WINDOW / ENLARGED + ENLARGED - 1) * channels;
        let rows: [&[f32]; WINDOW] = std::array::from_fn(|row| &window[row][start..end]);
        let to = &mut products[tile * shape.tile_stride..];
        let mut found = lanes.splat(*largest);
        for channel in (0..channels).step_by(L::WIDTH) {
            let at = (channel, channels);
            let to = (&mut *to, first + channel);
            found = transform_input::<L, ENLARGED>(lanes, shape, &rows, at, to, (scales, found));
        }
        let mut lanes_found = [0.0_f32; CHANNEL_UNIT];
        lanes.store(found, &mut lanes_found, 0);
        *largest = lanes_found.into_iter().fold(0.0, f32::max);
    }
}

#[inline(always)]
fn transform_input<L: Lanes, const ENLARGED: usize>(
    lanes: L,
    shape: &Products,
    rows: &[&[f32]; WINDOW],
    at: (usize, usize),
    (to, channel): (&mut [f32], usize),
    (scales, mut largest): (&[f32; POSITIONS], L::V),
) -> L::V {
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
    let stride = shape.position(WINDOW);
    for column in 0..WINDOW {
        let mut line = inputs(lanes, crosswise(&half, column));
        for (row, value) in line.iter_mut().enumerate() {
            *value = lanes.mul(*value, lanes.splat(scales[row * WINDOW + column]));
        }
        largest = lanes.max_magnitude(largest, largest_of(lanes, line));
        lanes.store_words_line(line, &mut to[shape.position(column)..], (channel, stride));
    }
    largest
}

/// The largest magnitudes of a line. In pairs: one after another each would wait for the one before, and AVX2 waited for
/// that longer than it worked.
#[inline(always)]
fn largest_of<L: Lanes>(lanes: L, line: [L::V; WINDOW]) -> L::V {
    let [a, b, c, d, e, f, g, h] = line;
    let (a, b) = (lanes.max_magnitude(a, b), lanes.max_magnitude(c, d));
    let (c, d) = (lanes.max_magnitude(e, f), lanes.max_magnitude(g, h));
    lanes.max_magnitude(lanes.max_magnitude(a, b), lanes.max_magnitude(c, d))
}

/// The first half of At m A: sums become numbers, eight columns of them six rows each.
#[inline(always)]
pub(crate) fn output_columns<L: Lanes>(
    lanes: L,
    shape: &Products,
    from: &[f32],
    (words, channel): (&Words, usize),
) -> [[L::V; TILE]; WINDOW] {
    let place = (shape, from, words, channel);
    [
        output_column(lanes, place, 0),
        output_column(lanes, place, 1),
        output_column(lanes, place, 2),
        output_column(lanes, place, 3),
        output_column(lanes, place, 4),
        output_column(lanes, place, 5),
        output_column(lanes, place, 6),
        output_column(lanes, place, 7),
    ]
}

#[inline(always)]
fn output_column<L: Lanes>(
    lanes: L,
    (shape, from, words, channel): (&Products, &[f32], &Words, usize),
    column: usize,
) -> [L::V; TILE] {
    let mut line = lanes.load_line(from, shape.position(column), shape.position(WINDOW));
    let at = column * words.channels + channel;
    let scales: [L::V; WINDOW] = lanes.load_line(&words.sum_scales, at, WINDOW * words.channels);
    for (value, scale) in line.iter_mut().zip(scales) {
        *value = lanes.mul(lanes.whole(*value), scale);
    }
    outputs(lanes, line)
}

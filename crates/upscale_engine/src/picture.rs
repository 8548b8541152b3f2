//! The source picture as the first layer reads it.

use std::ops::Range;

use upscale_core::Pixels;

/// The 3x3 neighbourhoods of pixels `columns` of row `y` of map 0, `[row][column][channel]`: 27 numbers each where
/// `unshuffle` is 1. Colours are less their mean, zero outside the map; gray counts as three equal colours.
#[inline(always)]
pub(crate) fn gather(
    (source, mean, unshuffle): (&Pixels, [f32; 3], usize),
    y: usize,
    columns: Range<usize>,
    to: &mut Vec<f32>,
) {
    let channels = 3 * unshuffle * unshuffle;
    to.clear();
    to.resize(columns.len() * 9 * channels, 0.0);
    for part in 0..3 {
        let row = (y + part).wrapping_sub(1);
        if row >= source.height().div_ceil(unshuffle) {
            continue;
        }
        let to = &mut to[part * 3 * channels..];
        match unshuffle {
            1 => gather_row((source, mean), row, &columns, to),
            _ => gather_squares((source, mean, unshuffle), row, &columns, to),
        }
    }
}

#[inline(always)]
fn gather_row(
    (source, mean): (&Pixels, [f32; 3]),
    row: usize,
    columns: &Range<usize>,
    to: &mut [f32],
) {
    let samples = source.row(row);
    for (pixel, x) in columns.clone().enumerate() {
        let to = &mut to[pixel * 27..pixel * 27 + 9];
        if source.channels() == 3 && x > 0 && x + 1 < source.width() && mean == [0.0; 3] {
            to.copy_from_slice(&samples[(x - 1) * 3..(x + 2) * 3]);
            continue;
        }
        for (column, to) in to.chunks_exact_mut(3).enumerate() {
            let x = (x + column).wrapping_sub(1);
            if x < source.width() {
                let [r, g, b] = colours(source, samples, x);
                to.copy_from_slice(&[r - mean[0], g - mean[1], b - mean[2]]);
            }
        }
    }
}

/// As [`gather_row`], with squares of `side` x `side` source pixels as pixels: channel `c * side * side + dy * side +
/// dx`. Squares that the source does not fill repeat its last column or row.
fn gather_squares(
    (source, mean, side): (&Pixels, [f32; 3], usize),
    row: usize,
    columns: &Range<usize>,
    to: &mut [f32],
) {
    let area = side * side;
    for (pixel, x) in columns.clone().enumerate() {
        let to = &mut to[pixel * 27 * area..][..9 * area];
        for (column, to) in to.chunks_exact_mut(3 * area).enumerate() {
            let x = (x + column).wrapping_sub(1);
            if x >= source.width().div_ceil(side) {
                continue;
            }
            for (dy, dx) in (0..side).flat_map(|dy| (0..side).map(move |dx| (dy, dx))) {
                let samples = source.row((row * side + dy).min(source.height() - 1));
                let column = (x * side + dx).min(source.width() - 1);
                for (c, value) in colours(source, samples, column).into_iter().enumerate() {
                    to[c * area + dy * side + dx] = value - mean[c];
                }
            }
        }
    }
}

/// The three colours of a pixel.
#[inline(always)]
pub(crate) fn colours(source: &Pixels, row: &[f32], x: usize) -> [f32; 3] {
    match source.channels() {
        3 => [row[x * 3], row[x * 3 + 1], row[x * 3 + 2]],
        _ => [row[x]; 3],
    }
}

//! The source picture as the first layer reads it.

use std::ops::Range;

use upscale_core::Pixels;

/// The 3x3 neighbourhoods of pixels `columns` of row `y`, 27 numbers each: `[row][column][colour]` less the colour's
/// mean, zero outside the picture; gray counts as three equal colours.
#[inline(always)]
pub(crate) fn gather(
    (source, mean): (&Pixels, [f32; 3]),
    y: usize,
    columns: Range<usize>,
    to: &mut Vec<f32>,
) {
    to.clear();
    to.resize(columns.len() * 27, 0.0);
    for part in 0..3 {
        let row = (y + part).wrapping_sub(1);
        if row < source.height() {
            gather_row((source, mean), row, &columns, &mut to[part * 9..]);
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

/// The three colours of a pixel.
#[inline(always)]
pub(crate) fn colours(source: &Pixels, row: &[f32], x: usize) -> [f32; 3] {
    match source.channels() {
        3 => [row[x * 3], row[x * 3 + 1], row[x * 3 + 2]],
        _ => [row[x]; 3],
    }
}

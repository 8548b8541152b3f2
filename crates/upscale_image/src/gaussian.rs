//! Gaussians over rows that come one after another; beyond a plane's borders is what lies at them.

use std::array;

use crate::check::around;
use crate::folded::fold;
use crate::ring::Ring;
use crate::spare::Spare;

/// Normalised weights of an odd number of pixels in a line, for a deviation in pixels.
pub(crate) fn taps<const TAPS: usize>(sigma: f32) -> [f32; TAPS] {
    let taps: [f32; TAPS] = array::from_fn(|index| {
        let distance = index.abs_diff(TAPS / 2) as f32 / sigma;
        (-0.5 * distance * distance).exp()
    });
    let sum: f32 = taps.iter().sum();
    taps.map(|tap| tap / sum)
}

/// Appends a row blurred along itself.
pub(crate) fn across<const TAPS: usize>(
    row: &[f32],
    taps: &[f32; TAPS],
    blurred: &mut Vec<f32>,
    spare: &mut Spare,
) {
    let wide = around(row, 1, &(0..row.len()), TAPS / 2, spare);
    across_wide(&wide, taps, blurred);
    spare.keep([wide]);
}

/// Appends a row blurred along itself, given with as many pixels before and after it as `taps` reach.
pub(crate) fn across_wide<const TAPS: usize>(
    wide: &[f32],
    taps: &[f32; TAPS],
    blurred: &mut Vec<f32>,
) {
    blur(array::from_fn(|index| &wide[index..]), taps, blurred);
}

/// Appends row `y` of `height` rows blurred down.
pub(crate) fn down<const TAPS: usize, const KEPT: usize>(
    rows: &Ring<f32, KEPT>,
    [y, height]: [usize; 2],
    taps: &[f32; TAPS],
    blurred: &mut Vec<f32>,
) {
    blur(rows.around(y, height), taps, blurred);
}

fn blur<const TAPS: usize>(rows: [&[f32]; TAPS], taps: &[f32; TAPS], blurred: &mut Vec<f32>) {
    fold(rows, blurred, 0.0, |sum, index, sample| {
        sum + taps[index] * sample
    });
}

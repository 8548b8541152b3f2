//! Gaussians over rows that come one after another; beyond a plane's borders is what lies at them.

use upscale_simd::widened;

use crate::check::around;
use crate::ring::Ring;
use crate::spare::Spare;

/// Normalised taps of a deviation and a reach, in pixels.
pub(crate) fn taps((sigma, reach): (f32, usize)) -> Vec<f32> {
    let taps = (0..=2 * reach).map(|index| {
        let distance = index.abs_diff(reach) as f32 / sigma;
        (-0.5 * distance * distance).exp()
    });
    let taps: Vec<f32> = taps.collect();
    let sum: f32 = taps.iter().sum();
    taps.iter().map(|tap| tap / sum).collect()
}

/// Appends a row blurred along itself.
pub(crate) fn across(row: &[f32], taps: &[f32], blurred: &mut Vec<f32>, spare: &mut Spare) {
    let wide = around(row, 1, &(0..row.len()), taps.len() / 2, spare);
    let first = blurred.len();
    blurred.resize(first + row.len(), 0.0);
    for (index, tap) in taps.iter().enumerate() {
        widened!(add(&mut blurred[first..], &wide[index..], *tap));
    }
    spare.keep([wide]);
}

/// Row `y` of `height` rows blurred down.
pub(crate) fn down<const KEPT: usize>(
    rows: &Ring<f32, KEPT>,
    [y, height]: [usize; 2],
    taps: &[f32],
    sums: &mut Vec<f32>,
) {
    sums.resize(rows.row(y, height).len(), 0.0);
    for (index, tap) in taps.iter().enumerate() {
        let row = rows.row((y + index).saturating_sub(taps.len() / 2), height);
        widened!(add(sums, row, *tap));
    }
}

#[inline(always)]
fn add(sums: &mut [f32], row: &[f32], tap: f32) {
    for (sum, sample) in sums.iter_mut().zip(row) {
        *sum += tap * sample;
    }
}

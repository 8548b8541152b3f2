//! Means over squares of pixels.

use crate::bicubic::replicated;

/// Columns, rows and channels of interleaved samples.
pub(super) type Size = [usize; 3];

/// For every sample the mean of its channel over the square of `2 * radius + 1` pixels round it, edges replicated.
pub(super) fn box_mean(
    samples: &[f32],
    [width, height, channels]: Size,
    radius: usize,
) -> Vec<f32> {
    let radius = radius as isize;
    let mean = |from: &[f32], index: &dyn Fn(isize) -> usize| -> f32 {
        let sum: f32 = (-radius..=radius).map(|step| from[index(step)]).sum();
        sum / (2 * radius + 1) as f32
    };
    let at = |x: usize, y: usize, channel: usize| (y * width + x) * channels + channel;
    let every = || {
        (0..height).flat_map(move |y| {
            (0..width).flat_map(move |x| (0..channels).map(move |channel| (x, y, channel)))
        })
    };
    let rows: Vec<f32> = every()
        .map(|(x, y, c)| {
            mean(samples, &|step| {
                at(replicated(x as isize + step, width), y, c)
            })
        })
        .collect();
    every()
        .map(|(x, y, c)| {
            mean(&rows, &|step| {
                at(x, replicated(y as isize + step, height), c)
            })
        })
        .collect()
}

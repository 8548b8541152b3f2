//! The result at the source's size again: every source pixel beside the mean of the `scale × scale` result pixels made
//! of it. What the check compares and the balance corrects.

use upscale_simd::widened;

use crate::spare::Spare;

/// Source pixels that are shrunk at a time: what is between fits into a first-level cache.
const STRETCH: usize = 256;

/// Means, as wide as the source, over the blocks of a group: `scale` rows of `scale` times as many pixels of `channels`
/// samples as the source has.
pub(crate) fn shrunk(group: &[f32], channels: usize, scale: usize, spare: &mut Spare) -> Vec<f32> {
    let row_samples = group.len() / scale;
    let (mut means, mut sums) = (spare.row(), spare.row());
    means.reserve_exact(row_samples / scale);
    let stretch = STRETCH * scale * channels;
    for start in (0..row_samples).step_by(stretch) {
        let samples = start..(start + stretch).min(row_samples);
        sums.clear();
        sums.resize(samples.len(), 0.0);
        widened!({
            for row in group.chunks_exact(row_samples) {
                add_row(&row[samples.clone()], &mut sums);
            }
        });
        across(&sums, channels, scale, &mut means);
    }
    spare.keep([sums]);
    means
}

#[inline(always)]
fn add_row(row: &[f32], sums: &mut [f32]) {
    for (code, sum) in row.iter().zip(sums) {
        *sum += code.clamp(0.0, 1.0);
    }
}

/// Means of `scale` neighbouring pixels, given the sums of `scale` rows.
fn across(sums: &[f32], channels: usize, scale: usize, means: &mut Vec<f32>) {
    match channels {
        1 => across_pixels::<1>(sums, scale, means),
        _ => across_pixels::<3>(sums, scale, means),
    }
}

/// The number of channels is known when this is compiled: several times as fast.
fn across_pixels<const CHANNELS: usize>(sums: &[f32], scale: usize, means: &mut Vec<f32>) {
    let share = 1.0 / (scale * scale) as f32;
    let (pixels, _) = sums.as_chunks::<CHANNELS>();
    for block in pixels.chunks_exact(scale) {
        let mut mean = [0.0; CHANNELS];
        for pixel in block {
            mean.iter_mut()
                .zip(pixel)
                .for_each(|(sum, sample)| *sum += sample);
        }
        means.extend(mean.map(|sum| sum * share));
    }
}

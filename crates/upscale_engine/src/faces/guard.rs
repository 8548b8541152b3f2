//! Back-projection: a face may become clearer, not another. Shrunk to the source's size and smoothed, so that the
//! source's own noise and blocks do not count, an enlarged face may differ from its source by a few levels only, and by
//! more where the source is compressed, noisy or soft; what is more is taken back.

use upscale_core::{Compression, Condition, Pixels};

use super::enlarged;
use super::mean::box_mean;

/// How far the smoothed means of a clean, sharp picture may lie apart, in levels of 255.
const DIFFERENCE_MAX: f32 = 3.0;
/// Levels more for a level of noise: the mean of 25 pixels has a fifth of it, and nearly all lies within twice that. Held to
/// three levels, noise of 12 came back as blotches.
const FOR_NOISE: f32 = 0.4;
/// Levels more for a pixel of softness: an eye that becomes sharp again is darker than its source in the mean.
const FOR_SOFTNESS: f32 = 3.0;
/// Levels more for the root of the mean of a JPEG's luma table. Of 60 portraits shrunk by 4 the smoothed means of the
/// originals are in 5 % of all samples further from their JPEGs than 7.5 levels at quality 50 (a mean of 57.6), 9.7 at 30 and
/// 3.5 at 90, in 1 % than 10.5, 13.6 and 5.0: held to three levels, even the truth was taken back.
const FOR_TABLES: f32 = 1.0;
/// Coarser tables than 8 bits can hold allow no more.
const TABLE_MAX: f32 = 255.0;
/// Means are taken over 5 x 5 source pixels: noise of 5 levels has 1 left.
const RADIUS: usize = 2;

/// How far the smoothed means may lie apart, in 0..1: a compressed, noisy or soft source proves less.
fn allowed(condition: Condition) -> f32 {
    let damage = condition.estimate.map_or(0.0, |estimate| {
        FOR_NOISE * estimate.noise + FOR_SOFTNESS * estimate.softness
    });
    let tables = match condition.compression {
        Compression::Quantised { luma_mean, .. } => luma_mean.min(TABLE_MAX).sqrt(),
        Compression::Lossless | Compression::Unknown => 0.0,
    };
    (DIFFERENCE_MAX + damage + FOR_TABLES * tables) / 255.0
}

/// Takes back what `face` (rows of `source.width() * factor` pixels) differs too much by, and clamps it to 0..1.
pub(super) fn hold(face: &mut [f32], source: &Pixels, factor: usize, condition: Condition) {
    let excess = excess(face, source, factor, allowed(condition));
    let size = [source.width(), source.height(), source.channels()];
    let stride = source.width() * factor * source.channels();
    for (y, row) in face.chunks_exact_mut(stride).enumerate() {
        let taken = enlarged::row(&excess, size, factor, y);
        for (sample, taken) in row.iter_mut().zip(taken) {
            *sample = (*sample - taken).clamp(0.0, 1.0);
        }
    }
}

/// For every source sample, how far the smoothed difference lies beyond what is allowed; mostly 0.
fn excess(face: &[f32], source: &Pixels, factor: usize, allowed: f32) -> Vec<f32> {
    let mut differences = shrunk(face, source, factor);
    for (difference, sample) in differences.iter_mut().zip(source.samples()) {
        *difference -= sample;
    }
    let size = [source.width(), source.height(), source.channels()];
    let smooth = box_mean(&differences, size, RADIUS);
    let beyond = |d: f32| d - d.clamp(-allowed, allowed);
    smooth.into_iter().map(beyond).collect()
}

/// Means of `factor` x `factor` output pixels.
fn shrunk(face: &[f32], source: &Pixels, factor: usize) -> Vec<f32> {
    let (width, channels) = (source.width(), source.channels());
    let stride = width * factor * channels;
    let mut sums = vec![0.0; source.samples().len()];
    for (y, row) in face.chunks_exact(stride).enumerate() {
        let sums = &mut sums[y / factor * width * channels..];
        for (x, pixel) in row.chunks_exact(channels).enumerate() {
            let sums = &mut sums[x / factor * channels..][..channels];
            sums.iter_mut().zip(pixel).for_each(|(sum, v)| *sum += v);
        }
    }
    let share = 1.0 / (factor * factor) as f32;
    sums.iter_mut().for_each(|sum| *sum *= share);
    sums
}

#[cfg(test)]
mod tests {
    use upscale_core::{Estimate, Subsampling};

    use super::*;

    fn source(channels: usize) -> Pixels {
        let samples = (0..12 * 10 * channels).map(|i| 0.3 + 0.02 * (i % 7) as f32);
        Pixels::new(12, 10, channels, samples.collect()).unwrap()
    }

    fn repeated(source: &Pixels, factor: usize, change: impl Fn(usize, usize) -> f32) -> Vec<f32> {
        let mut face = Vec::new();
        for y in 0..source.height() * factor {
            for x in 0..source.width() * factor {
                for channel in 0..source.channels() {
                    let at = x / factor * source.channels() + channel;
                    face.push(source.row(y / factor)[at] + change(x, y));
                }
            }
        }
        face
    }

    #[test]
    fn detail_that_shrinks_away_and_small_changes_stay_untouched() {
        for (channels, factor) in [(1, 2), (3, 4)] {
            let source = source(channels);
            let checks = |x: usize, y: usize| [0.1, -0.1][(x + y) % 2];
            let face = repeated(&source, factor, |x, y| checks(x, y) + 0.008);
            let mut held = face.clone();
            hold(&mut held, &source, factor, Condition::CLEAN);
            assert_eq!(held, face);
        }
    }

    #[test]
    fn a_face_that_grew_lighter_is_taken_back_to_what_its_source_allows() {
        let spoilt = Condition {
            estimate: Some(Estimate {
                noise: 10.0,
                softness: 1.0,
                ..Estimate::NONE
            }),
            ..Condition::UNKNOWN
        };
        let jpeg = Condition {
            compression: Compression::Quantised {
                luma_mean: 49.0,
                chroma_mean: 100.0,
                subsampling: Subsampling::Quarter,
            },
            ..Condition::CLEAN
        };
        let cases = [
            (1, 4, Condition::UNKNOWN, 3.0),
            (3, 2, Condition::CLEAN, 3.0),
            (3, 4, spoilt, 10.0),
            (3, 4, jpeg, 10.0),
        ];
        for (channels, factor, condition, levels) in cases {
            let source = source(channels);
            let mut face = repeated(&source, factor, |_, _| 0.2);
            hold(&mut face, &source, factor, condition);
            let means = shrunk(&face, &source, factor);
            for (mean, sample) in means.iter().zip(source.samples()) {
                assert!((mean - sample - levels / 255.0).abs() < 1e-5);
            }
        }
    }

    #[test]
    fn an_eye_that_was_not_there_loses_most_of_itself() {
        let source = Pixels::new(40, 40, 1, vec![0.6; 1_600]).unwrap();
        let in_eye = |x: usize, y: usize| x.abs_diff(80) < 24 && y.abs_diff(80) < 24;
        let mut face = repeated(&source, 4, |x, y| if in_eye(x, y) { -0.4 } else { 0.0 });
        hold(&mut face, &source, 4, Condition::CLEAN);
        let means = shrunk(&face, &source, 4);
        let darkness: f32 = means.iter().map(|mean| (0.6 - mean).max(0.0)).sum();
        // Its 12 x 12 source pixels began with 0.4 each; near its edge the smoothed difference is a half.
        assert!(darkness < 0.4 * 0.4 * 144.0, "{darkness}");
        assert!(face.iter().all(|sample| (0.0..=1.0).contains(sample)));
    }
}

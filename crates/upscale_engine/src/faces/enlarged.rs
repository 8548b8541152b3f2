//! Planes of the source's size at the result's: interpolated linearly between the centres of source pixels.

use super::mean::Size;
use crate::bicubic::replicated;

/// Row `y` of a plane of interleaved samples that is enlarged `factor` times.
pub(super) fn row(samples: &[f32], size: Size, factor: usize, y: usize) -> Vec<f32> {
    let [width, height, channels] = size;
    let (above, below, down) = neighbours(y, factor, height);
    let row = |y: usize| &samples[y * width * channels..][..width * channels];
    let pairs = row(above).iter().zip(row(below));
    let mixed: Vec<f32> = pairs.map(|(a, b)| a + down * (b - a)).collect();
    let mut enlarged = Vec::with_capacity(mixed.len() * factor);
    for x in 0..width * factor {
        let (left, right, across) = neighbours(x, factor, width);
        let pair = [left, right].map(|x| &mixed[x * channels..][..channels]);
        let pixel = pair[0].iter().zip(pair[1]);
        enlarged.extend(pixel.map(|(left, right)| left + across * (right - left)));
    }
    enlarged
}

/// The source pixels on both sides of an output pixel's centre, and how near the second one is.
fn neighbours(at: usize, factor: usize, size: usize) -> (usize, usize, f32) {
    let centre = (at as f32 + 0.5) / factor as f32 - 0.5;
    let low = centre.floor();
    let pixel = |position: f32| replicated(position as isize, size);
    (pixel(low), pixel(low + 1.0), centre - low)
}

#[cfg(test)]
mod tests {
    use super::row;

    #[test]
    fn a_ramp_stays_one_and_ends_flat() {
        // Two channels: one rises to the right, one downwards.
        let samples: Vec<f32> = (0..12)
            .flat_map(|i| [(i % 4) as f32, (i / 4) as f32])
            .collect();
        let middle = row(&samples, [4, 3, 2], 2, 2);
        let across: Vec<f32> = middle.iter().step_by(2).copied().collect();
        assert_eq!(across, [0.0, 0.25, 0.75, 1.25, 1.75, 2.25, 2.75, 3.0]);
        assert!(middle.iter().skip(1).step_by(2).all(|down| *down == 0.75));
        let last = row(&samples, [4, 3, 2], 2, 5);
        assert!(last.iter().skip(1).step_by(2).all(|down| *down == 2.0));
    }
}

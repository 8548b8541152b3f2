//! MATLAB's `imresize` in double precision: half-pixel centres, the kernel widened when shrinking (antialias),
//! mirrored edges. `training/upscale_training/resize.py` is the same arithmetic; both sides must agree, because
//! the published figures of the field hold for this resizing alone.

use super::Rgb8;

/// What a new pixel is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kernel {
    /// Cubic convolution with a = -0.5 (Keys, 1981).
    Bicubic,
    /// Windowed sinc with three lobes.
    Lanczos3,
    /// The mean of what a new pixel covers.
    Box,
}

impl Kernel {
    /// Width in source pixels when enlarging.
    fn support(self) -> f64 {
        match self {
            Self::Bicubic => 4.0,
            Self::Lanczos3 => 6.0,
            Self::Box => 1.0,
        }
    }

    fn at(self, x: f64) -> f64 {
        let x = x.abs();
        match self {
            Self::Bicubic if x <= 1.0 => (1.5 * x - 2.5) * x * x + 1.0,
            Self::Bicubic if x <= 2.0 => ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0,
            Self::Lanczos3 if x < 3.0 => sinc(x) * sinc(x / 3.0),
            Self::Box if x <= 0.5 => 1.0,
            Self::Bicubic | Self::Lanczos3 | Self::Box => 0.0,
        }
    }
}

fn sinc(x: f64) -> f64 {
    let angle = std::f64::consts::PI * x;
    if angle == 0.0 {
        1.0
    } else {
        angle.sin() / angle
    }
}

/// Resizes to `width` x `height` (both ≥ 1), clamped and rounded to 8 bits, halves up.
#[must_use]
pub fn resize(picture: &Rgb8, width: usize, height: usize, kernel: Kernel) -> Rgb8 {
    let rows = Axis::new(picture.height(), height.max(1), kernel);
    let columns = Axis::new(picture.width(), width.max(1), kernel);
    let stride = picture.width() * 3;
    let mut samples = Vec::with_capacity(columns.taps.len() * rows.taps.len() * 3);
    let mut line = vec![0.0; stride];
    for taps in &rows.taps {
        line.fill(0.0);
        for &(y, weight) in taps {
            let row = &picture.samples()[y * stride..(y + 1) * stride];
            line.iter_mut()
                .zip(row)
                .for_each(|(sum, &value)| *sum += weight * f64::from(value));
        }
        for taps in &columns.taps {
            let mut pixel = [0.0; 3];
            for &(x, weight) in taps {
                let from = &line[x * 3..x * 3 + 3];
                pixel
                    .iter_mut()
                    .zip(from)
                    .for_each(|(sum, value)| *sum += weight * value);
            }
            samples.extend(pixel.map(|value| (value.clamp(0.0, 255.0) + 0.5).floor() as u8));
        }
    }
    // One pixel for each pair of taps, by the loops above.
    let made = Rgb8::new(columns.taps.len(), rows.taps.len(), samples);
    made.unwrap_or_else(|_| unreachable!("three samples a pixel"))
}

/// One direction: which source places each new place is made of, and with which weights, whose sum is 1.
struct Axis {
    taps: Vec<Vec<(usize, f64)>>,
}

impl Axis {
    fn new(size_in: usize, size_out: usize, kernel: Kernel) -> Self {
        let factor = size_out as f64 / size_in as f64;
        let stretch = (1.0 / factor).max(1.0);
        let reach = kernel.support() * stretch;
        let tap_count = reach.ceil() as i64 + 2;
        let taps = (0..size_out).map(|place| {
            let centre = (place as f64 + 0.5) / factor - 0.5;
            let left = (centre - reach / 2.0).floor() as i64;
            let weight = |index: i64| kernel.at((centre - index as f64) / stretch);
            let weights: Vec<f64> = (left..left + tap_count).map(weight).collect();
            let sum: f64 = weights.iter().sum();
            let tap = |(offset, weight): (usize, &f64)| {
                (mirrored(left + offset as i64, size_in), weight / sum)
            };
            weights
                .iter()
                .enumerate()
                .filter(|(_, weight)| **weight != 0.0)
                .map(tap)
                .collect()
        });
        Self {
            taps: taps.collect(),
        }
    }
}

/// Places beyond an edge are those as far inside it, the edge's own repeated: … 1 0 | 0 1 2 … n-1 | n-1 n-2 …
fn mirrored(index: i64, size: usize) -> usize {
    let size = size as i64;
    let index = index.rem_euclid(2 * size);
    (if index < size {
        index
    } else {
        2 * size - 1 - index
    }) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_size_changes_nothing() {
        let picture = Rgb8::paint(9, 6, |x, y| {
            [(x * 28) as u8, (y * 50) as u8, (x * y * 5) as u8]
        });
        assert_eq!(resize(&picture, 9, 6, Kernel::Bicubic), picture);
        assert_eq!(resize(&picture, 9, 6, Kernel::Lanczos3), picture);
    }

    #[test]
    fn a_flat_picture_stays_flat_at_every_size() {
        let picture = Rgb8::paint(10, 7, |_, _| [3, 128, 250]);
        for (width, height) in [(1, 1), (5, 3), (20, 14), (33, 29)] {
            for kernel in [Kernel::Bicubic, Kernel::Lanczos3, Kernel::Box] {
                let resized = resize(&picture, width, height, kernel);
                assert_eq!(resized, Rgb8::paint(width, height, |_, _| [3, 128, 250]));
            }
        }
    }

    /// Worked out by hand: enlarging twice, the phases are ±1/4, with the weights of Keys' kernel at 1/4, 3/4,
    /// 5/4 and 7/4: 111/128, 29/128, -9/128 and -3/128.
    #[test]
    fn an_edge_rings_exactly_as_the_kernel_says() {
        let picture = Rgb8::paint(6, 1, |x, _| [if x < 3 { 0 } else { 128 }; 3]);
        let resized = resize(&picture, 12, 1, Kernel::Bicubic);
        let row: Vec<u8> = (0..12).map(|x| resized.pixel(x, 0)[0]).collect();
        assert_eq!(row, [0, 0, 0, 0, 0, 26, 102, 137, 131, 128, 128, 128]);
    }

    #[test]
    fn a_box_is_the_mean_of_its_square() {
        let picture = Rgb8::paint(8, 4, |x, y| [(x * 10) as u8, (y * 20) as u8, (x * y) as u8]);
        let small = resize(&picture, 2, 1, Kernel::Box);
        assert_eq!(
            (small.pixel(0, 0), small.pixel(1, 0)),
            ([15, 30, 2], [55, 30, 8])
        );
    }

    #[test]
    fn shrinking_looks_at_every_pixel() {
        let picture = Rgb8::paint(16, 16, |x, y| [if (x + y) % 2 == 0 { 255 } else { 0 }; 3]);
        let small = resize(&picture, 4, 4, Kernel::Bicubic);
        let spread = small
            .samples()
            .iter()
            .map(|&value| value.abs_diff(128))
            .max();
        assert!(
            spread <= Some(4),
            "a checkerboard must become gray: {small:?}"
        );
    }
}

//! PSNR and SSIM on luma, a border shaved: the two figures by which the field compares upscalers.

use upscale_image::raster::Rgb8;

/// How alike two pictures are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Likeness {
    /// Decibels against a peak of 255; infinite where the two are equal.
    pub(crate) psnr: f64,
    /// 1 where the two are equal.
    pub(crate) ssim: f64,
}

/// Compares on Y of BT.601 (16 + 65.481 R + 128.553 G + 24.966 B, not rounded), without a border of `shave`
/// pixels. None when the sizes differ or less than an 11 x 11 window is left.
#[must_use]
pub(crate) fn compare(one: &Rgb8, other: &Rgb8, shave: usize) -> Option<Likeness> {
    if (one.width(), one.height()) != (other.width(), other.height()) {
        return None;
    }
    let (one, other) = (Plane::luma(one, shave)?, Plane::luma(other, shave)?);
    Some(Likeness {
        psnr: psnr(&one, &other),
        ssim: ssim(&one, &other),
    })
}

/// Side of SSIM's window.
const WINDOW: usize = 11;
/// Its standard deviation, and the two constants that keep divisions away from 0 (Wang et al., 2004).
const SIGMA: f64 = 1.5;
const C1: f64 = (0.01 * 255.0) * (0.01 * 255.0);
const C2: f64 = (0.03 * 255.0) * (0.03 * 255.0);

struct Plane {
    width: usize,
    height: usize,
    values: Vec<f64>,
}

impl Plane {
    fn luma(picture: &Rgb8, shave: usize) -> Option<Self> {
        let inner = |size: usize| size.checked_sub(2 * shave).filter(|&left| left >= WINDOW);
        let (width, height) = (inner(picture.width())?, inner(picture.height())?);
        let mut values = Vec::with_capacity(width * height);
        for y in shave..shave + height {
            for x in shave..shave + width {
                let [r, g, b] = picture.pixel(x, y).map(f64::from);
                values.push(16.0 + (65.481 * r + 128.553 * g + 24.966 * b) / 255.0);
            }
        }
        Some(Self {
            width,
            height,
            values,
        })
    }

    /// Value by value of two planes of one size.
    fn with(&self, other: &Self, combine: impl Fn(f64, f64) -> f64) -> Self {
        let pairs = self.values.iter().zip(&other.values);
        let values = pairs.map(|(&a, &b)| combine(a, b)).collect();
        Self { values, ..*self }
    }

    /// Gaussian means over whole windows only: 10 columns and rows fewer.
    fn blurred(&self) -> Self {
        let taps = gaussian();
        let (width, height) = (self.width - WINDOW + 1, self.height - WINDOW + 1);
        let mut tall = vec![0.0; width * self.height];
        let rows = self.values.chunks_exact(self.width);
        for (sums, row) in tall.chunks_exact_mut(width).zip(rows) {
            for (start, tap) in taps.iter().enumerate() {
                add(sums, *tap, &row[start..start + width]);
            }
        }
        let mut values = vec![0.0; width * height];
        for (y, sums) in values.chunks_exact_mut(width).enumerate() {
            for (down, tap) in taps.iter().enumerate() {
                let start = (y + down) * width;
                add(sums, *tap, &tall[start..start + width]);
            }
        }
        Self {
            width,
            height,
            values,
        }
    }
}

/// `sums += tap * row`, place by place.
fn add(sums: &mut [f64], tap: f64, row: &[f64]) {
    for (sum, value) in sums.iter_mut().zip(row) {
        *sum += tap * value;
    }
}

fn gaussian() -> [f64; WINDOW] {
    let tap = |place: usize| {
        let offset = place as f64 - (WINDOW / 2) as f64;
        (-offset * offset / (2.0 * SIGMA * SIGMA)).exp()
    };
    let taps: [f64; WINDOW] = std::array::from_fn(tap);
    let sum: f64 = taps.iter().sum();
    taps.map(|tap| tap / sum)
}

fn psnr(one: &Plane, other: &Plane) -> f64 {
    let squares = one.with(other, |a, b| (a - b) * (a - b));
    let error = squares.values.iter().sum::<f64>() / squares.values.len() as f64;
    if error == 0.0 {
        f64::INFINITY
    } else {
        10.0 * (255.0 * 255.0 / error).log10()
    }
}

fn ssim(one: &Plane, other: &Plane) -> f64 {
    let (m1, m2) = (one.blurred(), other.blurred());
    let v1 = one.with(one, |a, b| a * b).blurred();
    let v2 = other.with(other, |a, b| a * b).blurred();
    let shared = one.with(other, |a, b| a * b).blurred();
    let at = |i: usize| {
        let (a, b) = (m1.values[i], m2.values[i]);
        let likeness = (2.0 * a * b + C1) * (2.0 * (shared.values[i] - a * b) + C2);
        likeness / ((a * a + b * b + C1) * (v1.values[i] - a * a + v2.values[i] - b * b + C2))
    };
    (0..m1.values.len()).map(at).sum::<f64>() / m1.values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waves(shift: f64) -> Rgb8 {
        Rgb8::paint(40, 30, |x, y| {
            let value = 128.0 + 60.0 * (x as f64 * 0.4 + shift).sin() * (y as f64 * 0.3).cos();
            [value as u8, (value * 0.8) as u8, 90]
        })
    }

    #[test]
    fn a_picture_is_wholly_like_itself() {
        let found = compare(&waves(0.0), &waves(0.0), 2).unwrap();
        assert!(found.psnr.is_infinite());
        assert!((found.ssim - 1.0).abs() < 1e-12, "{found:?}");
    }

    /// One level of gray is 219/255 of Y: 20 log10(255 / (219/255)) = 49.45 dB.
    #[test]
    fn one_level_everywhere_is_49_decibels() {
        let gray = |level: u8| Rgb8::paint(20, 20, |_, _| [level; 3]);
        let found = compare(&gray(100), &gray(101), 0).unwrap();
        assert!((found.psnr - 49.4527).abs() < 1e-3, "{found:?}");
    }

    #[test]
    fn the_more_a_picture_is_moved_the_less_alike_it_is() {
        let [near, far] = [0.1, 0.6].map(|shift| compare(&waves(0.0), &waves(shift), 2).unwrap());
        assert!(
            near.psnr > far.psnr + 5.0 && near.ssim > far.ssim,
            "{near:?} {far:?}"
        );
    }

    #[test]
    fn different_sizes_and_pictures_without_a_window_compare_to_nothing() {
        let small = Rgb8::paint(12, 12, |_, _| [0; 3]);
        assert_eq!(compare(&waves(0.0), &small, 0), None);
        assert_eq!(compare(&small, &small, 1), None);
        assert!(compare(&small, &small, 0).is_some());
    }
}

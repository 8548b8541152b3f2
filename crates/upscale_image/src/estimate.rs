//! How noisy and how soft a picture is, judged from the picture alone: one estimate for the whole picture, never for a
//! tile. `training/upscale_training/estimate.py` is the same arithmetic and fitted the regression; the networks were
//! trained hearing this estimate, so the two must agree (`weights/estimate.golden.safetensors`).

mod edges;
mod grain;
mod overshoot;
mod regression;

use upscale_core::{Estimate, Pixels};
use upscale_simd::widened;

use self::regression::Regression;

/// Pictures with a shorter side are too small to judge.
const SIDE_MIN: usize = 24;
/// The smallest amplitude, in levels, that a logarithm tells from none.
const FLOOR: f32 = 0.05;
/// Levels from which on noise that may be texture is told from noise.
const TEXTURE_NOISE_MIN: f32 = 2.0;

/// Noise and softness of a picture of 1 or 3 channels in `[0, 1]`; `None` where a side is shorter than 24 pixels.
#[must_use]
pub fn estimate(picture: &Pixels) -> Option<Estimate> {
    if picture.width().min(picture.height()) < SIDE_MIN {
        return None;
    }
    let regression = Regression::embedded()?;
    let features = features(picture);
    let mut found = regression.estimate(&features);
    found.may_be_texture = found.noise >= TEXTURE_NOISE_MIN && grain::may_be_texture(&features);
    Some(found)
}

/// The numbers that the regression reads, in the order of `estimate.py`.
fn features(picture: &Pixels) -> Vec<f32> {
    let codes = Codes::of(picture);
    let mut found = grain::features(&codes);
    let luma = codes.luma();
    found.extend(edges::features(&luma));
    found.extend(overshoot::features(&luma));
    found
}

/// A picture in whole levels of 0 to 255.
struct Codes {
    width: usize,
    height: usize,
    /// Red, green, blue of every pixel.
    levels: Vec<[f32; 3]>,
}

impl Codes {
    fn of(picture: &Pixels) -> Self {
        let samples = picture.samples();
        let mut levels = vec![[0.0; 3]; samples.len() / picture.channels()];
        widened!(match picture.channels() {
            3 => round(&mut levels, samples.as_chunks().0.iter().copied()),
            _ => round(&mut levels, samples.iter().map(|gray| [*gray; 3])),
        });
        Self {
            width: picture.width(),
            height: picture.height(),
            levels,
        }
    }

    fn luma(&self) -> Plane {
        Plane {
            width: self.width,
            height: self.height,
            samples: self.levels.iter().map(luma).collect(),
        }
    }
}

#[inline(always)]
fn round(levels: &mut [[f32; 3]], pixels: impl Iterator<Item = [f32; 3]>) {
    for (level, pixel) in levels.iter_mut().zip(pixels) {
        *level = pixel.map(|sample| (sample.clamp(0.0, 1.0) * 255.0 + 0.5).floor());
    }
}

/// Brightness of a pixel: 0 to 255 in exact 256ths.
fn luma([red, green, blue]: &[f32; 3]) -> f32 {
    (77.0 * red + 150.0 * green + 29.0 * blue) / 256.0
}

/// One number a pixel.
struct Plane {
    width: usize,
    height: usize,
    samples: Vec<f32>,
}

/// What the regression reads of an amplitude.
fn log(amplitude: f32) -> f32 {
    (amplitude + FLOOR).log2()
}

/// The values at `shares` of `values`, ascending, by nearest rank; `values` is reordered. Empty where it is empty.
fn quantiles(values: &mut [f32], shares: &[f64]) -> Vec<f32> {
    let Some(last) = values.len().checked_sub(1) else {
        return Vec::new();
    };
    let mut found = Vec::with_capacity(shares.len());
    let mut start = 0;
    for share in shares {
        let rank = (share * last as f64 + 0.5).floor() as usize;
        let rest = &mut values[start..];
        let (_, value, _) = rest.select_nth_unstable_by(rank - start, f32::total_cmp);
        found.push(*value);
        start = rank;
    }
    found
}

#[cfg(test)]
mod tests;

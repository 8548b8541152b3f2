//! ICC profiles through `moxcms`: which ones are usable, their tone curves, and conversion to sRGB for those whose
//! numbers would mean nothing to a network (inks, XYB and other look-up tables).

use moxcms::{
    ColorProfile, DataColorSpace, Layout, RenderingIntent, ToneReprCurve, TransformOptions,
};

use super::curve::{Curve, Curves};

/// Pixels converted at a time.
const CHUNK: usize = 4096;
/// A gray of a look-up profile may be tinted this much (sRGB code values) and still count as gray.
const TINT_MAX: f32 = 0.08;
/// How far the tone of a look-up profile may be from sRGB's.
const TONE_MAX: f32 = 0.15;

/// A profile that parsed and is of the kind asked for.
pub(super) struct Profile(ColorProfile);

impl Profile {
    pub(super) fn of_rgb(bytes: &[u8]) -> Option<Self> {
        Self::of(bytes, DataColorSpace::Rgb)
    }

    pub(super) fn of_gray(bytes: &[u8]) -> Option<Self> {
        Self::of(bytes, DataColorSpace::Gray).filter(|profile| profile.0.gray_trc.is_some())
    }

    pub(super) fn of_inks(bytes: &[u8]) -> Option<Self> {
        Self::of(bytes, DataColorSpace::Cmyk)
    }

    fn of(bytes: &[u8], space: DataColorSpace) -> Option<Self> {
        let profile = ColorProfile::new_from_slice(bytes).ok()?;
        (profile.color_space == space).then_some(Self(profile))
    }

    /// Look-up tables win over curves and matrix, as ICC.1:2022, 8.10 has it.
    fn is_matrix(&self) -> bool {
        self.0.is_matrix_shaper()
            && self.0.lut_a_to_b_perceptual.is_none()
            && self.0.lut_a_to_b_colorimetric.is_none()
    }

    /// The numbers are red, green and blue on a curve a network can work with: every matrix profile, and those look-up
    /// profiles whose grays are gray and about as bright as sRGB's.
    pub(super) fn resembles_srgb(&self) -> bool {
        if self.is_matrix() {
            return true;
        }
        let steps: Vec<f32> = (0..=16).map(|step| step as f32 / 16.0).collect();
        let ramp: Vec<f32> = steps.iter().flat_map(|v| [*v; 3]).collect();
        let Some(shown) = self.to_srgb(3, &ramp) else {
            // No one can convert it, so no one is told another story: the numbers stay as they are.
            return true;
        };
        shown.chunks_exact(3).zip(&steps).all(|(rgb, step)| {
            tint(rgb) <= TINT_MAX && rgb.iter().all(|v| (v - step).abs() <= TONE_MAX)
        })
    }

    /// Equal numbers are gray: one curve for all three channels, and no look-up table.
    pub(super) fn neutral_is_gray(&self) -> bool {
        self.is_matrix()
            && self.0.red_trc == self.0.green_trc
            && self.0.green_trc == self.0.blue_trc
    }

    /// What equal numbers are in sRGB; `None` when they are the same there, or no gray.
    pub(super) fn neutral_curve(&self) -> Option<Curve> {
        if !self.neutral_is_gray() {
            return None;
        }
        let linear = self.0.red_trc.as_ref()?.make_linear_evaluator().ok()?;
        Curve::exact(|code| linear.evaluate_value(code))
    }

    /// Between the profile's curves and sRGB's, per channel.
    pub(super) fn curves(&self) -> Option<Curves> {
        let profile = &self.0;
        let traces = match profile.color_space {
            DataColorSpace::Gray => vec![&profile.gray_trc],
            _ if self.is_matrix() => vec![&profile.red_trc, &profile.green_trc, &profile.blue_trc],
            _ => return None,
        };
        Curves::new(
            traces
                .into_iter()
                .map(|trace| curve(trace.as_ref()))
                .collect(),
        )
    }

    /// Converts interleaved samples of `channels` (3 or 4) to sRGB, clipped to what sRGB holds. `None` when the profile
    /// has no way to colours.
    pub(super) fn to_srgb(&self, channels: usize, samples: &[f32]) -> Option<Vec<f32>> {
        let layout = if channels == 4 {
            Layout::Rgba
        } else {
            Layout::Rgb
        };
        let options = TransformOptions {
            rendering_intent: RenderingIntent::Perceptual,
            ..TransformOptions::default()
        };
        let srgb = ColorProfile::new_srgb();
        let transform = self
            .0
            .create_transform_f32(layout, &srgb, Layout::Rgb, options)
            .ok()?;
        let mut converted = vec![0.0; samples.len() / channels * 3];
        let sources = samples.chunks(CHUNK * channels);
        for (from, to) in sources.zip(converted.chunks_mut(CHUNK * 3)) {
            transform.transform(from, to).ok()?;
        }
        for value in &mut converted {
            *value = if value.is_finite() {
                value.clamp(0.0, 1.0)
            } else {
                0.0
            };
        }
        Some(converted)
    }
}

fn curve(trace: Option<&ToneReprCurve>) -> Option<Curve> {
    let linear = trace?.make_linear_evaluator().ok()?;
    Curve::new(|code| linear.evaluate_value(code))
}

fn tint(rgb: &[f32]) -> f32 {
    let low = rgb.iter().copied().fold(f32::INFINITY, f32::min);
    rgb.iter().copied().fold(f32::NEG_INFINITY, f32::max) - low
}

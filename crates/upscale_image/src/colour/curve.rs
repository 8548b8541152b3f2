//! Tone curves as tables: the sRGB curve itself, and what lies between a file's own curve and sRGB's, exactly invertible.

/// Steps of a table; 16 to a level of 8 bits.
const STEPS: usize = 4096;
/// A curve that strays less than this from sRGB's is taken for it: gamma 2.2 (Adobe RGB) strays by 0.033, gamma 1.8
/// (ProPhoto) by 0.08, linear light by 0.32.
const STRAY_MAX: f32 = 0.04;

/// sRGB to linear light, IEC 61966-2-1.
pub(crate) fn srgb_to_linear(code: f32) -> f32 {
    if code <= 0.040_45 {
        code / 12.92
    } else {
        ((code + 0.055) / 1.055).powf(2.4)
    }
}

/// Linear light to sRGB, IEC 61966-2-1.
pub(crate) fn linear_to_srgb(linear: f32) -> f32 {
    if linear <= 0.003_130_8 {
        linear * 12.92
    } else {
        1.055 * linear.powf(1.0 / 2.4) - 0.055
    }
}

/// A file's code values as sRGB code values of the same light, and back.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Curve {
    /// sRGB code by file code, `STEPS + 1` values, rising from 0 to 1.
    table: Vec<f32>,
}

impl Curve {
    /// From what turns a file's code into linear light. `None` when that is sRGB's curve, near enough, or no curve to
    /// go back through (falling, flat, not finite).
    pub(crate) fn new(to_linear: impl Fn(f32) -> f32) -> Option<Self> {
        Self::exact(to_linear).filter(|curve| curve.strays_over(STRAY_MAX))
    }

    /// The same, kept however near it is to sRGB's; `None` only when it is sRGB's to half a level of 16 bits.
    pub(crate) fn exact(to_linear: impl Fn(f32) -> f32) -> Option<Self> {
        let (black, white) = (to_linear(0.0), to_linear(1.0));
        let range = white - black;
        if !range.is_finite() || range < 0.5 {
            return None;
        }
        let table: Vec<f32> = (0..=STEPS)
            .map(|step| {
                let light = (to_linear(step as f32 / STEPS as f32) - black) / range;
                linear_to_srgb(light.clamp(0.0, 1.0))
            })
            .collect();
        let rises = table.windows(2).all(|pair| pair[0] < pair[1]);
        let curve = Self { table };
        (rises && curve.strays_over(0.5 / 65_535.0)).then_some(curve)
    }

    fn strays_over(&self, distance: f32) -> bool {
        let steps = self.table.iter().enumerate();
        steps
            .map(|(step, value)| (value - step as f32 / STEPS as f32).abs())
            .any(|stray| stray > distance)
    }

    pub(crate) fn encode(&self, code: f32) -> f32 {
        let at = code.clamp(0.0, 1.0) * STEPS as f32;
        let step = (at as usize).min(STEPS - 1);
        let (low, high) = (self.table[step], self.table[step + 1]);
        low + (high - low) * (at - step as f32)
    }

    pub(crate) fn decode(&self, value: f32) -> f32 {
        let above = self.table.partition_point(|entry| *entry <= value);
        let step = above.clamp(1, STEPS) - 1;
        let (low, high) = (self.table[step], self.table[step + 1]);
        ((step as f32 + (value - low) / (high - low)) / STEPS as f32).clamp(0.0, 1.0)
    }

    pub(crate) fn encode_all(&self, mut samples: Vec<f32>) -> Vec<f32> {
        samples
            .iter_mut()
            .for_each(|sample| *sample = self.encode(*sample));
        samples
    }
}

/// A curve for each channel, `None` where the file's is sRGB's.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Curves(Vec<Option<Curve>>);

impl Curves {
    /// `None` when no channel needs one.
    pub(crate) fn new(curves: Vec<Option<Curve>>) -> Option<Self> {
        curves.iter().any(Option::is_some).then_some(Self(curves))
    }

    /// The same for every channel.
    pub(crate) fn same(curve: Option<Curve>, channels: usize) -> Option<Self> {
        Self::new(vec![curve; channels])
    }

    pub(crate) fn encode(&self, samples: &mut [f32]) {
        self.map(samples, Curve::encode);
    }

    pub(crate) fn decode(&self, samples: &mut [f32]) {
        self.map(samples, Curve::decode);
    }

    fn map(&self, samples: &mut [f32], apply: fn(&Curve, f32) -> f32) {
        for pixel in samples.chunks_exact_mut(self.0.len()) {
            for (sample, curve) in pixel.iter_mut().zip(&self.0) {
                if let Some(curve) = curve {
                    *sample = apply(curve, *sample);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Curve, linear_to_srgb, srgb_to_linear};

    #[test]
    fn srgb_and_linear_light_are_inverse() {
        for level in 0..=255 {
            let code = level as f32 / 255.0;
            assert!((linear_to_srgb(srgb_to_linear(code)) - code).abs() < 1e-6);
        }
    }

    #[test]
    fn a_curve_goes_there_and_back_at_16_bits() {
        for exponent in [0.35, 1.0, 1.8, 2.857] {
            let curve = Curve::new(|code| code.powf(exponent)).expect("not sRGB's curve");
            for level in 0..=65_535_u32 {
                let code = level as f32 / 65_535.0;
                let back = curve.decode(curve.encode(code));
                assert!(
                    (back - code).abs() < 0.5 / 65_535.0,
                    "{exponent}: {level} {back}"
                );
            }
        }
    }

    #[test]
    fn srgb_and_gamma_22_need_no_curve() {
        assert_eq!(Curve::new(srgb_to_linear), None);
        assert_eq!(Curve::new(|code| code.powf(2.2)), None);
    }

    #[test]
    fn a_curve_without_a_way_back_is_none() {
        assert_eq!(Curve::new(|code| 1.0 - code), None);
        assert_eq!(Curve::new(|code| code.round()), None);
        assert_eq!(Curve::new(|_| f32::NAN), None);
    }
}

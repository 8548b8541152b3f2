//! What the networks read of a picture beyond what was measured: more softness makes them sharpen more, and pictures from
//! cameras are never as free of noise and compression as they read.

use super::{Compression, Condition, Estimate, RESTORED_SOFTNESS_MIN};
use crate::look::Look;
use crate::scale::Scale;

/// Levels of noise from which on a look tells what was read: sharpened more, noise comes out as grain.
const QUIET: f32 = 1.25;
/// Pixels of softness between which a picture becomes soft. Clean drawings at 2x that read 0.2 to 0.3 lost 0.12 dB to all that
/// a look adds.
const SOFT: [f32; 2] = [0.2, 0.35];
/// Pixels of softness between which a look adds less and less to it: the cameras of DRealSR, which read 0.75 in the mean,
/// gained no likeness from any.
const VERY_SOFT: [f32; 2] = [0.6, 0.72];
/// Levels of noise that soft lossless pictures without noise count as. By what is measured, the networks take the last traces of
/// noise and compression for texture; of 1.5 to 3 levels this is nearest to RealSR's originals at 4x.
const CAMERA_NOISE: f32 = 2.0;
/// Pixels of softness added to what is read, for the networks that draw large faces. Side by side, told 0.5 edges grow halos.
const LARGE_FACES_SOFTNESS: f32 = 0.33;
/// The same for small faces, at 4x: with 0.16 nearly one in three was further from its original, behind a blur of one pixel.
const SMALL_FACES_SOFTNESS_X4: f32 = 0.08;
/// At 2x, where the source says more: with 0.08 faces behind that blur change by 2.5 levels and are 1.45 dB nearer to their
/// originals than without, with 0.2 by 3.0 levels (3 asked) and 0.78 dB, 87 % of them nearer; with 0.24 77 %.
const SMALL_FACES_SOFTNESS_X2: f32 = 0.2;

/// How far a picture that reads as soft as that, in pixels, is soft: 0..1.
#[must_use]
pub fn soft_share(softness: f32) -> f32 {
    let [sharp, soft] = SOFT;
    ((softness - sharp) / (soft - sharp)).clamp(0.0, 1.0)
}

/// Share 0..1 of what is added to a softness of so many pixels: none for very soft pictures.
fn falling(softness: f32) -> f32 {
    let [all, nothing] = VERY_SOFT;
    ((nothing - softness) / (nothing - all)).clamp(0.0, 1.0)
}

impl Condition {
    /// What the network of a look is told: lossless pictures that are soft and not noisy, as cameras leave them, are called
    /// noisier and at 4x not known to be lossless; in the finer looks soft ones are called softer than they read. Side by side
    /// with names hidden, of 12 real pictures that the last changes it was preferred on 5, and on none without (decision 38).
    #[must_use]
    pub fn for_look(self, look: Look, scale: Scale) -> Self {
        let more = |softness| soft_share(softness) * falling(softness) * look.added_softness(scale);
        let softer = self.told_softer(more);
        if self.is_as_cameras_leave_it() {
            softer.doubted(scale)
        } else {
            softer
        }
    }

    fn is_as_cameras_leave_it(self) -> bool {
        let reads_so = |estimate: Estimate| {
            estimate.sure_noise() < QUIET && estimate.softness >= RESTORED_SOFTNESS_MIN
        };
        self.compression == Compression::Lossless && self.estimate.is_some_and(reads_so)
    }

    /// With the noise of cameras, and at 4x without what the file says of having lost nothing: what a camera compressed and
    /// someone kept as a PNG says so too. In the default look the soft pairs of RealSR and DRealSR are nearer to the originals
    /// by .011 and .025 of SSIM at 4x, by .007 and .014 at 2x; Kodak24 behind blurs of 0.8 and 1.2 pixels, never compressed
    /// and without noise, loses 0.4 to 0.5 dB at both. Doubting the file at 2x too would cost RealSR .002 and Kodak24 1.1 dB
    /// (decision 23).
    fn doubted(self, scale: Scale) -> Self {
        let noisier = |estimate| Estimate {
            noise: CAMERA_NOISE,
            may_be_texture: false,
            ..estimate
        };
        Self {
            compression: match scale {
                Scale::X2 => self.compression,
                Scale::X4 => Compression::Unknown,
            },
            estimate: self.estimate.map(noisier),
        }
    }

    /// What the networks that draw large faces are told: as in the looks, but more, and of sharp pictures too. What it costs
    /// drawings does not count in a face.
    #[must_use]
    pub fn for_large_faces(self) -> Self {
        self.told_softer(|softness| falling(softness) * LARGE_FACES_SOFTNESS)
    }

    /// What the networks that draw small faces are told: of very soft ones more as well, for there they are to be seen. Not of
    /// JPEGs: behind quality 30 faces at 2x would be 0.02 dB further from their originals, and no finer.
    #[must_use]
    pub fn for_small_faces(self, scale: Scale) -> Self {
        let most = match scale {
            Scale::X2 => SMALL_FACES_SOFTNESS_X2,
            Scale::X4 => SMALL_FACES_SOFTNESS_X4,
        };
        match self.compression {
            Compression::Quantised { .. } => self,
            Compression::Lossless | Compression::Unknown => {
                self.told_softer(|softness| soft_share(softness) * most)
            }
        }
    }

    /// Softer by what `more` answers to the softness read, in pixels; not where the picture reads noisy.
    fn told_softer(self, more: impl Fn(f32) -> f32) -> Self {
        let softer = |estimate: Estimate| match estimate.sure_noise() < QUIET {
            true => Estimate {
                softness: estimate.softness + more(estimate.softness),
                ..estimate
            },
            false => estimate,
        };
        Self {
            estimate: self.estimate.map(softer),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::condition::QUALITY_75;

    fn reading(noise: f32, softness: f32) -> Condition {
        let estimate = Estimate {
            noise,
            softness,
            may_be_texture: false,
        };
        Condition {
            estimate: Some(estimate),
            ..Condition::CLEAN
        }
    }

    #[test]
    fn finer_looks_call_soft_pictures_softer_but_not_noisy_ones() {
        let softness_in = |look, noise, softness| {
            let condition = reading(noise, softness);
            condition
                .for_look(look, Scale::X2)
                .estimate
                .unwrap()
                .softness
        };
        for softness in [0.0, 0.2, 0.72, 1.0, 2.2] {
            for look in Look::ALL {
                assert_eq!(softness_in(look, 0.0, softness), softness, "{look}");
            }
        }
        let in_looks = |noise, softness| Look::ALL.map(|look| softness_in(look, noise, softness));
        assert_eq!(in_looks(QUIET, 0.5), [0.5; 3]);
        let expected = [
            (0.5, [0.5, 0.58, 0.66]),
            (0.275, [0.275, 0.315, 0.355]),
            (0.66, [0.66, 0.7, 0.74]),
        ];
        for (softness, expected) in expected {
            for (found, expected) in in_looks(1.0, softness).into_iter().zip(expected) {
                assert!((found - expected).abs() < 1e-5, "{found} is not {expected}");
            }
        }
        assert_eq!(
            Condition::UNKNOWN.for_look(Look::Crisp, Scale::X4),
            Condition::UNKNOWN
        );
    }

    #[test]
    fn a_picture_as_soft_as_cameras_leave_it_is_not_known_to_be_lossless() {
        let known_at = |scale, noise, softness, compression| {
            let read = Condition {
                compression,
                ..reading(noise, softness)
            };
            Look::ALL.map(|look| read.for_look(look, scale).compression)
        };
        let known =
            |noise, softness, compression| known_at(Scale::X4, noise, softness, compression);
        let lossless = |noise, softness| known(noise, softness, Compression::Lossless);
        let noise_in = |scale| {
            reading(1.0, 0.5)
                .for_look(Look::Natural, scale)
                .estimate
                .unwrap()
                .noise
        };
        assert_eq!(Scale::ALL.map(noise_in), [CAMERA_NOISE; 2]);
        let at_2x = known_at(Scale::X2, 0.0, 0.5, Compression::Lossless);
        assert_eq!(at_2x, [Compression::Lossless; 3]);
        assert_eq!(lossless(0.0, 0.2), [Compression::Unknown; 3]);
        assert_eq!(lossless(1.2, 2.2), [Compression::Unknown; 3]);
        for (noise, softness) in [(0.0, 0.19), (QUIET, 0.5)] {
            assert_eq!(lossless(noise, softness), [Compression::Lossless; 3]);
        }
        assert_eq!(known(0.0, 0.5, QUALITY_75), [QUALITY_75; 3]);
    }

    /// Noise and softness read, and the softness that `faces` makes of them.
    fn assert_softness(faces: fn(Condition) -> Condition, rows: [(f32, f32, f32); 5]) {
        for (noise, softness, expected) in rows {
            let found = faces(reading(noise, softness)).estimate.unwrap().softness;
            assert!((found - expected).abs() < 1e-5, "{found} is not {expected}");
        }
        assert_eq!(faces(Condition::UNKNOWN), Condition::UNKNOWN);
    }

    #[test]
    fn large_faces_are_called_softer_unless_they_are_noisy_or_very_soft() {
        let rows = [
            (0.0, 0.0, 0.33),
            (1.0, 0.6, 0.93),
            (0.0, 0.66, 0.825),
            (0.0, 0.72, 0.72),
            (5.0, 0.1, 0.1),
        ];
        assert_softness(Condition::for_large_faces, rows);
    }

    #[test]
    fn small_faces_are_called_softer_unless_they_are_noisy_or_sharp_or_in_jpegs() {
        let rows = [
            (0.0, 0.2, 0.2),
            (0.0, 0.275, 0.315),
            (1.0, 0.6, 0.68),
            (0.0, 1.5, 1.58),
            (QUIET, 0.6, 0.6),
        ];
        assert_softness(|condition| condition.for_small_faces(Scale::X4), rows);
        let rows_at_2x = [
            (0.0, 0.2, 0.2),
            (0.0, 0.275, 0.375),
            (1.0, 0.6, 0.8),
            (0.0, 1.5, 1.7),
            (QUIET, 0.6, 0.6),
        ];
        assert_softness(|condition| condition.for_small_faces(Scale::X2), rows_at_2x);
        let compressed = Condition {
            compression: QUALITY_75,
            ..reading(0.0, 0.6)
        };
        for scale in Scale::ALL {
            assert_eq!(compressed.for_small_faces(scale), compressed);
        }
    }
}

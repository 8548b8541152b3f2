//! What is known of a picture before it is enlarged: how its file was compressed, and how noisy and soft it is. The
//! image room finds both out; the networks are set by them ([`Condition::inputs`] is what they were trained with).

use crate::look::Look;

mod adjusted;

pub use adjusted::soft_share;

/// The condition input of the networks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Condition {
    /// What the file says.
    pub compression: Compression,
    /// What the pixels say; `None` where they are too few.
    pub estimate: Option<Estimate>,
}

/// How noisy and how soft a picture is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Standard deviation of the noise in a colour channel, in levels of 255; 0 to [`Self::NOISE_MAX`].
    pub noise: f32,
    /// Sigma of the Gaussian that would soften a sharp picture as much, in pixels; 0 to [`Self::SOFTNESS_MAX`].
    pub softness: f32,
    /// What reads as noise may as well be texture: the networks are told nothing of noise then, for told a cloth is noise
    /// they smear it.
    pub may_be_texture: bool,
}

impl Estimate {
    /// More noise is not inputs apart from this.
    pub const NOISE_MAX: f32 = 25.0;
    /// The same of softness.
    pub const SOFTNESS_MAX: f32 = 2.2;
    /// A clean, sharp picture.
    pub const NONE: Self = Self {
        noise: 0.0,
        softness: 0.0,
        may_be_texture: false,
    };

    /// Noise and softness as the networks read them: 0.2 for none, up to 1; noise by its logarithm, 0 where it may be
    /// texture.
    fn inputs(self) -> [f32; 2] {
        let noise = (1.0 + self.noise.max(0.0)).log2() / (1.0 + Self::NOISE_MAX).log2();
        let [noise, softness] = [noise, self.softness / Self::SOFTNESS_MAX]
            .map(|share| 0.2 + 0.8 * share.clamp(0.0, 1.0));
        [if self.may_be_texture { 0.0 } else { noise }, softness]
    }

    /// The noise that there surely is, in levels.
    #[must_use]
    pub fn sure_noise(self) -> f32 {
        if self.may_be_texture { 0.0 } else { self.noise }
    }
}

/// Levels of noise, and pixels of softness, from which on a picture is restored.
const RESTORED_NOISE_MIN: f32 = 2.0;
const RESTORED_SOFTNESS_MIN: f32 = 0.2;

impl Condition {
    /// The condition input that says nothing about the file.
    pub const UNKNOWN: Self = Self {
        compression: Compression::Unknown,
        estimate: None,
    };
    /// Known to be lossless, sharp and without noise.
    pub const CLEAN: Self = Self {
        compression: Compression::Lossless,
        estimate: Some(Estimate::NONE),
    };

    /// Whether there is noise or softness enough that the networks that restore do better than those for clean pictures,
    /// which lose nothing there: clean photographs and pages of text read 0.4 levels and 0.06 pixels on average at most.
    #[must_use]
    pub fn is_to_restore(self) -> bool {
        let marked =
            |e: Estimate| e.noise >= RESTORED_NOISE_MIN || e.softness >= RESTORED_SOFTNESS_MIN;
        self.estimate.is_some_and(marked)
    }

    /// Whether the restoring networks enlarge this picture in that look: what has noise or softness in every look; in the
    /// finer ones also what is not known to be lossless. Photographs mostly come so. Of clean pages and drawings, which
    /// mostly do not, finer weights would take 0.1 to 0.2 dB at 4x.
    #[must_use]
    pub fn is_restored_in(self, look: Look) -> bool {
        let is_lossy = self.compression != Compression::Lossless && self.estimate.is_some();
        self.is_to_restore() || (is_lossy && look != Look::Faithful)
    }

    /// What networks of six inputs read: the four of [`Self::file_inputs`], then noise and softness, 0 where unknown.
    #[must_use]
    pub fn inputs(self) -> [f32; 6] {
        let [known, luma, chroma, subsampled] = self.compression.inputs();
        let [noise, softness] = self.estimate.map_or([0.0; 2], Estimate::inputs);
        [known, luma, chroma, subsampled, noise, softness]
    }

    /// What networks read that know of compression alone. They take noise for detail and sharpen it, so a noisy
    /// picture is described to them as a JPEG of the quality that does best by it: at noise 10 quality 75 instead of
    /// lossless gains 0.6 dB at 4x and 1.4 dB at 2x, at noise 20 quality 30 gains 1.7 and 2.9 dB.
    #[must_use]
    pub fn file_inputs(self) -> [f32; 4] {
        let noise = self.estimate.map_or(0.0, Estimate::sure_noise);
        match self.compression {
            Compression::Quantised { .. } => self.compression.inputs(),
            _ if noise >= 14.0 => QUALITY_30.inputs(),
            _ if noise >= 5.0 => QUALITY_75.inputs(),
            compression => compression.inputs(),
        }
    }
}

/// JPEG files that libjpeg writes at these qualities with halved colour: the means of its tables.
const QUALITY_75: Compression = Compression::Quantised {
    luma_mean: 29.031_25,
    chroma_mean: 43.437_5,
    subsampling: Subsampling::Quarter,
};
const QUALITY_30: Compression = Compression::Quantised {
    luma_mean: 95.703_125,
    chroma_mean: 142.531_25,
    subsampling: Subsampling::Quarter,
};

/// How a picture was compressed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Compression {
    /// Nothing that could be trusted.
    Unknown,
    /// Without loss, and nothing says that it was lossy before.
    Lossless,
    /// By a block transform whose coefficients were rounded to multiples of a table's entries.
    Quantised {
        /// Mean of the 64 entries of luma's table, ≥ 1.
        luma_mean: f32,
        /// The same of chroma's; luma's where the picture is gray.
        chroma_mean: f32,
        /// How much smaller chroma was stored.
        subsampling: Subsampling,
    },
}

/// How much smaller than luma chroma was stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subsampling {
    /// As large (4:4:4), or there is none.
    None,
    /// Half the samples (4:2:2, 4:4:0).
    Half,
    /// A quarter of them (4:2:0), or fewer.
    Quarter,
}

impl Compression {
    /// The networks' first four inputs: known?, luma, chroma, sub-sampled; each in `[0, 1]`, all 0 when unknown. A table's
    /// mean `m` becomes `log2(1 + m) / 8`: 0.125 for the finest, 1 for a mean of 255.
    fn inputs(self) -> [f32; 4] {
        match self {
            Self::Unknown => [0.0; 4],
            Self::Lossless => [1.0, 0.0, 0.0, 0.0],
            Self::Quantised {
                luma_mean,
                chroma_mean,
                subsampling,
            } => [
                1.0,
                level(luma_mean),
                level(chroma_mean),
                subsampling.level(),
            ],
        }
    }
}

fn level(table_mean: f32) -> f32 {
    ((1.0 + table_mean.max(0.0)).log2() / 8.0).clamp(0.0, 1.0)
}

impl Subsampling {
    fn level(self) -> f32 {
        match self {
            Self::None => 0.0,
            Self::Half => 0.5,
            Self::Quarter => 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inputs_are_those_that_training_uses() {
        assert_eq!(Condition::UNKNOWN.inputs(), [0.0; 6]);
        assert_eq!(Condition::CLEAN.inputs(), [1.0, 0.0, 0.0, 0.0, 0.2, 0.2]);
        let coarse = Compression::Quantised {
            luma_mean: 63.0,
            chroma_mean: 300.0,
            subsampling: Subsampling::Quarter,
        };
        assert_eq!(coarse.inputs(), [1.0, 0.75, 1.0, 1.0]);
        let finest = Compression::Quantised {
            luma_mean: 1.0,
            chroma_mean: 3.0,
            subsampling: Subsampling::Half,
        };
        assert_eq!(finest.inputs(), [1.0, 0.125, 0.25, 0.5]);
    }

    #[test]
    fn noise_counts_by_its_logarithm_and_both_end_at_one() {
        let with = |noise, softness| {
            let estimate = Some(Estimate {
                noise,
                softness,
                ..Estimate::NONE
            });
            let [.., noise, softness] = Condition {
                estimate,
                ..Condition::CLEAN
            }
            .inputs();
            [noise, softness]
        };
        assert_eq!(with(0.0, 0.0), [0.2, 0.2]);
        assert_eq!(with(25.0, 2.2), [1.0, 1.0]);
        assert_eq!(with(400.0, -1.0), [1.0, 0.2]);
        assert!((with(5.0, 1.1)[0] - 0.64).abs() < 1e-2 && (with(5.0, 1.1)[1] - 0.6).abs() < 1e-6);
    }

    #[test]
    fn what_reads_clean_is_not_restored_and_neither_is_what_nothing_is_known_of() {
        let restored = |noise, softness| {
            let estimate = Some(Estimate {
                noise,
                softness,
                ..Estimate::NONE
            });
            Condition {
                estimate,
                ..Condition::UNKNOWN
            }
            .is_to_restore()
        };
        assert!(!Condition::UNKNOWN.is_to_restore() && !Condition::CLEAN.is_to_restore());
        assert!(!restored(1.9, 0.19) && restored(2.0, 0.0) && restored(0.0, 0.2));
    }

    #[test]
    fn finer_looks_restore_what_is_not_known_to_be_lossless_too() {
        let clean_jpeg = Condition {
            compression: QUALITY_75,
            ..Condition::CLEAN
        };
        let traces_of_loss = Condition {
            compression: Compression::Unknown,
            ..Condition::CLEAN
        };
        let in_looks = |condition: Condition| Look::ALL.map(|look| condition.is_restored_in(look));
        for condition in [clean_jpeg, traces_of_loss] {
            assert_eq!(in_looks(condition), [false, true, true], "{condition:?}");
        }
        for condition in [Condition::CLEAN, Condition::UNKNOWN] {
            assert_eq!(in_looks(condition), [false; 3], "{condition:?}");
        }
        let noisy = Estimate {
            noise: 5.0,
            ..Estimate::NONE
        };
        let noisy = Condition {
            estimate: Some(noisy),
            ..Condition::CLEAN
        };
        assert_eq!(in_looks(noisy), [true; 3]);
    }

    #[test]
    fn networks_are_told_nothing_of_noise_that_may_be_texture() {
        let with = |may_be_texture| Condition {
            compression: Compression::Lossless,
            estimate: Some(Estimate {
                noise: 13.0,
                softness: 0.4,
                may_be_texture,
            }),
        };
        let ([.., noise, softness], [.., silent, same]) =
            (with(false).inputs(), with(true).inputs());
        assert!(noise > 0.2 && silent == 0.0 && softness == same);
        assert_eq!(with(false).file_inputs(), QUALITY_75.inputs());
        assert_eq!(with(true).file_inputs(), Compression::Lossless.inputs());
        assert!(with(true).is_to_restore());
    }

    #[test]
    fn a_noisy_picture_is_a_coarse_jpeg_to_networks_that_know_no_noise() {
        let inputs = |compression, noise| {
            let estimate = Some(Estimate {
                noise,
                ..Estimate::NONE
            });
            Condition {
                compression,
                estimate,
            }
            .file_inputs()
        };
        assert_eq!(inputs(Compression::Lossless, 4.9), [1.0, 0.0, 0.0, 0.0]);
        assert_eq!(inputs(Compression::Lossless, 10.0), QUALITY_75.inputs());
        assert_eq!(inputs(Compression::Unknown, 20.0), QUALITY_30.inputs());
        // A JPEG's own tables are known better.
        assert_eq!(inputs(QUALITY_75, 20.0), QUALITY_75.inputs());
        assert_eq!(Condition::UNKNOWN.file_inputs(), [0.0; 4]);
    }
}

//! What the numbers of a file mean, how the networks get them, and what is written beside the result so that they go
//! on meaning it. The choice (keep the file's own primaries, never clip) is docs/decisions/0005-colour.md.

pub(crate) mod curve;
mod profile;

use png::SourceChromaticities;

use curve::{Curve, Curves};
use profile::Profile;

/// Everything a file can say about its colours, as read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Colour {
    /// PNG `cICP`: primaries, transfer, matrix, full range.
    pub(crate) cicp: Option<[u8; 4]>,
    /// An ICC profile, unchecked.
    pub(crate) icc: Option<Vec<u8>>,
    /// PNG `sRGB` chunk.
    pub(crate) says_srgb: bool,
    /// PNG `gAMA`, times 100,000.
    pub(crate) gamma: Option<u32>,
    /// PNG `cHRM`.
    pub(crate) primaries: Option<Primaries>,
    /// How far apart the channels of a gray pixel may be: a level and a half where lossy WebP computed them, else 0.
    pub(crate) gray_tolerance: f32,
}

/// Which samples a pixel has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    Gray,
    GrayAlpha,
    Rgb,
    Rgba,
    /// Amounts of ink: 0 is paper, 1 is full ink.
    Cmyk,
}

impl Layout {
    pub(crate) fn channels(self) -> usize {
        match self {
            Self::Gray => 1,
            Self::GrayAlpha => 2,
            Self::Rgb => 3,
            Self::Rgba | Self::Cmyk => 4,
        }
    }

    pub(crate) fn has_alpha(self) -> bool {
        matches!(self, Self::GrayAlpha | Self::Rgba)
    }
}

/// White point and primaries as the PNG says them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Primaries(pub(crate) SourceChromaticities);

/// What the result's PNG says about its colours.
#[derive(Debug, Clone)]
pub(crate) enum Tag {
    /// An `sRGB` chunk.
    Srgb,
    /// `gAMA` and/or `cHRM` as in the source.
    Gamma {
        gamma: Option<u32>,
        primaries: Option<Primaries>,
    },
    /// `cICP` as in the source, and its profile for readers that know no `cICP`.
    Cicp([u8; 4], Option<Vec<u8>>),
    /// The source's own profile.
    Icc(Vec<u8>),
}

/// Colour samples as the networks take them, and the way back.
pub(crate) struct NetworkColour {
    /// 1 or 3.
    pub(crate) channels: usize,
    pub(crate) samples: Vec<f32>,
    pub(crate) tag: Tag,
    /// The result's samples go back through these before they are written.
    pub(crate) curves: Option<Curves>,
}

/// `cICP` transfer function 8 (ITU-T H.273): linear light.
const TRANSFER_LINEAR: u8 = 8;

impl Colour {
    /// Colour samples for the networks, which were trained on sRGB-encoded pictures.
    pub(crate) fn into_network(self, layout: Layout, samples: Vec<f32>) -> NetworkColour {
        match layout {
            Layout::Cmyk => self.inks(&samples),
            Layout::Gray | Layout::GrayAlpha => self.gray(samples),
            Layout::Rgb | Layout::Rgba => match collapse_gray(&samples, self.gray_tolerance) {
                Some(gray) if self.neutral_is_gray() => self.gray(gray),
                _ => self.rgb(samples),
            },
        }
    }

    fn inks(self, samples: &[f32]) -> NetworkColour {
        let profile = self.icc.as_deref().and_then(Profile::of_inks);
        let converted = profile.and_then(|profile| profile.to_srgb(4, samples));
        let rgb = converted.unwrap_or_else(|| plain_cmyk(samples));
        match collapse_gray(&rgb, 0.0) {
            Some(gray) => NetworkColour::plain(1, gray),
            None => NetworkColour::plain(3, rgb),
        }
    }

    fn rgb(mut self, samples: Vec<f32>) -> NetworkColour {
        if self.cicp.is_some() {
            return self.tagged(3, samples);
        }
        let profile = self.icc.as_deref().and_then(Profile::of_rgb);
        match profile {
            Some(profile) if !profile.resembles_srgb() => match profile.to_srgb(3, &samples) {
                Some(converted) => NetworkColour::plain(3, converted),
                None => NetworkColour::plain(3, samples),
            },
            Some(profile) => {
                let curves = profile.curves();
                let tag = Tag::Icc(self.icc.take().unwrap_or_default());
                NetworkColour::encoded(3, samples, tag, curves)
            }
            None => self.tagged(3, samples),
        }
    }

    fn gray(mut self, samples: Vec<f32>) -> NetworkColour {
        if self.cicp.is_some() {
            return self.tagged(1, samples);
        }
        if let Some(profile) = self.icc.as_deref().and_then(Profile::of_gray) {
            let curves = profile.curves();
            let tag = Tag::Icc(self.icc.take().unwrap_or_default());
            return NetworkColour::encoded(1, samples, tag, curves);
        }
        match self.icc.as_deref().and_then(Profile::of_rgb) {
            // A gray PNG cannot carry an RGB profile: its neutral axis is rewritten as sRGB's.
            Some(profile) => match profile.neutral_curve() {
                Some(curve) => NetworkColour::plain(1, curve.encode_all(samples)),
                None => NetworkColour::plain(1, samples),
            },
            None => self.tagged(1, samples),
        }
    }

    /// Without a profile: the chunks in the order in which the PNG specification (3rd edition, 4.3) lets them win.
    fn tagged(self, channels: usize, samples: Vec<f32>) -> NetworkColour {
        if let Some(cicp) = self.cicp {
            let curve = (cicp[1] == TRANSFER_LINEAR).then(|| Curve::new(|code| code));
            let tag = Tag::Cicp(cicp, self.icc);
            return NetworkColour::encoded(
                channels,
                samples,
                tag,
                Curves::same(curve.flatten(), channels),
            );
        }
        if self.icc.is_some()
            || self.says_srgb
            || (self.gamma.is_none() && self.primaries.is_none())
        {
            return NetworkColour::plain(channels, samples);
        }
        let curve = self.gamma.filter(|gamma| *gamma > 0).and_then(|gamma| {
            let exponent = 100_000.0 / gamma as f32;
            Curve::new(move |code| code.powf(exponent))
        });
        let tag = Tag::Gamma {
            gamma: self.gamma,
            primaries: self.primaries,
        };
        NetworkColour::encoded(channels, samples, tag, Curves::same(curve, channels))
    }

    /// Equal numbers mean gray, unless a profile says that they do not.
    fn neutral_is_gray(&self) -> bool {
        match self.icc.as_deref().and_then(Profile::of_rgb) {
            Some(profile) if self.cicp.is_none() => profile.neutral_is_gray(),
            _ => true,
        }
    }
}

impl NetworkColour {
    /// sRGB, as it is.
    fn plain(channels: usize, samples: Vec<f32>) -> Self {
        Self {
            channels,
            samples,
            tag: Tag::Srgb,
            curves: None,
        }
    }

    fn encoded(channels: usize, mut samples: Vec<f32>, tag: Tag, curves: Option<Curves>) -> Self {
        if let Some(curves) = &curves {
            curves.encode(&mut samples);
        }
        Self {
            channels,
            samples,
            tag,
            curves,
        }
    }
}

/// Gray that is stored three times.
fn collapse_gray(samples: &[f32], tolerance: f32) -> Option<Vec<f32>> {
    let neutral = |rgb: &[f32]| {
        let (low, high) = (
            rgb[0].min(rgb[1]).min(rgb[2]),
            rgb[0].max(rgb[1]).max(rgb[2]),
        );
        high - low <= tolerance
    };
    let gray = samples.chunks_exact(3).all(neutral);
    gray.then(|| samples.iter().skip(1).step_by(3).copied().collect())
}

/// Inks without a profile, as browsers take them: each colour ink, and black, lets its part of the light through.
fn plain_cmyk(samples: &[f32]) -> Vec<f32> {
    samples
        .chunks_exact(4)
        .flat_map(|ink| {
            let paper = 1.0 - ink[3];
            [0, 1, 2].map(|i| (1.0 - ink[i]) * paper)
        })
        .collect()
}

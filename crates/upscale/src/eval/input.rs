//! What a clean picture becomes before it is enlarged again: made small, and compressed as customers' files are.

use anyhow::Context;
use jpeg_encoder::{ChromaSubsamplingMethod, ColorType, Encoder, SamplingFactor};
use serde::{Serialize, Serializer};
use upscale_core::{Condition, Scale};
use upscale_image::{
    decode,
    quality::{Kernel, Rgb8, resize},
};

/// How the small picture was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Input {
    /// By antialiased bicubic, the field's benchmark.
    Clean,
    /// By the mean of each square, as many programs do.
    Box,
    /// By bicubic, then a JPEG of this quality, colours at half the size (4:2:0).
    Jpeg(u8),
}

impl Input {
    pub(crate) const ALL: [Self; 6] = [
        Self::Clean,
        Self::Box,
        Self::Jpeg(90),
        Self::Jpeg(75),
        Self::Jpeg(50),
        Self::Jpeg(30),
    ];

    pub(crate) fn name(self) -> String {
        match self {
            Self::Clean => "clean".to_owned(),
            Self::Box => "box".to_owned(),
            Self::Jpeg(quality) => format!("JPEG {quality}"),
        }
    }

    /// What is furthest from the truth: that a JPEG is clean, or that a clean picture was a JPEG of quality 50.
    pub(crate) fn lie(self) -> anyhow::Result<Condition> {
        if matches!(self, Self::Jpeg(_)) {
            return Ok(Condition::CLEAN);
        }
        // Too small to be doubted: the tables as they are.
        let tables = Rgb8::paint(16, 16, |x, y| [(x * 16) as u8, (y * 16) as u8, 99]);
        Ok(Small::compressed(&tables, 50)?.condition)
    }
}

impl Serialize for Input {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.name())
    }
}

/// A small picture, and what its file says of its compression, as the service reads it.
pub(crate) struct Small {
    pub(crate) picture: Rgb8,
    pub(crate) condition: Condition,
}

impl Small {
    /// `clean` has sides that the scale divides.
    pub(crate) fn make(clean: &Rgb8, scale: Scale, input: Input) -> anyhow::Result<Self> {
        let factor = scale.factor();
        let (width, height) = (clean.width() / factor, clean.height() / factor);
        let kernel = match input {
            Input::Box => Kernel::Box,
            Input::Clean | Input::Jpeg(_) => Kernel::Bicubic,
        };
        let small = resize(clean, width, height, kernel);
        match input {
            Input::Jpeg(quality) => Self::compressed(&small, quality),
            Input::Clean | Input::Box => Self::read(&small.to_png()?),
        }
    }

    fn compressed(small: &Rgb8, quality: u8) -> anyhow::Result<Self> {
        let mut file = Vec::new();
        let mut encoder = Encoder::new(&mut file, quality);
        encoder.set_sampling_factor(SamplingFactor::F_2_2);
        // As libjpeg does; the encoder's own choice is the corner of each square.
        encoder.set_chroma_subsampling_method(ChromaSubsamplingMethod::Average);
        let (width, height) = (u16::try_from(small.width()), u16::try_from(small.height()));
        let (width, height) = width
            .ok()
            .zip(height.ok())
            .context("too large for a JPEG")?;
        encoder.encode(small.samples(), width, height, ColorType::Rgb)?;
        Self::read(&file)
    }

    fn read(file: &[u8]) -> anyhow::Result<Self> {
        let source = decode(file, super::PIXELS_MAX)?;
        Ok(Self {
            picture: Rgb8::of_source(&source),
            condition: source.condition,
        })
    }
}

#[cfg(test)]
mod tests {
    use upscale_core::Compression;

    use super::*;

    #[test]
    fn a_clean_picture_stays_what_the_benchmark_makes_of_it_and_is_known_to_be_clean() {
        let clean = Rgb8::paint(80, 72, |x, y| [(x * 3) as u8, (y * 3) as u8, (x + y) as u8]);
        let small = Small::make(&clean, Scale::X2, Input::Clean).unwrap();
        assert_eq!(small.picture, resize(&clean, 40, 36, Kernel::Bicubic));
        assert_eq!(small.condition.compression, Compression::Lossless);
    }

    #[test]
    fn coarser_files_are_further_from_the_picture_and_say_so() {
        let clean = Rgb8::paint(160, 120, |x, y| {
            [(x * y % 251) as u8, (x * 2) as u8, (y * 2) as u8]
        });
        let made = [90, 30].map(|q| Small::make(&clean, Scale::X2, Input::Jpeg(q)).unwrap());
        let level = |small: &Small| small.condition.inputs()[1];
        assert!(level(&made[0]) > 0.3 && level(&made[0]) < level(&made[1]));
        let error = |small: &Small| {
            let truth = resize(&clean, 80, 60, Kernel::Bicubic);
            let pairs = truth.samples().iter().zip(small.picture.samples());
            pairs.map(|(a, b)| u64::from(a.abs_diff(*b))).sum::<u64>()
        };
        assert!(error(&made[0]) < error(&made[1]));
    }

    #[test]
    fn the_lies_are_those_that_training_tells() {
        assert_eq!(Input::Jpeg(90).lie().unwrap(), Condition::CLEAN);
        let [known, luma, chroma, subsampled, ..] = Input::Box.lie().unwrap().inputs();
        // Tables K.1 and K.2 of T.81 have means of 57.625 and 86.016.
        assert!((luma - 0.7342).abs() < 1e-3 && (chroma - 0.8053).abs() < 1e-3);
        assert_eq!((known, subsampled), (1.0, 1.0));
    }
}

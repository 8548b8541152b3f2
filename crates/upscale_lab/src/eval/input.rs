//! What a clean picture becomes before it is enlarged again: made small, and compressed as customers' files are.

use anyhow::Context;
use jpeg_encoder::{ChromaSubsamplingMethod, ColorType, Encoder, SamplingFactor};
use serde::{Serialize, Serializer};
use upscale_core::{Condition, Scale};
use upscale_image::{
    decode,
    raster::{Kernel, Rgb8, resize, soften},
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
    /// By bicubic, then noise of this standard deviation in every channel, levels of 255.
    Noisy(u8),
    /// By bicubic, then blurred by a Gaussian of so many tenths of a pixel.
    Soft(u8),
    /// As a photograph comes from the web: by bicubic, a little out of focus, a little noise, then a JPEG of quality 60.
    Web,
}

impl Input {
    pub(crate) const ALL: [Self; 10] = [
        Self::Clean,
        Self::Box,
        Self::Jpeg(90),
        Self::Jpeg(75),
        Self::Jpeg(50),
        Self::Jpeg(30),
        Self::Noisy(10),
        Self::Noisy(20),
        Self::Soft(8),
        Self::Soft(12),
    ];

    pub(crate) fn name(self) -> String {
        match self {
            Self::Clean => "clean".to_owned(),
            Self::Box => "box".to_owned(),
            Self::Jpeg(quality) => format!("JPEG {quality}"),
            Self::Noisy(levels) => format!("noise {levels}"),
            Self::Soft(tenths) => format!("blur {}.{}", tenths / 10, tenths % 10),
            Self::Web => "blur 0.6, noise 4, JPEG 60".to_owned(),
        }
    }

    /// What is furthest from the file: that a damaged picture is clean, or that a clean one was a JPEG of quality 50.
    pub(crate) fn mismatched(self) -> anyhow::Result<Condition> {
        if !matches!(self, Self::Clean | Self::Box) {
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
    pub(crate) file: Vec<u8>,
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
            _ => Kernel::Bicubic,
        };
        let small = resize(clean, width, height, kernel);
        match input {
            Input::Jpeg(quality) => Self::compressed(&small, quality),
            Input::Clean | Input::Box => Self::read(small.to_png()?),
            Input::Noisy(levels) => Self::read(noisy(&small, levels).to_png()?),
            Input::Soft(tenths) => Self::read(soften(&small, f64::from(tenths) / 10.0).to_png()?),
            Input::Web => Self::compressed(&noisy(&soften(&small, 0.6), 4), 60),
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
        Self::read(file)
    }

    fn read(file: Vec<u8>) -> anyhow::Result<Self> {
        let source = decode(&file, super::PIXELS_MAX)?;
        Ok(Self {
            file,
            picture: Rgb8::of_source(&source),
            condition: source.condition,
        })
    }
}

/// The same noise for the same picture: SplitMix64 (Steele et al. 2014), twelve uniform numbers to a normal one.
fn noisy(picture: &Rgb8, levels: u8) -> Rgb8 {
    let mut state = 7u64;
    let mut uniform = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    };
    let mut add = |sample: u8| {
        let normal = (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
        (f64::from(sample) + normal * f64::from(levels) + 0.5).clamp(0.0, 255.0) as u8
    };
    Rgb8::paint(picture.width(), picture.height(), |x, y| {
        picture.pixel(x, y).map(&mut add)
    })
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
    fn mismatched_inputs_are_those_of_training() {
        assert_eq!(Input::Jpeg(90).mismatched().unwrap(), Condition::CLEAN);
        let [known, luma, chroma, subsampled, ..] = Input::Box.mismatched().unwrap().inputs();
        // Tables K.1 and K.2 of T.81 have means of 57.625 and 86.016.
        assert!((luma - 0.7342).abs() < 1e-3 && (chroma - 0.8053).abs() < 1e-3);
        assert_eq!((known, subsampled), (1.0, 1.0));
    }
}

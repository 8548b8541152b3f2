//! A result as its owner wants it on their own disk: at another size, as JPEG or WebP. The service gives PNG alone; what is
//! made here is of eight bits a sample and keeps the colour profile.

use std::io::Cursor;

use png::{BitDepth, ColorType, Decoder, Encoder, Transformations};

use crate::{
    Format, WriteError,
    raster::{Kernel, Rgb8, resize},
};

/// Longest side of a JPEG.
const JPEG_SIDE_MAX: u32 = 65_500;
/// Longest side of a WebP.
const WEBP_SIDE_MAX: u32 = 16_383;

/// What a PNG of ours is made into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reencoding {
    /// Format of the file to write.
    pub format: Format,
    /// Of a JPEG, 1 to 100.
    pub jpeg_quality: u8,
    /// Columns and rows, in place of the result's own.
    pub size: Option<(u32, u32)>,
}

impl Reencoding {
    /// Whether a picture of this size fits into the format.
    ///
    /// # Errors
    /// [`WriteError::Side`] when a side is too long for it.
    pub fn check(&self, width: u32, height: u32) -> Result<(), WriteError> {
        let (width, height) = self.size.unwrap_or((width, height));
        let side_max = match self.format {
            Format::Png => u32::MAX,
            Format::Jpeg => JPEG_SIDE_MAX,
            Format::WebP => WEBP_SIDE_MAX,
        };
        if width.max(height) <= side_max {
            return Ok(());
        }
        Err(WriteError::Side {
            format: self.format,
            side: width.max(height),
            side_max,
        })
    }

    /// The file of a PNG that [`crate::PngWriter`] made; the PNG itself where nothing else is wanted.
    ///
    /// # Errors
    /// [`WriteError::Side`], [`WriteError::Reencode`].
    pub fn apply(&self, png: Vec<u8>) -> Result<Vec<u8>, WriteError> {
        if self.format == Format::Png && self.size.is_none() {
            return Ok(png);
        }
        let mut picture = Eight::read(&png)?;
        self.check(picture.width, picture.height)?;
        if let Some((width, height)) = self.size {
            picture = picture.resized(width, height)?;
        }
        match self.format {
            Format::Png => picture.to_png(),
            Format::Jpeg => picture.to_jpeg(self.jpeg_quality),
            Format::WebP => picture.to_webp(),
        }
    }
}

/// Samples of eight bits, interleaved.
struct Eight {
    width: u32,
    height: u32,
    color: ColorType,
    samples: Vec<u8>,
    profile: Option<Vec<u8>>,
}

impl Eight {
    fn read(png: &[u8]) -> Result<Self, WriteError> {
        let mut decoder = Decoder::new(Cursor::new(png));
        decoder.set_transformations(Transformations::STRIP_16 | Transformations::EXPAND);
        let mut reader = decoder.read_info().map_err(reencode)?;
        let size = reader.output_buffer_size();
        let mut samples = vec![0; size.ok_or_else(|| reencode("it does not fit into memory"))?];
        let frame = reader.next_frame(&mut samples).map_err(reencode)?;
        samples.truncate(frame.buffer_size());
        Ok(Self {
            width: frame.width,
            height: frame.height,
            color: frame.color_type,
            samples,
            profile: reader.info().icc_profile.as_ref().map(|icc| icc.to_vec()),
        })
    }

    fn channels(&self) -> usize {
        self.color.samples()
    }

    fn has_alpha(&self) -> bool {
        matches!(self.color, ColorType::Rgba | ColorType::GrayscaleAlpha)
    }

    /// Three channels at a time, for that is what the resizer takes: gray and alpha thrice.
    fn resized(self, width: u32, height: u32) -> Result<Self, WriteError> {
        let (colors, columns, rows) = (self.colors(), width as usize, height as usize);
        let plane = |pick: &dyn Fn(&[u8], usize) -> u8| -> Result<Rgb8, WriteError> {
            let pixels = self.samples.chunks_exact(self.channels());
            let samples = pixels.flat_map(|pixel| [0, 1, 2].map(|channel| pick(pixel, channel)));
            let picture = Rgb8::new(self.width as usize, self.height as usize, samples.collect());
            Ok(resize(
                &picture.map_err(reencode)?,
                columns,
                rows,
                Kernel::Lanczos3,
            ))
        };
        let color = plane(&|pixel, channel| pixel[channel.min(colors - 1)])?;
        let alpha = match self.has_alpha() {
            true => Some(plane(&|pixel, _| pixel[colors])?),
            false => None,
        };
        let mut samples = Vec::with_capacity(columns * rows * self.channels());
        for (place, pixel) in color.samples().chunks_exact(3).enumerate() {
            samples.extend_from_slice(&pixel[..colors]);
            samples.extend(alpha.as_ref().map(|alpha| alpha.samples()[place * 3]));
        }
        Ok(Self {
            width,
            height,
            samples,
            ..self
        })
    }

    /// Channels but for alpha.
    fn colors(&self) -> usize {
        self.channels() - usize::from(self.has_alpha())
    }

    fn to_png(&self) -> Result<Vec<u8>, WriteError> {
        let mut file = Vec::new();
        let mut info = png::Info::with_size(self.width, self.height);
        info.color_type = self.color;
        info.bit_depth = BitDepth::Eight;
        info.icc_profile = self.profile.clone().map(Into::into);
        let encoder = Encoder::with_info(&mut file, info)?;
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&self.samples)?;
        writer.finish()?;
        Ok(file)
    }

    /// JPEG knows no transparency: it lies on white.
    fn to_jpeg(&self, quality: u8) -> Result<Vec<u8>, WriteError> {
        let colors = self.colors();
        let flat = |pixel: &[u8]| -> Vec<u8> {
            let alpha = u32::from(*pixel.get(colors).unwrap_or(&255));
            let over = |&sample: &u8| (u32::from(sample) * alpha + 255 * (255 - alpha) + 127) / 255;
            pixel[..colors]
                .iter()
                .map(|sample| over(sample) as u8)
                .collect()
        };
        let samples: Vec<u8> = self
            .samples
            .chunks_exact(self.channels())
            .flat_map(flat)
            .collect();
        let mut file = Vec::new();
        let mut encoder = jpeg_encoder::Encoder::new(&mut file, quality.clamp(1, 100));
        // Nothing of the fine structure that was just won goes into fewer chroma samples.
        encoder.set_sampling_factor(jpeg_encoder::SamplingFactor::F_1_1);
        if let Some(profile) = &self.profile {
            encoder.add_icc_profile(profile).map_err(reencode)?;
        }
        let side = |side: u32| u16::try_from(side).map_err(reencode);
        let color = match colors {
            1 => jpeg_encoder::ColorType::Luma,
            _ => jpeg_encoder::ColorType::Rgb,
        };
        let (width, height) = (side(self.width)?, side(self.height)?);
        encoder
            .encode(&samples, width, height, color)
            .map_err(reencode)?;
        Ok(file)
    }

    /// Without loss.
    fn to_webp(&self) -> Result<Vec<u8>, WriteError> {
        let mut file = Vec::new();
        let mut encoder = image_webp::WebPEncoder::new(&mut file);
        if let Some(profile) = &self.profile {
            encoder.set_icc_profile(profile.clone());
        }
        let color = match self.color {
            ColorType::Grayscale => image_webp::ColorType::L8,
            ColorType::GrayscaleAlpha => image_webp::ColorType::La8,
            ColorType::Rgba => image_webp::ColorType::Rgba8,
            ColorType::Rgb | ColorType::Indexed => image_webp::ColorType::Rgb8,
        };
        let encoded = encoder.encode(&self.samples, self.width, self.height, color);
        encoded.map_err(reencode)?;
        Ok(file)
    }
}

fn reencode(error: impl ToString) -> WriteError {
    WriteError::Reencode(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode;

    /// Red to the right, with a transparent left half and a profile.
    fn png(color: ColorType) -> Vec<u8> {
        let samples = (0..40 * 30).flat_map(|place| {
            let x = (place % 40) as u8;
            let pixel = [x * 6, 100, 50, if x < 20 { 0 } else { 255 }];
            match color {
                ColorType::Rgba => pixel.to_vec(),
                ColorType::GrayscaleAlpha => vec![pixel[0], pixel[3]],
                ColorType::Grayscale => vec![pixel[0]],
                _ => pixel[..3].to_vec(),
            }
        });
        let picture = Eight {
            width: 40,
            height: 30,
            color,
            samples: samples.collect(),
            profile: None,
        };
        picture.to_png().unwrap()
    }

    fn made(color: ColorType, format: Format, size: Option<(u32, u32)>) -> Vec<u8> {
        let wanted = Reencoding {
            format,
            jpeg_quality: 95,
            size,
        };
        wanted.apply(png(color)).unwrap()
    }

    #[test]
    fn every_kind_of_picture_becomes_every_format_at_every_size() {
        for color in [
            ColorType::Rgb,
            ColorType::Rgba,
            ColorType::Grayscale,
            ColorType::GrayscaleAlpha,
        ] {
            for format in [Format::Png, Format::Jpeg, Format::WebP] {
                for size in [None, Some((10, 60))] {
                    let source = decode(&made(color, format, size), 10_000).unwrap();
                    let (width, height) = size.unwrap_or((40, 30));
                    assert_eq!(source.header.format, format);
                    assert_eq!((source.header.width, source.header.height), (width, height));
                    let keeps = format != Format::Jpeg && color.samples() % 2 == 0;
                    assert_eq!(source.alpha.is_some(), keeps, "{color:?} {format} {size:?}");
                }
            }
        }
    }

    #[test]
    fn what_is_not_changed_stays_to_the_byte() {
        let before = png(ColorType::Rgba);
        assert_eq!(made(ColorType::Rgba, Format::Png, None), before);
        let kept = Eight::read(&before).unwrap();
        let webp = made(ColorType::Rgba, Format::WebP, None);
        let decoded = decode(&webp, 10_000).unwrap();
        let red = decoded.color.samples()[39 * 3] * 255.0;
        assert!((red - f32::from(kept.samples[39 * 4])).abs() < 0.5, "{red}");
    }

    #[test]
    fn transparency_lies_on_white_in_a_jpeg() {
        let jpeg = made(ColorType::Rgba, Format::Jpeg, None);
        let source = decode(&jpeg, 10_000).unwrap();
        let corner = &source.color.samples()[..3];
        assert!(corner.iter().all(|sample| *sample > 0.95), "{corner:?}");
    }

    #[test]
    fn a_profile_goes_along() {
        let profile = vec![7; 200];
        let picture = Eight {
            profile: Some(profile.clone()),
            ..Eight::read(&png(ColorType::Rgb)).unwrap()
        };
        let again = Eight::read(&picture.to_png().unwrap()).unwrap();
        assert_eq!(again.profile, Some(profile.clone()));
        let holds = |file: &[u8]| file.windows(200).any(|part| part == profile);
        assert!(holds(&picture.to_jpeg(90).unwrap()) && holds(&picture.to_webp().unwrap()));
    }

    #[test]
    fn a_side_that_no_file_of_the_format_has_is_refused_before_the_work() {
        let wanted = |format| Reencoding {
            format,
            jpeg_quality: 90,
            size: None,
        };
        assert!(wanted(Format::WebP).check(16_383, 1).is_ok());
        assert!(matches!(
            wanted(Format::WebP).check(16_384, 1),
            Err(WriteError::Side { side: 16_384, .. })
        ));
        assert!(wanted(Format::Jpeg).check(1, 65_501).is_err());
        assert!(wanted(Format::Png).check(1, 1_000_000).is_ok());
    }
}

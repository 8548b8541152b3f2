//! Pictures as benchmarks have them: 8 bits a sample, three samples a pixel.

use upscale_core::Pixels;

use crate::decoded::Source;
use crate::error::WriteError;

/// An RGB picture, row-major, 3 bytes a pixel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rgb8 {
    width: usize,
    height: usize,
    samples: Vec<u8>,
}

/// The samples do not fill the picture.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{given} samples do not make {width} x {height} RGB pixels")]
pub struct WrongRgb8 {
    width: usize,
    height: usize,
    given: usize,
}

impl Rgb8 {
    /// Wraps samples; width and height ≥ 1.
    ///
    /// # Errors
    /// [`WrongRgb8`] unless there are exactly `3 * width * height` samples.
    pub fn new(width: usize, height: usize, samples: Vec<u8>) -> Result<Self, WrongRgb8> {
        let needed = width.saturating_mul(height).saturating_mul(3);
        if needed == 0 || needed != samples.len() {
            let given = samples.len();
            return Err(WrongRgb8 {
                width,
                height,
                given,
            });
        }
        Ok(Self {
            width,
            height,
            samples,
        })
    }

    /// Paints a picture pixel by pixel: `color(x, y)` gives red, green and blue.
    #[must_use]
    pub fn paint(
        width: usize,
        height: usize,
        mut color: impl FnMut(usize, usize) -> [u8; 3],
    ) -> Self {
        let (width, height) = (width.max(1), height.max(1));
        let mut samples = Vec::with_capacity(width * height * 3);
        for y in 0..height {
            for x in 0..width {
                samples.extend_from_slice(&color(x, y));
            }
        }
        Self {
            width,
            height,
            samples,
        }
    }

    /// A decoded picture at 8 bits; gray becomes three equal samples, alpha is left out.
    #[must_use]
    pub fn of_source(source: &Source) -> Self {
        Self::of_pixels(&source.color)
    }

    /// Samples in `[0, 1]` rounded to 8 bits, halves up, as MATLAB and the benchmarks do.
    #[must_use]
    pub fn of_pixels(pixels: &Pixels) -> Self {
        let round = |value: &f32| (f64::from(value.clamp(0.0, 1.0)) * 255.0 + 0.5).floor() as u8;
        let samples: Vec<u8> = match pixels.channels() {
            1 => pixels
                .samples()
                .iter()
                .flat_map(|value| [round(value); 3])
                .collect(),
            _ => pixels.samples().iter().map(round).collect(),
        };
        Self {
            width: pixels.width(),
            height: pixels.height(),
            samples,
        }
    }

    /// The same picture as the networks read it: 3 channels in `[0, 1]`.
    #[must_use]
    pub fn to_samples(&self) -> Vec<f32> {
        self.samples
            .iter()
            .map(|&value| f32::from(value) / 255.0)
            .collect()
    }

    /// Columns, ≥ 1.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// Rows, ≥ 1.
    #[must_use]
    pub fn height(&self) -> usize {
        self.height
    }

    /// All samples, row-major, 3 a pixel.
    #[must_use]
    pub fn samples(&self) -> &[u8] {
        &self.samples
    }

    /// Red, green and blue of a pixel inside the picture.
    #[must_use]
    pub fn pixel(&self, x: usize, y: usize) -> [u8; 3] {
        let at = (y * self.width + x) * 3;
        [self.samples[at], self.samples[at + 1], self.samples[at + 2]]
    }

    /// A part of the picture, moved and cut so that it lies inside.
    #[must_use]
    pub fn crop(&self, left: usize, top: usize, width: usize, height: usize) -> Self {
        let (width, height) = (width.min(self.width), height.min(self.height));
        let (left, top) = (left.min(self.width - width), top.min(self.height - height));
        Self::paint(width, height, |x, y| self.pixel(left + x, top + y))
    }

    /// Cut at the right and at the bottom to multiples of `scale`, as benchmarks are; none when nothing is left.
    #[must_use]
    pub fn cropped_to_multiple(&self, scale: usize) -> Option<Self> {
        let (width, height) = (self.width / scale * scale, self.height / scale * scale);
        (width > 0 && height > 0).then(|| self.crop(0, 0, width, height))
    }

    /// The picture as a PNG file in sRGB.
    ///
    /// # Errors
    /// [`WriteError::Encode`] when it is too large for the format.
    pub fn to_png(&self) -> Result<Vec<u8>, WriteError> {
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, self.width as u32, self.height as u32);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_source_srgb(png::SrgbRenderingIntent::Perceptual);
        encoder.set_compression(png::Compression::Balanced);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&self.samples)?;
        writer.finish()?;
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_comes_back_from_its_png() {
        let picture = Rgb8::paint(7, 5, |x, y| [x as u8 * 30, y as u8 * 50, 200]);
        let source = crate::decode(&picture.to_png().unwrap(), 35).unwrap();
        assert_eq!(Rgb8::of_source(&source), picture);
    }

    #[test]
    fn a_crop_stays_inside_and_a_multiple_is_a_multiple() {
        let picture = Rgb8::paint(7, 5, |x, y| [x as u8, y as u8, 0]);
        assert_eq!(picture.crop(100, 100, 2, 2).pixel(1, 1), [6, 4, 0]);
        let cut = picture.cropped_to_multiple(4).unwrap();
        assert_eq!((cut.width(), cut.height()), (4, 4));
        assert_eq!(picture.cropped_to_multiple(8), None);
    }

    #[test]
    fn samples_that_do_not_fill_the_picture_are_refused() {
        assert!(Rgb8::new(2, 2, vec![0; 11]).is_err());
        assert!(Rgb8::new(0, 2, Vec::new()).is_err());
        assert!(Rgb8::new(2, 2, vec![0; 12]).is_ok());
    }
}

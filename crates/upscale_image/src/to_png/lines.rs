//! Finished rows on their way into the encoder: faces laid over, curves and alpha put back, rounded to whole levels.

use std::{io::Write, time::Duration};

use png::StreamWriter;
use upscale_simd::widened;

use super::Encoded;
use crate::alpha::AlphaPlane;
use crate::decoded::Source;
use crate::error::WriteError;

/// Rows go to the encoder, and compressed data comes from it, in pieces of about this many bytes: a picture may have
/// millions of rows, and the encoder's own 4 KiB cost 5 % more time.
pub(super) const LINE_BYTES: usize = 128 * 1024;

/// Pixels of a row that are rounded at a time.
const STRETCH: usize = 16_384;

/// Changes finished pixels of one row in place, given the column and the row of the first.
pub(super) type Overlay<'a> = Box<dyn Fn([usize; 2], &mut [f32]) + 'a>;

/// The rows of one result.
pub(super) struct Lines<'a> {
    source: &'a Source,
    alpha: Option<AlphaPlane>,
    png: StreamWriter<'static, Encoded>,
    /// Rows as they go into the file, until there are enough of them.
    bytes: Vec<u8>,
    /// Pixels of a row of the result.
    width: usize,
    /// Rows that came, and pixels of the next one.
    pub(super) rows_laid: usize,
    pixels_laid: usize,
    pub(super) overlay: Option<Overlay<'a>>,
    pub(super) clock: fn() -> Duration,
    /// Time in the encoder.
    pub(super) encode_time: Duration,
}

impl<'a> Lines<'a> {
    pub(super) fn new(
        source: &'a Source,
        width: usize,
        alpha: Option<AlphaPlane>,
        png: StreamWriter<'static, Encoded>,
    ) -> Self {
        Self {
            source,
            alpha,
            png,
            bytes: Vec::with_capacity(2 * LINE_BYTES),
            width,
            rows_laid: 0,
            pixels_laid: 0,
            overlay: None,
            clock: || Duration::ZERO,
            encode_time: Duration::ZERO,
        }
    }

    /// Takes the next pixels of the row that comes, all of them or fewer; they are changed on the way.
    pub(super) fn lay(&mut self, part: &mut [f32]) -> Result<(), WriteError> {
        let channels = self.source.color.channels();
        if let Some(overlay) = &self.overlay {
            overlay([self.pixels_laid, self.rows_laid], part);
        }
        if let Some(curves) = &self.source.curves {
            curves.decode(part);
        }
        for samples in part.chunks(STRETCH * channels) {
            self.round(samples, channels);
            self.pixels_laid += samples.len() / channels;
            if self.bytes.len() >= LINE_BYTES {
                self.write()?;
            }
        }
        if self.pixels_laid == self.width {
            (self.pixels_laid, self.rows_laid) = (0, self.rows_laid + 1);
        }
        Ok(())
    }

    /// The next stretch of the row, as the file has it.
    fn round(&mut self, samples: &[f32], channels: usize) {
        let sixteen_bit = self.source.sixteen_bit;
        match &self.alpha {
            Some(plane) => {
                let alpha = &plane.row(self.rows_laid)[self.pixels_laid..];
                let color = samples.chunks_exact(channels);
                let samples = color.zip(alpha).flat_map(|(pixel, alpha)| {
                    let alpha = f32::from(*alpha) / 65_535.0;
                    pixel.iter().copied().chain([alpha])
                });
                put(&mut self.bytes, sixteen_bit, samples);
            }
            None => widened!(put(&mut self.bytes, sixteen_bit, samples.iter().copied())),
        }
    }

    /// Gives the encoder what is there.
    pub(super) fn write(&mut self) -> Result<(), WriteError> {
        let started = (self.clock)();
        self.png
            .write_all(&self.bytes)
            .map_err(png::EncodingError::from)?;
        self.encode_time += (self.clock)().saturating_sub(started);
        self.bytes.clear();
        Ok(())
    }

    /// Ends the file.
    pub(super) fn finish(self) -> Result<(), WriteError> {
        Ok(self.png.finish()?)
    }
}

/// Adding this to a sample in levels leaves its nearest whole level in the lowest bits: above 2²³ a 32-bit float has
/// no fraction. The compiler makes vectors of it, which it cannot of `round() as u8`.
const WHOLE: f32 = 8_388_608.0;

#[inline(always)]
fn put(line: &mut Vec<u8>, sixteen_bit: bool, samples: impl Iterator<Item = f32>) {
    if sixteen_bit {
        line.extend(samples.flat_map(|sample| {
            let level = sample.clamp(0.0, 1.0) * 65_535.0 + WHOLE;
            (level.to_bits() as u16).to_be_bytes()
        }));
    } else {
        line.extend(samples.map(|sample| (sample.clamp(0.0, 1.0) * 255.0 + WHOLE).to_bits() as u8));
    }
}

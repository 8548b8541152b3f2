//! Pictures as the rooms exchange them: the decoder makes [`Pixels`], the engine turns them into more,
//! row by row ([`Rows`]), the encoder writes the rows. What a file said about colour, alpha or orientation
//! stays in the image room; here are samples only.

/// A picture: row-major, interleaved `f32` samples, nominally in `[0, 1]`, already oriented.
///
/// `samples.len() == width * height * channels`; the constructor is the only way to make one.
#[derive(Debug, Clone, PartialEq)]
pub struct Pixels {
    width: usize,
    height: usize,
    channels: usize,
    samples: Vec<f32>,
}

/// A band of finished rows, top to bottom, handed on while later ones are still computed.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    /// Index of the first row in the whole output picture.
    pub first_row: usize,
    /// Number of rows in this band (≥ 1).
    pub row_count: usize,
    /// Samples per row: output width × channels.
    pub row_samples: usize,
    /// `row_count * row_samples` interleaved samples, nominally in `[0, 1]`.
    pub samples: &'a [f32],
}

/// The dimensions and the sample count do not belong together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{width} x {height} pixels of {channels} channels need {needed} samples, {given} were given"
)]
pub struct WrongSampleCount {
    width: usize,
    height: usize,
    channels: usize,
    needed: usize,
    given: usize,
}

impl Pixels {
    /// Wraps samples. Width, height ≥ 1; channels 1 (gray or alpha) or 3 (RGB).
    ///
    /// # Errors
    /// [`WrongSampleCount`] when a dimension is zero or the samples do not fill the picture exactly.
    pub fn new(
        width: usize,
        height: usize,
        channels: usize,
        samples: Vec<f32>,
    ) -> Result<Self, WrongSampleCount> {
        let needed = width.saturating_mul(height).saturating_mul(channels);
        if needed == 0 || needed != samples.len() {
            return Err(WrongSampleCount {
                width,
                height,
                channels,
                needed,
                given: samples.len(),
            });
        }
        Ok(Self {
            width,
            height,
            channels,
            samples,
        })
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

    /// Samples per pixel: 1 or 3.
    #[must_use]
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// All samples, row-major, interleaved.
    #[must_use]
    pub fn samples(&self) -> &[f32] {
        &self.samples
    }

    /// The samples of row `y` (`y < height`).
    #[must_use]
    pub fn row(&self, y: usize) -> &[f32] {
        let stride = self.width * self.channels;
        &self.samples[y * stride..(y + 1) * stride]
    }

    /// Gives the samples away.
    #[must_use]
    pub fn into_samples(self) -> Vec<f32> {
        self.samples
    }
}

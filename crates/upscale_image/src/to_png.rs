//! The result: a PNG of the smallest type that holds it, checked, balanced and written row by row while the networks
//! still compute.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use png::chunk::ChunkType;
use png::{
    BitDepth, ColorType, Compression, Encoder, Filter, PixelDimensions, ScaledFloat,
    SrgbRenderingIntent, StreamWriter, Unit,
};
use upscale_core::Rows;

use crate::alpha::AlphaPlane;
use crate::balance::Balance;
use crate::check::{Fidelity, OutputCheck};
use crate::colour::Tag;
use crate::decoded::Source;
use crate::error::WriteError;
use crate::shrink::Group;

/// A result being written.
pub struct PngWriter<'a, W: Write> {
    source: &'a Source,
    alpha: Option<AlphaPlane>,
    out: W,
    encoded: Encoded,
    png: StreamWriter<'static, Encoded>,
    scale: usize,
    width: usize,
    height: usize,
    /// Rows that came, and rows that were laid into `lines` (fewer: the balance looks ahead).
    next_row: usize,
    rows_laid: usize,
    /// Rows of a source row that is not complete.
    pending: Group,
    check: OutputCheck,
    balance: Balance,
    overlay: Option<Overlay<'a>>,
    /// Rows as they go into the file, until there are enough of them: a picture may have millions.
    lines: Vec<u8>,
    clock: fn() -> Duration,
    encode_time: Duration,
}

/// Changes finished rows in place, given the number of the first.
type Overlay<'a> = Box<dyn Fn(usize, &mut [f32]) + 'a>;

/// What was written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OutputFacts {
    /// Columns.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// Samples per pixel: 1 gray, 2 gray and alpha, 3 colour, 4 colour and alpha.
    pub channels: u8,
    /// Bits per sample: 8 or 16.
    pub depth: u8,
    /// How far the result, before the balance, was from the source.
    pub fidelity: Fidelity,
    /// Time spent in the PNG encoder alone, by the clock of [`PngWriter::timed_by`]; zero without one.
    pub encode_time: Duration,
}

impl<'a, W: Write> PngWriter<'a, W> {
    /// Writes the header of a result `scale` times the size of `source`, whose upscaled alpha is `alpha`.
    ///
    /// # Errors
    /// [`WriteError::AlphaMismatch`] when `alpha` is not exactly the source's, [`WriteError::Encode`] from the sink.
    pub fn new(
        out: W,
        source: &'a Source,
        scale: usize,
        alpha: Option<AlphaPlane>,
    ) -> Result<Self, WriteError> {
        let (width, height) = (source.color.width() * scale, source.color.height() * scale);
        let alpha_fits = match &alpha {
            Some(plane) => source.alpha.is_some() && plane.is_whole(width, height),
            None => source.alpha.is_none(),
        };
        if !alpha_fits {
            return Err(WriteError::AlphaMismatch { width, height });
        }
        let encoded = Encoded::default();
        Ok(Self {
            out,
            png: open(&encoded, source, scale, Compression::Fast)?,
            encoded,
            source,
            alpha,
            scale,
            width,
            height,
            next_row: 0,
            rows_laid: 0,
            pending: Group::default(),
            check: OutputCheck::new(&source.color),
            balance: Balance::new(scale),
            overlay: None,
            lines: Vec::new(),
            clock: || Duration::ZERO,
            encode_time: Duration::ZERO,
        })
    }

    /// Measures the encoder by `clock`, which says how much time has passed since some moment.
    #[must_use]
    pub fn timed_by(mut self, clock: fn() -> Duration) -> Self {
        self.clock = clock;
        self
    }

    /// Has `overlay` change rows of result, given the number of the first, after they were checked and balanced: what it
    /// changes moves nothing beside it.
    #[must_use]
    pub fn overlaid_by(mut self, overlay: impl Fn(usize, &mut [f32]) + 'a) -> Self {
        self.overlay = Some(Box::new(overlay));
        self
    }

    /// Takes the next finished rows of colour, as the network made them.
    ///
    /// # Errors
    /// [`WriteError::RowOrder`] when rows are missing, repeated or of the wrong width; [`WriteError::Check`] as soon as
    /// they are seen not to be the source; [`WriteError::Encode`]. After an error the file is worth nothing.
    pub fn push_rows(&mut self, rows: Rows<'_>) -> Result<(), WriteError> {
        let row_samples = self.width * self.source.color.channels();
        let fits = rows.first_row == self.next_row
            && rows.row_samples == row_samples
            && rows.row_count <= self.height - self.next_row
            && rows.samples.len() == rows.row_count * rows.row_samples;
        if !fits {
            return Err(self.row_order(rows.first_row, rows.row_samples));
        }
        for row in rows.samples.chunks_exact(row_samples) {
            self.pending.rows.extend_from_slice(row);
            self.next_row += 1;
            if self.next_row.is_multiple_of(self.scale) {
                self.take_group()?;
            }
        }
        self.encoded.drain_into(&mut self.out)
    }

    /// Ends the file and gives the verdict on the whole.
    ///
    /// # Errors
    /// [`WriteError::RowOrder`] when rows are missing; [`WriteError::Check`]; [`WriteError::Encode`].
    pub fn finish(mut self) -> Result<OutputFacts, WriteError> {
        self.write_lines()?;
        if self.rows_laid != self.height {
            return Err(self.row_order(self.height, 0));
        }
        let facts = OutputFacts {
            width: self.width as u32,
            height: self.height as u32,
            channels: self.source.color.channels() as u8 + u8::from(self.alpha.is_some()),
            depth: if self.source.sixteen_bit { 16 } else { 8 },
            fidelity: self.check.finish()?,
            encode_time: self.encode_time,
        };
        self.png.finish()?;
        self.encoded.drain_into(&mut self.out)?;
        self.out.flush().map_err(png::EncodingError::from)?;
        Ok(facts)
    }

    /// Checks the rows of one source row, and writes what the balance is done with.
    fn take_group(&mut self) -> Result<(), WriteError> {
        let source = &self.source.color;
        let group = std::mem::take(&mut self.pending);
        let shrunk = group.shrunk(source.channels(), self.scale);
        let y = self.next_row / self.scale - 1;
        self.check
            .take(source, y, self.scale, &group, &shrunk.codes)?;
        for mut group in self.balance.push(source, group, &shrunk) {
            if let Some(overlay) = &self.overlay {
                overlay(self.rows_laid, &mut group.rows);
            }
            if let Some(curves) = &self.source.curves {
                curves.decode(&mut group.rows);
            }
            for row in group.rows.chunks_exact(self.width * source.channels()) {
                self.lay_row(row);
                if self.lines.len() >= CHUNK_BYTES {
                    self.write_lines()?;
                }
            }
        }
        Ok(())
    }

    fn row_order(&self, given: usize, given_samples: usize) -> WriteError {
        WriteError::RowOrder {
            given,
            expected: self.next_row,
            height: self.height,
            given_samples,
        }
    }

    fn lay_row(&mut self, row: &[f32]) {
        match &self.alpha {
            Some(plane) => {
                let alpha = plane.row(self.rows_laid);
                let color = row.chunks_exact(self.source.color.channels());
                let samples = color.zip(alpha).flat_map(|(pixel, alpha)| {
                    let alpha = f32::from(*alpha) / 65_535.0;
                    pixel.iter().copied().chain([alpha])
                });
                put(&mut self.lines, self.source.sixteen_bit, samples);
            }
            None => put(
                &mut self.lines,
                self.source.sixteen_bit,
                row.iter().copied(),
            ),
        }
        self.rows_laid += 1;
    }

    fn write_lines(&mut self) -> Result<(), WriteError> {
        let started = (self.clock)();
        self.png
            .write_all(&self.lines)
            .map_err(png::EncodingError::from)?;
        self.encode_time += (self.clock)().saturating_sub(started);
        self.lines.clear();
        Ok(())
    }
}

/// Adding this to a sample in levels leaves its nearest whole level in the lowest bits: above 2²³ a 32-bit float has
/// no fraction. The compiler makes vectors of it, which it cannot of `round() as u8`.
const WHOLE: f32 = 8_388_608.0;

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

/// Bytes between the encoder, which insists on owning a `'static` sink, and the caller's sink, which need not be one.
#[derive(Clone, Default)]
pub(crate) struct Encoded(Arc<Mutex<Vec<u8>>>);

impl Encoded {
    pub(crate) fn drain_into(&self, out: &mut impl Write) -> Result<(), WriteError> {
        let mut bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        out.write_all(&bytes).map_err(png::EncodingError::from)?;
        bytes.clear();
        Ok(())
    }
}

impl Write for Encoded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Compressed data goes out in chunks of this size; the encoder's own 4 KiB cost 5 % more time.
const CHUNK_BYTES: usize = 128 * 1024;

/// Begins the file of a result `scale` times the size of `source`.
pub(crate) fn open(
    encoded: &Encoded,
    source: &Source,
    scale: usize,
    compression: Compression,
) -> Result<StreamWriter<'static, Encoded>, WriteError> {
    let sides = [source.color.width(), source.color.height()];
    let [width, height] = sides.map(|side| (side * scale) as u32);
    let mut info = png::Info::with_size(width, height);
    info.color_type = match (source.color.channels(), source.alpha.is_some()) {
        (1, false) => ColorType::Grayscale,
        (1, true) => ColorType::GrayscaleAlpha,
        (_, false) => ColorType::Rgb,
        (_, true) => ColorType::Rgba,
    };
    info.bit_depth = if source.sixteen_bit {
        BitDepth::Sixteen
    } else {
        BitDepth::Eight
    };
    info.pixel_dims = source
        .density
        .and_then(|density| density.scaled(scale))
        .map(|density| PixelDimensions {
            xppu: density.x,
            yppu: density.y,
            unit: if density.per_metre {
                Unit::Meter
            } else {
                Unit::Unspecified
            },
        });
    write_tag(&mut info, &source.tag);
    let mut encoder = Encoder::with_info(encoded.clone(), info)?;
    encoder.set_compression(compression);
    if matches!(compression, Compression::Fast) {
        // Trying all five filters a row ends at this one nearly always: the same size to 0.1 %, a fifth of the time more.
        encoder.set_filter(Filter::Paeth);
    }
    let mut writer = encoder.write_header()?;
    if let Tag::Cicp(code_points, _) = &source.tag {
        writer.write_chunk(ChunkType(*b"cICP"), code_points)?;
    }
    Ok(writer.into_stream_writer_with_size(CHUNK_BYTES)?)
}

fn write_tag(info: &mut png::Info<'_>, tag: &Tag) {
    match tag {
        Tag::Srgb => info.srgb = Some(SrgbRenderingIntent::Perceptual),
        Tag::Gamma { gamma, primaries } => {
            info.source_gamma = gamma.map(ScaledFloat::from_scaled);
            info.source_chromaticities = primaries.map(|primaries| primaries.0);
        }
        Tag::Icc(profile) => info.icc_profile = Some(profile.clone().into()),
        Tag::Cicp(_, profile) => info.icc_profile = profile.clone().map(Into::into),
    }
}

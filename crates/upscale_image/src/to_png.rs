//! The result: a PNG of the smallest type that holds it, checked, balanced and written row by row while the networks
//! still compute.

mod lines;

use std::io::{self, Write};
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use png::chunk::ChunkType;
use png::{
    BitDepth, ColorType, Compression, Encoder, Filter, PixelDimensions, ScaledFloat,
    SrgbRenderingIntent, StreamWriter, Unit,
};
use upscale_core::{Look, Rows};

use self::lines::{LINE_BYTES, Lines};
use crate::alpha::AlphaPlane;
use crate::balance::Balance;
use crate::check::{Fidelity, OutputCheck};
use crate::colour::Tag;
use crate::decoded::Source;
use crate::edges::Edges;
use crate::error::WriteError;
use crate::focus::Focus;
use crate::groups::Groups;
use crate::sharpen::Sharpen;
use crate::shrink::shrunk;
use crate::spare::Spare;

/// Room for the PNG of a result `scale` times the size of `source`: half of its bytes without compression, which most
/// photographs need. A file that grows into it is not copied on the way; what it does not fill costs no memory.
fn likely_bytes(source: &Source, scale: usize) -> usize {
    let alpha = source
        .alpha
        .as_ref()
        .map_or(0, |plane| plane.samples().len());
    let samples = (source.color.samples().len() + alpha) * scale * scale;
    let sample_bytes = if source.sixteen_bit { 2 } else { 1 };
    samples * sample_bytes / 2
}

/// A result being written.
pub struct PngWriter<'a> {
    source: &'a Source,
    file: Encoded,
    scale: usize,
    width: usize,
    height: usize,
    /// Rows that came, and groups of them that were taken.
    next_row: usize,
    groups_taken: usize,
    groups: Groups,
    check: OutputCheck,
    focus: Focus,
    sharpen: Option<Sharpen>,
    edges: Option<Edges>,
    balance: Balance,
    spare: Spare,
    lines: Lines<'a>,
}

/// Facts of the PNG that was written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OutputFacts {
    /// Columns of the PNG, in pixels.
    pub width: u32,
    /// Rows of the PNG, in pixels.
    pub height: u32,
    /// Samples per pixel: 1 gray, 2 gray and alpha, 3 colour, 4 colour and alpha.
    pub channels: u8,
    /// Bits per sample: 8 or 16.
    pub depth: u8,
    /// How far the result, before the balance, was from the source.
    pub fidelity: Fidelity,
    /// Where the result differs most from its source enlarged smoothly: columns and rows in thousandths of its sides.
    pub focus_permille: [u16; 2],
    /// Time spent in the PNG encoder alone, by the clock of [`PngWriter::timed_by`]; zero without one.
    pub encode_time: Duration,
}

impl<'a> PngWriter<'a> {
    /// Begins the file of a result `scale` times the size of `source`, whose upscaled alpha is `alpha`.
    ///
    /// # Errors
    /// [`WriteError::AlphaMismatch`] when `alpha` is not exactly the source's, [`WriteError::Encode`].
    pub fn new(
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
        let file = Encoded::with_room(likely_bytes(source, scale));
        Ok(Self {
            lines: Lines::new(
                source,
                width,
                alpha,
                open(&file, source, scale, Compression::Fast)?,
            ),
            file,
            source,
            scale,
            width,
            height,
            next_row: 0,
            groups_taken: 0,
            groups: Groups::new(width * source.color.channels() * scale),
            check: OutputCheck::new(&source.color),
            focus: Focus::new(&source.color),
            sharpen: None,
            edges: None,
            balance: Balance::new(scale),
            spare: Spare::default(),
        })
    }

    /// Measures the encoder by `clock`, which says how much time has passed since some moment.
    #[must_use]
    pub fn timed_by(mut self, clock: fn() -> Duration) -> Self {
        self.lines.clock = clock;
        self
    }

    /// Finishes what the networks made as `look` wants it, between check and balance: sharper, and with edges on their own
    /// course. How far depends on the `softness` of the source, in its pixels.
    #[must_use]
    pub fn with_look(mut self, look: Look, softness: f32) -> Self {
        let (color, scale) = (&self.source.color, self.scale);
        let (width, height, channels) = (color.width(), color.height(), color.channels());
        self.edges = (look != Look::Faithful)
            .then(|| Edges::new([width, height], channels, scale, softness))
            .flatten();
        let amount = look.sharpening(scale, softness);
        self.sharpen = self
            .edges
            .as_ref()
            .and_then(|_| Sharpen::new(height, channels, scale, amount));
        self
    }

    /// Has `overlay` change pixels of one row of the result, given the column and the row of the first, after they were
    /// checked and balanced: what it changes moves nothing beside it.
    #[must_use]
    pub fn overlaid_by(mut self, overlay: impl Fn([usize; 2], &mut [f32]) + 'a) -> Self {
        self.lines.overlay = Some(Box::new(overlay));
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
        self.next_row += rows.row_count;
        let (color, scale, next) = (&self.source.color, self.scale, &mut self.groups_taken);
        let (check, balance, lines) = (&mut self.check, &mut self.balance, &mut self.lines);
        let (focus, spare) = (&mut self.focus, &mut self.spare);
        let (sharpen, edges) = (&mut self.sharpen, &mut self.edges);
        self.groups.push(rows.samples, &mut |group| {
            let means = shrunk(group, color.channels(), scale, spare);
            check.take(color, *next, scale, group, &means, spare)?;
            focus.take(color, *next, scale, group);
            *next += 1;
            let mut even = |group: &[f32], means, spare: &mut Spare| {
                balance.push(color, group, means, spare, &mut |part| lines.lay(part))
            };
            let mut sharp = |group: &[f32], means, spare: &mut Spare| match edges {
                Some(edges) => edges.push(group, means, spare, &mut even),
                None => even(group, means, spare),
            };
            match sharpen {
                Some(sharpen) => sharpen.push(group, means, spare, &mut sharp),
                None => sharp(group, means, spare),
            }
        })
    }

    /// Ends the file, gives the verdict on the whole, and the file.
    ///
    /// # Errors
    /// [`WriteError::RowOrder`] when rows are missing; [`WriteError::Check`]; [`WriteError::Encode`].
    pub fn finish(mut self) -> Result<(OutputFacts, Vec<u8>), WriteError> {
        self.lines.write()?;
        if self.lines.rows_laid != self.height {
            return Err(self.row_order(self.height, 0));
        }
        let facts = OutputFacts {
            width: self.width as u32,
            height: self.height as u32,
            channels: self.source.color.channels() as u8 + u8::from(self.source.alpha.is_some()),
            depth: if self.source.sixteen_bit { 16 } else { 8 },
            fidelity: self.check.finish()?,
            focus_permille: self.focus.permille(),
            encode_time: self.lines.encode_time,
        };
        self.lines.finish()?;
        Ok((facts, self.file.take()))
    }

    fn row_order(&self, given: usize, given_samples: usize) -> WriteError {
        WriteError::RowOrder {
            given,
            expected: self.next_row,
            height: self.height,
            given_samples,
        }
    }
}

/// The file as it grows. The encoder insists on owning a `'static` sink, so the bytes are shared with it.
#[derive(Clone)]
pub(crate) struct Encoded(Arc<Mutex<Vec<u8>>>);

impl Encoded {
    pub(crate) fn with_room(bytes: usize) -> Self {
        Self(Arc::new(Mutex::new(Vec::with_capacity(bytes))))
    }

    /// The bytes that there are, once the encoder has ended.
    pub(crate) fn take(&self) -> Vec<u8> {
        mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
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
    Ok(writer.into_stream_writer_with_size(LINE_BYTES)?)
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

//! What can be wrong with a customer's file, and with writing a result. The texts are shown to customers: they carry
//! numbers and name formats, never a path, a library or a line of code.

use crate::check::CheckFailure;
use crate::format::Format;

/// Why a file cannot be upscaled. Every one is final: the same bytes fail the same way.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// The file has no bytes.
    #[error("The file is empty (0 bytes).")]
    Empty,
    /// A file of a known but not accepted kind.
    #[error("The file is {article_and_kind}; JPEG, PNG and WebP are accepted.")]
    OtherFormat {
        /// Kind with its article, e.g. `a GIF image`.
        article_and_kind: &'static str,
    },
    /// The first bytes belong to no known format.
    #[error("The file is not an image: its first bytes are none of JPEG, PNG or WebP.")]
    NotAnImage,
    /// The decoded frame would be over the cap (checked on the header, before anything is allocated).
    #[error(
        "The image is {width} x {height} = {} MP; the limit for this task is {} MP.",
        megapixels(u64::from(*width) * u64::from(*height)), megapixels(*pixels_max)
    )]
    TooManyPixels {
        /// Columns as stored, before orientation is applied.
        width: u32,
        /// Rows as stored, before orientation is applied.
        height: u32,
        /// The cap, in pixels, inclusive.
        pixels_max: u64,
    },
    /// More than one frame.
    #[error("The {format} file is {what}; only still images are accepted.")]
    Animated {
        /// Format by its magic bytes.
        format: Format,
        /// `animated (12 frames)` or the like.
        what: String,
    },
    /// A valid file of a coding no decoder of ours reads.
    #[error("The {format} file uses {what}, which is not supported.")]
    Unsupported {
        /// Format by its magic bytes.
        format: Format,
        /// The coding, by name.
        what: String,
    },
    /// The file ends before the picture does.
    #[error(
        "The {format} file is incomplete: it ends after {bytes} bytes, before the picture is whole."
    )]
    Truncated {
        /// Format by its magic bytes.
        format: Format,
        /// Size of the file.
        bytes: usize,
    },
    /// The file contradicts itself.
    #[error("The {format} file is damaged: {what}.")]
    Damaged {
        /// Format by its magic bytes.
        format: Format,
        /// What is wrong, in a customer's words.
        what: &'static str,
    },
}

impl ImageError {
    pub(crate) fn damaged(format: Format, what: &'static str) -> Self {
        Self::Damaged { format, what }
    }
}

/// Why a result could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// What came is no picture of the source.
    #[error("the output check failed: {0}")]
    Check(#[from] CheckFailure),
    /// Rows came twice, out of order, too many, too few or of the wrong width.
    #[error(
        "row {given} was handed over where row {expected} of {height} was due ({given_samples} samples)"
    )]
    RowOrder {
        /// First row of the band given.
        given: usize,
        /// Row that was due.
        expected: usize,
        /// Rows of the whole result.
        height: usize,
        /// Samples in a row of the band.
        given_samples: usize,
    },
    /// The alpha plane is missing, superfluous or of another size.
    #[error("the alpha plane does not belong to this result of {width} x {height}")]
    AlphaMismatch {
        /// Columns of the result.
        width: usize,
        /// Rows of the result.
        height: usize,
    },
    /// The encoder or the sink below it failed.
    #[error("the PNG could not be written: {0}")]
    Encode(#[from] png::EncodingError),
    /// A side is longer than the format knows.
    #[error(
        "{format} has sides of at most {side_max} pixels, and the result would have {side}: write a PNG"
    )]
    Side {
        /// What was asked for.
        format: Format,
        /// The longer side of the result.
        side: u32,
        /// The longest of the format.
        side_max: u32,
    },
    /// Another format or size than the PNG's could not be made.
    #[error("the result could not be converted to the requested format: {0}")]
    Reencode(String),
}

/// `1500000` as `1.5`, `1500001` as `1.500001`: never rounded to a number that would look allowed.
fn megapixels(pixels: u64) -> String {
    let whole = pixels / 1_000_000;
    let fraction = format!("{:06}", pixels % 1_000_000);
    let fraction = fraction.trim_end_matches('0');
    if fraction.is_empty() {
        format!("{whole}.0")
    } else {
        format!("{whole}.{fraction}")
    }
}

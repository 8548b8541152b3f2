//! The formats that are accepted.

use std::fmt;

/// The three accepted input formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// JPEG (JFIF, EXIF, Adobe or bare).
    Jpeg,
    /// PNG.
    Png,
    /// WebP, lossy or lossless.
    WebP,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Jpeg => "JPEG",
            Self::Png => "PNG",
            Self::WebP => "WebP",
        })
    }
}

//! What kind of file the first bytes say it is; the name it came under is no one's business.

use crate::error::ImageError;
use crate::format::Format;

/// What a file's header says, before anything is allocated for its pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Format by the magic bytes.
    pub format: Format,
    /// Columns as stored (before orientation), ≥ 1.
    pub width: u32,
    /// Rows as stored (before orientation), ≥ 1.
    pub height: u32,
}

impl Header {
    /// Holds the frame against a cap in pixels, inclusive.
    ///
    /// # Errors
    /// [`ImageError::TooManyPixels`] with all three numbers.
    pub fn check_pixels(&self, pixels_max: u64) -> Result<(), ImageError> {
        if u64::from(self.width) * u64::from(self.height) <= pixels_max {
            return Ok(());
        }
        Err(ImageError::TooManyPixels {
            width: self.width,
            height: self.height,
            pixels_max,
        })
    }
}

/// The first eight bytes of every PNG.
pub(crate) const PNG_SIGNATURE: [u8; 8] = *b"\x89PNG\r\n\x1a\n";

/// Tells the format by magic bytes.
///
/// # Errors
/// [`ImageError::Empty`], [`ImageError::OtherFormat`] (naming it) or [`ImageError::NotAnImage`].
pub fn sniff(bytes: &[u8]) -> Result<Format, ImageError> {
    if bytes.is_empty() {
        return Err(ImageError::Empty);
    }
    if bytes.starts_with(&[0xff, 0xd8]) {
        return Ok(Format::Jpeg);
    }
    if bytes.starts_with(&PNG_SIGNATURE) {
        return Ok(Format::Png);
    }
    if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        return Ok(Format::WebP);
    }
    Err(match other_format(bytes) {
        Some(article_and_kind) => ImageError::OtherFormat { article_and_kind },
        None => ImageError::NotAnImage,
    })
}

/// Kinds people send by mistake, so that the message can say what arrived.
fn other_format(bytes: &[u8]) -> Option<&'static str> {
    const BY_START: [(&[u8], &str); 12] = [
        (b"GIF8", "a GIF image"),
        (b"BM", "a BMP image"),
        (b"II*\0", "a TIFF image"),
        (b"MM\0*", "a TIFF image"),
        (b"%PDF", "a PDF document"),
        (b"8BPS", "a Photoshop document"),
        (b"\0\0\x01\0", "an icon file"),
        (b"qoif", "a QOI image"),
        (b"\xff\x0a", "a JPEG XL image"),
        (b"\0\0\0\x0cJXL ", "a JPEG XL image"),
        (b"\0\0\0\x0cjP  ", "a JPEG 2000 image"),
        (b"PK\x03\x04", "a ZIP archive"),
    ];
    let by_start = BY_START
        .iter()
        .find(|(magic, _)| bytes.starts_with(magic))
        .map(|(_, kind)| *kind);
    by_start
        .or_else(|| iso_media_kind(bytes))
        .or_else(|| markup_kind(bytes))
}

/// HEIC and AVIF are ISO media files told apart by their brand.
fn iso_media_kind(bytes: &[u8]) -> Option<&'static str> {
    if bytes.get(4..8) != Some(b"ftyp") {
        return None;
    }
    match bytes.get(8..12)? {
        b"avif" | b"avis" => Some("an AVIF image"),
        b"heic" | b"heix" | b"hevc" | b"heim" | b"heis" | b"mif1" | b"msf1" => Some("a HEIC image"),
        _ => Some("a video file"),
    }
}

/// SVG, and the error page that a broken link delivers in a picture's place.
fn markup_kind(bytes: &[u8]) -> Option<&'static str> {
    let head = &bytes[..bytes.len().min(1024)];
    let text = String::from_utf8_lossy(head).to_ascii_lowercase();
    let text = text.trim_start_matches('\u{feff}').trim_start();
    if !text.starts_with('<') {
        return None;
    }
    if text.contains("<svg") || text.contains("doctype svg") {
        Some("an SVG drawing")
    } else if text.contains("<html") || text.contains("doctype html") {
        Some("an HTML page")
    } else {
        Some("an XML document")
    }
}

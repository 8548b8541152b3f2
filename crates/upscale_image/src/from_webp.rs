//! WebP to samples: `image-webp` decodes, this file bounds it and refuses animations.

use std::io::Cursor;

use image_webp::{DecodingError, WebPDecoder};

use crate::colour::{Colour, Layout};
use crate::decoded::Decoded;
use crate::error::ImageError;
use crate::exif::Exif;
use crate::format::Format;
use crate::orientation::Orientation;
use crate::sniff::Header;
use crate::vp8_header;

/// What one metadata chunk may take; the decoder has no limit of its own.
const BYTES_MAX: usize = 16 * 1024 * 1024;

/// The limited-range YUV of lossy WebP leaves the channels of a gray up to 1 level apart.
const GRAY_TOLERANCE: f32 = 1.5 / 255.0;

pub(crate) fn read_header(bytes: &[u8]) -> Result<Header, ImageError> {
    let decoder = open(bytes)?;
    let (width, height) = decoder.dimensions();
    if width == 0 || height == 0 {
        return Err(ImageError::damaged(
            Format::WebP,
            "its width or height is 0",
        ));
    }
    Ok(Header {
        format: Format::WebP,
        width,
        height,
    })
}

pub(crate) fn decode(bytes: &[u8]) -> Result<Decoded, ImageError> {
    let mut decoder = open(bytes)?;
    let (width, height) = decoder.dimensions();
    let layout = if decoder.has_alpha() {
        Layout::Rgba
    } else {
        Layout::Rgb
    };
    let pixel_count = width as usize * height as usize;
    let mut data = vec![0; pixel_count * layout.channels()];
    decoder
        .read_image(&mut data)
        .map_err(|error| explain(bytes, &error))?;
    let exif = decoder.exif_metadata().ok().flatten();
    let exif = exif.as_deref().map(Exif::read);
    Ok(Decoded {
        width: width as usize,
        height: height as usize,
        layout,
        samples: data.iter().map(|byte| f32::from(*byte) / 255.0).collect(),
        sixteen_bit: false,
        orientation: exif.map_or(Orientation::UPRIGHT, |exif| exif.orientation),
        density: exif.and_then(|exif| exif.density),
        compression: vp8_header::compression(bytes),
        colour: Colour {
            icc: decoder.icc_profile().ok().flatten(),
            gray_tolerance: if decoder.is_lossy() {
                GRAY_TOLERANCE
            } else {
                0.0
            },
            ..Colour::default()
        },
    })
}

fn open(bytes: &[u8]) -> Result<WebPDecoder<Cursor<&[u8]>>, ImageError> {
    if announced_size(bytes).is_some_and(|size| size > bytes.len()) {
        return Err(truncated(bytes));
    }
    let mut decoder =
        WebPDecoder::new(Cursor::new(bytes)).map_err(|error| explain(bytes, &error))?;
    decoder.set_memory_limit(BYTES_MAX);
    if decoder.is_animated() {
        return Err(ImageError::Animated {
            format: Format::WebP,
            what: format!("animated ({} frames)", decoder.num_frames()),
        });
    }
    Ok(decoder)
}

/// What the RIFF header says the file has; a last padding byte may be missing.
fn announced_size(bytes: &[u8]) -> Option<usize> {
    let size = u32::from_le_bytes(bytes.get(4..8)?.try_into().ok()?);
    Some(size as usize / 2 * 2 + 8)
}

fn truncated(bytes: &[u8]) -> ImageError {
    ImageError::Truncated {
        format: Format::WebP,
        bytes: bytes.len(),
    }
}

fn explain(bytes: &[u8], error: &DecodingError) -> ImageError {
    let what = match error {
        DecodingError::IoError(_) | DecodingError::NotEnoughInitData => {
            return truncated(bytes);
        }
        DecodingError::ChunkMissing => "a part that it announces is missing",
        DecodingError::InconsistentImageSizes => "it gives two different sizes",
        DecodingError::HuffmanError => "its Huffman tables or codes are wrong",
        _ => "its data cannot be decoded",
    };
    ImageError::damaged(Format::WebP, what)
}

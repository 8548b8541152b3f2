//! PNG to samples: the `png` crate decodes, this file bounds what it may allocate, refuses animations, and reads the
//! chunks that say what the numbers mean.

use std::io::Cursor;

use png::{
    BitDepth, ColorType, Decoder, DecodingError, Info, Limits, Reader, Transformations, Unit,
};

use upscale_core::Compression;

use crate::colour::{Colour, Layout, Primaries};
use crate::decoded::Decoded;
use crate::density::Density;
use crate::error::ImageError;
use crate::exif::Exif;
use crate::format::Format;
use crate::orientation::Orientation;
use crate::sniff::Header;

/// What the decoder may allocate beside the picture: profile, EXIF, a few rows. A 64 KiB deflate stream can grow to
/// 64 MiB; no real profile is over 4 MiB.
const BYTES_MAX: usize = 16 * 1024 * 1024;

pub(crate) fn read_header(bytes: &[u8]) -> Result<Header, ImageError> {
    // The header chunk comes first and at a fixed place; the decoder has no word for a side of 0.
    let is_zero = |at: usize| bytes.get(at..at + 4).is_some_and(|side| side == [0; 4]);
    if is_zero(16) || is_zero(20) {
        return Err(ImageError::damaged(Format::Png, "its width or height is 0"));
    }
    let mut decoder = Decoder::new_with_limits(Cursor::new(bytes), limits());
    let info = decoder
        .read_header_info()
        .map_err(|error| explain(bytes, &error))?;
    let (width, height) = info.size();
    Ok(Header {
        format: Format::Png,
        width,
        height,
    })
}

pub(crate) fn decode(bytes: &[u8], pixels_max: u64) -> Result<Decoded, ImageError> {
    let mut reader = open(bytes)?;
    let info = reader.info();
    refuse_animation(info)?;
    let (width, height) = info.size();
    let colour = colour(info);
    let exif = info.exif_metadata.as_deref().map(Exif::read);
    let density = density(info).or(exif.and_then(|exif| exif.density));
    let (color_type, depth) = reader.output_color_type();
    let layout = layout(color_type)?;
    let size = buffer_size(&reader, pixels_max)?;
    let mut data = vec![0; size];
    reader
        .next_frame(&mut data)
        .map_err(|error| explain(bytes, &error))?;
    reader.finish().map_err(|error| explain(bytes, &error))?;
    Ok(Decoded {
        width: width as usize,
        height: height as usize,
        layout,
        samples: samples(depth, &data),
        sixteen_bit: depth == BitDepth::Sixteen,
        colour,
        orientation: exif.map_or(Orientation::UPRIGHT, |exif| exif.orientation),
        density,
        compression: Compression::Lossless,
    })
}

fn limits() -> Limits {
    Limits { bytes: BYTES_MAX }
}

fn open(bytes: &[u8]) -> Result<Reader<Cursor<&[u8]>>, ImageError> {
    let mut decoder = Decoder::new_with_limits(Cursor::new(bytes), limits());
    decoder.set_ignore_text_chunk(true);
    decoder.set_transformations(Transformations::EXPAND);
    decoder.read_info().map_err(|error| explain(bytes, &error))
}

fn refuse_animation(info: &Info<'_>) -> Result<(), ImageError> {
    match info.animation_control() {
        None => Ok(()),
        Some(control) => Err(ImageError::Animated {
            format: Format::Png,
            what: format!("animated (APNG, {} frames)", control.num_frames),
        }),
    }
}

/// At most 4 samples of 2 bytes a pixel.
fn buffer_size(reader: &Reader<Cursor<&[u8]>>, pixels_max: u64) -> Result<usize, ImageError> {
    reader
        .output_buffer_size()
        .filter(|size| *size as u64 <= pixels_max.saturating_mul(8))
        .ok_or_else(|| ImageError::damaged(Format::Png, "its rows do not fit its size"))
}

fn layout(color_type: ColorType) -> Result<Layout, ImageError> {
    match color_type {
        ColorType::Grayscale => Ok(Layout::Gray),
        ColorType::GrayscaleAlpha => Ok(Layout::GrayAlpha),
        ColorType::Rgb => Ok(Layout::Rgb),
        ColorType::Rgba => Ok(Layout::Rgba),
        ColorType::Indexed => Err(ImageError::damaged(Format::Png, "its palette is missing")),
    }
}

fn samples(depth: BitDepth, data: &[u8]) -> Vec<f32> {
    if depth == BitDepth::Sixteen {
        data.chunks_exact(2)
            .map(|pair| f32::from(u16::from_be_bytes([pair[0], pair[1]])) / 65_535.0)
            .collect()
    } else {
        data.iter().map(|byte| f32::from(*byte) / 255.0).collect()
    }
}

fn density(info: &Info<'_>) -> Option<Density> {
    let dims = info.pixel_dims?;
    match dims.unit {
        Unit::Meter => Density::per_metre(f64::from(dims.xppu), f64::from(dims.yppu), 1.0),
        Unit::Unspecified => Density::aspect(dims.xppu, dims.yppu),
    }
}

/// The chunks in the order in which the PNG specification (3rd edition, 4.3) lets them win.
fn colour(info: &Info<'_>) -> Colour {
    let cicp = info.coding_independent_code_points.map(|c| {
        [
            c.color_primaries,
            c.transfer_function,
            c.matrix_coefficients,
            u8::from(c.is_video_full_range_image),
        ]
    });
    Colour {
        cicp,
        icc: info.icc_profile.as_ref().map(|icc| icc.to_vec()),
        says_srgb: info.srgb.is_some(),
        gamma: info.gama_chunk.map(|gamma| gamma.into_scaled()),
        primaries: info.chrm_chunk.map(Primaries),
        gray_tolerance: 0.0,
    }
}

fn explain(bytes: &[u8], error: &DecodingError) -> ImageError {
    let what = match error {
        DecodingError::IoError(_) => {
            return ImageError::Truncated {
                format: Format::Png,
                bytes: bytes.len(),
            };
        }
        DecodingError::Format(error) if error.to_string().contains("CRC") => {
            "a checksum does not match"
        }
        DecodingError::LimitsExceeded => "it unpacks to far more data than its picture needs",
        _ => "its data cannot be decoded",
    };
    ImageError::damaged(Format::Png, what)
}

//! From bytes to a [`Source`]: magic, header, caps, and only then a decoder; upright, colour apart from alpha, gray as
//! gray, with what is needed to write the result in the same colours, depth and density.

use upscale_core::{Condition, Pixels};

use crate::alpha;
use crate::compression::believed;
use crate::decoded::{Decoded, Source};
use crate::error::ImageError;
use crate::estimate::estimate;
use crate::format::Format;
use crate::sniff::{Header, sniff};
use crate::{from_png, from_webp, jpeg};

/// Reads format and size and nothing else; allocates nothing for pixels.
///
/// # Errors
/// Everything [`ImageError`] says about a file whose header cannot be read or whose coding is refused.
pub fn read_header(bytes: &[u8]) -> Result<Header, ImageError> {
    match sniff(bytes)? {
        Format::Jpeg => jpeg::read_header(bytes),
        Format::Png => from_png::read_header(bytes),
        Format::WebP => from_webp::read_header(bytes),
    }
}

/// Decodes a still image of at most `pixels_max` pixels (inclusive).
///
/// # Errors
/// [`ImageError`]: refused, over the cap, damaged or incomplete. Never half a picture.
pub fn decode(bytes: &[u8], pixels_max: u64) -> Result<Source, ImageError> {
    let header = read_header(bytes)?;
    header.check_pixels(pixels_max)?;
    let decoded = match header.format {
        Format::Jpeg => jpeg::decode(bytes),
        Format::Png => from_png::decode(bytes, pixels_max),
        Format::WebP => from_webp::decode(bytes),
    }?;
    assemble(header, decoded)
}

fn assemble(header: Header, decoded: Decoded) -> Result<Source, ImageError> {
    let channels = decoded.layout.channels();
    let compression = believed(
        decoded.compression,
        decoded.layout,
        decoded.width,
        &decoded.samples,
    );
    let turned = decoded.orientation;
    let (width, height, samples) =
        turned.apply(decoded.width, decoded.height, channels, decoded.samples);
    let density = match decoded.density {
        Some(density) if turned.transpose => Some(density.transposed()),
        density => density,
    };
    let (color, alpha) = if decoded.layout.has_alpha() {
        split_alpha(channels, &samples)
    } else {
        (samples, None)
    };
    let network = decoded.colour.into_network(decoded.layout, color);
    let mut color = pixels(
        header.format,
        width,
        height,
        network.channels,
        network.samples,
    )?;
    let mut alpha_pixels = None;
    if let Some(alpha) = alpha {
        let alpha = pixels(header.format, width, height, 1, alpha)?;
        color = alpha::bleed(color, &alpha).map_err(|_| {
            ImageError::damaged(header.format, "its alpha channel does not fit the picture")
        })?;
        alpha_pixels = Some(alpha);
    }
    let condition = Condition {
        compression,
        estimate: estimate(&color),
    };
    Ok(Source {
        color,
        alpha: alpha_pixels,
        header,
        condition,
        sixteen_bit: decoded.sixteen_bit,
        tag: network.tag,
        curves: network.curves,
        density,
    })
}

/// Takes the last sample of every pixel away; a fully opaque alpha is none.
fn split_alpha(channels: usize, samples: &[f32]) -> (Vec<f32>, Option<Vec<f32>>) {
    let pixel_count = samples.len() / channels;
    let mut color = Vec::with_capacity(pixel_count * (channels - 1));
    let mut alpha = Vec::with_capacity(pixel_count);
    for pixel in samples.chunks_exact(channels) {
        color.extend_from_slice(&pixel[..channels - 1]);
        alpha.push(pixel[channels - 1]);
    }
    let opaque = alpha.iter().all(|a| *a >= 1.0);
    (color, (!opaque).then_some(alpha))
}

fn pixels(
    format: Format,
    width: usize,
    height: usize,
    channels: usize,
    samples: Vec<f32>,
) -> Result<Pixels, ImageError> {
    Pixels::new(width, height, channels, samples)
        .map_err(|_| ImageError::damaged(format, "its size does not fit its samples"))
}

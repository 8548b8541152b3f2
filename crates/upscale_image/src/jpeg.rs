//! JPEG to samples: `zune-jpeg` decodes, this file decides what is refused beforehand, which colour model the numbers
//! are in, and that the file is whole.

mod blocks;
mod chroma;
mod huffman;
mod quantisation;
mod scans;
mod segments;

use zune_jpeg::JpegDecoder;
use zune_jpeg::errors::DecodeErrors;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use crate::colour::{Colour, Layout};
use crate::decoded::Decoded;
use crate::error::ImageError;
use crate::format::Format;
use crate::orientation::Orientation;
use crate::sniff::Header;
use chroma::Doubled;
use huffman::Fault;
use scans::{Component, Frame, check_scans};
use segments::{JpegSegments, damaged, truncated};

/// JPEG's own limit on a side (16-bit fields).
const SIDE_MAX: usize = 65_535;

pub(crate) fn read_header(bytes: &[u8]) -> Result<Header, ImageError> {
    let segments = JpegSegments::read(bytes)?;
    check_coding(&segments)?;
    Ok(Header {
        format: Format::Jpeg,
        width: u32::from(segments.width),
        height: u32::from(segments.height),
    })
}

pub(crate) fn decode(bytes: &[u8]) -> Result<Decoded, ImageError> {
    let segments = JpegSegments::read(bytes)?;
    check_whole(bytes, &segments)?;
    let (layout, samples) = decode_samples(bytes, &segments)?;
    let exif_density = segments.exif.and_then(|exif| exif.density);
    Ok(Decoded {
        width: usize::from(segments.width),
        height: usize::from(segments.height),
        layout,
        samples,
        sixteen_bit: false,
        orientation: segments
            .exif
            .map_or(Orientation::UPRIGHT, |exif| exif.orientation),
        density: segments.jfif_density.or(exif_density),
        compression: segments.table_means.compression(&segments.component_specs),
        colour: Colour {
            icc: segments.icc,
            ..Colour::default()
        },
    })
}

/// Refuses, by name, what the decoder cannot read.
fn check_coding(segments: &JpegSegments) -> Result<(), ImageError> {
    let unsupported = |what: String| {
        Err(ImageError::Unsupported {
            format: Format::Jpeg,
            what,
        })
    };
    match segments.coding {
        0..=2 => {}
        3 => return unsupported("lossless coding".to_owned()),
        5..=7 => return unsupported("hierarchical coding".to_owned()),
        _ => return unsupported("arithmetic coding".to_owned()),
    }
    if segments.precision != 8 {
        return unsupported(format!("{} bits per sample", segments.precision));
    }
    if !matches!(segments.components, 1 | 3 | 4) {
        return unsupported(format!("{} colour components", segments.components));
    }
    if let Some(factors) = segments.odd_sampling() {
        return unsupported(format!("an unusual chroma sub-sampling ({factors})"));
    }
    if segments.height == 0 && segments.width != 0 {
        return unsupported("a height that is given only after the picture".to_owned());
    }
    if segments.width == 0 || segments.height == 0 {
        return Err(damaged("its width or height is 0"));
    }
    if segments.further_frames > 0 {
        return Err(ImageError::Animated {
            format: Format::Jpeg,
            what: format!(
                "a multi-picture file ({} frames)",
                segments.further_frames + 1
            ),
        });
    }
    Ok(())
}

/// Refuses half a picture, whatever the decoder would make of it.
fn check_whole(bytes: &[u8], segments: &JpegSegments) -> Result<(), ImageError> {
    let component = |spec: &[u8; 3]| {
        let (h, v) = (usize::from(spec[1] >> 4), usize::from(spec[1] & 0x0f));
        Component::new(spec[0], h, v, usize::from(spec[2]))
    };
    let frame = Frame {
        width: usize::from(segments.width),
        height: usize::from(segments.height),
        progressive: segments.coding == 2,
        components: segments.component_specs.iter().map(component).collect(),
    };
    check_scans(bytes, frame).map_err(|fault| match fault {
        Fault::Short => truncated(bytes),
        Fault::Code => damaged("its picture data holds codes that mean nothing"),
        Fault::OutOfOrder => {
            damaged("its picture data is out of order, or there is too much of it")
        }
    })
}

/// The numbers are taken as stored (no conversion by the decoder, whose fixed-point YCbCr to RGB is off by 0.2 to 0.4
/// levels on average) and converted here in floating point.
fn decode_samples(bytes: &[u8], segments: &JpegSegments) -> Result<(Layout, Vec<f32>), ImageError> {
    let options = DecoderOptions::default()
        .set_strict_mode(true)
        .set_max_width(SIDE_MAX)
        .set_max_height(SIDE_MAX);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    decoder
        .decode_headers()
        .map_err(|error| explain(bytes, &error))?;
    let stored = Stored::of(segments);
    decoder.set_options(options.jpeg_set_out_colorspace(stored.color_space()));
    let data = decoder.decode().map_err(|error| explain(bytes, &error))?;
    let pixel_count = usize::from(segments.width) * usize::from(segments.height);
    if data.len() != pixel_count * usize::from(segments.components) {
        return Err(damaged("its components do not make one picture"));
    }
    Ok((stored.layout(), stored.samples(&data, segments)))
}

/// What the numbers in the file are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stored {
    Gray,
    Rgb,
    YCbCr,
    /// Adobe's habit, which every writer of ink JPEGs follows, marked or not: 255 is no ink.
    InvertedCmyk,
    /// The same with the three colour inks as YCbCr.
    InvertedYcck,
}

impl Stored {
    /// The rule of libjpeg (jdapimin.c, `default_decompress_parms`): JFIF means YCbCr, then Adobe's word counts, then
    /// the components' names.
    fn of(segments: &JpegSegments) -> Self {
        match (segments.components, segments.adobe_transform) {
            (1, _) => Self::Gray,
            (4, Some(2)) => Self::InvertedYcck,
            (4, _) => Self::InvertedCmyk,
            _ if segments.is_jfif => Self::YCbCr,
            (_, Some(0)) => Self::Rgb,
            (_, None) if segments.has_rgb_names() => Self::Rgb,
            _ => Self::YCbCr,
        }
    }

    fn color_space(self) -> ColorSpace {
        match self {
            Self::Gray => ColorSpace::Luma,
            Self::Rgb => ColorSpace::RGB,
            Self::YCbCr => ColorSpace::YCbCr,
            Self::InvertedCmyk => ColorSpace::CMYK,
            Self::InvertedYcck => ColorSpace::YCCK,
        }
    }

    fn layout(self) -> Layout {
        match self {
            Self::Gray => Layout::Gray,
            Self::Rgb | Self::YCbCr => Layout::Rgb,
            Self::InvertedCmyk | Self::InvertedYcck => Layout::Cmyk,
        }
    }

    fn samples(self, data: &[u8], segments: &JpegSegments) -> Vec<f32> {
        let unit = |byte: u8| f32::from(byte) / 255.0;
        match self {
            Self::Gray | Self::Rgb => data.iter().map(|byte| unit(*byte)).collect(),
            Self::YCbCr => ycc_samples(data, segments),
            Self::InvertedCmyk => data.iter().map(|byte| 1.0 - unit(*byte)).collect(),
            Self::InvertedYcck => data
                .chunks_exact(4)
                .flat_map(|p| {
                    let [r, g, b] = ycc_to_rgb([p[0], p[1], p[2]].map(f32::from));
                    [r, g, b, 1.0 - unit(p[3])]
                })
                .collect(),
        }
    }
}

fn ycc_samples(data: &[u8], segments: &JpegSegments) -> Vec<f32> {
    let width = usize::from(segments.width);
    let doubled = Doubled::of(&segments.component_specs);
    data.chunks_exact(3)
        .enumerate()
        .flat_map(|(index, p)| {
            let (x, y) = (index % width, index / width);
            let chroma = |c: usize| f32::from(p[c]) - doubled.excess(data, width, x, y, c);
            ycc_to_rgb([f32::from(p[0]), chroma(1), chroma(2)])
        })
        .collect()
}

/// JFIF 1.02, section 7. Adobe's YCCK is YCbCr of `1 - CMY` of inks already inverted, so there this "RGB" is the ink.
fn ycc_to_rgb([y, cb, cr]: [f32; 3]) -> [f32; 3] {
    let (cb, cr) = (cb - 128.0, cr - 128.0);
    [
        y + 1.402 * cr,
        y - 0.344_136 * cb - 0.714_136 * cr,
        y + 1.772 * cb,
    ]
    .map(|level| (level / 255.0).clamp(0.0, 1.0))
}

fn explain(bytes: &[u8], error: &DecodeErrors) -> ImageError {
    match error {
        DecodeErrors::ExhaustedData | DecodeErrors::IoErrors(_) => truncated(bytes),
        DecodeErrors::FormatStatic(text) if text.contains("Premature") => truncated(bytes),
        DecodeErrors::Unsupported(_) => ImageError::Unsupported {
            format: Format::Jpeg,
            what: "a rare coding".to_owned(),
        },
        DecodeErrors::HuffmanDecode(_) => damaged("its Huffman tables or codes are wrong"),
        DecodeErrors::DqtError(_) => damaged("its quantisation tables are wrong"),
        DecodeErrors::SosError(_) => damaged("the header of a scan is wrong"),
        DecodeErrors::SofError(_) => damaged("its frame header is wrong"),
        _ => damaged("its data cannot be decoded"),
    }
}

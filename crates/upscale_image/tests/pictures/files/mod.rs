//! Files of every kind, made by code, and what is needed to take one all the way: a plain bilinear upscaler in the
//! networks' place and a reader for the PNG that comes out.

#![allow(
    unreachable_pub,
    clippy::expect_used,
    reason = "what tests share may fail as loudly as they"
)]

pub mod jpegs;
pub mod pngs;
pub mod profiles;

use std::io::Cursor;

use upscale_core::{Pixels, Rows};
use upscale_image::{AlphaPlane, ImageError, OutputFacts, PngWriter, Source, WriteError, decode};

/// The largest source of a 2x task.
pub const PIXELS_MAX: u64 = 1_500_000;

/// Interleaved 8-bit RGB: slow colours, a disc, fine stripes; nothing symmetrical.
pub fn picture(width: usize, height: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(width * height * 3);
    for y in 0..height {
        for x in 0..width {
            let (u, v) = (
                (x as f32 + 0.5) / width as f32,
                (y as f32 + 0.5) / height as f32,
            );
            let disc = (u - 0.3).hypot(v - 0.4) < 0.2;
            let stripe = v > 0.75 && x % 4 < 2;
            let mut rgb = [u, 0.3 + 0.4 * v, 1.0 - 0.6 * u * v].map(|c| 30.0 + 190.0 * c);
            if disc {
                rgb = [225.0, 60.0 + 80.0 * u, 40.0];
            }
            if stripe {
                rgb = rgb.map(|c| c * 0.8);
            }
            bytes.extend(rgb.map(|c| c as u8));
        }
    }
    bytes
}

/// One channel of [`picture`].
pub fn gray_picture(width: usize, height: usize) -> Vec<u8> {
    picture(width, height)
        .chunks_exact(3)
        .map(|rgb| rgb[1])
        .collect()
}

/// Doubles (or so) by bilinear interpolation and hands on three rows at a time.
pub fn bilinear(source: &Pixels, scale: usize, mut sink: impl FnMut(Rows<'_>)) {
    let (width, height, channels) = (source.width(), source.height(), source.channels());
    let near = |at: usize, length: usize| {
        let place = ((at as f32 + 0.5) / scale as f32 - 0.5).clamp(0.0, (length - 1) as f32);
        let first = place as usize;
        (first, (first + 1).min(length - 1), place - first as f32)
    };
    let row_samples = width * scale * channels;
    let mut samples = Vec::new();
    let mut first_row = 0;
    for y in 0..height * scale {
        let (above, below, down) = near(y, height);
        for x in 0..width * scale {
            let (left, right, along) = near(x, width);
            for c in 0..channels {
                let mix = |row: usize| {
                    let row = source.row(row);
                    row[left * channels + c] * (1.0 - along) + row[right * channels + c] * along
                };
                samples.push(mix(above) * (1.0 - down) + mix(below) * down);
            }
        }
        let row_count = y + 1 - first_row;
        if row_count == 3 || y + 1 == height * scale {
            sink(Rows {
                first_row,
                row_count,
                row_samples,
                samples: &samples,
            });
            first_row = y + 1;
            samples.clear();
        }
    }
}

/// A picture that went all the way.
pub struct Done {
    pub source: Source,
    pub facts: OutputFacts,
    pub png: Vec<u8>,
}

/// Decodes and upscales with [`bilinear`].
pub fn upscale(bytes: &[u8], scale: usize) -> Result<Done, ImageError> {
    upscale_with(bytes, scale, |_, _| {}).map(|done| done.expect("a sound result passes"))
}

/// The same with `tamper` let loose on every band (first row, samples) of the colour planes before it is handed on.
pub fn upscale_with(
    bytes: &[u8],
    scale: usize,
    mut tamper: impl FnMut(usize, &mut Vec<f32>),
) -> Result<Result<Done, WriteError>, ImageError> {
    let source = decode(bytes, PIXELS_MAX)?;
    let written = write(&source, scale, &mut tamper);
    Ok(written.map(|(facts, png)| Done { source, facts, png }))
}

fn write(
    source: &Source,
    scale: usize,
    tamper: &mut impl FnMut(usize, &mut Vec<f32>),
) -> Result<(OutputFacts, Vec<u8>), WriteError> {
    let mut alpha = AlphaPlane::new(source, scale);
    if let (Some(plane), Some(pixels)) = (&mut alpha, &source.alpha) {
        bilinear(pixels, scale, |rows| {
            plane.push_rows(rows).expect("sound alpha")
        });
    }
    let mut writer = PngWriter::new(source, scale, alpha)?;
    let mut failed = None;
    bilinear(&source.color, scale, |rows| {
        let mut samples = rows.samples.to_vec();
        tamper(rows.first_row, &mut samples);
        let tampered = Rows {
            samples: &samples,
            ..rows
        };
        if failed.is_none() {
            failed = writer.push_rows(tampered).err();
        }
    });
    match failed {
        Some(error) => Err(error),
        None => writer.finish(),
    }
}

/// A PNG as read back.
pub struct Read {
    pub width: usize,
    pub height: usize,
    pub channels: usize,
    pub sixteen_bit: bool,
    /// `[0, 1]`, interleaved.
    pub samples: Vec<f32>,
    pub info: png::Info<'static>,
}

impl Read {
    pub fn pixel(&self, x: usize, y: usize) -> &[f32] {
        let at = (y * self.width + x) * self.channels;
        &self.samples[at..at + self.channels]
    }

    /// `srgb`, `icc`, `gamma`, `cicp`, or `none`.
    pub fn tag(&self) -> &'static str {
        let info = &self.info;
        if info.coding_independent_code_points.is_some() {
            "cicp"
        } else if info.icc_profile.is_some() {
            "icc"
        } else if info.srgb.is_some() {
            "srgb"
        } else if info.gama_chunk.is_some() || info.chrm_chunk.is_some() {
            "gamma"
        } else {
            "none"
        }
    }
}

/// Reads a result as any PNG reader would.
pub fn read(bytes: &[u8]) -> Read {
    let mut reader = png::Decoder::new(Cursor::new(bytes))
        .read_info()
        .expect("a PNG");
    let mut data = vec![0; reader.output_buffer_size().expect("a size")];
    reader.next_frame(&mut data).expect("whole");
    let info = reader.info().clone();
    let sixteen_bit = info.bit_depth == png::BitDepth::Sixteen;
    let samples = if sixteen_bit {
        let pair = |p: &[u8]| f32::from(u16::from_be_bytes([p[0], p[1]])) / 65_535.0;
        data.chunks_exact(2).map(pair).collect()
    } else {
        data.iter().map(|byte| f32::from(*byte) / 255.0).collect()
    };
    Read {
        width: info.width as usize,
        height: info.height as usize,
        channels: info.color_type.samples(),
        sixteen_bit,
        samples,
        info,
    }
}

/// A little-endian EXIF block: orientation, and a density in pixels per inch.
pub fn exif(orientation: u16, per_inch: Option<u32>) -> Vec<u8> {
    let mut entries = vec![(0x0112_u16, 3_u16, u32::from(orientation))];
    let count = if per_inch.is_some() { 4 } else { 1 };
    let values_at = 8 + 2 + 12 * count + 4;
    if per_inch.is_some() {
        entries.push((0x011a, 5, values_at));
        entries.push((0x011b, 5, values_at));
        entries.push((0x0128, 3, 2));
    }
    let mut block = b"II*\0\x08\0\0\0".to_vec();
    block.extend((entries.len() as u16).to_le_bytes());
    for (tag, kind, value) in entries {
        block.extend(tag.to_le_bytes());
        block.extend(kind.to_le_bytes());
        block.extend(1_u32.to_le_bytes());
        block.extend(value.to_le_bytes());
    }
    block.extend(0_u32.to_le_bytes());
    block.extend(per_inch.unwrap_or(1).to_le_bytes());
    block.extend(1_u32.to_le_bytes());
    block
}

/// A lossless WebP of RGB or RGBA samples.
pub fn webp(width: usize, height: usize, samples: &[u8], exif: Vec<u8>, icc: Vec<u8>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = image_webp::WebPEncoder::new(&mut bytes);
    if !exif.is_empty() {
        encoder.set_exif_metadata(exif);
    }
    if !icc.is_empty() {
        encoder.set_icc_profile(icc);
    }
    let color = if samples.len() == width * height * 4 {
        image_webp::ColorType::Rgba8
    } else {
        image_webp::ColorType::Rgb8
    };
    encoder
        .encode(samples, width as u32, height as u32, color)
        .expect("encodes");
    bytes
}

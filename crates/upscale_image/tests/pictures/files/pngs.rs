//! PNG files by code.

use png::{BitDepth, ColorType, Compression, Encoder};

/// A PNG of any type and depth; `adjust` sets what else it says.
pub fn png(
    (width, height): (usize, usize),
    (color, depth): (ColorType, BitDepth),
    data: &[u8],
    adjust: impl FnOnce(&mut png::Info<'_>),
) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut info = png::Info::with_size(width as u32, height as u32);
    info.color_type = color;
    info.bit_depth = depth;
    adjust(&mut info);
    let mut encoder = Encoder::with_info(&mut bytes, info).expect("sound");
    // What readers do with it is the same.
    encoder.set_compression(Compression::Fast);
    let mut writer = encoder.write_header().expect("header");
    writer.write_image_data(data).expect("data");
    writer.finish().expect("end");
    bytes
}

/// 8-bit RGB with nothing said about it.
pub fn rgb(width: usize, height: usize, data: &[u8]) -> Vec<u8> {
    png(
        (width, height),
        (ColorType::Rgb, BitDepth::Eight),
        data,
        |_| {},
    )
}

/// 8-bit RGBA.
pub fn rgba(width: usize, height: usize, data: &[u8]) -> Vec<u8> {
    png(
        (width, height),
        (ColorType::Rgba, BitDepth::Eight),
        data,
        |_| {},
    )
}

/// 8-bit gray.
pub fn gray(width: usize, height: usize, data: &[u8]) -> Vec<u8> {
    png(
        (width, height),
        (ColorType::Grayscale, BitDepth::Eight),
        data,
        |_| {},
    )
}

/// Puts a chunk behind the header.
pub fn with_chunk(bytes: &[u8], name: &[u8; 4], data: &[u8]) -> Vec<u8> {
    const AFTER_HEADER: usize = 8 + 25;
    let mut with = bytes[..AFTER_HEADER].to_vec();
    with.extend((data.len() as u32).to_be_bytes());
    let named = [name, data].concat();
    with.extend(&named);
    with.extend(crc(&named).to_be_bytes());
    with.extend(&bytes[AFTER_HEADER..]);
    with
}

/// PNG specification, annex D.
fn crc(bytes: &[u8]) -> u32 {
    let step = |crc: u32| {
        if crc & 1 == 1 {
            0xedb8_8320 ^ (crc >> 1)
        } else {
            crc >> 1
        }
    };
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| step(crc))
    })
}

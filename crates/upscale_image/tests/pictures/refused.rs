//! Every kind of file that is refused, made by code, and what its owner is told. Nothing here may decode.

#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail loudly")]

use crate::files::jpegs::Jpeg;
use crate::files::{PIXELS_MAX, picture, pngs, webp};
use jpeg_encoder::SamplingFactor;
use upscale_image::{Format, ImageError, decode, read_header};

fn message(bytes: &[u8]) -> String {
    match decode(bytes, PIXELS_MAX) {
        Ok(_) => "accepted".to_owned(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn other_files_are_named() {
    let cases: [(&[u8], &str); 10] = [
        (b"", "The file is empty (0 bytes)."),
        (
            b"GIF89a\x01\0\x01\0",
            "The file is a GIF image; JPEG, PNG and WebP are accepted.",
        ),
        (
            b"<svg xmlns='http://www.w3.org/2000/svg'/>",
            "The file is an SVG drawing; JPEG, PNG and WebP are accepted.",
        ),
        (
            b"<!DOCTYPE html><html>404</html>",
            "The file is an HTML page; JPEG, PNG and WebP are accepted.",
        ),
        (
            b"\0\0\0\x20ftypavif\0\0",
            "The file is an AVIF image; JPEG, PNG and WebP are accepted.",
        ),
        (
            b"\0\0\0\x20ftypheic\0\0",
            "The file is a HEIC image; JPEG, PNG and WebP are accepted.",
        ),
        (
            b"II*\0\x08\0\0\0",
            "The file is a TIFF image; JPEG, PNG and WebP are accepted.",
        ),
        (
            b"BM\0\0",
            "The file is a BMP image; JPEG, PNG and WebP are accepted.",
        ),
        (
            b"%PDF-1.7",
            "The file is a PDF document; JPEG, PNG and WebP are accepted.",
        ),
        (
            b"hello",
            "The file is not an image: its first bytes are none of JPEG, PNG or WebP.",
        ),
    ];
    for (bytes, expected) in cases {
        assert_eq!(message(bytes), expected);
    }
}

#[test]
fn the_cap_is_inclusive_and_the_message_has_the_numbers() {
    let (width, height) = (50, 20);
    let source = picture(width, height);
    let files = [
        pngs::rgb(width, height, &source),
        Jpeg::default().encode(width, height, &source),
        webp(width, height, &source, vec![], vec![]),
    ];
    for bytes in files {
        assert!(decode(&bytes, 1000).is_ok());
        let error = decode(&bytes, 999).expect_err("one pixel too many");
        assert_eq!(
            error.to_string(),
            "The image is 50 x 20 = 0.001 MP; the limit for this task is 0.000999 MP."
        );
        let header = read_header(&bytes).expect("header");
        assert_eq!((header.width, header.height), (50, 20));
    }
}

#[test]
fn huge_headers_are_refused_before_anything_is_allocated() {
    let small = pngs::gray(1, 1, &[0]);
    let side = 60_000_u32.to_be_bytes();
    let header = [&side[..], &side, &[16, 6, 0, 0, 0]].concat();
    let png = [
        &small[..8],
        &pngs::with_chunk(&[0; 33], b"IHDR", &header)[33..],
    ]
    .concat();
    assert_eq!(
        message(&png),
        "The image is 60000 x 60000 = 3600.0 MP; the limit for this task is 1.5 MP."
    );
    let mut jpeg = Jpeg::default().encode(8, 8, &picture(8, 8));
    let frame = jpeg
        .windows(2)
        .position(|pair| pair == [0xff, 0xc0])
        .expect("a frame");
    jpeg[frame + 5..frame + 9].copy_from_slice(&[0xff; 4]);
    assert_eq!(
        message(&jpeg),
        "The image is 65535 x 65535 = 4294.836225 MP; the limit for this task is 1.5 MP."
    );
}

#[test]
fn half_a_jpeg_is_never_a_picture() {
    let source = picture(96, 80);
    for progressive in [false, true] {
        for restart_interval in [0, 2] {
            let kind = Jpeg {
                progressive,
                restart_interval,
                sampling: SamplingFactor::F_2_2,
                ..Jpeg::default()
            };
            let whole = kind.encode(96, 80, &source);
            assert!(decode(&whole, PIXELS_MAX).is_ok());
            for percent in [5, 20, 40, 60, 80, 95, 99] {
                let mut cut = whole[..whole.len() * percent / 100].to_vec();
                assert!(decode(&cut, PIXELS_MAX).is_err(), "{percent} %");
                // An end marker does not make it whole.
                cut.extend([0xff, 0xd9]);
                assert!(
                    decode(&cut, PIXELS_MAX).is_err(),
                    "{percent} % and an end marker"
                );
            }
        }
    }
}

#[test]
fn a_jpeg_that_only_lacks_its_end_marker_is_whole() {
    let bytes = Jpeg::default().encode(40, 40, &picture(40, 40));
    let without_end = &bytes[..bytes.len() - 2];
    assert!(decode(without_end, PIXELS_MAX).is_ok());
    let trailing = [&bytes[..], &[0x50, 0x4b, 3, 4, 0, 0, 0xff, 0xd8]].concat();
    assert!(decode(&trailing, PIXELS_MAX).is_ok());
}

#[test]
fn half_a_png_or_webp_is_never_a_picture() {
    let source = picture(96, 80);
    let files = [
        pngs::rgb(96, 80, &source),
        webp(96, 80, &source, vec![], vec![]),
    ];
    for whole in files {
        for percent in [1, 5, 20, 40, 60, 80, 95, 99] {
            let cut = &whole[..whole.len() * percent / 100];
            let error = decode(cut, PIXELS_MAX).expect_err("cut");
            let reported =
                matches!(error, ImageError::Truncated { bytes, .. } if bytes == cut.len());
            assert!(reported || percent == 1, "{percent} %: {error}");
        }
    }
}

#[test]
fn a_flipped_bit_in_a_png_is_noticed() {
    let mut bytes = pngs::rgb(40, 40, &picture(40, 40));
    let checksum = bytes.len() - 12 - 4;
    bytes[checksum] ^= 0x10;
    assert_eq!(
        message(&bytes),
        "The PNG file is damaged: a checksum does not match."
    );
    let data = bytes.windows(4).position(|name| name == b"IDAT");
    bytes[data.expect("pixels") + 4] ^= 0x10;
    assert_eq!(
        message(&bytes),
        "The PNG file is damaged: its data cannot be decoded."
    );
}

#[test]
fn codings_that_cannot_be_read_are_refused_by_name() {
    let plain = Jpeg::default().encode(16, 16, &picture(16, 16));
    let frame = plain
        .windows(2)
        .position(|pair| pair == [0xff, 0xc0])
        .expect("a frame");
    let with = |at: usize, value: u8| {
        let mut bytes = plain.clone();
        bytes[frame + at] = value;
        message(&bytes)
    };
    assert_eq!(
        with(1, 0xc9),
        "The JPEG file uses arithmetic coding, which is not supported."
    );
    assert_eq!(
        with(1, 0xca),
        "The JPEG file uses arithmetic coding, which is not supported."
    );
    assert_eq!(
        with(1, 0xc3),
        "The JPEG file uses lossless coding, which is not supported."
    );
    assert_eq!(
        with(1, 0xc5),
        "The JPEG file uses hierarchical coding, which is not supported."
    );
    assert_eq!(
        with(4, 12),
        "The JPEG file uses 12 bits per sample, which is not supported."
    );
    assert_eq!(
        with(9, 2),
        "The JPEG file uses 2 colour components, which is not supported."
    );
    let odd = Jpeg {
        sampling: SamplingFactor::F_4_2,
        ..Jpeg::default()
    };
    assert_eq!(
        message(&odd.encode(64, 64, &picture(64, 64))),
        "The JPEG file uses an unusual chroma sub-sampling (4x2, 1x1, 1x1), which is not supported."
    );
    let odd_inks = Jpeg {
        color: jpeg_encoder::ColorType::Cmyk,
        sampling: SamplingFactor::F_2_1,
        ..Jpeg::default()
    };
    assert!(message(&odd_inks.encode(16, 16, &[90; 1024])).contains("unusual chroma sub-sampling"));
}

#[test]
fn animations_are_refused_with_their_number_of_frames() {
    let still = pngs::rgb(8, 8, &picture(8, 8));
    let control = [12_u32.to_be_bytes(), 0_u32.to_be_bytes()].concat();
    assert_eq!(
        message(&pngs::with_chunk(&still, b"acTL", &control)),
        "The PNG file is animated (APNG, 12 frames); only still images are accepted."
    );
    assert_eq!(
        message(&animated_webp(3)),
        "The WebP file is animated (3 frames); only still images are accepted."
    );
}

/// `VP8X` with the animation flag, `ANIM`, and `frames` times the same lossless frame.
fn animated_webp(frames: usize) -> Vec<u8> {
    let still = webp(8, 8, &picture(8, 8), vec![], vec![]);
    let frame_data = &still[12..];
    let chunk = |name: &[u8; 4], data: &[u8]| {
        [&name[..], &(data.len() as u32).to_le_bytes(), data].concat()
    };
    let mut body = b"WEBP".to_vec();
    body.extend(chunk(b"VP8X", &[2, 0, 0, 0, 7, 0, 0, 7, 0, 0]));
    body.extend(chunk(b"ANIM", &[0; 6]));
    for _ in 0..frames {
        let place = [0, 0, 0, 0, 0, 0, 7, 0, 0, 7, 0, 0, 100, 0, 0, 0];
        body.extend(chunk(b"ANMF", &[&place[..], frame_data].concat()));
    }
    chunk(b"RIFF", &body)
}

#[test]
fn multi_picture_files_are_refused_unless_the_others_only_belong_to_the_first() {
    let panorama = with_multi_picture_index(0x0002_0001);
    assert_eq!(
        message(&panorama),
        "The JPEG file is a multi-picture file (2 frames); only still images are accepted."
    );
    let preview = with_multi_picture_index(0x0001_0001);
    assert!(decode(&preview, PIXELS_MAX).is_ok());
    let gain_map = with_multi_picture_index(0);
    assert!(decode(&gain_map, PIXELS_MAX).is_ok());
}

/// A JPEG whose second picture is of the given type (CIPA DC-007, 5.2.3.3).
fn with_multi_picture_index(second: u32) -> Vec<u8> {
    let plain = Jpeg::default().encode(16, 16, &picture(16, 16));
    let mut index = b"MPF\0MM\0*\0\0\0\x08\0\x01".to_vec();
    index.extend([0xb0, 0x02, 0, 7, 0, 0, 0, 32, 0, 0, 0, 26, 0, 0, 0, 0]);
    index.extend([&0x2003_0000_u32.to_be_bytes()[..], &[0; 12]].concat());
    index.extend([&second.to_be_bytes()[..], &[0; 12]].concat());
    let length = (index.len() as u16 + 2).to_be_bytes();
    [&plain[..2], &[0xff, 0xe2], &length, &index, &plain[2..]].concat()
}

#[test]
fn a_profile_that_inflates_without_end_is_left_out_and_the_picture_kept() {
    let still = pngs::rgb(8, 8, &picture(8, 8));
    let zeros = pngs::png(
        (20_000, 4_000),
        (png::ColorType::Grayscale, png::BitDepth::One),
        &vec![0; 2_500 * 4_000],
        |_| {},
    );
    let from = zeros.windows(4).position(|w| w == b"IDAT").expect("data") + 4;
    let length = u32::from_be_bytes(zeros[from - 8..from - 4].try_into().expect("four")) as usize;
    let bomb = [b"bomb\0\0", &zeros[from..from + length]].concat();
    let source = decode(&pngs::with_chunk(&still, b"iCCP", &bomb), PIXELS_MAX).expect("decodes");
    assert_eq!(source.header.format, Format::Png);
    assert_eq!((source.color.width(), source.color.height()), (8, 8));
}

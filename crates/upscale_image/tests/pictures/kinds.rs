//! Every kind of file that is accepted, made by code, goes in and comes out as itself: size, colour type, depth,
//! density, orientation, and the picture.

#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail loudly")]

use crate::files::jpegs::Jpeg;
use crate::files::{Read, exif, gray_picture, picture, pngs, profiles, read, upscale, webp};
use jpeg_encoder::{ColorType as JpegColor, SamplingFactor};
use png::{BitDepth, ColorType};

/// Largest mean difference, in levels, between a picture and the shrunk result of its upscale.
fn assert_same_picture(
    result: &Read,
    scale: usize,
    wanted: &[u8],
    channels: usize,
    levels_max: f32,
) {
    let width = result.width / scale;
    let mut sum = 0.0;
    for (index, expected) in wanted.iter().enumerate() {
        let (pixel, c) = (index / channels, index % channels);
        let (x, y) = (pixel % width * scale, pixel / width * scale);
        let block = (0..scale * scale).map(|i| result.pixel(x + i % scale, y + i / scale));
        let found: f32 = block.map(|pixel| pixel[c.min(result.channels - 1)]).sum();
        sum += (found / (scale * scale) as f32 * 255.0 - f32::from(*expected)).abs();
    }
    let mean = sum / wanted.len() as f32;
    assert!(mean <= levels_max, "{mean} levels from the source");
}

#[test]
fn rgb_jpegs_of_every_sampling_and_scan_order_keep_their_picture() {
    let (width, height) = (67, 45);
    let source = picture(width, height);
    let factors = [
        SamplingFactor::F_1_1,
        SamplingFactor::F_2_1,
        SamplingFactor::F_1_2,
        SamplingFactor::F_2_2,
        SamplingFactor::F_4_1,
    ];
    for sampling in factors {
        for progressive in [false, true] {
            for restart_interval in [0, 3] {
                let kind = Jpeg {
                    sampling,
                    progressive,
                    restart_interval,
                    ..Jpeg::default()
                };
                let bytes = kind.encode(width, height, &source);
                let done = upscale(&bytes, 2).unwrap_or_else(|error| {
                    panic!("{sampling:?} progressive {progressive}: {error}")
                });
                let result = read(&done.png);
                assert_eq!((result.width, result.height, result.channels), (134, 90, 3));
                assert_eq!(result.tag(), "srgb");
                assert_same_picture(&result, 2, &source, 3, 9.0);
            }
        }
    }
}

#[test]
fn gray_comes_out_gray_from_every_container() {
    let (width, height) = (40, 30);
    let gray = gray_picture(width, height);
    let thrice: Vec<u8> = gray.iter().flat_map(|v| [*v; 3]).collect();
    let gray_jpeg = Jpeg {
        color: JpegColor::Luma,
        ..Jpeg::default()
    };
    let files = [
        ("gray PNG", pngs::gray(width, height, &gray)),
        ("gray stored as RGB PNG", pngs::rgb(width, height, &thrice)),
        ("gray JPEG", gray_jpeg.encode(width, height, &gray)),
        (
            "gray stored as YCbCr JPEG",
            Jpeg::default().encode(width, height, &thrice),
        ),
        (
            "gray stored as RGB WebP",
            webp(width, height, &thrice, vec![], vec![]),
        ),
    ];
    for (name, bytes) in files {
        let result = read(&upscale(&bytes, 2).expect(name).png);
        assert_eq!((result.channels, result.sixteen_bit), (1, false), "{name}");
        assert_same_picture(&result, 2, &gray, 1, 4.0);
    }
}

#[test]
fn sixteen_bits_stay_sixteen_and_finer_than_eight() {
    let (width, height) = (300, 4);
    let ramp: Vec<u16> = (0..width * height)
        .map(|i| 20_000 + (i % width) as u16)
        .collect();
    let gray: Vec<u8> = ramp.iter().flat_map(|v| v.to_be_bytes()).collect();
    let bytes = pngs::png(
        (width, height),
        (ColorType::Grayscale, BitDepth::Sixteen),
        &gray,
        |_| {},
    );
    let result = read(&upscale(&bytes, 2).expect("upscales").png);
    assert!(result.sixteen_bit);
    let mut levels: Vec<u32> = result
        .samples
        .iter()
        .map(|v| (v * 65_535.0).round() as u32)
        .collect();
    levels.dedup();
    levels.sort_unstable();
    levels.dedup();
    assert!(levels.len() > 250, "{} levels left of 300", levels.len());
    assert!((20_000..=20_300).contains(&levels[0]), "{}", levels[0]);
}

#[test]
fn palettes_and_few_bits_unfold() {
    let stripes = |v: u8| vec![v; 4 * 4];
    let gray1 = pngs::png(
        (32, 4),
        (ColorType::Grayscale, BitDepth::One),
        &stripes(0x0f),
        |_| {},
    );
    let result = read(&upscale(&gray1, 2).expect("1-bit gray").png);
    assert_eq!((result.channels, result.sixteen_bit), (1, false));
    assert_eq!((result.pixel(2, 2)[0], result.pixel(12, 2)[0]), (0.0, 1.0));

    let indexed = pngs::png(
        (32, 4),
        (ColorType::Indexed, BitDepth::One),
        &stripes(0x0f),
        |info| {
            info.palette = Some(vec![250, 10, 20, 20, 10, 250].into());
            info.trns = Some(vec![255, 0].into());
        },
    );
    let result = read(&upscale(&indexed, 2).expect("palette").png);
    assert_eq!(result.channels, 4);
    let seen = result.pixel(2, 2);
    assert!(
        (seen[0] - 250.0 / 255.0).abs() < 0.01 && seen[3] == 1.0,
        "{seen:?}"
    );
    assert_eq!(result.pixel(12, 2)[3], 0.0);
}

#[test]
fn interlaced_and_plain_pngs_give_the_same_result() {
    let (width, height) = (19, 13);
    let gray = gray_picture(width, height);
    let plain = upscale(&pngs::gray(width, height, &gray), 4).expect("plain");
    let interlaced = upscale(&adam7(width, height, &gray), 4).expect("interlaced");
    assert_eq!(plain.png, interlaced.png);
}

/// A gray Adam7 PNG: the encoder writes none, so the seven passes are laid out here (PNG specification, 8.1).
fn adam7(width: usize, height: usize, gray: &[u8]) -> Vec<u8> {
    const PASSES: [(usize, usize, usize, usize); 7] = [
        (0, 0, 8, 8),
        (4, 0, 8, 8),
        (0, 4, 4, 8),
        (2, 0, 4, 4),
        (0, 2, 2, 4),
        (1, 0, 2, 2),
        (0, 1, 1, 2),
    ];
    let mut rows = Vec::new();
    for (x0, y0, dx, dy) in PASSES {
        for y in (y0..height).step_by(dy) {
            rows.push(0);
            rows.extend((x0..width).step_by(dx).map(|x| gray[y * width + x]));
        }
    }
    let mut stored = vec![0x78, 0x01, 0x01];
    stored.extend((rows.len() as u16).to_le_bytes());
    stored.extend((!(rows.len() as u16)).to_le_bytes());
    stored.extend(&rows);
    stored.extend(adler32(&rows).to_be_bytes());
    let mut header = [(width as u32).to_be_bytes(), (height as u32).to_be_bytes()].concat();
    header.extend([8, 0, 0, 0, 1]);
    let skeleton = pngs::gray(1, 1, &[0]);
    let end = &skeleton[skeleton.len() - 12..];
    let before = [&skeleton[..8], &[0; 25]].concat();
    let with_data = pngs::with_chunk(&before, b"IDAT", &stored);
    let with_header = pngs::with_chunk(&before, b"IHDR", &header);
    [&skeleton[..8], &with_header[33..], &with_data[33..], end].concat()
}

fn adler32(bytes: &[u8]) -> u32 {
    let (a, b) = bytes.iter().fold((1_u32, 0_u32), |(a, b), byte| {
        let a = (a + u32::from(*byte)) % 65_521;
        (a, (b + a) % 65_521)
    });
    b << 16 | a
}

#[test]
fn any_size_goes_down_to_one_pixel() {
    for (width, height) in [
        (1, 1),
        (1, 2),
        (2, 1),
        (3, 3),
        (7, 5),
        (1, 400),
        (400, 1),
        (33, 65),
    ] {
        let source = picture(width, height);
        let files = [
            pngs::rgb(width, height, &source),
            Jpeg::default().encode(width, height, &source),
            webp(width, height, &source, vec![], vec![]),
        ];
        for bytes in files {
            for scale in [2, 4] {
                let done = upscale(&bytes, scale).expect("upscales");
                let result = read(&done.png);
                assert_eq!(
                    (result.width, result.height),
                    (width * scale, height * scale)
                );
            }
        }
    }
}

#[test]
fn every_orientation_is_baked_in_for_every_format() {
    let (width, height) = (24, 16);
    for orientation in 1..=8 {
        let stored = picture(width, height);
        let block = exif(orientation, None);
        let jpeg = Jpeg {
            exif: block.clone(),
            ..Jpeg::default()
        };
        let files = [
            jpeg.encode(width, height, &stored),
            pngs::with_chunk(&pngs::rgb(width, height, &stored), b"eXIf", &block),
            webp(width, height, &stored, block, vec![]),
        ];
        for bytes in files {
            let result = read(&upscale(&bytes, 2).expect("upscales").png);
            let turned = orientation >= 5;
            let expected = if turned { (32, 48) } else { (48, 32) };
            assert_eq!(
                (result.width, result.height),
                expected,
                "orientation {orientation}"
            );
            assert!(result.info.exif_metadata.is_none());
            assert_same_picture(
                &result,
                2,
                &upright(orientation, width, height, &stored),
                3,
                5.0,
            );
        }
    }
}

/// What EXIF 2.32 says of tag 0x0112, pixel by pixel.
fn upright(orientation: u16, width: usize, height: usize, stored: &[u8]) -> Vec<u8> {
    let (right, bottom) = (width - 1, height - 1);
    let (out_width, out_height) = if orientation >= 5 {
        (height, width)
    } else {
        (width, height)
    };
    let mut bytes = Vec::new();
    for y in 0..out_height {
        for x in 0..out_width {
            let (sx, sy) = match orientation {
                2 => (right - x, y),
                3 => (right - x, bottom - y),
                4 => (x, bottom - y),
                5 => (y, x),
                6 => (y, bottom - x),
                7 => (right - y, bottom - x),
                8 => (right - y, x),
                _ => (x, y),
            };
            bytes.extend(&stored[(sy * width + sx) * 3..][..3]);
        }
    }
    bytes
}

#[test]
fn the_picture_keeps_its_size_on_paper() {
    let source = picture(20, 20);
    let jfif = Jpeg {
        per_inch: Some(300),
        ..Jpeg::default()
    };
    let with_exif = Jpeg {
        exif: exif(1, Some(300)),
        ..Jpeg::default()
    };
    let phys = [
        &11_811_u32.to_be_bytes()[..],
        &11_811_u32.to_be_bytes(),
        &[1],
    ]
    .concat();
    let files = [
        jfif.encode(20, 20, &source),
        with_exif.encode(20, 20, &source),
        webp(20, 20, &source, exif(1, Some(300)), vec![]),
        pngs::with_chunk(&pngs::rgb(20, 20, &source), b"pHYs", &phys),
    ];
    for bytes in files {
        let result = read(&upscale(&bytes, 4).expect("upscales").png);
        let dims = result.info.pixel_dims.expect("says its density");
        // 300 per inch are 11,811 per metre; four times as many pixels on the same paper.
        assert_eq!((dims.xppu, dims.yppu), (47_244, 47_244));
        assert_eq!(dims.unit, png::Unit::Meter);
    }
    let silent = upscale(&pngs::rgb(20, 20, &source), 4).expect("upscales");
    assert!(read(&silent.png).info.pixel_dims.is_none());
}

#[test]
fn nothing_about_who_where_and_with_what_leaves() {
    let secret = b"SERIAL-0815 N52.5 E13.4 maker note";
    let mut block = exif(1, Some(72));
    block.extend(secret);
    let source = picture(16, 16);
    let jpeg = Jpeg {
        exif: block.clone(),
        ..Jpeg::default()
    };
    let text = [b"Comment\0", &secret[..]].concat();
    let png = pngs::with_chunk(&pngs::rgb(16, 16, &source), b"tEXt", &text);
    let files = [
        jpeg.encode(16, 16, &source),
        pngs::with_chunk(&png, b"eXIf", &block),
        webp(16, 16, &source, block, vec![]),
    ];
    for bytes in files {
        assert!(
            bytes.windows(11).any(|w| w == &secret[..11]),
            "the source holds it"
        );
        let done = upscale(&bytes, 2).expect("upscales");
        assert!(!done.png.windows(11).any(|w| w == &secret[..11]));
        for chunk in [b"eXIf", b"tEXt", b"iTXt", b"zTXt", b"tIME"] {
            assert!(!done.png.windows(4).any(|w| w == chunk));
        }
    }
}

#[test]
fn inks_become_colours_with_and_without_a_profile() {
    let (width, height) = (32, 16);
    let inks: Vec<u8> = picture(width, height)
        .chunks_exact(3)
        .flat_map(|rgb| [255 - rgb[0], 255 - rgb[1], 255 - rgb[2], 0])
        .collect();
    let kinds = [
        (JpegColor::Cmyk, SamplingFactor::F_1_1),
        (JpegColor::CmykAsYcck, SamplingFactor::F_1_1),
        (JpegColor::CmykAsYcck, SamplingFactor::F_2_2),
    ];
    for (color, sampling) in kinds {
        let plain = Jpeg {
            color,
            sampling,
            quality: 98,
            ..Jpeg::default()
        };
        let result = read(
            &upscale(&plain.encode(width, height, &inks), 2)
                .expect("plain")
                .png,
        );
        assert_eq!((result.channels, result.tag()), (3, "srgb"));
        assert_same_picture(&result, 2, &picture(width, height), 3, 9.0);
        let profiled = Jpeg {
            icc: profiles::inks(),
            ..plain
        };
        let result = read(
            &upscale(&profiled.encode(width, height, &inks), 2)
                .expect("profile")
                .png,
        );
        assert_eq!((result.channels, result.tag()), (3, "srgb"));
    }
}

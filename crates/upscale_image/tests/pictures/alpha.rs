//! Transparency comes back as it went in: straight, without fringes over any ground, never beyond what the source had,
//! and not at all when there was none.

#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail loudly")]

use crate::files::{bilinear, picture, pngs, profiles, read, upscale, webp};
use png::{BitDepth, ColorType};
use upscale_image::decode;

const SIDE: usize = 48;

/// A disc of one colour with a soft edge; where nothing is seen, the hidden colour is a screaming green.
fn disc(colour: [u8; 3]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for y in 0..SIDE {
        for x in 0..SIDE {
            let distance = (x as f32 - 23.5).hypot(y as f32 - 23.5);
            let alpha = ((18.0 - distance) / 3.0 + 0.5).clamp(0.0, 1.0);
            let level = (alpha * 255.0).round() as u8;
            if level == 0 {
                bytes.extend([0, 255, 0, 0]);
            } else {
                bytes.extend(colour);
                bytes.push(level);
            }
        }
    }
    bytes
}

#[test]
fn no_fringe_over_black_white_or_magenta() {
    let colour = [200_u8, 40, 60];
    let files = [
        pngs::rgba(SIDE, SIDE, &disc(colour)),
        webp(SIDE, SIDE, &disc(colour), vec![], vec![]),
    ];
    for bytes in files {
        for scale in [2, 4] {
            let result = read(&upscale(&bytes, scale).expect("upscales").png);
            assert_eq!(result.channels, 4);
            for ground in [[0.0; 3], [1.0; 3], [1.0, 0.0, 1.0]] {
                for y in 0..result.height {
                    for x in 0..result.width {
                        assert_between(result.pixel(x, y), ground, colour, (x, y));
                    }
                }
            }
        }
    }
}

/// Over any ground, every pixel of a one-coloured disc is a mix of that colour and the ground.
fn assert_between(pixel: &[f32], ground: [f32; 3], colour: [u8; 3], at: (usize, usize)) {
    let alpha = pixel[3];
    for c in 0..3 {
        let shown = pixel[c] * alpha + ground[c] * (1.0 - alpha);
        let pure = f32::from(colour[c]) / 255.0 * alpha + ground[c] * (1.0 - alpha);
        assert!(
            (shown - pure).abs() < 2.0 / 255.0,
            "{at:?}: {pixel:?} over {ground:?}"
        );
    }
}

#[test]
fn alpha_stays_within_its_neighbourhood_where_the_network_rings() {
    let source = decode(&pngs::rgba(SIDE, SIDE, &disc([10, 20, 30])), 1_000_000).expect("decodes");
    let mut plane = upscale_image::AlphaPlane::new(&source, 2).expect("has alpha");
    bilinear(source.alpha.as_ref().expect("has alpha"), 2, |rows| {
        let ringing: Vec<f32> = rows
            .samples
            .iter()
            .map(|a| (a - 0.5) * 1.04 + 0.5)
            .collect();
        let rows = upscale_core::Rows {
            samples: &ringing,
            ..rows
        };
        plane.push_rows(rows).expect("passes");
    });
    let mut writer = upscale_image::PngWriter::new(&source, 2, Some(plane)).expect("fits");
    bilinear(&source.color, 2, |rows| {
        writer.push_rows(rows).expect("passes")
    });
    let (_, png) = writer.finish().expect("passes");
    let result = read(&png);
    assert_eq!(result.pixel(0, 0)[3], 0.0);
    assert_eq!(result.pixel(SIDE, SIDE)[3], 1.0);
}

#[test]
fn opaque_alpha_is_dropped_and_any_other_kept() {
    let opaque: Vec<u8> = picture(16, 16)
        .chunks_exact(3)
        .flat_map(|rgb| [rgb[0], rgb[1], rgb[2], 255])
        .collect();
    let result = read(
        &upscale(&pngs::rgba(16, 16, &opaque), 2)
            .expect("upscales")
            .png,
    );
    assert_eq!(result.channels, 3);
    let mut nearly = opaque;
    nearly[3] = 254;
    let result = read(
        &upscale(&pngs::rgba(16, 16, &nearly), 2)
            .expect("upscales")
            .png,
    );
    assert_eq!(result.channels, 4);
}

#[test]
fn a_picture_of_nothing_but_hidden_colours_comes_back_as_that() {
    let hidden: Vec<u8> = picture(16, 16)
        .chunks_exact(3)
        .flat_map(|rgb| [rgb[0], rgb[1], rgb[2], 0])
        .collect();
    let result = read(
        &upscale(&pngs::rgba(16, 16, &hidden), 2)
            .expect("upscales")
            .png,
    );
    assert_eq!(result.channels, 4);
    assert!(
        result
            .samples
            .iter()
            .skip(3)
            .step_by(4)
            .all(|alpha| *alpha == 0.0)
    );
}

#[test]
fn gray_with_alpha_stays_gray_with_alpha_at_8_and_16_bits() {
    let levels: Vec<u16> = (0..32 * 32)
        .flat_map(|i| [i % 32 * 2000, i / 32 * 2100])
        .collect();
    let wide: Vec<u8> = levels.iter().flat_map(|v| v.to_be_bytes()).collect();
    let narrow: Vec<u8> = levels.iter().map(|v| (v >> 8) as u8).collect();
    for (depth, data) in [(BitDepth::Sixteen, wide), (BitDepth::Eight, narrow)] {
        let bytes = pngs::png((32, 32), (ColorType::GrayscaleAlpha, depth), &data, |_| {});
        let result = read(&upscale(&bytes, 2).expect("upscales").png);
        assert_eq!(
            (result.channels, result.sixteen_bit),
            (2, depth == BitDepth::Sixteen)
        );
    }
}

#[test]
fn a_colour_key_is_transparency_too() {
    let mut gray = vec![200_u8; 12 * 12];
    gray[..60].fill(17);
    let bytes = pngs::png(
        (12, 12),
        (ColorType::Grayscale, BitDepth::Eight),
        &gray,
        |info| {
            info.trns = Some(vec![0, 17].into());
        },
    );
    let result = read(&upscale(&bytes, 2).expect("upscales").png);
    assert_eq!(result.channels, 2);
    assert_eq!((result.pixel(0, 0)[1], result.pixel(20, 20)[1]), (0.0, 1.0));
    // The key's own gray is hidden: only 200 is ever seen.
    assert!((result.pixel(12, 11)[0] - 200.0 / 255.0).abs() < 0.01);
}

#[test]
fn alpha_and_a_profile_go_together() {
    let icc = profiles::display_p3();
    let data = disc([90, 120, 240]);
    let bytes = pngs::png(
        (SIDE, SIDE),
        (ColorType::Rgba, BitDepth::Eight),
        &data,
        |info| {
            info.icc_profile = Some(icc.clone().into());
        },
    );
    let result = read(&upscale(&bytes, 4).expect("upscales").png);
    assert_eq!((result.channels, result.tag()), (4, "icc"));
}

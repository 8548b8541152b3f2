//! Colours do not move: ΔE2000 between source and result per profile (printed), profiles and chunks kept, gray kept
//! gray, pure white and black kept pure, and a tint of the network's taken back.

#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail loudly")]

use crate::files::jpegs::Jpeg;
use crate::files::{Done, bilinear, picture, pngs, profiles, read, upscale, upscale_with};
use png::{BitDepth, ColorType};
use upscale_image::{WriteError, delta_e_2000, lab};

/// ΔE2000 between the mean colours of 16 × 16 source pixels and of the result made of them, in the file's own numbers
/// read as sRGB: mean over all squares.
fn mean_delta_e(source: &[u8], width: usize, done: &Done, scale: usize) -> f32 {
    const SIDE: usize = 16;
    let result = read(&done.png);
    let height = source.len() / 3 / width;
    let (mut sum, mut count) = (0.0, 0.0);
    for top in (0..height - SIDE + 1).step_by(SIDE) {
        for left in (0..width - SIDE + 1).step_by(SIDE) {
            let pixels = |side: usize| (0..side * side).map(move |i| (i % side, i / side));
            let own = mean(pixels(SIDE).map(|(x, y)| {
                let at = ((top + y) * width + left + x) * 3;
                [0, 1, 2].map(|c| f32::from(source[at + c]) / 255.0)
            }));
            let found = mean(pixels(SIDE * scale).map(|(x, y)| {
                let pixel = result.pixel(left * scale + x, top * scale + y);
                [0, 1, 2].map(|c| pixel[c])
            }));
            sum += delta_e_2000(lab(own), lab(found));
            count += 1.0;
        }
    }
    sum / count
}

fn mean(colours: impl Iterator<Item = [f32; 3]>) -> [f32; 3] {
    let (mut sums, mut count) = ([0.0; 3], 0.0);
    for colour in colours {
        (0..3).for_each(|c| sums[c] += colour[c]);
        count += 1.0;
    }
    sums.map(|sum| sum / count)
}

#[test]
fn every_profile_is_kept_and_its_colours_stay_within_0_3_delta_e() {
    let (width, height) = (96, 64);
    let source = picture(width, height);
    let cases = [
        ("no profile", vec![]),
        ("Display P3", profiles::display_p3()),
        ("Adobe RGB", profiles::adobe_rgb()),
        ("ProPhoto, gamma 1.8", profiles::pro_photo()),
        ("gamma 1.0", profiles::srgb_with_gamma(1.0)),
        ("gamma 2.8", profiles::srgb_with_gamma(2.8)),
    ];
    for (name, icc) in cases {
        let bytes = pngs::png(
            (width, height),
            (ColorType::Rgb, BitDepth::Eight),
            &source,
            |info| {
                info.icc_profile = (!icc.is_empty()).then(|| icc.clone().into());
            },
        );
        for scale in [2, 4] {
            let done = upscale(&bytes, scale).expect(name);
            let found = mean_delta_e(&source, width, &done, scale);
            println!("{name}, {scale}x: {found:.3} ΔE2000");
            assert!(found <= 0.3, "{name}: {found}");
            let info = read(&done.png).info;
            let embedded = info.icc_profile.as_deref().unwrap_or(&[]);
            assert!(embedded == icc, "{name}: {} bytes embedded", embedded.len());
            assert_eq!(info.srgb.is_some(), icc.is_empty(), "{name}");
        }
    }
}

#[test]
fn a_network_that_tints_and_darkens_is_set_right() {
    let (width, height) = (96, 64);
    let source = picture(width, height);
    let bytes = pngs::rgb(width, height, &source);
    for scale in [2, 4] {
        let tint = [0.012, -0.008, -0.015];
        let done = upscale_with(&bytes, scale, |_, samples| {
            let channels = tint.iter().cycle();
            samples
                .iter_mut()
                .zip(channels)
                .for_each(|(sample, tint)| *sample += tint);
        })
        .expect("decodes")
        .expect("passes: a tint of 4 levels is no other picture");
        assert!(done.facts.fidelity.delta_e > 1.0, "the tint is seen");
        let found = mean_delta_e(&source, width, &done, scale);
        println!(
            "tinted network, {scale}x: {found:.3} ΔE2000 left of {:.3}",
            done.facts.fidelity.delta_e
        );
        assert!(found <= 0.3, "{found}");
    }
}

#[test]
fn pure_white_and_black_stay_pure_when_the_network_does_not_keep_them() {
    let (width, height) = (40, 40);
    let mut source = vec![255; width * height * 3];
    for y in 10..30 {
        source[(y * width + 10) * 3..(y * width + 30) * 3].fill(0);
    }
    let done = upscale_with(&pngs::rgb(width, height, &source), 2, |_, samples| {
        samples
            .iter_mut()
            .for_each(|sample| *sample = 0.01 + *sample * 0.98);
    })
    .expect("decodes")
    .expect("passes");
    let result = read(&done.png);
    for (x, y) in [(0, 0), (79, 79), (10, 40), (40, 10)] {
        assert_eq!(result.pixel(x, y)[0], 1.0, "white at ({x}, {y})");
    }
    for (x, y) in [(40, 40), (24, 24), (55, 55)] {
        assert_eq!(result.pixel(x, y)[0], 0.0, "black at ({x}, {y})");
    }
}

#[test]
fn gamma_and_primaries_are_honoured_and_handed_on() {
    let (width, height) = (48, 32);
    let source = picture(width, height);
    for gamma in [35_000, 45_455, 100_000] {
        let bytes = pngs::png(
            (width, height),
            (ColorType::Rgb, BitDepth::Eight),
            &source,
            |info| {
                info.source_gamma = Some(png::ScaledFloat::from_scaled(gamma));
                info.source_chromaticities = Some(png::SourceChromaticities::new(
                    (0.3127, 0.329),
                    (0.68, 0.32),
                    (0.265, 0.69),
                    (0.15, 0.06),
                ));
            },
        );
        let done = upscale(&bytes, 2).expect("upscales");
        let result = read(&done.png);
        assert_eq!(result.tag(), "gamma");
        assert_eq!(result.info.gama_chunk.map(|g| g.into_scaled()), Some(gamma));
        assert!(result.info.chrm_chunk.is_some() && result.info.srgb.is_none());
        assert!(mean_delta_e(&source, width, &done, 2) <= 0.3);
    }
}

#[test]
fn code_points_win_over_everything_and_are_handed_on() {
    let source = picture(16, 16);
    let bytes = pngs::with_chunk(&pngs::rgb(16, 16, &source), b"cICP", &[12, 13, 0, 1]);
    let result = read(&upscale(&bytes, 2).expect("upscales").png);
    let points = result.info.coding_independent_code_points.expect("there");
    assert_eq!((points.color_primaries, points.transfer_function), (12, 13));
    assert!(result.info.srgb.is_none());
}

#[test]
fn gray_with_a_colour_profile_becomes_plain_gray_of_the_same_brightness() {
    let gray: Vec<u8> = (0..32 * 32).map(|i| (i % 32 * 8) as u8).collect();
    let jpeg = Jpeg {
        icc: profiles::srgb_with_gamma(1.0),
        color: jpeg_encoder::ColorType::Luma,
        quality: 100,
        ..Jpeg::default()
    };
    let result = read(
        &upscale(&jpeg.encode(32, 32, &gray), 2)
            .expect("upscales")
            .png,
    );
    assert_eq!((result.channels, result.tag()), (1, "srgb"));
    // Half of the light is code 128 in linear light and code 188 in sRGB.
    let found = result.pixel(33, 20)[0] * 255.0;
    assert!((found - 188.0).abs() < 5.0, "{found}");
}

#[test]
fn gray_keeps_its_gray_profile() {
    let icc = profiles::gray_with_gamma(1.0);
    let gray: Vec<u8> = (0..24 * 24).map(|i| 40 + (i / 24 * 6) as u8).collect();
    let bytes = pngs::png(
        (24, 24),
        (ColorType::Grayscale, BitDepth::Eight),
        &gray,
        |info| {
            info.icc_profile = Some(icc.clone().into());
        },
    );
    let result = read(&upscale(&bytes, 2).expect("upscales").png);
    assert_eq!((result.channels, result.tag()), (1, "icc"));
    assert_eq!(result.info.icc_profile.as_deref(), Some(&icc[..]));
    let found = result.pixel(24, 24)[0] * 255.0;
    assert!((found - f32::from(gray[12 * 24])).abs() < 4.0, "{found}");
}

#[test]
fn a_broken_or_wrong_profile_is_dropped_and_the_picture_kept() {
    let source = picture(24, 24);
    for icc in [
        b"not a profile at all".to_vec(),
        profiles::gray_with_gamma(2.2),
        profiles::inks(),
    ] {
        let bytes = pngs::png(
            (24, 24),
            (ColorType::Rgb, BitDepth::Eight),
            &source,
            |info| {
                info.icc_profile = Some(icc.clone().into());
            },
        );
        let result = read(&upscale(&bytes, 2).expect("upscales").png);
        assert_eq!((result.channels, result.tag()), (3, "srgb"));
    }
}

#[test]
fn the_result_is_the_same_however_the_rows_arrive() {
    let source =
        upscale_image::decode(&pngs::rgb(40, 30, &picture(40, 30)), 1200).expect("decodes");
    let mut all = Vec::new();
    bilinear(&source.color, 2, |rows| all.extend_from_slice(rows.samples));
    let write = |band: usize| -> Result<Vec<u8>, WriteError> {
        let mut writer = upscale_image::PngWriter::new(&source, 2, None)?;
        for (index, samples) in all.chunks(band * 240).enumerate() {
            writer.push_rows(upscale_core::Rows {
                first_row: index * band,
                row_count: samples.len() / 240,
                row_samples: 240,
                samples,
            })?;
        }
        Ok(writer.finish()?.1)
    };
    let one = write(1).expect("passes");
    for band in [2, 7, 60] {
        assert!(write(band).expect("passes") == one, "bands of {band} rows");
    }
}

#[test]
fn what_is_laid_over_a_picture_moves_nothing_beside_it() {
    let (width, height, scale) = (40, 30, 2);
    let bytes = pngs::rgb(width, height, &picture(width, height));
    let source = upscale_image::decode(&bytes, 1200).expect("decodes");
    let tinted = |sink: &mut dyn FnMut(upscale_core::Rows<'_>)| {
        bilinear(&source.color, scale, |rows| {
            let samples: Vec<f32> = rows.samples.iter().map(|sample| sample + 0.02).collect();
            sink(upscale_core::Rows {
                samples: &samples,
                ..rows
            });
        });
    };
    let row_samples = width * scale * 3;
    let write = |overlay: &dyn Fn([usize; 2], &mut [f32])| {
        let writer = upscale_image::PngWriter::new(&source, scale, None);
        let mut writer = writer.expect("opens").overlaid_by(overlay);
        tinted(&mut |rows| writer.push_rows(rows).expect("passes"));
        let (_, png) = writer.finish().expect("passes");
        read(&png)
    };
    // A square of 10 pixels in the rows as they came out of the network, far from the picture's colours.
    let inside = |x: usize, y: usize| (20..30).contains(&x) && (31..41).contains(&y);
    let square = |[first, y]: [usize; 2], part: &mut [f32]| {
        for (x, pixel) in (first..).zip(part.chunks_exact_mut(3)) {
            if inside(x, y) {
                pixel.fill(1.0);
            }
        }
    };
    let (plain, laid) = (write(&|_, _| ()), write(&square));
    let mut made = Vec::new();
    tinted(&mut |rows| made.extend_from_slice(rows.samples));
    upscale_image::balance(&source.color, scale, &mut made);
    for y in 0..height * scale {
        for x in 0..width * scale {
            let whole = &made[y * row_samples + x * 3..][..3];
            let (found, expected) = (laid.pixel(x, y), plain.pixel(x, y));
            let off = (expected[0] - whole[0].clamp(0.0, 1.0)).abs();
            assert!(off < 0.501 / 255.0, "balanced as a whole, {x}, {y}: {off}");
            match inside(x, y) {
                true => assert_eq!(found[..3], [1.0; 3], "{x}, {y}"),
                false => assert_eq!(found, expected, "{x}, {y}"),
            }
        }
    }
}

/// Compared in linear light, where finer detail has more of it, all of it became darker.
#[test]
fn detail_that_the_source_lacks_moves_no_colour() {
    let (width, height, scale) = (24, 20, 2);
    let source = flat(width, height, [128, 90, 40]);
    let mut made = Vec::new();
    bilinear(&source.color, scale, |rows| {
        let odd = |index: usize| (index / 3 + rows.first_row) % 2 == 1;
        let drawn = rows.samples.iter().enumerate();
        made.extend(drawn.map(|(index, code)| code + if odd(index) { 0.1 } else { -0.1 }));
    });
    let mut balanced = made.clone();
    upscale_image::balance(&source.color, scale, &mut balanced);
    for (made, balanced) in made.iter().zip(&balanced) {
        assert!((made - balanced).abs() < 1e-4, "{made} became {balanced}");
    }
}

#[test]
fn a_flat_colour_that_a_network_moves_comes_back_to_its_level() {
    let source = flat(24, 20, [255, 204, 7]);
    for moved in [0.4, 0.8, 1.0, 1.3, 3.0, 9.0, 20.0] {
        let mut made: Vec<f32> = Vec::new();
        bilinear(&source.color, 2, |rows| {
            made.extend(rows.samples.iter().map(|code| code - moved / 255.0));
        });
        upscale_image::balance(&source.color, 2, &mut made);
        let middle = &made[(20 * 48 + 24) * 3..][..3];
        for (found, level) in middle.iter().zip([255.0, 204.0, 7.0]) {
            let off = (found * 255.0 - level).abs();
            assert!(off < 0.55, "{moved} levels: {off} of {level} left");
        }
    }
}

/// Long rows are corrected in parts of 8,192 source pixels, short ones whole: away from where a picture is cut both are the
/// same but for the last bits of running sums.
#[test]
fn long_rows_are_corrected_as_short_ones() {
    const HEIGHT: usize = 3;
    let balanced = |columns: std::ops::Range<usize>, scale: usize| {
        let code = |x: usize, y: usize| ((x * 31 + y * 57) % 1009) as f32 / 1009.0;
        let made_code = |x: usize, y: usize| ((x * 17 + y * 101) % 1013) as f32 / 1013.0;
        let pixels = |step: usize, code: &dyn Fn(usize, usize) -> f32| {
            let rows = (0..HEIGHT * step).flat_map(|y| {
                let row = columns.start * step..columns.end * step;
                row.flat_map(move |x| [0, 7, 13].map(|tint| code(x + tint, y)))
            });
            rows.collect::<Vec<f32>>()
        };
        let samples = pixels(1, &code);
        let source = upscale_core::Pixels::new(columns.len(), HEIGHT, 3, samples).expect("fits");
        let mut made = pixels(scale, &made_code);
        upscale_image::balance(&source, scale, &mut made);
        made
    };
    for scale in [2, 4] {
        let long = balanced(0..20_000, scale);
        for start in [4_000, 8_000, 16_000] {
            let short = balanced(start..start + 4_000, scale);
            for y in 0..HEIGHT * scale {
                // The window reaches 8 pixels, and their smoothness one more.
                for x in 10 * scale..3_990 * scale {
                    let (short, long) = (
                        &short[(y * 4_000 * scale + x) * 3..][..3],
                        &long[(y * 20_000 * scale + start * scale + x) * 3..][..3],
                    );
                    let off = short
                        .iter()
                        .zip(long)
                        .map(|(short, long)| (short - long).abs());
                    assert!(
                        off.fold(0.0, f32::max) < 1e-6,
                        "{scale}x, {start} + {x}, {y}"
                    );
                }
            }
        }
    }
}

fn flat(width: usize, height: usize, colour: [u8; 3]) -> upscale_image::Source {
    let bytes = pngs::rgb(width, height, &colour.repeat(width * height));
    upscale_image::decode(&bytes, 1200).expect("decodes")
}

//! A bounded run of what the fuzz targets do without end: small sound files of every kind, damaged by a fixed sequence
//! of mutations. Whatever comes of them, decoding ends in a picture of the announced size or in an error; it never
//! panics, and never gives more pixels than allowed. Inputs that once broke something have tests of their own below.

#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail loudly")]

use crate::files::jpegs::Jpeg;
use crate::files::{exif, gray_picture, picture, pngs, profiles, webp};
use jpeg_encoder::{ColorType as JpegColor, SamplingFactor};
use png::{BitDepth, ColorType};
use upscale_image::{decode, read_header, sniff};

const CASES_PER_SEED: usize = 400;
const PIXELS_MAX: u64 = 100_000;

/// Sebastiano Vigna's xorshift64*: the same sequence everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % bound.max(1)
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let (width, height) = (33, 21);
    let source = picture(width, height);
    let with_metadata = Jpeg {
        exif: exif(6, Some(300)),
        icc: profiles::display_p3(),
        sampling: SamplingFactor::F_2_2,
        restart_interval: 2,
        ..Jpeg::default()
    };
    let progressive = Jpeg {
        progressive: true,
        ..Jpeg::default()
    };
    let inks = Jpeg {
        color: JpegColor::CmykAsYcck,
        icc: profiles::inks(),
        ..Jpeg::default()
    };
    let rgba: Vec<u8> = source
        .chunks_exact(3)
        .flat_map(|p| [p[0], p[1], p[2], p[0]])
        .collect();
    let paletted = pngs::png(
        (32, 4),
        (ColorType::Indexed, BitDepth::Two),
        &[0x1b; 32],
        |info| {
            info.palette = Some(vec![1, 2, 3, 250, 10, 20, 20, 10, 250, 9, 9, 9].into());
            info.trns = Some(vec![255, 0].into());
        },
    );
    let sixteen = pngs::png(
        (8, 8),
        (ColorType::Rgba, BitDepth::Sixteen),
        &[0x5a; 512],
        |info| {
            info.icc_profile = Some(profiles::adobe_rgb().into());
        },
    );
    vec![
        with_metadata.encode(width, height, &source),
        progressive.encode(width, height, &source),
        inks.encode(width, height, &rgba),
        pngs::with_chunk(
            &pngs::rgb(width, height, &source),
            b"eXIf",
            &exif(5, Some(72)),
        ),
        pngs::gray(width, height, &gray_picture(width, height)),
        paletted,
        sixteen,
        webp(width, height, &rgba, exif(3, None), profiles::display_p3()),
        webp(width, height, &source, vec![], vec![]),
        lossy_webp(),
    ]
}

/// One macroblock of flat gray, coded by hand: a key frame of 16 × 16 whose partitions hold little but zeros.
fn lossy_webp() -> Vec<u8> {
    let mut frame = vec![0x50, 0x02, 0x00, 0x9d, 0x01, 0x2a, 16, 0, 16, 0];
    frame.extend([0; 40]);
    let mut body = b"WEBPVP8 ".to_vec();
    body.extend((frame.len() as u32).to_le_bytes());
    body.extend(&frame);
    [b"RIFF", &(body.len() as u32).to_le_bytes()[..], &body].concat()
}

fn mutate(random: &mut Random, bytes: &mut Vec<u8>) {
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len());
        match random.below(6) {
            0 => bytes.truncate(at.max(1)),
            1 => bytes[at] ^= 1 << random.below(8),
            2 => bytes[at] = [0, 0xff, 0x7f, 0x80][random.below(4)],
            3 => bytes[at] = random.below(256) as u8,
            4 => {
                let end = (at + random.below(24)).min(bytes.len());
                let piece = bytes[at..end].to_vec();
                let to = random.below(bytes.len());
                bytes.splice(to..to, piece);
            }
            _ => {
                let end = (at + random.below(24)).min(bytes.len());
                bytes.drain(at..end);
            }
        }
        if bytes.is_empty() {
            bytes.push(0xff);
        }
    }
}

fn check(bytes: &[u8]) -> bool {
    let Ok(source) = decode(bytes, PIXELS_MAX) else {
        return false;
    };
    let header = read_header(bytes).expect("what decodes has a header");
    assert_eq!(sniff(bytes), Ok(header.format));
    let pixels = source.color.width() as u64 * source.color.height() as u64;
    assert_eq!(pixels, u64::from(header.width) * u64::from(header.height));
    assert!(pixels <= PIXELS_MAX);
    let planes = [Some(&source.color), source.alpha.as_ref()];
    for sample in planes
        .into_iter()
        .flatten()
        .flat_map(|plane| plane.samples())
    {
        assert!((0.0..=1.0).contains(sample), "{sample}");
    }
    true
}

#[test]
fn damaged_files_end_in_a_picture_or_an_error() {
    let mut random = Random(0x5eed);
    let (mut pictures, mut errors) = (0, 0);
    for seed in seeds() {
        for _ in 0..CASES_PER_SEED {
            let mut bytes = seed.clone();
            mutate(&mut random, &mut bytes);
            if check(&bytes) {
                pictures += 1;
            } else {
                errors += 1;
            }
        }
    }
    println!("{pictures} pictures and {errors} errors of {CASES_PER_SEED} mutations a seed");
    assert!(pictures > 100 && errors > 1000);
}

#[test]
fn every_seed_but_the_handmade_one_decodes() {
    let undecoded = seeds().iter().filter(|seed| !check(seed)).count();
    assert!(undecoded <= 1, "{undecoded} seeds do not decode");
}

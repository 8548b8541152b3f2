//! Photographs, damaged as customers' are, and networks played by arithmetic: restorers that do their work perfectly,
//! too eagerly or poorly. Everything is drawn from a number, so that a picture that is refused can be looked at again.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "every test file is a program of its own and uses its part of these"
)]

pub mod damage;
pub mod faults;
pub mod restorers;

use std::path::{Path, PathBuf};

use upscale_core::Pixels;
use upscale_image::{
    decode,
    raster::{Kernel, Rgb8, resize},
};

/// Shortest and longest side of a source, in pixels.
pub const SIDES: (usize, usize) = (16, 400);

/// The largest picture that is decoded here.
pub const PIXELS_MAX: u64 = 1_500_000;

/// Numbers that are the same in every run (a linear congruential generator; Knuth's constants).
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        let mut dice = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d);
        dice.next();
        dice
    }

    fn next(&mut self) -> u32 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as u32
    }

    /// Below `end`, which is at least 1.
    pub fn below(&mut self, end: usize) -> usize {
        self.next() as usize % end
    }

    /// From 0 to 1.
    pub fn share(&mut self) -> f32 {
        self.next() as f32 / (1_u32 << 31) as f32
    }

    /// Of a normal distribution (mean 0, deviation 1) as far as the sum of four shares is one.
    pub fn normal(&mut self) -> f32 {
        let sum: f32 = (0..4).map(|_| self.share()).sum();
        (sum - 2.0) * 3.0_f32.sqrt()
    }
}

/// A picture as it was, and as it is once made small: the truth that a restorer looks for, and where it starts.
pub struct Trial {
    pub name: String,
    pub scale: usize,
    /// `scale` times as wide and high as `small`.
    pub truth: Pixels,
    pub small: Rgb8,
}

impl Trial {
    /// The trial of that number: which part of which photograph, of which size, at which scale.
    pub fn new(number: usize, name: &str, photograph: &Rgb8) -> Self {
        let mut dice = Dice::new(number as u64);
        let scale = if number.is_multiple_of(2) { 2 } else { 4 };
        // One side runs through all sizes; the other is drawn, more often small.
        let run = SIDES.0 + number * 7 % (SIDES.1 - SIDES.0 + 1);
        let drawn = SIDES.0 + ((SIDES.1 - SIDES.0) as f32 * dice.share().powi(2)) as usize;
        let (width, height) = if dice.below(2) == 0 {
            (run, drawn)
        } else {
            (drawn, run)
        };
        let left = dice.below(photograph.width());
        let top = dice.below(photograph.height());
        let large = mirrored(photograph, (left, top), (width * scale, height * scale));
        Self {
            name: format!("{number} ({name}, {width} x {height} at {scale}x)"),
            scale,
            small: resize(&large, width, height, Kernel::Bicubic),
            truth: pixels(&large),
        }
    }
}

/// A part of the picture, which goes on beyond its edges in mirrors.
fn mirrored(picture: &Rgb8, (left, top): (usize, usize), (width, height): (usize, usize)) -> Rgb8 {
    let fold = |at: usize, length: usize| {
        let at = at % (2 * length);
        at.min(2 * length - 1 - at)
    };
    Rgb8::paint(width, height, |x, y| {
        picture.pixel(
            fold(left + x, picture.width()),
            fold(top + y, picture.height()),
        )
    })
}

/// As the networks see it.
pub fn pixels(picture: &Rgb8) -> Pixels {
    Pixels::new(picture.width(), picture.height(), 3, picture.to_samples()).expect("fits")
}

/// The first `count` photographs of the test data, with their names; none where the data is not given, which is said.
pub fn photographs(count: usize) -> impl Iterator<Item = (String, Rgb8)> {
    let paths = match std::env::var_os("UPSCALE_TEST_DATA") {
        Some(data) => files(&PathBuf::from(data).join("train")),
        None => {
            println!("left out: {count} photographs, for UPSCALE_TEST_DATA is not set");
            Vec::new()
        }
    };
    let photographs = paths
        .into_iter()
        .filter(|path| name(path).starts_with("photo_"));
    photographs
        .take(count)
        .map(|path| (name(&path), Rgb8::of_pixels(&read(&path))))
}

/// Pictures that need no data: clouds of every size, discs and a striped foot. Less than photographs, more than nothing.
pub fn drawn(count: usize) -> impl Iterator<Item = (String, Rgb8)> {
    (0..count).map(|number| (format!("drawn {number}"), draw(number as u64)))
}

fn draw(seed: u64) -> Rgb8 {
    let mut dice = Dice::new(seed);
    let waves: Vec<[f32; 5]> = (0..24)
        .map(|wave| {
            let pace = 0.02 * 1.22_f32.powi(wave);
            let angle = 6.3 * dice.share();
            let [phase, tint] = [6.3 * dice.share(), dice.share()];
            [
                pace * angle.cos(),
                pace * angle.sin(),
                phase,
                0.012 / pace.sqrt(),
                tint,
            ]
        })
        .collect();
    let discs: Vec<[f32; 4]> = (0..9)
        .map(|_| {
            [
                480.0 * dice.share(),
                480.0 * dice.share(),
                60.0 * dice.share(),
                dice.share(),
            ]
        })
        .collect();
    Rgb8::paint(480, 480, |x, y| {
        let (x, y) = (x as f32, y as f32);
        let mut rgb = [0.5_f32; 3];
        for [along, down, phase, strength, tint] in &waves {
            let height = strength * (along * x + down * y + phase).sin();
            rgb = [
                rgb[0] + height,
                rgb[1] + height * tint,
                rgb[2] + height * (1.0 - tint),
            ];
        }
        for [left, top, radius, level] in &discs {
            if (x - left).hypot(y - top) < *radius {
                rgb = rgb.map(|c| 0.4 * c + 0.6 * level);
            }
        }
        let stripe = if y > 400.0 && (x + y) % 9.0 < 4.0 {
            0.7
        } else {
            1.0
        };
        rgb.map(|c| (c * stripe * 255.0).clamp(0.0, 255.0) as u8)
    })
}

/// The same scene by one camera at two focal lengths, four times apart: name, source, truth. None where the data is not
/// given, which is said.
pub fn camera_pairs() -> Vec<(String, Pixels, Pixels)> {
    let Some(data) = std::env::var_os("UPSCALE_TEST_DATA") else {
        println!("left out: pairs of camera pictures, for UPSCALE_TEST_DATA is not set");
        return Vec::new();
    };
    let folder = PathBuf::from(data).join("eval/real");
    let pairs = ["RealSR", "DRealSR"].map(|set| pairs_in(&folder.join(set)));
    pairs.into_iter().flatten().collect()
}

fn pairs_in(folder: &Path) -> Vec<(String, Pixels, Pixels)> {
    let small = files(&folder.join("LR_x4"));
    let large = files(&folder.join("HR"));
    assert_eq!(small.len(), large.len(), "every picture has its pair");
    let pairs = small.iter().zip(&large);
    pairs
        .map(|(small, large)| (name(small), read(small), read(large)))
        .collect()
}

fn read(path: &Path) -> Pixels {
    let source = decode(&std::fs::read(path).expect("readable"), PIXELS_MAX);
    pixels(&Rgb8::of_source(&source.expect("a picture")))
}

fn name(path: &Path) -> String {
    path.file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("UPSCALE_TEST_DATA has that folder");
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("readable").path())
        .collect();
    paths.sort();
    paths
}

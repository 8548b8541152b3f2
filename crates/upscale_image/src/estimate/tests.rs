//! The estimator beside its definition in training, and what it says of odd pictures.

#![allow(clippy::expect_used, reason = "a test's own functions may panic")]

use safetensors::SafeTensors;
use upscale_core::{Estimate, Pixels};

use super::{estimate, features};

const GOLDEN: &[u8] = include_bytes!("../../weights/estimate.golden.safetensors");

fn values(file: &SafeTensors<'_>, name: &str) -> Vec<f32> {
    let tensor = file.tensor(name).expect("the golden file has it");
    let bytes = tensor.data().chunks_exact(4);
    bytes
        .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
        .collect()
}

/// A tensor `[3, height, width]` of levels as a picture.
fn picture(file: &SafeTensors<'_>, name: &str) -> Pixels {
    let tensor = file.tensor(name).expect("the golden file has it");
    let (levels, shape) = (tensor.data(), tensor.shape());
    let plane = shape[1] * shape[2];
    let interleaved = (0..plane * 3).map(|i| f32::from(levels[i % 3 * plane + i / 3]) / 255.0);
    Pixels::new(shape[2], shape[1], 3, interleaved.collect()).expect("counts fit")
}

#[test]
fn features_and_estimates_are_those_of_training() {
    let file = SafeTensors::deserialize(GOLDEN).expect("the golden file is whole");
    for number in 0..4 {
        let picture = picture(&file, &format!("picture.{number}"));
        let (ours, theirs) = (
            features(&picture),
            values(&file, &format!("features.{number}")),
        );
        assert_eq!(ours.len(), theirs.len());
        for (place, (one, other)) in ours.iter().zip(&theirs).enumerate() {
            assert!(
                (one - other).abs() < 2e-3,
                "picture {number}, feature {place}: {one} {other}"
            );
        }
        let reported = estimate(&picture).expect("it is large enough");
        let asked = values(&file, &format!("estimate.{number}"));
        assert!(
            (reported.noise - asked[0]).abs() < 0.02,
            "{reported:?} is not {asked:?}"
        );
        assert!(
            (reported.softness - asked[1]).abs() < 0.005,
            "{reported:?} is not {asked:?}"
        );
    }
}

/// A picture by formula.
fn drawn(width: usize, height: usize, channels: usize, level: impl Fn(usize) -> f32) -> Pixels {
    let samples = (0..width * height * channels).map(level).collect();
    Pixels::new(width, height, channels, samples).expect("counts fit")
}

#[test]
fn a_small_picture_has_no_estimate_and_a_flat_one_has_none_to_fear() {
    for (width, height) in [(1, 1), (23, 400), (400, 23)] {
        assert_eq!(estimate(&drawn(width, height, 3, |_| 0.5)), None);
    }
    for level in [0.0, 0.5, 1.0, f32::NAN] {
        let flat = estimate(&drawn(64, 48, 1, |_| level)).expect("it is large enough");
        assert!(flat.noise < 1.0 && flat.softness <= Estimate::SOFTNESS_MAX);
    }
}

#[test]
fn pure_noise_is_noise_and_gray_is_judged_as_colour_of_equal_parts() {
    let random = |i: usize| {
        let mixed = (i as u32).wrapping_mul(2_654_435_761).rotate_left(13);
        let mixed = (mixed ^ mixed >> 15).wrapping_mul(2_246_822_519);
        (mixed ^ mixed >> 13) as f32 / u32::MAX as f32
    };
    let colour = drawn(96, 96, 3, |i| 0.4 + 0.2 * random(i / 3));
    let gray = drawn(96, 96, 1, |i| 0.4 + 0.2 * random(i));
    let reported = estimate(&colour).expect("it is large enough");
    assert!(reported.noise > 5.0, "{reported:?}");
    assert_eq!(estimate(&gray), Some(reported));
}

/// A cloth as a lens shows it: light and shade by chance, softened over four pixels, alike in all colours.
fn cloth(side: usize, mut random: impl FnMut() -> f32) -> Vec<f32> {
    let threads: Vec<f32> = (0..side * side).map(|_| random()).collect();
    let at = |x: usize, y: usize| threads[y % side * side + x % side];
    let row =
        |x: usize, y: usize| at(x, y) + 3.0 * at(x + 1, y) + 3.0 * at(x + 2, y) + at(x + 3, y);
    let light =
        |x: usize, y: usize| row(x, y) + 3.0 * row(x, y + 1) + 3.0 * row(x, y + 2) + row(x, y + 3);
    let all = (0..side * side).map(|i| (i % side, i / side));
    all.map(|(x, y)| 0.5 + 0.01 * light(x, y)).collect()
}

#[test]
fn a_cloth_may_be_texture_and_the_noise_of_a_sensor_is_noise() {
    let mut state = 1_u32;
    let mut random = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / 16_777_216.0 - 0.5
    };
    let side = 128;
    let cloth = cloth(side, &mut random);
    let noise: Vec<f32> = (0..side * side * 3).map(|_| 0.2 * random()).collect();
    let judged = |level: &dyn Fn(usize) -> f32| {
        estimate(&drawn(side, side, 3, level)).expect("it is large enough")
    };
    let plain = judged(&|i| cloth[i / 3]);
    assert!(plain.noise > 2.0 && plain.may_be_texture, "{plain:?}");
    for noisy in [
        judged(&|i| cloth[i / 3] + noise[i]),
        judged(&|i| 0.5 + noise[i]),
    ] {
        assert!(noisy.noise > 2.0 && !noisy.may_be_texture, "{noisy:?}");
    }
}

//! Edges become steeper without rims, all else stays, and rows come out in time.

use super::Sharpen;
use crate::spare::Spare;

const WIDTH: usize = 48;
const HEIGHT: usize = 32;

/// Brightness of a soft slanted edge, of a line two pixels wide beside it, and of a point.
fn made() -> Vec<f32> {
    let at = |index: usize| {
        let (x, y) = ((index % WIDTH) as f32, (index / WIDTH) as f32);
        let edge = 0.5 / (1.0 + (-(x - 20.0 - 0.3 * y) / 1.2).exp());
        let line = 0.2 * (-(x - 40.0) * (x - 40.0) / 2.0).exp();
        let point = if (x, y) == (5.0, 10.0) { 0.4 } else { 0.0 };
        0.1 + edge + line + point
    };
    (0..WIDTH * HEIGHT).map(at).collect()
}

fn sharpened(made: &[f32], width: usize, channels: usize, scale: usize, amount: f32) -> Vec<f32> {
    let samples = width * channels * scale;
    let mut sharpen = Sharpen::new(made.len() / samples, channels, scale, amount).expect("some");
    let mut all = Vec::new();
    for (number, group) in made.chunks_exact(samples).enumerate() {
        let mut take = |group: &[f32], means: Vec<f32>, _: &mut Spare| {
            assert_eq!(means, [(all.len() / samples) as f32]);
            all.extend_from_slice(group);
            Ok(())
        };
        let means = vec![number as f32];
        sharpen
            .push(group, means, &mut Spare::default(), &mut take)
            .unwrap();
    }
    all
}

/// The definition, pixel by pixel.
fn by_definition(made: &[f32], amount: f32) -> Vec<f32> {
    let height = made.len() / WIDTH;
    let at = |x: isize, y: isize| {
        let x = x.clamp(0, WIDTH as isize - 1) as usize;
        made[y.clamp(0, height as isize - 1) as usize * WIDTH + x]
    };
    let around = |reach: isize| {
        (-reach..=reach).flat_map(move |down| (-reach..=reach).map(move |across| (across, down)))
    };
    let weight =
        |(across, down): (isize, isize)| (-0.5 * (across * across + down * down) as f32).exp();
    let all: f32 = around(3).map(weight).sum();
    let pixel = |index: usize| {
        let (x, y) = ((index % WIDTH) as isize, (index / WIDTH) as isize);
        let there = |(across, down)| at(x + across, y + down);
        let mean: f32 = around(3).map(|one| weight(one) * there(one)).sum();
        let sharp = at(x, y) + amount * (at(x, y) - mean / all);
        let highest = around(2).map(there).fold(f32::MIN, f32::max);
        sharp
            .min(highest)
            .max(around(2).map(there).fold(f32::MAX, f32::min))
    };
    (0..made.len()).map(pixel).collect()
}

fn furthest(one: &[f32], other: &[f32]) -> f32 {
    assert_eq!(one.len(), other.len());
    let apart = one
        .iter()
        .zip(other)
        .map(|(one, other)| (one - other).abs());
    apart.fold(0.0, f32::max)
}

#[test]
fn rows_as_they_come_are_sharpened_as_the_definition_says() {
    let made = made();
    for (scale, rows, amount) in [
        (4, 32, 0.3),
        (4, 32, 1.2),
        (2, 30, 0.7),
        (4, 4, 0.5),
        (4, 8, 2.0),
    ] {
        let made = &made[..rows * WIDTH];
        let apart = furthest(
            &sharpened(made, WIDTH, 1, scale, amount),
            &by_definition(made, amount),
        );
        assert!(apart < 1e-6, "{scale} {rows} {amount}: {apart}");
    }
}

/// The numbers stand in training/tests/test_edges.py as well: it measures looks by its own copy.
#[test]
fn steps_are_those_that_the_looks_are_measured_by() {
    let made = made();
    let sharp = sharpened(&made, WIDTH, 1, 4, 0.8);
    for (y, x, step) in [
        (10, 5, 0.0),
        (16, 24, -0.0084),
        (16, 26, 0.011),
        (0, 42, -0.01998),
    ] {
        let found = sharp[y * WIDTH + x] - made[y * WIDTH + x];
        assert!((found - step).abs() < 1e-5, "{y} {x}: {found}");
    }
}

#[test]
fn an_edge_becomes_steeper_and_gets_no_rim() {
    let made = made();
    let sharp = sharpened(&made, WIDTH, 1, 4, 1.0);
    let slope = |plane: &[f32]| plane[16 * WIDTH + 26] - plane[16 * WIDTH + 24];
    assert!(slope(&sharp) > 1.1 * slope(&made));
    let highest = |plane: &[f32]| plane.iter().copied().fold(f32::MIN, f32::max);
    assert_eq!(highest(&sharp), highest(&made));
}

#[test]
fn colours_move_together_as_their_brightness_does() {
    let gray = made();
    let colours: Vec<f32> = gray
        .iter()
        .flat_map(|code| [code + 0.1, *code, code - 0.1])
        .collect();
    let (one, three) = (
        sharpened(&gray, WIDTH, 1, 4, 1.0),
        sharpened(&colours, WIDTH, 3, 4, 1.0),
    );
    for (pixel, (before, after)) in three.chunks_exact(3).zip(gray.iter().zip(&one)) {
        for (sample, apart) in pixel.iter().zip([0.1, 0.0, -0.1]) {
            assert!(
                (sample - (after + apart)).abs() < 0.02,
                "{sample} {before} {after}"
            );
        }
    }
}

#[test]
fn flat_places_stay_to_the_bit_and_what_is_no_number_harms_nothing() {
    let flat = vec![0.3; WIDTH * HEIGHT];
    assert_eq!(sharpened(&flat, WIDTH, 1, 4, 1.0), flat);
    let broken = vec![f32::NAN; WIDTH * HEIGHT];
    assert!(
        sharpened(&broken, WIDTH, 1, 4, 1.0)
            .iter()
            .all(|code| code.is_nan())
    );
    let far: Vec<f32> = made().iter().map(|code| code * 1e30).collect();
    assert_eq!(sharpened(&far, WIDTH, 1, 4, 1.0).len(), far.len());
}

#[test]
fn a_group_goes_on_when_the_next_one_is_there_and_none_asked_for_is_none() {
    let mut sharpen = Sharpen::new(10, 1, 4, 0.3).expect("some");
    let mut came = 0;
    for group in 0..10 {
        let mut take = |_: &[f32], _, _: &mut Spare| {
            came += 1;
            Ok(())
        };
        sharpen
            .push(&[0.5; 64], vec![0.5; 4], &mut Spare::default(), &mut take)
            .unwrap();
        assert_eq!(came, if group == 9 { 10 } else { group });
    }
    assert!(Sharpen::new(10, 1, 4, 0.0).is_none());
}

//! 16-bit integers beside single precision: what a picture's viewer can see of them, and that cuts cannot be seen.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a test's own functions may panic"
)]

use upscale_core::{Condition, Pixels, Scale};
use upscale_engine::{Engine, EngineOptions, KernelSet, Precision};

fn upscale(precision: Precision, threads: usize, source: &Pixels, scale: Scale) -> Vec<f32> {
    let options = EngineOptions {
        precision,
        threads,
        ..EngineOptions::default()
    };
    let engine = Engine::shipped(options).expect("the weights fit");
    crate::upscale(&engine, source, scale, Condition::UNKNOWN)
}

/// Smooth ground, discs with sharp edges, noise.
fn picture(width: usize, height: usize) -> Pixels {
    let mut samples = Vec::new();
    for (y, x) in (0..height).flat_map(|y| (0..width).map(move |x| (y, x))) {
        let (fx, fy) = (x as f32, y as f32);
        let disc = (fx % 47.0 - 23.0).hypot(fy % 41.0 - 20.0) < 13.0;
        let grain = ((x * 7919 + y * 104_729) % 1009) as f32 / 1009.0 - 0.5;
        for colour in 0..3 {
            let smooth = 0.5 + 0.4 * (0.021 * fx + 0.3 * colour as f32).sin() * (0.017 * fy).cos();
            let value = if disc { 1.0 - smooth } else { smooth };
            samples.push((value + 0.05 * grain).clamp(0.0, 1.0));
        }
    }
    Pixels::new(width, height, 3, samples).expect("counts fit")
}

fn level(value: f32) -> i32 {
    (value * 255.0).round() as i32
}

#[test]
fn what_ships_differs_by_one_level_at_most_almost_everywhere() {
    let source = picture(160, 120);
    for scale in Scale::ALL {
        let exact = upscale(Precision::Exact, 2, &source, scale);
        let fast = upscale(Precision::Fast, 2, &source, scale);
        let pairs = exact.iter().zip(&fast);
        let far = pairs
            .clone()
            .filter(|(a, b)| (level(**a) - level(**b)).abs() > 1);
        let share = far.count() as f64 / exact.len() as f64;
        let squares: f64 = pairs.map(|(a, b)| f64::from(a - b).powi(2)).sum();
        let rms = (squares / exact.len() as f64).sqrt();
        println!("{scale:?}: {share:.6} more than a level apart, rms {rms:.2e}");
        assert!(share <= 0.001, "{scale:?}: {share}");
        // 0.01 dB of a result at 40 dB (an error of 1e-2) is what an error of 4.8e-4 beside it adds.
        assert!(rms <= 4.8e-4, "{scale:?}: {rms}");
    }
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let source = picture(131, 67);
    for scale in Scale::ALL {
        let expected = upscale(Precision::Fast, 1, &source, scale);
        for threads in [2, 3, 7] {
            let given = upscale(Precision::Fast, threads, &source, scale);
            assert!(given == expected, "{scale:?} {threads} threads");
        }
    }
}

/// Integers would take longer to make than they save.
#[test]
fn small_pictures_are_exact() {
    let is_exact = |width, height| {
        let source = picture(width, height);
        let exact = upscale(Precision::Exact, 1, &source, Scale::X4);
        exact == upscale(Precision::Fast, 1, &source, Scale::X4)
    };
    if KernelSet::best() == KernelSet::Amx {
        assert!(is_exact(31, 33) && !is_exact(32, 32));
    } else {
        assert!(is_exact(90, 90));
    }
}

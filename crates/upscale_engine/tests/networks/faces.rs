//! What `face_enhance` promises: faces change, nothing else does, and no error is silent. The networks here are
//! stand-ins with random weights; whether the shipped ones help is measured on real faces by training/.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a test's own functions may panic"
)]

use std::ops::ControlFlow;

use upscale_core::{Condition, Pixels, Scale};
use upscale_engine::{Engine, EngineOptions, Face, FaceEnhancer, Shape, UpscaleError};

const SHAPE: Shape = Shape::Residual {
    channels: 8,
    blocks: 1,
};

fn options(threads: usize) -> EngineOptions {
    EngineOptions {
        threads,
        pixels_max: 100_000,
        ..EngineOptions::default()
    }
}

fn enhancer(threads: usize) -> FaceEnhancer {
    let small = [SHAPE.network(2, 11), SHAPE.network(4, 12)];
    let large = [SHAPE.network(2, 13), SHAPE.network(4, 14)];
    FaceEnhancer::of(small, large, options(threads)).expect("scales fit")
}

fn picture(width: usize, height: usize, channels: usize) -> Pixels {
    let count = width * height * channels;
    let samples = (0..count).map(|i| 0.3 + (i * 7_919 % 1_009) as f32 / 3_000.0);
    Pixels::new(width, height, channels, samples.collect()).expect("counts fit")
}

fn face(left: f32, top: f32, side: f32) -> Face {
    Face {
        left,
        top,
        side,
        score: 9.0,
    }
}

/// The ordinary output, and the same with `faces` laid over it.
fn both(source: &Pixels, scale: Scale, faces: &[Face], threads: usize) -> (Vec<f32>, Vec<f32>) {
    let engine = Engine::of(SHAPE.network(2, 1), SHAPE.network(4, 2), options(threads));
    let enhanced = enhancer(threads)
        .enhance_these(faces.to_vec(), source, scale, Condition::UNKNOWN)
        .expect("is enhanced");
    let (mut plain, mut laid) = (Vec::new(), Vec::new());
    let done =
        engine
            .expect("scales fit")
            .upscale(source, scale, Condition::UNKNOWN, &mut |rows| {
                plain.extend_from_slice(rows.samples);
                for (y, row) in (rows.first_row..).zip(rows.samples.chunks_exact(rows.row_samples))
                {
                    let (mut whole, mut by_parts) = (row.to_vec(), row.to_vec());
                    enhanced.lay_over([0, y], &mut whole);
                    for (at, part) in by_parts.chunks_mut(37 * source.channels()).enumerate() {
                        enhanced.lay_over([at * 37, y], part);
                    }
                    assert_eq!(by_parts, whole, "row {y}");
                    laid.extend(whole);
                }
                ControlFlow::Continue(())
            });
    done.expect("is upscaled");
    (plain, laid)
}

/// Output pixels that differ: how many, and the rectangle that holds them (left, top, right, bottom; inclusive).
fn changed(one: &[f32], other: &[f32], width: usize, channels: usize) -> (usize, [usize; 4]) {
    let mut held = [usize::MAX, usize::MAX, 0, 0];
    let mut count = 0;
    let pixels = one.chunks_exact(channels).zip(other.chunks_exact(channels));
    for (at, _) in pixels.enumerate().filter(|(_, (a, b))| a != b) {
        let (x, y) = (at % width, at / width);
        held = [
            held[0].min(x),
            held[1].min(y),
            held[2].max(x),
            held[3].max(y),
        ];
        count += 1;
    }
    (count, held)
}

#[test]
fn a_face_changes_its_area_and_not_a_bit_outside() {
    for scale in Scale::ALL {
        for channels in [1, 3] {
            let source = picture(90, 70, channels);
            let (plain, laid) = both(&source, scale, &[face(30.0, 20.0, 24.0)], 2);
            let factor = scale.factor();
            let (count, held) = changed(&plain, &laid, 90 * factor, channels);
            // Half as large again about the same middle: columns 24 to 60, rows 14 to 50.
            assert!(held[0] >= 24 * factor && held[2] < 60 * factor, "{held:?}");
            assert!(held[1] >= 14 * factor && held[3] < 50 * factor, "{held:?}");
            let inner = 24 * 24 * factor * factor;
            assert!(count > inner, "{count} of at least {inner} pixels");
        }
    }
}

#[test]
fn of_a_large_face_only_features_change() {
    for scale in Scale::ALL {
        let (side, factor) = (160, scale.factor());
        let mut samples = picture(side, side, 3).samples().to_vec();
        for row in samples.chunks_exact_mut(side * 3) {
            row[..side / 2 * 3].fill(0.5);
        }
        let source = Pixels::new(side, side, 3, samples).expect("counts fit");
        let whole = [face(0.0, 0.0, side as f32)];
        let (plain, laid) = both(&source, scale, &whole, 2);
        let (count, held) = changed(&plain, &laid, side * factor, 3);
        // Contrast is of 5 x 5 pixels and smoothed over 3 x 3: it reaches three pixels into what is flat, interpolation half of one.
        assert!(held[0] >= (side / 2 - 4) * factor, "{held:?}");
        assert!(count > side * factor * (side / 2 - 2) * factor, "{count}");
    }
}

#[test]
fn faces_at_borders_and_in_crowds_are_laid_over_for_any_threads() {
    let source = picture(80, 60, 3);
    let mut crowd = vec![face(-6.0, -4.0, 30.0), face(62.0, 44.0, 24.0)];
    crowd.extend((0..6).map(|i| face(4.0 + 12.0 * i as f32, 24.0, 20.0)));
    let (plain, laid) = both(&source, Scale::X2, &crowd, 1);
    let (_, held) = changed(&plain, &laid, 160, 3);
    assert_eq!((held[0], held[1], held[2], held[3]), (0, 0, 159, 119));
    for threads in [2, 3] {
        assert!(both(&source, Scale::X2, &crowd, threads) == (plain.clone(), laid.clone()));
    }
}

#[test]
fn without_a_face_every_bit_stays_and_it_is_a_success() {
    for scale in Scale::ALL {
        let source = picture(64, 48, 3);
        let found = enhancer(1).enhance(&source, scale, Condition::CLEAN);
        assert!(found.expect("is a success").found().is_empty());
        let (plain, laid) = both(&source, scale, &[], 1);
        assert!(plain == laid);
        let far_outside = both(&source, scale, &[face(500.0, 500.0, 30.0)], 1);
        assert!(far_outside.0 == far_outside.1);
    }
}

#[test]
fn what_the_engine_refuses_of_a_face_is_an_error() {
    let source = picture(400, 300, 3);
    let all = vec![face(0.0, 0.0, 300.0)];
    let refused = enhancer(1).enhance_these(all, &source, Scale::X2, Condition::UNKNOWN);
    let wanted = UpscaleError::TooLarge {
        width: 375 + 8,
        height: 300,
        pixels_max: 100_000,
    };
    let error = refused.err();
    assert!(
        matches!(error, Some(UpscaleError::TooLarge { .. })),
        "{error:?}, not as {wanted:?}"
    );
}

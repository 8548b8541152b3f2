//! What every caller relies on: rows come top to bottom, gray stays gray, a refusal comes before any row.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a test's own functions may panic"
)]

use std::ops::ControlFlow;

use upscale_core::{Condition, Pixels, Scale};
use upscale_engine::{Engine, EngineOptions, Shape, UpscaleError};

fn engine(threads: usize) -> Engine {
    let shape = Shape::Residual {
        channels: 8,
        blocks: 1,
    };
    let options = EngineOptions {
        threads,
        pixels_max: 10_000,
        ..EngineOptions::default()
    };
    Engine::of(shape.network(2, 1), shape.network(4, 2), options).expect("scales fit")
}

fn picture(width: usize, height: usize, channels: usize) -> Pixels {
    let count = width * height * channels;
    let samples = (0..count).map(|i| (i * 7919 % 1009) as f32 / 1009.0);
    Pixels::new(width, height, channels, samples.collect()).expect("counts fit")
}

fn upscale(engine: &Engine, source: &Pixels, scale: Scale) -> Vec<f32> {
    let mut output = Vec::new();
    let mut next_row = 0;
    let row_samples = source.width() * scale.factor() * source.channels();
    let done = engine.upscale(source, scale, Condition::UNKNOWN, &mut |rows| {
        assert_eq!(rows.first_row, next_row);
        assert_eq!(rows.row_samples, row_samples);
        assert_eq!(rows.samples.len(), rows.row_count * row_samples);
        next_row += rows.row_count;
        output.extend_from_slice(rows.samples);
        ControlFlow::Continue(())
    });
    done.expect("is upscaled");
    assert_eq!(next_row, source.height() * scale.factor());
    output
}

#[test]
fn rows_arrive_once_each_in_order_for_any_size() {
    for (width, height) in [(1, 1), (2, 3), (5, 40), (67, 19)] {
        for scale in Scale::ALL {
            upscale(&engine(2), &picture(width, height, 3), scale);
        }
    }
}

#[test]
fn gray_is_the_mean_of_what_rgb_gives() {
    let gray = picture(13, 9, 1);
    let samples = gray.samples().iter().flat_map(|&v| [v; 3]).collect();
    let rgb = Pixels::new(13, 9, 3, samples).expect("counts fit");
    let engine = engine(1);
    let from_gray = upscale(&engine, &gray, Scale::X2);
    let from_rgb = upscale(&engine, &rgb, Scale::X2);
    for (one, three) in from_gray.iter().zip(from_rgb.chunks_exact(3)) {
        let mean = (three[0] + three[1] + three[2]) / 3.0;
        assert!((one - mean).abs() < 1e-6, "{one} against {mean}");
    }
}

#[test]
fn a_sink_that_breaks_ends_the_upscale() {
    let mut calls = 0;
    let ended = engine(2).upscale(
        &picture(20, 90, 3),
        Scale::X2,
        Condition::UNKNOWN,
        &mut |_| {
            calls += 1;
            ControlFlow::Break(())
        },
    );
    assert_eq!((ended, calls), (Err(UpscaleError::Cancelled), 1));
}

#[test]
fn too_many_pixels_are_refused_with_the_numbers() {
    let ended = engine(1).upscale(
        &picture(101, 100, 3),
        Scale::X2,
        Condition::UNKNOWN,
        &mut |_| panic!("no row may be made"),
    );
    let error = ended.expect_err("is refused");
    assert_eq!(
        error.to_string(),
        "101 x 100 pixels exceed the limit of 10000 pixels"
    );
}

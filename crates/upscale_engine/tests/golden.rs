//! The shipped weights in the training's own framework, against every kernel set: who trains and who runs mean
//! the same network.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a test's own functions may panic"
)]

use std::ops::ControlFlow;

use safetensors::SafeTensors;
use upscale_core::{Condition, Pixels, Scale};
use upscale_engine::{Engine, EngineOptions, KernelSet};

/// Largest difference in output values of 0..1.
const ERROR_MAX: f32 = 1e-5;

/// A tensor `[1, 3, height, width]` as interleaved samples, with its width and height.
fn samples(file: &SafeTensors<'_>, name: &str) -> (usize, usize, Vec<f32>) {
    let tensor = file.tensor(name).expect("the golden file has it");
    let &[1, 3, height, width] = tensor.shape() else {
        panic!("{name} has shape {:?}", tensor.shape());
    };
    let values: Vec<f32> = tensor
        .data()
        .chunks_exact(4)
        .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
        .collect();
    let plane = width * height;
    let interleaved = (0..plane * 3).map(|i| values[i % 3 * plane + i / 3]);
    (width, height, interleaved.collect())
}

fn check(golden: &[u8], scale: Scale) {
    let file = SafeTensors::deserialize(golden).expect("the golden file is whole");
    let (width, height, input) = samples(&file, "input");
    let (_, _, expected) = samples(&file, "output");
    let source = Pixels::new(width, height, 3, input).expect("counts fit");
    for set in KernelSet::ALL.into_iter().filter(|set| set.is_available()) {
        let options = EngineOptions {
            kernels: Some(set),
            ..EngineOptions::default()
        };
        let engine = Engine::shipped(options).expect("the shipped weights fit");
        let mut output = Vec::new();
        let done = engine.upscale(&source, scale, Condition::Unknown, &mut |rows| {
            output.extend_from_slice(rows.samples);
            ControlFlow::Continue(())
        });
        done.expect("is upscaled");
        assert_eq!(output.len(), expected.len());
        let differences = output.iter().zip(&expected).map(|(a, b)| (a - b).abs());
        let worst = differences.fold(0.0, f32::max);
        assert!(worst <= ERROR_MAX, "{set:?} differs by {worst:e}");
    }
}

#[test]
fn the_shipped_x2_network_is_the_one_that_was_trained() {
    check(
        include_bytes!("../weights/f-x2.golden.safetensors"),
        Scale::X2,
    );
}

#[test]
fn the_shipped_x4_network_is_the_one_that_was_trained() {
    check(
        include_bytes!("../weights/f-x4.golden.safetensors"),
        Scale::X4,
    );
}

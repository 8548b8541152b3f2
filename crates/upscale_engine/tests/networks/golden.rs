//! The shipped weights in the training's own framework, against every kernel set: who trains and who runs mean
//! the same network.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a test's own functions may panic"
)]

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use safetensors::SafeTensors;
use upscale_core::{Compression, Condition, Estimate, Look, Pixels, Scale, Subsampling};
use upscale_engine::{Engine, EngineOptions, KernelSet, ModelError, Network};

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

/// A file of the folder of weights.
fn read(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("weights");
    fs::read(folder.join(name)).expect("a network ships with its golden file")
}

/// The networks for noisy and soft pictures, from the files that the build embeds.
fn restoring(options: EngineOptions) -> Result<Engine, ModelError> {
    let network = |name: &str| Ok(Network::read(&read(name))?.in_bytes());
    let (x2, x4) = ("restore-x2.safetensors", "restore-x4.safetensors");
    Engine::of(network(x2)?, network(x4)?, options)
}

/// The networks for faces, from the files that the build embeds.
fn faces(options: EngineOptions) -> Result<Engine, ModelError> {
    let network = |name: &str| Ok(Network::read(&read(name))?.in_bytes());
    let (x2, x4) = ("face-x2.safetensors", "face-x4.safetensors");
    Engine::of(network(x2)?, network(x4)?, options)
}

/// The condition that training's four or six numbers stand for.
fn condition(inputs: &[f32]) -> Condition {
    let mean = |level: f32| (8.0 * level).exp2() - 1.0;
    let compression = match (inputs[0] > 0.0, inputs[1] > 0.0) {
        (false, _) => Compression::Unknown,
        (true, false) => Compression::Lossless,
        (true, true) => Compression::Quantised {
            luma_mean: mean(inputs[1]),
            chroma_mean: mean(inputs[2]),
            subsampling: match inputs[3] {
                0.0 => Subsampling::None,
                0.5 => Subsampling::Half,
                _ => Subsampling::Quarter,
            },
        },
    };
    let share = |number: f32| (number - 0.2) / 0.8;
    let estimate = match inputs.get(4..) {
        Some(&[noise, softness]) if noise > 0.0 => Some(Estimate {
            noise: (share(noise) * (1.0 + Estimate::NOISE_MAX).log2()).exp2() - 1.0,
            softness: share(softness) * Estimate::SOFTNESS_MAX,
            ..Estimate::NONE
        }),
        _ => None,
    };
    Condition {
        compression,
        estimate,
    }
}

/// Conditions, and the name of the output that belongs to each.
fn cases(file: &SafeTensors<'_>) -> Vec<(Condition, String)> {
    let mut cases = vec![(Condition::UNKNOWN, "output".to_owned())];
    let Ok(tensor) = file.tensor("conditions") else {
        return cases;
    };
    let values: Vec<f32> = tensor
        .data()
        .chunks_exact(4)
        .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
        .collect();
    let count = tensor.shape()[1];
    for (number, inputs) in values.chunks_exact(count).enumerate() {
        let reported = condition(inputs);
        let given = reported.inputs();
        let error = given.iter().zip(inputs).map(|(a, b)| (a - b).abs());
        assert!(
            error.fold(0.0, f32::max) < 1e-5,
            "{inputs:?} is {reported:?}"
        );
        cases.push((reported, format!("output.{number}")));
    }
    cases
}

/// The restoring networks in the natural look: these have the golden files.
fn natural(options: EngineOptions) -> Result<Engine, ModelError> {
    let network = |scale: Scale| {
        let factor = scale.factor();
        let layers = Network::read(&read(&format!("crisp-x{factor}.safetensors")))?;
        let restoring = Network::read(&read(&format!("restore-x{factor}.safetensors")))?;
        Ok(restoring
            .mixed(&layers, Look::Natural.crisp_share(scale))?
            .in_bytes())
    };
    Engine::of(network(Scale::X2)?, network(Scale::X4)?, options)
}

/// The network's golden file, of this name and its scale, has an input, and its output, or one for each condition.
fn check(scale: Scale, name: &str, networks: fn(EngineOptions) -> Result<Engine, ModelError>) {
    for set in KernelSet::ALL.into_iter().filter(|set| set.is_available()) {
        let options = EngineOptions {
            kernels: Some(set),
            ..EngineOptions::default()
        };
        let engine = networks(options).expect("the shipped weights fit");
        let golden = read(&format!("{name}-x{}.golden.safetensors", scale.factor()));
        let file = SafeTensors::deserialize(&golden).expect("the golden file is whole");
        let (width, height, input) = samples(&file, "input");
        let source = Pixels::new(width, height, 3, input).expect("counts fit");
        for (condition, name) in cases(&file) {
            let (_, _, expected) = samples(&file, &name);
            let mut output = Vec::new();
            let done = engine.upscale(&source, scale, condition, &mut |rows| {
                output.extend_from_slice(rows.samples);
                ControlFlow::Continue(())
            });
            done.expect("is upscaled");
            assert_eq!(output.len(), expected.len());
            let differences = output.iter().zip(&expected).map(|(a, b)| (a - b).abs());
            let worst = differences.fold(0.0, f32::max);
            let reported = format!("{set:?} {condition:?} differs by {worst:e}");
            assert!(worst <= ERROR_MAX, "{reported}");
        }
    }
}

#[test]
fn the_shipped_x2_network_is_the_one_that_was_trained() {
    check(Scale::X2, "s", Engine::shipped);
}

#[test]
fn the_shipped_x4_network_is_the_one_that_was_trained() {
    check(Scale::X4, "s", Engine::shipped);
}

#[test]
fn the_shipped_restoring_networks_are_those_that_were_trained() {
    for scale in Scale::ALL {
        check(scale, "restore", restoring);
    }
}

#[test]
fn the_shipped_face_networks_are_those_that_were_trained() {
    for scale in Scale::ALL {
        check(scale, "face", faces);
    }
}

#[test]
fn the_shipped_looks_are_those_that_were_trained() {
    for scale in Scale::ALL {
        check(scale, "crisp", natural);
    }
}

#[test]
fn a_look_is_for_pictures_that_are_restored_and_the_faithful_one_is_the_restoring_network() {
    let engine = |look| {
        let options = EngineOptions {
            look,
            ..EngineOptions::default()
        };
        Engine::shipped(options).expect("the shipped weights fit")
    };
    let golden = read("s-x2.golden.safetensors");
    let file = SafeTensors::deserialize(&golden).expect("the golden file is whole");
    let (width, height, input) = samples(&file, "input");
    let source = Pixels::new(width, height, 3, input).expect("counts fit");
    let noisy = Condition {
        estimate: Some(Estimate {
            noise: 9.0,
            ..Estimate::NONE
        }),
        ..Condition::CLEAN
    };
    let made = |engine: &Engine, condition| {
        let mut output = Vec::new();
        let done = engine.upscale(&source, Scale::X2, condition, &mut |rows| {
            output.extend_from_slice(rows.samples);
            ControlFlow::Continue(())
        });
        done.expect("is upscaled");
        output
    };
    let [faithful, natural, crisp] = Look::ALL.map(engine);
    let trained = restoring(EngineOptions::default()).expect("the shipped weights fit");
    assert_eq!(made(&faithful, noisy), made(&trained, noisy));
    assert_ne!(made(&faithful, noisy), made(&natural, noisy));
    assert_ne!(made(&natural, noisy), made(&crisp, noisy));
    let mixed = self::natural(EngineOptions::default()).expect("the shipped weights fit");
    let soft = Condition {
        estimate: Some(Estimate {
            softness: 0.5,
            ..Estimate::NONE
        }),
        ..Condition::CLEAN
    };
    assert_eq!(made(&natural, noisy), made(&mixed, noisy));
    let softer = soft.for_look(Look::Natural, Scale::X2);
    assert_eq!(made(&natural, soft), made(&mixed, softer));
    assert_ne!(made(&mixed, soft), made(&mixed, softer));
    for look in [&natural, &crisp] {
        assert_eq!(
            made(&faithful, Condition::CLEAN),
            made(look, Condition::CLEAN)
        );
    }
}

//! Pairs of files that ncnn's own converter made of our random networks, at most 1e-4 from what ncnn itself makes of the
//! same picture with them. `training/tests/ncnn_pairs.py` makes them.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a test's own functions may panic"
)]

use std::{fs, ops::ControlFlow, path::PathBuf};

use safetensors::SafeTensors;
use upscale_core::{Condition, Pixels, Rows, Scale};
use upscale_engine::{Engine, EngineOptions, KernelSet, Model, Shape, join_ncnn};

const ERROR_MAX: f32 = 1e-4;

fn read(name: &str) -> Vec<u8> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/ncnn");
    fs::read(folder.join(name)).expect("a file of the test")
}

/// A tensor `[1, 3, height, width]` as interleaved samples, with its width and height.
fn samples(file: &SafeTensors<'_>, name: &str) -> (usize, usize, Vec<f32>) {
    let tensor = file.tensor(name).expect("a tensor of the test");
    let &[1, 3, height, width] = tensor.shape() else {
        panic!("{name} has shape {:?}", tensor.shape());
    };
    let numbers = tensor.data().as_chunks::<4>().0.iter();
    let planes: Vec<f32> = numbers.map(|&bytes| f32::from_le_bytes(bytes)).collect();
    let area = width * height;
    let interleaved = (0..area * 3).map(|i| planes[i % 3 * area + i / 3]);
    (width, height, interleaved.collect())
}

fn run(model: Model, source: &Pixels, kernels: Option<KernelSet>) -> Vec<f32> {
    let scale = Scale::from_factor(model.network.scale() as i64).expect("2x or 4x");
    let options = EngineOptions {
        threads: 1,
        kernels,
        ..EngineOptions::default()
    };
    let small = Shape::Compact {
        channels: 4,
        convs: 1,
    };
    let engine = match scale {
        Scale::X2 => Engine::of(model.network, small.network(4, 1), options),
        Scale::X4 => Engine::of(small.network(2, 1), model.network, options),
    };
    let mut samples = Vec::new();
    let mut sink = |rows: Rows<'_>| {
        samples.extend_from_slice(rows.samples);
        ControlFlow::Continue(())
    };
    let engine = engine.expect("an engine");
    engine
        .upscale(source, scale, Condition::UNKNOWN, &mut sink)
        .expect("is upscaled");
    samples
}

#[test]
fn files_of_ncnns_converter_give_what_ncnn_gives() {
    for (name, network) in [
        ("esrgan-x4", "ESRGAN (RRDBNet)"),
        ("esrgan-x2", "ESRGAN (RRDBNet)"),
        ("esrgan-x2-squares", "ESRGAN (RRDBNet)"),
        ("compact-x2", "Compact (SRVGGNetCompact)"),
        ("compact-x4", "Compact (SRVGGNetCompact)"),
        ("span-x2", "SPAN"),
        ("span-x4", "SPAN"),
    ] {
        let [text, numbers] = ["param", "bin"].map(|ending| read(&format!("{name}.{ending}")));
        let golden = read(&format!("{name}.golden.safetensors"));
        let golden = SafeTensors::deserialize(&golden).expect("a golden pair");
        let (width, height, input) = samples(&golden, "input");
        let (_, _, expected) = samples(&golden, "output");
        let source = Pixels::new(width, height, 3, input).expect("a picture");
        for kernels in [None, Some(KernelSet::Reference)] {
            let model = Model::read(&join_ncnn(&text, &numbers)).expect(name);
            assert_eq!(model.architecture.name(), network);
            let given = run(model, &source, kernels);
            assert_eq!(given.len(), expected.len(), "{name}");
            let apart = given.iter().zip(&expected).map(|(a, b)| (a - b).abs());
            let apart = apart.fold(0.0, f32::max);
            println!("{name}: {apart:.1e} from ncnn");
            assert!(apart <= ERROR_MAX, "{name}: {apart:.1e} from ncnn");
        }
    }
}

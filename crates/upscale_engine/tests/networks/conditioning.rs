//! A conditioned weight file against files into which the same condition was folded by hand: what every kernel set
//! makes of the first must be what the definition makes of the second.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a test's own functions may panic"
)]

use std::collections::HashMap;

use crate::upscale;
use safetensors::tensor::{Dtype, TensorView, serialize};
use upscale_core::{Compression, Condition, Estimate, Pixels, Scale, Subsampling};
use upscale_engine::{Engine, EngineOptions, KernelSet, Network};

const CHANNELS: usize = 12;
const BLOCKS: usize = 2;
const ERROR_MAX: f32 = 1e-5;

/// A tensor's name, shape and values.
type Tensor = (String, Vec<usize>, Vec<f32>);

const CONDITIONS: [Condition; 4] = [
    Condition::UNKNOWN,
    Condition::CLEAN,
    Condition {
        compression: Compression::Quantised {
            luma_mean: 57.6,
            chroma_mean: 90.0,
            subsampling: Subsampling::Quarter,
        },
        estimate: None,
    },
    Condition {
        compression: Compression::Quantised {
            luma_mean: 5.0,
            chroma_mean: 7.0,
            subsampling: Subsampling::Half,
        },
        estimate: Some(Estimate {
            noise: 7.0,
            softness: 0.8,
            ..Estimate::NONE
        }),
    },
];

/// Values between -1 and 1 that depend on the tensor's name and the place.
fn values(name: &str, count: usize) -> Vec<f32> {
    let seed = name.bytes().fold(1u32, |sum, byte| {
        sum.wrapping_mul(31).wrapping_add(byte.into())
    });
    let mix = |i: usize| {
        let mixed = (i as u32)
            .wrapping_add(seed)
            .wrapping_mul(2_654_435_761)
            .rotate_left(13)
            .wrapping_mul(2_246_822_519);
        mixed as f32 / u32::MAX as f32 * 2.0 - 1.0
    };
    (0..count).map(mix).collect()
}

fn dense(name: &str, shape: &[usize], gain: f32) -> [Tensor; 2] {
    let fan_in: usize = shape[1..].iter().product();
    let weight = format!("{name}.weight");
    let mut weights = values(&weight, shape[0] * fan_in);
    let spread = gain / (fan_in as f32).sqrt();
    weights.iter_mut().for_each(|value| *value *= spread);
    let bias = format!("{name}.bias");
    let mut offsets = values(&bias, shape[0]);
    offsets.iter_mut().for_each(|value| *value *= 0.1);
    [
        (weight, shape.to_vec(), weights),
        (bias, vec![shape[0]], offsets),
    ]
}

fn tensors(scale: usize) -> Vec<Tensor> {
    let c = CHANNELS;
    let mut all = Vec::from(dense("head", &[c, 3, 3, 3], 1.5));
    for block in 0..BLOCKS {
        for part in 1..=3 {
            let name = format!("blocks.{block}.conv{part}");
            all.extend(dense(&name, &[c, c, 3, 3], 1.0));
        }
    }
    all.extend(dense("tail", &[c, c, 3, 3], 1.0));
    all.extend(dense("fuse", &[c, 4 * c, 1, 1], 1.0));
    all.extend(dense("up", &[3 * scale * scale, c, 3, 3], 0.2));
    all
}

/// A kind of condition: its name, and how many numbers it and the hidden layer have.
const KINDS: [(&str, usize, usize); 2] = [("jpeg-4", 4, 32), ("source-6", 6, 48)];

fn perceptron(inputs: usize, hidden: usize) -> Vec<Tensor> {
    let outputs = 2 * CHANNELS * 3 * BLOCKS;
    let mut all = Vec::from(dense("cond.0", &[hidden, inputs], 2.0));
    all.extend(dense("cond.2", &[outputs, hidden], 1.0));
    all
}

fn network(scale: usize, tensors: &[Tensor], condition: Option<&str>) -> Network {
    let (scale, channels, blocks) = (scale.to_string(), CHANNELS.to_string(), BLOCKS.to_string());
    let fields = [
        ("format", "upscale-1"),
        ("arch", "residual"),
        ("activation", "relu"),
        ("channels", &channels),
        ("blocks", &blocks),
        ("scale", &scale),
        ("input_scale", "1"),
        ("name", "tiny"),
    ];
    let fields = fields
        .into_iter()
        .chain(condition.map(|name| ("condition", name)));
    let fields: HashMap<String, String> =
        fields.map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
    let bytes: Vec<Vec<u8>> = tensors
        .iter()
        .map(|tensor| {
            tensor
                .2
                .iter()
                .flat_map(|value| value.to_le_bytes())
                .collect()
        })
        .collect();
    let views = tensors.iter().zip(&bytes).map(|((name, shape, _), data)| {
        let view = TensorView::new(Dtype::F32, shape.clone(), data).expect("shape fits data");
        (name.clone(), view)
    });
    let file = serialize(views.collect::<Vec<_>>(), Some(fields)).expect("serializes");
    Network::read(&file).expect("an honest file")
}

/// The perceptron by the book, then `(1 + d) w` and `(1 + d) b + t` for every channel of every block's convolutions.
fn folded_by_hand(tensors: &[Tensor], perceptron: &[Tensor], inputs: &[f32]) -> Vec<Tensor> {
    let find = |all: &[Tensor], name: &str| -> Vec<f32> {
        let found = all.iter().find(|tensor| tensor.0 == name);
        found.expect("is there").2.clone()
    };
    let layer = |name: &str, input: &[f64]| -> Vec<f64> {
        let weights = find(perceptron, &format!("{name}.weight"));
        let bias = find(perceptron, &format!("{name}.bias"));
        (0..bias.len())
            .map(|out| {
                let row = &weights[out * input.len()..(out + 1) * input.len()];
                let products = row.iter().zip(input).map(|(w, x)| f64::from(*w) * x);
                products.sum::<f64>() + f64::from(bias[out])
            })
            .collect()
    };
    let inputs: Vec<f64> = inputs.iter().copied().map(f64::from).collect();
    let hidden: Vec<f64> = layer("cond.0", &inputs)
        .into_iter()
        .map(|value| value.max(0.0))
        .collect();
    let outputs = layer("cond.2", &hidden);
    let mut folded = tensors.to_vec();
    for (name, shape, values) in &mut folded {
        let Some((block, part)) = place(name) else {
            continue;
        };
        let base = (block * 3 + part) * 2 * CHANNELS;
        let per_channel = values.len() / shape[0];
        for (at, value) in values.iter_mut().enumerate() {
            let channel = at / per_channel;
            let mut changed = f64::from(*value) * (1.0 + outputs[base + channel]);
            if name.ends_with("bias") {
                changed += outputs[base + CHANNELS + channel];
            }
            *value = changed as f32;
        }
    }
    folded
}

/// Block and part, from 0, of a convolution within the blocks.
fn place(name: &str) -> Option<(usize, usize)> {
    let (block, rest) = name.strip_prefix("blocks.")?.split_once(".conv")?;
    let part: usize = rest.split('.').next()?.parse().ok()?;
    Some((block.parse().ok()?, part - 1))
}

fn picture(channels: usize) -> Pixels {
    let samples = values("picture", 29 * 23 * channels);
    let samples = samples.iter().map(|value| value * 0.5 + 0.5);
    Pixels::new(29, 23, channels, samples.collect()).expect("counts fit")
}

fn engine(networks: [Network; 2], kernels: KernelSet) -> Engine {
    let options = EngineOptions {
        threads: 2,
        kernels: Some(kernels),
        ..EngineOptions::default()
    };
    let [x2, x4] = networks;
    Engine::of(x2, x4, options).expect("scales fit")
}

fn worst(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    let differences = a.iter().zip(b).map(|(a, b)| (a - b).abs());
    differences.fold(0.0, f32::max)
}

#[test]
fn a_condition_is_folded_in_as_by_hand_on_every_kernel_set() {
    for (kind, inputs, hidden) in KINDS {
        let perceptron = perceptron(inputs, hidden);
        let conditioned = [2, 4].map(|scale| {
            let all = [tensors(scale), perceptron.clone()].concat();
            network(scale, &all, Some(kind))
        });
        let sets = KernelSet::ALL.into_iter().filter(|set| set.is_available());
        let engines: Vec<Engine> = sets.map(|set| engine(conditioned.clone(), set)).collect();
        for condition in CONDITIONS {
            let numbers = match inputs {
                4 => condition.file_inputs().to_vec(),
                _ => condition.inputs().to_vec(),
            };
            let by_hand = [2, 4].map(|scale| {
                let folded = folded_by_hand(&tensors(scale), &perceptron, &numbers);
                network(scale, &folded, None)
            });
            check_alike(&engines, &engine(by_hand, KernelSet::Reference), condition);
        }
    }
}

/// Every engine makes of `condition` what `plain` makes without one.
fn check_alike(engines: &[Engine], plain: &Engine, condition: Condition) {
    for (scale, channels) in [(Scale::X2, 3), (Scale::X4, 1)] {
        let source = picture(channels);
        let expected = upscale(plain, &source, scale, Condition::UNKNOWN);
        for engine in engines {
            let given = upscale(engine, &source, scale, condition);
            let error = worst(&given, &expected);
            let reported = format!("{} {condition:?}: {error:e}", engine.kernels());
            assert!(error <= ERROR_MAX, "{reported}");
        }
    }
}

#[test]
fn what_one_picture_was_told_does_not_reach_the_next() {
    let all = [tensors(2), perceptron(4, 32)].concat();
    let x4 = [tensors(4), perceptron(4, 32)].concat();
    let networks = [
        network(2, &all, Some("jpeg-4")),
        network(4, &x4, Some("jpeg-4")),
    ];
    let engine = engine(networks, KernelSet::best());
    let source = picture(3);
    let [coarse, clean, again] = [CONDITIONS[2], CONDITIONS[1], CONDITIONS[2]]
        .map(|condition| upscale(&engine, &source, Scale::X2, condition));
    assert!(coarse == again, "the same condition gives the same bits");
    let moved = worst(&coarse, &clean);
    assert!(moved > 1e-3, "conditions differ by {moved:e} only");
}

#[test]
fn a_network_that_knows_no_conditions_makes_the_same_of_all() {
    let networks = [2, 4].map(|scale| network(scale, &tensors(scale), None));
    let engine = engine(networks, KernelSet::best());
    let source = picture(3);
    let unknown = upscale(&engine, &source, Scale::X4, Condition::UNKNOWN);
    for condition in CONDITIONS {
        assert!(upscale(&engine, &source, Scale::X4, condition) == unknown);
    }
}

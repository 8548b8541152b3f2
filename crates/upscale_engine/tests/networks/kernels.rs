//! Every kernel set against the reference, and against itself however the work is cut.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a test's own functions may panic"
)]

use upscale_core::{Condition, Pixels, Scale};
use upscale_engine::{Engine, EngineOptions, KernelSet, Shape};

/// Largest difference from the reference, in output values of 0..1: what the issue asks of the whole network.
const ERROR_MAX: f32 = 1e-5;

fn available() -> Vec<KernelSet> {
    let sets = KernelSet::ALL.into_iter();
    let sets = sets.filter(|set| *set != KernelSet::Reference && set.is_available());
    sets.collect()
}

fn picture(width: usize, height: usize, channels: usize) -> Pixels {
    let samples = (0..width * height * channels).map(|i| {
        let (x, y) = (i / channels % width, i / channels / width);
        let wave = (x as f32 * 0.37).sin() * (y as f32 * 0.23 + (i % channels) as f32).cos();
        (0.5 + 0.4 * wave + (i * 7919 % 1009) as f32 / 10_090.0).clamp(0.0, 1.0)
    });
    Pixels::new(width, height, channels, samples.collect()).expect("counts fit")
}

fn upscale(
    shape: Shape,
    kernels: KernelSet,
    threads: usize,
    source: &Pixels,
    scale: Scale,
) -> Vec<f32> {
    let options = EngineOptions {
        threads,
        kernels: Some(kernels),
        ..EngineOptions::default()
    };
    let engine = Engine::of(shape.network(2, 1), shape.network(4, 2), options);
    let engine = engine.expect("scales fit");
    crate::upscale(&engine, source, scale, Condition::UNKNOWN)
}

fn worst(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    let differences = a.iter().zip(b).map(|(a, b)| (a - b).abs());
    differences.fold(0.0, f32::max)
}

fn shapes() -> [Shape; 10] {
    [
        Shape::Residual {
            channels: 32,
            blocks: 2,
        },
        Shape::Span {
            channels: 48,
            blocks: 2,
        },
        Shape::Span {
            channels: 20,
            blocks: 1,
        },
        Shape::SpanPlus {
            channels: 20,
            blocks: 1,
        },
        Shape::Compact {
            channels: 64,
            convs: 3,
        },
        Shape::Compact {
            channels: 7,
            convs: 1,
        },
        Shape::Rrdb {
            channels: 20,
            growth: 8,
            blocks: 1,
        },
        Shape::Rrdb {
            channels: 16,
            growth: 16,
            blocks: 2,
        },
        Shape::Edsr {
            channels: 20,
            blocks: 1,
        },
        Shape::Edsr {
            channels: 32,
            blocks: 2,
        },
    ]
}

#[test]
fn every_set_agrees_with_the_reference_at_every_size() {
    let sizes = [
        (1, 1),
        (1, 9),
        (5, 1),
        (6, 6),
        (7, 13),
        (12, 5),
        (67, 29),
        (31, 129),
    ];
    for (index, (width, height)) in sizes.into_iter().enumerate() {
        let scale = Scale::ALL[index % 2];
        for channels in [1, 3] {
            let source = picture(width, height, channels);
            for shape in shapes() {
                let expected = upscale(shape, KernelSet::Reference, 2, &source, scale);
                for set in available() {
                    let given = upscale(shape, set, 2, &source, scale);
                    let error = worst(&given, &expected);
                    let reported = format!("{shape:?} {width}x{height} {set:?}: {error:e}");
                    assert!(error <= ERROR_MAX, "{reported}");
                }
            }
        }
    }
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let source = picture(131, 47, 3);
    for shape in shapes() {
        for set in available() {
            let expected = upscale(shape, set, 1, &source, Scale::X2);
            for threads in [2, 3, 7] {
                let given = upscale(shape, set, threads, &source, Scale::X2);
                assert!(given == expected, "{shape:?} {set:?} {threads} threads");
            }
        }
    }
}

#[test]
fn sets_that_multiply_and_add_in_one_step_give_the_same_bits() {
    let fused = [KernelSet::Avx512, KernelSet::Avx2];
    if fused.iter().any(|set| !set.is_available()) {
        eprintln!("this CPU lacks AVX-512 or AVX2: nothing to compare");
        return;
    }
    let source = picture(67, 31, 3);
    for shape in shapes() {
        let [a, b] = fused.map(|set| upscale(shape, set, 2, &source, Scale::X4));
        assert!(a == b, "{shape:?}: {:e}", worst(&a, &b));
    }
}

//! Every kind of layer and every shape of network on a device, held against the definition. Without a Vulkan driver they
//! say what they leave out; with CI=true they fail then.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod at_hand;

use std::{ops::ControlFlow, sync::Arc};

use at_hand::{difference, on_definition, on_device, picture, try_on_device};
use upscale_core::{Condition, Rows};
use upscale_engine::{Device, DeviceError, DeviceWork, Network, Shape};
use upscale_gpu::{Gpu, GpuError, Storage};

const EXACT: f32 = 1e-5;
const HALF_LEVEL: f32 = 0.5 / 255.0;

/// PReLU and the nearest base; ReLU, adds, a 1x1 layer over four maps and the bicubic base; SiLU or Mish, and gates; LeakyReLU, maps
/// of three sizes, sections, squares of source pixels and no base; four maps read as one, and the bilinear base.
fn shapes() -> Vec<(&'static str, Arc<Network>)> {
    let compact = Shape::Compact {
        channels: 10,
        convs: 3,
    };
    let residual = Shape::Residual {
        channels: 18,
        blocks: 2,
    };
    let span = Shape::Span {
        channels: 12,
        blocks: 2,
    };
    let rrdb = Shape::Rrdb {
        channels: 8,
        growth: 6,
        blocks: 2,
    };
    let edsr = Shape::Edsr {
        channels: 10,
        blocks: 1,
    };
    let span_plus = Shape::SpanPlus {
        channels: 12,
        blocks: 1,
    };
    let shapes = [
        ("span plus", span_plus),
        ("edsr", edsr),
        ("compact", compact),
        ("residual", residual),
        ("span", span),
        ("rrdb", rrdb),
    ];
    let all = shapes
        .into_iter()
        .flat_map(|(name, shape)| [2, 4].map(|scale| (name, shape, scale)));
    let restoring = [("compact", compact, 1)];
    let made = all.chain(restoring);
    let made = made.map(|(name, shape, scale)| (name, Arc::new(shape.network(scale, 7))));
    made.chain([("span with a mean", at_hand::span::span())])
        .collect()
}

#[test]
fn every_kind_of_layer_is_within_its_tolerance_of_the_definition() {
    for (storage, tolerance) in [(Storage::F32, EXACT), (Storage::F16, HALF_LEVEL)] {
        let Some(gpu) = at_hand::gpu() else { return };
        let gpu = gpu.with_storage(storage);
        for (name, network) in shapes() {
            for (width, height, channels) in [(1, 1, 3), (19, 13, 3), (33, 2, 1), (1, 21, 3)] {
                let source = picture(width, height, channels);
                let made = on_device(&gpu, &network, Condition::UNKNOWN, &source);
                let expected = on_definition(&network, Condition::UNKNOWN, &source);
                let far = difference(&made, &expected);
                let scale = network.scale();
                assert!(
                    far <= tolerance,
                    "{name} {scale}x {width}x{height}x{channels} {storage:?}: {far}"
                );
            }
        }
    }
}

#[test]
fn a_network_that_ships_is_right_for_every_condition() {
    let Some(gpu) = at_hand::gpu() else { return };
    let engine = at_hand::shipped();
    let source = picture(21, 17, 3);
    for condition in [Condition::CLEAN, Condition::UNKNOWN] {
        for scale in [upscale_core::Scale::X2, upscale_core::Scale::X4] {
            let network = Arc::new(engine.network_for(scale, condition).clone());
            let made = on_device(&gpu, &network, condition, &source);
            let far = difference(&made, &on_definition(&network, condition, &source));
            assert!(far <= EXACT, "{} {condition:?}: {far}", network.name());
        }
    }
}

#[test]
fn small_tiles_give_the_same_bits_as_one_and_so_does_every_run() {
    let Some(gpu) = at_hand::gpu() else { return };
    let mut gpu = gpu.with_storage(Storage::F32);
    let source = picture(61, 43, 3);
    let whole: Vec<_> = shapes()
        .into_iter()
        .map(|(name, network)| {
            let made = on_device(&gpu, &network, Condition::UNKNOWN, &source);
            let again = on_device(&gpu, &network, Condition::UNKNOWN, &source);
            assert!(made == again, "{name} differs from run to run");
            (name, network, made)
        })
        .collect();
    let mut cut = 0;
    // Each with the least memory that it runs in: from a tile that is the whole picture to tiles of 16 pixels.
    for kib in [1_600, 800, 400, 200] {
        gpu = gpu.with_arena_bytes(kib << 10);
        for (name, network, made) in &whole {
            let Some(in_tiles) = try_on_device(&gpu, network, Condition::UNKNOWN, &source) else {
                continue;
            };
            cut += 1;
            let scale = network.scale();
            let far = difference(made, &in_tiles);
            assert!(
                *made == in_tiles,
                "{name} {scale}x has seams in {kib} KiB: {far}"
            );
        }
    }
    assert!(cut >= 20, "only {cut} pictures fit");
}

#[test]
fn what_does_not_fit_is_refused_in_words() {
    let Some(gpu) = at_hand::gpu() else { return };
    let count = upscale_gpu::adapters().len();
    let error = Gpu::open(count).unwrap_err();
    assert_eq!(
        error,
        GpuError::NoAdapter {
            index: count,
            count
        }
    );
    let small = gpu.with_arena_bytes(1 << 10);
    let (_, network) = &shapes()[0];
    let source = picture(61, 43, 3);
    let work = DeviceWork {
        network,
        condition: Condition::UNKNOWN,
        source: &source,
    };
    let mut never =
        |_: Rows<'_>| -> ControlFlow<()> { panic!("rows of a picture that does not fit") };
    let ended = small.upscale(&work, &mut never, &|| false);
    let Err(DeviceError::Refused(reason)) = ended else {
        panic!("{ended:?}")
    };
    assert!(
        reason.contains("61 x 43 pixels") && reason.contains("1024 bytes"),
        "{reason}"
    );
}

#[test]
fn a_picture_that_is_cancelled_ends() {
    let Some(gpu) = at_hand::gpu() else { return };
    let (_, network) = &shapes()[0];
    let source = picture(20, 20, 3);
    let work = DeviceWork {
        network,
        condition: Condition::UNKNOWN,
        source: &source,
    };
    let mut go_on = |_: Rows<'_>| ControlFlow::Continue(());
    assert_eq!(
        gpu.upscale(&work, &mut go_on, &|| true),
        Err(DeviceError::Cancelled)
    );
    let mut stop = |_: Rows<'_>| ControlFlow::Break(());
    assert_eq!(
        gpu.upscale(&work, &mut stop, &|| false),
        Err(DeviceError::Cancelled)
    );
}

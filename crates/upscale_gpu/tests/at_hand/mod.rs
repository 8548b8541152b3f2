//! A device for tests, if there is one, and pictures through it and through the definition.

pub(crate) mod span;

use std::{ops::ControlFlow, sync::Arc};

use upscale_core::{Condition, Pixels, Rows, Scale};
use upscale_engine::{
    Device, DeviceError, DeviceWork, Engine, EngineOptions, KernelSet, Network, Restorer,
};
use upscale_gpu::{Gpu, adapters};

/// The first device of this machine.
pub(crate) fn gpu() -> Option<Gpu> {
    let is_needed = std::env::var("CI").is_ok_and(|value| value == "true");
    match adapters().first() {
        Some(found) => {
            eprintln!("on {} ({})", found.name, found.driver);
            Some(Gpu::open(0).expect("a device that was found opens"))
        }
        None if is_needed => {
            panic!("no Vulkan driver: apt-get install mesa-vulkan-drivers libvulkan1")
        }
        None => {
            eprintln!("left out: no Vulkan driver on this machine");
            None
        }
    }
}

pub(crate) fn picture(width: usize, height: usize, channels: usize) -> Pixels {
    let mut state = 9_u32;
    let samples = (0..width * height * channels).map(|_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 24) as f32
    });
    Pixels::new(width, height, channels, samples.collect()).unwrap()
}

pub(crate) fn on_device(
    gpu: &Gpu,
    network: &Arc<Network>,
    condition: Condition,
    source: &Pixels,
) -> Vec<f32> {
    try_on_device(gpu, network, condition, source).expect("it fits")
}

/// None where the device's memory for maps does not hold it.
pub(crate) fn try_on_device(
    gpu: &Gpu,
    network: &Arc<Network>,
    condition: Condition,
    source: &Pixels,
) -> Option<Vec<f32>> {
    let work = DeviceWork {
        network,
        condition,
        source,
    };
    let (mut samples, mut next) = (Vec::new(), 0);
    let mut keep = |rows: Rows<'_>| {
        assert_eq!(rows.first_row, next, "rows come in order");
        next += rows.row_count;
        samples.extend_from_slice(rows.samples);
        ControlFlow::Continue(())
    };
    match gpu.upscale(&work, &mut keep, &|| false) {
        Ok(()) => Some(samples),
        Err(DeviceError::Refused(reason)) if reason.contains("may take") => None,
        Err(other) => panic!("{other}"),
    }
}

pub(crate) fn shipped() -> Engine {
    Engine::shipped(EngineOptions::default()).unwrap()
}

/// What `upscale_engine`'s definition makes, in double precision.
pub(crate) fn on_definition(
    network: &Arc<Network>,
    condition: Condition,
    source: &Pixels,
) -> Vec<f32> {
    let options = EngineOptions {
        kernels: Some(KernelSet::Reference),
        ..EngineOptions::default()
    };
    let network = Arc::clone(network);
    let Some(scale) = Scale::from_factor(network.scale() as i64) else {
        let restorer = Restorer::of(network, options).unwrap();
        return restorer
            .restore(source, &mut |_| ())
            .unwrap()
            .samples()
            .to_vec();
    };
    let engine = Engine::shipped_but(network, options).unwrap();
    let mut samples = Vec::new();
    let mut keep = |rows: Rows<'_>| {
        samples.extend_from_slice(rows.samples);
        ControlFlow::Continue(())
    };
    engine.upscale(source, scale, condition, &mut keep).unwrap();
    samples
}

pub(crate) fn difference(made: &[f32], expected: &[f32]) -> f32 {
    assert_eq!(made.len(), expected.len());
    let differences = made.iter().zip(expected).map(|(a, b)| (a - b).abs());
    differences.fold(0.0, f32::max)
}

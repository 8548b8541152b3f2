//! A small picture on the GPU, which the engine holds against the CPU's; and a larger one on both, for who is to choose.

use std::{ops::ControlFlow, sync::Arc, time::Instant};

use upscale_core::{Condition, Pixels, Rows, Scale};
use upscale_engine::{Device, Engine, EngineOptions, Precision};

/// Sides of the pictures in pixels. The larger one takes two cores a tenth of a second: enough to keep a GPU busy.
const CHECKED_SIDE: usize = 32;
const MEASURED_SIDE: usize = 192;
/// Runs after one that makes things ready; the fastest counts.
const RUNS: usize = 2;

/// # Errors
/// When the device does not make a picture, or makes another one than the CPU.
pub(super) fn check(device: &Arc<dyn Device>, threads: usize) -> Result<(), String> {
    run(&on(device, threads)?, CHECKED_SIDE).map(|_| ())
}

/// Seconds that the same picture takes on the device and on the CPU.
///
/// # Errors
/// As [`check`].
pub(super) fn measure(device: &Arc<dyn Device>, threads: usize) -> Result<(f64, f64), String> {
    let on_device = fastest(&on(device, threads)?)?;
    let on_cpu = fastest(&engine(options(threads))?)?;
    Ok((on_device, on_cpu))
}

fn options(threads: usize) -> EngineOptions {
    EngineOptions {
        threads,
        precision: Precision::Fast,
        ..EngineOptions::default()
    }
}

fn on(device: &Arc<dyn Device>, threads: usize) -> Result<Engine, String> {
    engine(EngineOptions {
        device: Some(Arc::clone(device)),
        ..options(threads)
    })
}

fn engine(options: EngineOptions) -> Result<Engine, String> {
    Engine::shipped(options).map_err(|error| error.to_string())
}

fn fastest(engine: &Engine) -> Result<f64, String> {
    run(engine, MEASURED_SIDE)?;
    let mut seconds = f64::INFINITY;
    for _ in 0..RUNS {
        seconds = seconds.min(run(engine, MEASURED_SIDE)?);
    }
    Ok(seconds)
}

fn run(engine: &Engine, side: usize) -> Result<f64, String> {
    let samples = (0..side * side * 3).map(|at| (at * 37 % 251) as f32 / 250.0);
    let source =
        Pixels::new(side, side, 3, samples.collect()).map_err(|error| error.to_string())?;
    let began = Instant::now();
    let mut drop_rows = |_: Rows<'_>| ControlFlow::Continue(());
    let done = engine.upscale(&source, Scale::X2, Condition::CLEAN, &mut drop_rows);
    done.map_err(|error| error.to_string())?;
    Ok(began.elapsed().as_secs_f64())
}

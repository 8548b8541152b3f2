//! Who computes a picture, one after another until a result passes the output check: a device, the kernels, plain loops.

use upscale_engine::{Engine, MACS_OF_A_MOMENT};
use upscale_image::Source;

use super::{FallbackLevel, PictureOptions, PipelineError, Upscaled, attempt, engine_options};
use crate::DeviceUse;

/// Multiply-accumulates of pictures that are worth handing over. The GPU of tests is Mesa's lavapipe, which takes two slow
/// cores 17 s for that many: a debug build hands over an eighth.
const WORTHY_MACS: u64 = MACS_OF_A_MOMENT as u64 / if cfg!(debug_assertions) { 8 } else { 1 };

pub(super) fn by_levels(
    source: &Source,
    options: &PictureOptions<'_>,
    progress: &mut dyn FnMut(f64),
) -> Result<Upscaled, PipelineError> {
    let mut device = DeviceUse::None;
    if options.device.is_some() && macs(source, options)? >= WORTHY_MACS {
        match attempt(source, options, FallbackLevel::Device, progress) {
            Ok(upscaled) => {
                return Ok(Upscaled {
                    device: DeviceUse::Made,
                    ..upscaled
                });
            }
            Err(error) => device = after_device(error, options)?,
        }
    }
    let upscaled = on_cpu(source, options, progress)?;
    Ok(Upscaled { device, ..upscaled })
}

/// Of the whole picture.
fn macs(source: &Source, options: &PictureOptions<'_>) -> Result<u64, PipelineError> {
    let engine = Engine::shipped(engine_options(options, FallbackLevel::Fast))?;
    let shipped = || engine.network_for(options.parameters.scale, source.condition);
    let enlarging = options.network.map_or_else(shipped, AsRef::as_ref);
    let restoring = options
        .restoring
        .map_or(0, |network| network.macs_per_pixel());
    let pixels = source.color.width() * source.color.height();
    Ok(pixels as u64 * (enlarging.macs_per_pixel() + restoring) as u64)
}

/// What is remembered of a device that made no result.
///
/// # Errors
/// Where the CPU would do no better.
fn after_device(
    error: PipelineError,
    options: &PictureOptions<'_>,
) -> Result<DeviceUse, PipelineError> {
    match error {
        PipelineError::Device { reason, is_broken } => {
            tracing::warn!(reason, "the device did not do a picture; the CPU does");
            Ok(match is_broken {
                true => DeviceUse::Failed,
                false => DeviceUse::Refused,
            })
        }
        PipelineError::Output(failure) if !has_brought(options) => {
            tracing::warn!(%failure, "the output check refused what the device made; the CPU tries again");
            Ok(DeviceUse::Failed)
        }
        other => Err(other),
    }
}

fn on_cpu(
    source: &Source,
    options: &PictureOptions<'_>,
    progress: &mut dyn FnMut(f64),
) -> Result<Upscaled, PipelineError> {
    match attempt(source, options, FallbackLevel::Fast, progress) {
        Err(PipelineError::Output(failure)) if !has_brought(options) => {
            tracing::warn!(%failure, "the output check refused a result; the plain kernels try again");
            attempt(source, options, FallbackLevel::Reference, progress)
        }
        ended => ended,
    }
}

/// A model that someone brought has not been miscalculated: it is like that, and much slower the second time.
fn has_brought(options: &PictureOptions<'_>) -> bool {
    options.network.is_some() || options.restoring.is_some()
}

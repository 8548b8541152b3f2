//! The golden image: at start a child upscales a small drawn picture with the kernels that this CPU gets, another with
//! the portable ones, and both must give the same picture. A machine whose fast kernels are wrong never calls itself
//! ready.

use anyhow::{Context, anyhow, ensure};
use upscale_api::ApiState;
use upscale_core::{Parameters, Scale};
use upscale_engine::KernelSet;
use upscale_image::{decode, raster::Rgb8};
use upscale_pipeline::{ChildOptions, kernels};

/// Small, with more than one tile of the engine in both directions.
const SIZE: (usize, usize) = (40, 28);
/// Kernel sets differ in the order of additions: a rounding here and there, never more than this many levels of 8 bits.
const LEVELS_MAX: u8 = 2;

/// Tells the API what came of it; until then it is not ready.
pub(crate) async fn check_engine(state: ApiState, options: ChildOptions) {
    let checked = check(&options).await.map_err(|error| format!("{error:#}"));
    if let Err(error) = &checked {
        tracing::error!(error, "the golden image failed: this process is not ready");
    }
    state.engine_checked(checked);
}

/// # Errors
/// When the kernels of this CPU and the portable ones disagree, or a child cannot be started.
pub(crate) async fn check(options: &ChildOptions) -> anyhow::Result<()> {
    let (width, height) = SIZE;
    let picture = Rgb8::paint(width, height, |x, y| {
        let ring = (x * x + y * y) / 16 % 2 * 120;
        [(x * 6) as u8, (y * 9) as u8, (ring + 60) as u8]
    });
    let source = picture
        .to_png()
        .map_err(|error| anyhow!("the golden image: {error}"))?;
    for scale in Scale::ALL {
        let fast = upscaled(options, scale, &source).await?;
        let plain = upscaled(&with_portable_kernels(options), scale, &source).await?;
        let pairs = fast.samples().iter().zip(plain.samples());
        let furthest = pairs.map(|(a, b)| a.abs_diff(*b)).max().unwrap_or(u8::MAX);
        ensure!(
            furthest <= LEVELS_MAX,
            "at {}x the kernels of this CPU are {furthest} levels from the portable ones",
            scale.factor()
        );
    }
    // Here, for a worker alone has no API to tell.
    metrics::gauge!("upscale_engine_ready").set(1.0);
    Ok(())
}

async fn upscaled(options: &ChildOptions, scale: Scale, source: &[u8]) -> anyhow::Result<Rgb8> {
    let job = options.job(Parameters::at(scale));
    let made = options.upscale(&job, source).await?;
    let pixels_max = u64::from(made.facts.width) * u64::from(made.facts.height);
    let picture = decode(&made.png, pixels_max).context("the golden result")?;
    Ok(Rgb8::of_source(&picture))
}

fn with_portable_kernels(options: &ChildOptions) -> ChildOptions {
    let name = KernelSet::Portable.name();
    let mut options = options.clone();
    options
        .environment
        .retain(|(variable, _)| variable != kernels::VARIABLE);
    options
        .environment
        .push((kernels::VARIABLE.into(), name.into()));
    options
}

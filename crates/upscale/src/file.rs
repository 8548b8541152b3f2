//! `upscale file IN OUT.png`: the service's own pipeline on one file, in this process, with a progress bar.

use std::{
    fs,
    io::IsTerminal,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::anyhow;
use indicatif::{ProgressBar, ProgressStyle};
use upscale_core::{
    Scale,
    limits::{SOURCE_BYTES_MAX, source_pixels_max},
};
use upscale_image::ImageError;
use upscale_pipeline::{
    PictureOptions, PipelineError, Upscaled, kernels, status_bytes, upscale_image, wall,
};

use crate::{
    args::{FileArgs, Quality},
    threads::threads,
    whole_file::{read_bounded, write_whole},
};

/// A pixel of 16-bit RGBA has 8 bytes, so no file of that many pixels has reason to be longer.
const BYTES_PER_PIXEL_MAX: u64 = 8;
/// Steps of the progress bar.
const STEPS: u64 = 1_000;

/// Upscales one file.
pub(crate) fn file(args: &FileArgs) -> anyhow::Result<()> {
    let brought = args.model.load(args.scale)?;
    let scale = brought.as_ref().map(|(_, scale)| *scale).or(args.scale);
    let scale = scale.unwrap_or(Scale::X2);
    let parameters = args.parameters.at(scale);
    let options = PictureOptions {
        parameters,
        network: brought.as_ref().map(|(network, _)| network),
        threads: threads(args.threads),
        kernels: kernels::from_environment()?,
        pixels_max: args
            .pixels_max
            .unwrap_or_else(|| source_pixels_max(parameters)),
        ensemble: args.quality == Quality::Max,
        clock: wall,
    };
    let bytes = read_source(&args.input, args.pixels_max)?;
    let started = Instant::now();
    let upscaled = upscale(&bytes, &options, args)?;
    write_whole(&args.output, &upscaled.png)?;
    report(&args.output, &upscaled, started.elapsed());
    if parameters.face_enhance {
        eprintln!("{} faces", upscaled.faces);
    }
    if args.timings {
        report_timings(&upscaled, started.elapsed());
    }
    Ok(())
}

fn read_source(path: &Path, pixels_max: Option<u64>) -> anyhow::Result<Vec<u8>> {
    let bytes_max = pixels_max.map_or(SOURCE_BYTES_MAX, |pixels| {
        SOURCE_BYTES_MAX.max(pixels * BYTES_PER_PIXEL_MAX)
    });
    read_bounded(
        path,
        bytes_max,
        ", the service's limit; --pixels-max raises it",
    )
}

fn upscale(
    bytes: &[u8],
    options: &PictureOptions<'_>,
    args: &FileArgs,
) -> anyhow::Result<Upscaled> {
    let bar = progress_bar();
    let mut progress = |share: f64| bar.set_position((share * STEPS as f64) as u64);
    let upscaled = upscale_image(bytes, options, &mut progress);
    bar.finish_and_clear();
    upscaled.map_err(|error| {
        let is_too_large = matches!(
            &error,
            PipelineError::Image(ImageError::TooManyPixels { .. })
        );
        let hint = if is_too_large {
            " --pixels-max raises it."
        } else {
            ""
        };
        anyhow!("{}: {error}{hint}", args.input.display())
    })
}

fn progress_bar() -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(STEPS);
    if let Ok(style) = ProgressStyle::with_template("{wide_bar} {percent:>3} %  {eta} left") {
        bar.set_style(style);
    }
    bar
}

/// One line: each stage's time and its share, and what the process needed at most.
fn report_timings(upscaled: &Upscaled, took: Duration) {
    let spent = upscaled.spent;
    let stages = [
        ("decode", spent.decode),
        ("network", spent.network),
        ("check", spent.check),
        ("encode", spent.encode),
    ];
    let shown = stages.map(|(name, time)| {
        let share = 100.0 * time.as_secs_f64() / took.as_secs_f64();
        format!("{name} {:.3} s ({share:.1} %)", time.as_secs_f64())
    });
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let megabytes = status_bytes(&status, "VmHWM:").unwrap_or(0) / 1_000_000;
    eprintln!("{}, {megabytes} MB at most", shown.join(", "));
}

fn report(path: &Path, upscaled: &Upscaled, took: Duration) {
    let (facts, shown) = (&upscaled.facts, path.display());
    eprintln!(
        "{shown}: {} x {} pixels, {} bytes, {:.1} s",
        facts.width,
        facts.height,
        upscaled.png.len(),
        took.as_secs_f64()
    );
}

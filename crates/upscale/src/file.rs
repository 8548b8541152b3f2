//! `upscale file`: the service's own pipeline on files of this machine, in this process, with a progress bar. No cap but
//! memory; results at another size or in another format where that is asked.

mod jobs;

use std::{
    fs,
    io::{self, IsTerminal, Read, Write},
    path::Path,
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Context, anyhow, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use upscale_core::{Parameters, Scale, limits::SOURCE_BYTES_MAX};
use upscale_image::{ImageError, Reencoding, read_header};
use upscale_pipeline::{
    PictureOptions, PipelineError, Upscaled, status_bytes, upscale_image, wall,
};

use self::jobs::{Job, jobs};
use crate::{
    args::{FileArgs, Quality},
    gpu,
    memory::memory_limit,
    threads::threads,
    whole_file::{read_bounded, write_whole},
};

/// A pixel of 16-bit RGBA has 8 bytes, so no file of that many pixels has reason to be longer.
const BYTES_PER_PIXEL_MAX: u64 = 8;
/// What a pixel of the source takes while it is worked on, at 2x and 4x, and what everything else does: the worst that
/// docs/sizing.md measured (16 bits, noise and transparency), rounded up.
const WORK_BYTES_PER_PIXEL: [u64; 2] = [220, 420];
const WORK_BYTES_BASE: u64 = 128 << 20;
/// Of the memory that there is, for whatever else runs.
const SHARE_OF_MEMORY: (u64, u64) = (3, 4);
/// Steps of the progress bar.
const STEPS: u64 = 1_000;
/// The bar moves from the first moment: a picture is decoded and looked at for seconds before the first row is there.
const TICK: Duration = Duration::from_millis(100);

/// Upscales every picture that is named. Exit status 1 when one could not be done.
pub(crate) fn file(args: &FileArgs) -> anyhow::Result<ExitCode> {
    let brought = args.model.load(args.scale)?;
    let restoring = args.model.load_restoring()?;
    let device = gpu::open_for_command(args.device, threads(args.threads))?;
    let scale = brought.as_ref().map(|(_, scale)| *scale).or(args.scale);
    let parameters = args.parameters.at(scale.unwrap_or(Scale::X2));
    let options = PictureOptions {
        network: brought.as_ref().map(|(network, _)| network),
        restoring: restoring.as_ref(),
        device: device.as_ref(),
        pixels_max: args
            .pixels_max
            .unwrap_or_else(|| pixels_that_fit(parameters)),
        ensemble: args.quality == Quality::Max,
        look: args.look,
        ..PictureOptions::shipped(parameters, threads(args.threads), wall)?
    };
    let (jobs, left_out) = jobs(args, parameters.scale)?;
    if left_out > 0 {
        eprintln!("{left_out} results already exist");
    }
    let mut failed = 0;
    for (number, job) in jobs.iter().enumerate() {
        let place = (jobs.len() > 1).then(|| format!("{}/{} ", number + 1, jobs.len()));
        let done = one(job, &options, args, &place.unwrap_or_default());
        match done {
            // A single one ends with its reason.
            Err(error) if jobs.len() == 1 => return Err(error),
            Err(error) => {
                failed += 1;
                eprintln!("{error:#}");
            }
            Ok(()) => {}
        }
    }
    if failed > 0 {
        eprintln!("{failed} of {} were not upscaled", jobs.len());
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// The largest source, in pixels, for which there is memory.
fn pixels_that_fit(parameters: Parameters) -> u64 {
    let (share, of) = SHARE_OF_MEMORY;
    let bytes = memory_limit().bytes / of * share;
    let each = match parameters.scale {
        Scale::X2 => WORK_BYTES_PER_PIXEL[0],
        Scale::X4 => WORK_BYTES_PER_PIXEL[1],
    };
    (bytes.saturating_sub(WORK_BYTES_BASE) / each).max(1)
}

fn one(
    job: &Job,
    options: &PictureOptions<'_>,
    args: &FileArgs,
    place: &str,
) -> anyhow::Result<()> {
    let name = job.input.as_ref().map_or_else(
        || "standard input".to_owned(),
        |path| path.display().to_string(),
    );
    let bar = progress_bar(&format!("{place}{name}"));
    let started = Instant::now();
    let wanted = Reencoding {
        format: job.format,
        jpeg_quality: args.quality_jpeg,
        size: args
            .resize
            .map(|size| (size.width as u32, size.height as u32)),
    };
    let done = upscale(job, &name, options, &wanted, &bar);
    bar.finish_and_clear();
    let (file, upscaled) = done?;
    write(job, &file)?;
    report(job, &upscaled, &wanted, file.len(), started.elapsed());
    if options.parameters.face_enhance {
        eprintln!("{} faces", upscaled.faces);
    }
    if args.timings {
        report_timings(&upscaled, started.elapsed());
    }
    Ok(())
}

/// The file to write, and what was made of the source.
fn upscale(
    job: &Job,
    name: &str,
    options: &PictureOptions<'_>,
    wanted: &Reencoding,
    bar: &ProgressBar,
) -> anyhow::Result<(Vec<u8>, Upscaled)> {
    let bytes = read_source(job.input.as_deref(), options.pixels_max)?;
    let factor = options.parameters.scale.factor() as u32;
    if let Ok(header) = read_header(&bytes) {
        let side = |side: u32| side.saturating_mul(factor);
        wanted.check(side(header.width), side(header.height))?;
    }
    let mut progress = |share: f64| bar.set_position((share * STEPS as f64) as u64);
    let mut upscaled = upscale_image(bytes, options, &mut progress)
        .map_err(|error| anyhow!("{name}: {error}{}", hint(&error)))?;
    let png = std::mem::take(&mut upscaled.png);
    let file = wanted.apply(png).with_context(|| name.to_owned())?;
    Ok((file, upscaled))
}

fn hint(error: &PipelineError) -> &'static str {
    match error {
        PipelineError::Image(ImageError::TooManyPixels { .. }) => {
            " That is what fits into three quarters of this machine's memory; --pixels-max raises it."
        }
        _ => "",
    }
}

fn read_source(path: Option<&Path>, pixels_max: u64) -> anyhow::Result<Vec<u8>> {
    let bytes_max = SOURCE_BYTES_MAX.max(pixels_max.saturating_mul(BYTES_PER_PIXEL_MAX));
    if let Some(path) = path {
        return read_bounded(path, bytes_max, "; --pixels-max raises it");
    }
    let mut bytes = Vec::new();
    let input = io::stdin().lock();
    input
        .take(bytes_max + 1)
        .read_to_end(&mut bytes)
        .context("standard input")?;
    ensure!(
        bytes.len() as u64 <= bytes_max,
        "standard input has more than {bytes_max} bytes; --pixels-max raises it"
    );
    Ok(bytes)
}

fn write(job: &Job, file: &[u8]) -> anyhow::Result<()> {
    match &job.output {
        Some(path) => write_whole(path, file),
        None => {
            let mut out = io::stdout().lock();
            let written = out.write_all(file).and_then(|()| out.flush());
            written.context("standard output")
        }
    }
}

fn progress_bar(name: &str) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(STEPS);
    let style = "{spinner} {msg} {wide_bar} {percent:>3} %  {elapsed} so far, {eta} left";
    if let Ok(style) = ProgressStyle::with_template(style) {
        bar.set_style(style);
    }
    bar.set_message(name.to_owned());
    bar.enable_steady_tick(TICK);
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

fn report(job: &Job, upscaled: &Upscaled, wanted: &Reencoding, bytes: usize, took: Duration) {
    let facts = &upscaled.facts;
    let (width, height) = wanted.size.unwrap_or((facts.width, facts.height));
    let shown = job.output.as_ref().map_or_else(
        || "standard output".to_owned(),
        |path| path.display().to_string(),
    );
    eprintln!(
        "{shown}: {width} x {height} pixels, {bytes} bytes, {:.1} s",
        took.as_secs_f64()
    );
}

//! `upscale bench`: speeds, printed next to a limit measured in the same run. The networks' measurements are the
//! engine's own; `bench api` has files of its own.

mod api;
mod device;
mod load;
mod scale;
mod waiting;

use std::{fs, path::Path};

use anyhow::{Context, Error};
use upscale_engine::{
    EngineOptions, Model, Network, Precision, Shape,
    bench::{Bench, Measured},
};
use upscale_pipeline::{cache_share_bytes, kernels};

use crate::{
    args::{BenchArgs, BenchCommand, BenchEngineArgs, BenchPrecision},
    gpu, output,
    threads::threads,
};

/// Runs the benchmark that was asked for.
pub(crate) fn bench(args: &BenchArgs) -> anyhow::Result<()> {
    match &args.command {
        Some(BenchCommand::Api(args)) => api::bench_api(args),
        Some(BenchCommand::Waiting(args)) => waiting::bench_waiting(args),
        Some(BenchCommand::Scale(args)) => scale::bench_scale(args),
        None => bench_network(&args.engine),
    }
}

fn bench_network(args: &BenchEngineArgs) -> anyhow::Result<()> {
    let (width, height) = (args.size.width, args.size.height);
    let runs = usize::try_from(args.runs)?;
    let bench = match Shape::parse(&args.network) {
        Some(shape) => Bench {
            runs,
            ..Bench::of_shape(shape, width, height)
        },
        None => Bench {
            network: read_network(&args.network)?,
            width,
            height,
            runs,
        },
    };
    let opened = gpu::open(args.device, threads(args.threads)).map_err(Error::msg)?;
    if let Some(opened) = opened {
        return device::bench_device(args, bench, &opened);
    }
    let precision = match args.precision {
        BenchPrecision::Exact => Precision::Exact,
        BenchPrecision::Fast => Precision::Fast,
    };
    let threads = threads(args.threads);
    let options = EngineOptions {
        threads,
        kernels: kernels::from_environment()?,
        cache_share_bytes: cache_share_bytes(),
        precision,
        ..EngineOptions::default()
    };
    let measured = bench.run(&options)?;
    print(args, threads, &bench, &measured)
}

fn read_network(path: &str) -> anyhow::Result<Network> {
    let not_known = || format!("{path}: neither f, s, x, span, compact, rrdb nor a model file");
    let bytes = fs::read(Path::new(path)).with_context(not_known)?;
    Ok(Model::read(&bytes).with_context(not_known)?.network)
}

fn print(
    args: &BenchEngineArgs,
    threads: usize,
    bench: &Bench,
    measured: &Measured,
) -> anyhow::Result<()> {
    if args.json {
        return print_json(threads, bench, measured);
    }
    let (fastest, slowest) = measured.seconds_range;
    let (name, scale) = (bench.network.name(), bench.network.scale());
    let (width, height) = (bench.width, bench.height);
    let (share, peak) = (100.0 * measured.peak_share, measured.peak_gflops);
    let (median, runs) = (measured.seconds, bench.runs);
    let rows = [
        (
            "network",
            format!("{name} at {scale}x, {width} x {height} source pixels"),
        ),
        (
            "kernels",
            format!(
                "{} on {threads} threads, {}",
                measured.kernels, measured.precision
            ),
        ),
        (
            "seconds",
            format!("{median:.4} (median of {runs}; {fastest:.4} to {slowest:.4})"),
        ),
        (
            "processor",
            format!("{:.3} s a run, all threads", measured.processor_seconds),
        ),
        (
            "per megapixel",
            format!("{:.3} s", median / megapixels(bench)),
        ),
        ("direct operations", format!("{:.0} G/s", measured.gflops)),
        (
            "of the peak",
            format!("{share:.0} % of {peak:.0} G/s measured in the same run"),
        ),
        (
            "memory",
            format!("{} MB at most", measured.peak_memory_bytes / 1_000_000),
        ),
        (
            "made ready in",
            format!("{:.1} ms", 1e3 * measured.plan_seconds),
        ),
        (
            "stops within",
            format!(
                "{:.1} ms (longest of 5 cancellations)",
                1e3 * measured.cancel_seconds
            ),
        ),
    ];
    let rows = rows.map(|(name, value)| vec![name.to_owned(), value]);
    output::table(&["WHAT", "MEASURED"], &rows)
}

fn megapixels(bench: &Bench) -> f64 {
    (bench.width * bench.height) as f64 / 1e6
}

fn print_json(threads: usize, bench: &Bench, measured: &Measured) -> anyhow::Result<()> {
    let (fastest, slowest) = measured.seconds_range;
    output::json(&serde_json::json!({
        "network": bench.network.name(),
        "scale": bench.network.scale(),
        "width": bench.width,
        "height": bench.height,
        "threads": threads,
        "runs": bench.runs,
        "kernels": measured.kernels,
        "precision": measured.precision,
        "seconds": measured.seconds,
        "seconds_fastest": fastest,
        "seconds_slowest": slowest,
        "processor_seconds": measured.processor_seconds,
        "seconds_per_megapixel": measured.seconds / megapixels(bench),
        "gflops": measured.gflops,
        "peak_gflops": measured.peak_gflops,
        "peak_share": measured.peak_share,
        "peak_memory_bytes": measured.peak_memory_bytes,
        "plan_seconds": measured.plan_seconds,
        "cancel_seconds": measured.cancel_seconds,
    }))
}

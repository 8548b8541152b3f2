//! `bench --device`: the same networks and sizes on a GPU, from samples in this process' memory to samples in it.

use std::{ops::ControlFlow, sync::Arc, time::Instant};

use anyhow::anyhow;
use upscale_core::{Condition, Pixels, Rows};
use upscale_engine::{DeviceWork, bench::Bench};

use crate::{args::BenchEngineArgs, gpu::Opened, output};

/// Measures and prints; one run before that is not counted.
pub(super) fn bench_device(
    args: &BenchEngineArgs,
    bench: Bench,
    opened: &Opened,
) -> anyhow::Result<()> {
    let Bench {
        network,
        width,
        height,
        runs,
    } = bench;
    let network = Arc::new(network);
    let samples = (0..width * height * 3).map(|at| (at * 37 % 251) as f32 / 250.0);
    let source = Pixels::new(width, height, 3, samples.collect())?;
    let work = DeviceWork {
        network: &network,
        condition: Condition::CLEAN,
        source: &source,
    };
    let mut seconds = Vec::new();
    for run in 0..=runs {
        let began = Instant::now();
        let mut drop_rows = |_: Rows<'_>| ControlFlow::Continue(());
        let done = opened.device.upscale(&work, &mut drop_rows, &|| false);
        done.map_err(|error| anyhow!("{error}"))?;
        if run > 0 {
            seconds.push(began.elapsed().as_secs_f64());
        }
    }
    seconds.sort_by(f64::total_cmp);
    let (median, fastest, slowest) = (seconds[runs / 2], seconds[0], seconds[runs - 1]);
    let pixels = (width * height) as f64;
    let operations = 2.0 * pixels * network.macs_per_pixel() as f64 / median / 1e9;
    if args.json {
        return output::json(&serde_json::json!({
            "network": network.name(),
            "scale": network.scale(),
            "width": width,
            "height": height,
            "device": opened.name(),
            "seconds": median,
            "seconds_fastest": fastest,
            "seconds_slowest": slowest,
            "runs": runs,
            "gflops": operations,
        }));
    }
    let (name, scale) = (network.name(), network.scale());
    let rows = [
        (
            "network",
            format!("{name} at {scale}x, {width} x {height} source pixels"),
        ),
        ("device", opened.name()),
        (
            "seconds",
            format!("{median:.4} (median of {runs}; {fastest:.4} to {slowest:.4})"),
        ),
        ("per megapixel", format!("{:.3} s", median / pixels * 1e6)),
        ("direct operations", format!("{operations:.0} G/s")),
    ];
    let rows: Vec<Vec<String>> = rows
        .into_iter()
        .map(|(name, value)| vec![name.to_owned(), value])
        .collect();
    output::table(&["WHAT", "MEASURED"], &rows)
}

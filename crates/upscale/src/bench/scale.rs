//! `upscale bench scale`: what more cores are worth on this machine. One picture is done by more and more threads, then as many
//! pictures at a time as there are cores, in processes of their own as the service does them, all beside one picture on one
//! thread. Each process is a `upscale bench --json`.

use std::{
    env,
    process::{Child, Stdio},
};

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};
use serde_json::json;
use upscale_core::Domains;
use upscale_pipeline::kernels;

use crate::{args::BenchScaleArgs, output, running::itself, topology::domains};

/// Threads of one picture go up to here, or to twice the cores.
const THREADS_MAX: u32 = 32;

/// So many processes at a time, each with so many threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
struct Setting {
    workers: u32,
    threads: u32,
}

/// What one process says of itself.
#[derive(Debug, Clone, Copy, Deserialize)]
struct Ran {
    seconds: f64,
    processor_seconds: f64,
}

/// All processes of a setting together.
#[derive(Debug, Clone, Copy, Serialize)]
struct Measured {
    #[serde(flatten)]
    setting: Setting,
    images_per_second: f64,
    /// Means over the processes.
    seconds: f64,
    processor_seconds: f64,
}

/// Measures and prints.
pub(crate) fn bench_scale(args: &BenchScaleArgs) -> anyhow::Result<()> {
    let domains = domains();
    let measured = settings(domains.cores()).into_iter();
    let measured = measured.map(|setting| measure(args, setting));
    print(
        args,
        &domains,
        &measured.collect::<anyhow::Result<Vec<_>>>()?,
    )
}

/// Threads by powers of two, then workers by powers of two with an equal share of the cores each.
fn settings(cores: u32) -> Vec<Setting> {
    let powers = |most: u32| {
        (0..u32::BITS)
            .map(|n| 1 << n)
            .take_while(move |n| *n <= most)
    };
    let alone = powers(THREADS_MAX.max(2 * cores)).map(|threads| Setting {
        workers: 1,
        threads,
    });
    let several = powers(cores.saturating_sub(1)).skip(1).chain([cores]);
    let several = several
        .filter(|workers| *workers > 1)
        .map(|workers| Setting {
            workers,
            threads: cores / workers,
        });
    alone.chain(several).collect()
}

fn measure(args: &BenchScaleArgs, setting: Setting) -> anyhow::Result<Measured> {
    let started = (0..setting.workers).map(|_| start(args, setting.threads));
    // All run before the first is waited for.
    let started: Vec<Child> = started.collect::<anyhow::Result<_>>()?;
    let ran = started.into_iter().map(end);
    let ran: Vec<Ran> = ran.collect::<anyhow::Result<_>>()?;
    let mean = |figure: fn(&Ran) -> f64| ran.iter().map(figure).sum::<f64>() / ran.len() as f64;
    Ok(Measured {
        setting,
        images_per_second: ran.iter().map(|ran| 1.0 / ran.seconds).sum(),
        seconds: mean(|ran| ran.seconds),
        processor_seconds: mean(|ran| ran.processor_seconds),
    })
}

fn start(args: &BenchScaleArgs, threads: u32) -> anyhow::Result<Child> {
    let size = format!("{}x{}", args.size.width, args.size.height);
    let (threads, runs) = (threads.to_string(), args.runs.to_string());
    let mut command = itself();
    // The kernels of this process are the ones that are measured.
    if let Some(kernels) = env::var_os(kernels::VARIABLE) {
        command.env(kernels::VARIABLE, kernels);
    }
    command
        .args(["bench", "--json", "--device", "cpu", "--precision", "fast"])
        .args(["--network", &args.network, "--size", &size])
        .args(["--threads", &threads, "--runs", &runs]);
    let piped = command.stdout(Stdio::piped()).stderr(Stdio::inherit());
    piped.spawn().context("`bench` did not start")
}

fn end(process: Child) -> anyhow::Result<Ran> {
    let ended = process.wait_with_output()?;
    ensure!(
        ended.status.success(),
        "`bench` ended with {}",
        ended.status
    );
    serde_json::from_slice(&ended.stdout).context("what `bench` printed")
}

fn print(args: &BenchScaleArgs, domains: &Domains, measured: &[Measured]) -> anyhow::Result<()> {
    let (cores, groups) = (domains.cores(), domains.count());
    if args.json {
        let settings = json!({ "cores": cores, "cache_groups": groups, "settings": measured });
        return output::json(&settings);
    }
    let [one, ..] = measured else { return Ok(()) };
    let rows = measured.iter().map(|now| {
        let rate = now.images_per_second / one.images_per_second;
        let threads = now.setting.workers * now.setting.threads;
        let ratio = |ratio: f64| format!("{ratio:.2}");
        vec![
            now.setting.workers.to_string(),
            now.setting.threads.to_string(),
            ratio(rate),
            ratio(rate / f64::from(threads.min(cores))),
            ratio(now.seconds / one.seconds),
            ratio(now.processor_seconds / one.processor_seconds),
        ]
    });
    let names = [
        "WORKERS",
        "THREADS",
        "IMAGES",
        "A CORE",
        "TIME OF ONE",
        "PROCESSOR",
    ];
    output::table(&names, &rows.collect::<Vec<_>>())?;
    output::line(&format!(
        "IMAGES times one thread's rate of {:.2} a second; groups of cores with a last-level cache each: {groups}; cores: {cores}",
        one.images_per_second
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(cores: u32) -> Vec<(u32, u32)> {
        let settings = settings(cores).into_iter();
        settings.map(|one| (one.workers, one.threads)).collect()
    }

    #[test]
    fn threads_go_beyond_the_cores_and_workers_share_them() {
        let alone = [1, 2, 4, 8, 16, 32].map(|threads| (1, threads));
        assert_eq!(pairs(1), alone);
        assert_eq!(pairs(2), [&alone[..], &[(2, 1)]].concat());
        assert_eq!(pairs(6), [&alone[..], &[(2, 3), (4, 1), (6, 1)]].concat());
        let many = pairs(64);
        assert_eq!(many[6..8], [(1, 64), (1, 128)]);
        assert_eq!(
            many[8..],
            [(2, 32), (4, 16), (8, 8), (16, 4), (32, 2), (64, 1)]
        );
    }
}

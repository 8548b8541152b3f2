//! What a process that works needs: the worker's options, the children's, and a look at the sandbox before
//! the first image comes.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use ::metrics::gauge;
use anyhow::{Context, bail};
use rustix::process::geteuid;
use tokio::{process::Command, time::timeout};
use upscale_pipeline::{
    ChildOptions, DeviceLink, kernels,
    sandbox::{Part, Parts, Report},
};
use upscale_worker::{ConnectTo, FetchOptions, WorkerOptions};

use crate::{
    args::{ProcessArgs, WorkArgs},
    model::Served,
    slots::slots,
    threads::threads,
};

/// This very program, even after its file was replaced by a newer one.
pub(crate) const PROGRAM: &str = "/proc/self/exe";
/// A probe takes milliseconds; a machine on its knees gets this long.
const PROBE_TIMEOUT: Duration = Duration::from_secs(20);
/// A child that hangs is killed after this long, so that two of them fit into the deadline of 270 s.
pub(crate) const CHILD_WALL_CLOCK: Duration = Duration::from_secs(120);
/// Address space of a child beside what its threads may reserve. The largest orders (1.5 MP at 2x, 0.75 MP at
/// 4x, 16-bit with alpha) need less than half of it.
const CHILD_BYTES_MAX: u64 = 3 << 29;
/// Address space that a thread reserves without using it: its stack, and an arena of the allocator.
const THREAD_BYTES: u64 = 72 << 20;

/// The worker; none with `--workers 0`.
pub(crate) fn worker_options(
    args: &WorkArgs,
    process: &ProcessArgs,
    models: &Served,
    device: Option<DeviceLink>,
) -> anyhow::Result<Option<WorkerOptions>> {
    let cores = threads(None);
    let slots = slots(args, models.bytes).count;
    if slots == 0 {
        return Ok(None);
    }
    // An image alone has all cores, see `upscale_core::slots_of_image`; with --threads all have as many.
    let shared = args.threads.is_none().then_some(u32::try_from(cores)?);
    let most = u16::try_from(args.threads.map_or(cores, |threads| threads as usize))?;
    let lease = Duration::from_secs(process.lease.unsigned_abs());
    let connect_to = args
        .source_connect_to
        .iter()
        .map(|text| text.parse::<ConnectTo>());
    Ok(Some(WorkerOptions {
        fetch: FetchOptions {
            connect_to: connect_to.collect::<Result<_, _>>()?,
            ca_files: args.source_ca.clone(),
            denied: args.source_deny.clone(),
            nat64_prefixes: args.nat64_prefix.clone(),
            ..FetchOptions::default()
        },
        // Four beats fit into a lease, and a silent claim is given up well before another process may have it.
        heartbeat_every: lease / 4,
        lease_margin: lease / 6,
        drain: Duration::from_secs(process.drain),
        cores: shared,
        ..WorkerOptions::new(
            slots,
            ChildOptions {
                device,
                ..child_options(args, process, models, most)
            },
        )
    }))
}

/// The fewest threads that a child may have: those when all slots are held.
fn child_threads(args: &WorkArgs, slots: u32) -> anyhow::Result<usize> {
    let shared = threads(None) / usize::try_from(slots)?.max(1);
    Ok(args
        .threads
        .map_or(shared, |threads| threads as usize)
        .max(1))
}

/// The models that children run in place of our own networks.
pub(crate) async fn load_models(args: &WorkArgs) -> anyhow::Result<Served> {
    let slots = slots(args, 0).count;
    let threads = child_threads(args, slots)?;
    Served::load(&args.models, Path::new(PROGRAM), threads, CHILD_WALL_CLOCK).await
}

/// Asks a child which parts of its sandbox hold here, and says so.
///
/// # Errors
/// When a required part is missing and the operator does not allow that.
pub(crate) async fn check_sandbox(args: &WorkArgs) -> anyhow::Result<Report> {
    let report = probe_sandbox(args).await?;
    for missing in &report.missing {
        gauge!("upscale_sandbox_missing", "part" => missing.part.name()).set(1.0);
        let (part, reason) = (missing.part.name(), &missing.reason);
        tracing::warn!(part, reason, "the sandbox lacks a part on this machine");
    }
    tracing::info!(
        holds = report.holding().join(", "),
        missing = report.missing_names().join(", "),
        "images are decoded in a sandbox"
    );
    if args.workers != Some(0)
        && let Some(lacking) = report.lacks(required_parts(args))
    {
        bail!(
            "images cannot be decoded safely here, the sandbox lacks {lacking}; --allow-weak-sandbox decodes them anyway"
        );
    }
    Ok(report)
}

/// Which parts of a child's sandbox hold on this machine.
pub(crate) async fn probe_sandbox(args: &WorkArgs) -> anyhow::Result<Report> {
    let mut probe = Command::new(PROGRAM);
    probe
        .args(child_arguments(args))
        .arg("--probe")
        .stdin(Stdio::null());
    let output = timeout(PROBE_TIMEOUT, probe.kill_on_drop(true).output())
        .await
        .context("the sandbox's probe hangs")?
        .context("the sandbox's probe did not start")?;
    serde_json::from_slice(&output.stdout).with_context(|| {
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        format!(
            "the sandbox's probe said nothing ({}): {words}",
            output.status
        )
    })
}

/// What no image may be decoded without.
pub(crate) fn required_parts(args: &WorkArgs) -> Parts {
    match (args.allow_weak_sandbox, geteuid().is_root()) {
        (true, _) => Parts::NONE,
        (false, true) => Parts::REQUIRED.with(Part::OwnUser),
        (false, false) => Parts::REQUIRED,
    }
}

/// The command, whose child it is, and the user to become where this one is root.
fn child_arguments(args: &WorkArgs) -> Vec<OsString> {
    let mut arguments = vec!["child".into(), "--parent".into()];
    arguments.push(std::process::id().to_string().into());
    if geteuid().is_root() {
        arguments.push("--sandbox-uid".into());
        arguments.push(args.sandbox_uid.to_string().into());
    }
    arguments
}

/// What children see of our environment: the choice of kernels, and nothing else.
fn child_environment(args: &WorkArgs) -> Vec<(OsString, OsString)> {
    kernels_environment().chain(child_fault(args)).collect()
}

pub(crate) fn kernels_environment() -> impl Iterator<Item = (OsString, OsString)> {
    let value = std::env::var_os(kernels::VARIABLE);
    value
        .map(|value| (kernels::VARIABLE.into(), value))
        .into_iter()
}

#[cfg(debug_assertions)]
fn child_fault(args: &WorkArgs) -> Option<(OsString, OsString)> {
    let name = args.child_fault.as_ref()?;
    Some((upscale_pipeline::fault::VARIABLE.into(), name.into()))
}

/// A release build's children commit no fault.
#[cfg(not(debug_assertions))]
fn child_fault(_: &WorkArgs) -> Option<(OsString, OsString)> {
    None
}

fn child_options(
    args: &WorkArgs,
    process: &ProcessArgs,
    models: &Served,
    threads: u16,
) -> ChildOptions {
    let arguments = child_arguments(args)
        .into_iter()
        .chain(models.child_arguments());
    let seconds = u32::try_from(process.deadline).unwrap_or(u32::MAX);
    ChildOptions {
        program: PathBuf::from(PROGRAM),
        arguments: arguments.collect(),
        environment: child_environment(args),
        wall_clock: CHILD_WALL_CLOCK.min(Duration::from_secs(seconds.into())),
        threads,
        memory_bytes_max: CHILD_BYTES_MAX + models.bytes + u64::from(threads) * THREAD_BYTES,
        cpu_seconds_max: seconds.saturating_mul(threads.into()),
        required: required_parts(args),
        look: args.look,
        device: None,
    }
}

//! `upscale serve`: opens the store, listens, starts the worker, says so, and ends all of it in order. How
//! requests are answered and tasks done is the other rooms'.

use std::{ffi::OsString, net::SocketAddr, path::PathBuf, process::Stdio, time::Duration};

use ::metrics::gauge;
use anyhow::{Context, anyhow, bail};
use axum::Router;
use metrics_exporter_prometheus::PrometheusHandle;
use serde::Serialize;
use tokio::{
    net::TcpListener,
    process::Command,
    signal::unix::{Signal, SignalKind, signal},
    sync::watch,
    task::{JoinError, JoinSet},
    time::timeout,
};
use upscale_api::{
    ApiLimits, ApiState, ServeLimits, api_router, results_router, serve as serve_http,
};
use upscale_store::StoreOptions;
use upscale_worker::{
    ChildOptions, ConnectTo, FetchOptions, HousekeepingOptions, Worker, WorkerOptions, keep_house,
};

use crate::{
    args::ServeArgs, data::Data, file::threads, golden, kernels, metrics, output, telemetry,
};

/// The service waits for disks and sockets; what computes are children.
const RUNTIME_THREADS: usize = 2;
/// This very program, even after its file was replaced by a newer one.
const PROGRAM: &str = "/proc/self/exe";
/// A probe takes milliseconds; a machine on its knees gets this long.
const PROBE_TIMEOUT: Duration = Duration::from_secs(20);
/// Threads for reading and writing result files.
const BLOCKING_THREADS_MAX: usize = 16;
/// A child that hangs is killed after this long, so that two of them fit into the deadline of 270 s.
const CHILD_WALL_CLOCK: Duration = Duration::from_secs(120);
/// Address space of a child beside what its threads may reserve. The largest orders (1.5 MP at 2x, 0.75 MP at
/// 4x, 16-bit with alpha) need less than half of it.
const CHILD_BYTES_MAX: u64 = 3 << 29;
/// Address space that a thread reserves without using it: its stack, and an arena of the allocator.
const THREAD_BYTES: u64 = 72 << 20;

/// Serves until SIGTERM or SIGINT.
///
/// # Errors
/// When it cannot start, or a part of it ended by itself.
pub(crate) fn serve(args: &ServeArgs) -> anyhow::Result<()> {
    telemetry::start(&args.log, args.log_format)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(RUNTIME_THREADS)
        .max_blocking_threads(BLOCKING_THREADS_MAX)
        .enable_all()
        .build()
        .context("the runtime did not start")?;
    let ended = runtime.block_on(run(args));
    // A file operation that hangs must not keep a process alive that was told twice to stop.
    runtime.shutdown_background();
    ended
}

async fn run(args: &ServeArgs) -> anyhow::Result<()> {
    let mut signals = Signals::listen()?;
    let counting = start_counting(args).await?;
    check_sandbox(args.require_sandbox).await?;
    let data = Data::open(&args.data, store_options(args)).await?;
    let (api, results) = (
        listen(args.listen).await?,
        listen(args.results_listen).await?,
    );
    let ready = Ready::new(
        &api,
        &results,
        counting.as_ref().map(|(listener, _)| listener),
    )?;
    let state = ApiState::new(
        data.store.clone(),
        data.results.clone(),
        args.base_url.as_deref().unwrap_or(&ready.api),
        args.result_url.as_deref().unwrap_or(&ready.results),
        api_limits(args),
    );
    let (stop, stopped) = watch::channel(false);
    let limits = ServeLimits {
        drain_timeout: Duration::from_secs(args.drain),
        ..ServeLimits::default()
    };
    let mut parts = JoinSet::new();
    parts.spawn(front(
        api,
        api_router(state.clone()),
        limits.clone(),
        stopped.clone(),
    ));
    parts.spawn(front(
        results,
        results_router(state.clone()),
        limits,
        stopped.clone(),
    ));
    if let Some((listener, handle)) = counting {
        let router = metrics::router(handle, data.store.clone());
        let limits = ServeLimits::default();
        parts.spawn(front(listener, router, limits, stopped.clone()));
    }
    start_golden_image(args, &state)?;
    parts.spawn(work(args, data, stopped)?);
    output::json(&ready)?;
    tracing::info!(api = ready.api, results = ready.results, "ready");
    let ended_early = tokio::select! {
        name = signals.next() => {
            tracing::info!(signal = name, "stopping");
            None
        }
        ended = parts.join_next() => Some(ended),
    };
    state.begin_draining();
    stop.send_replace(true);
    tokio::select! {
        drained = drain(parts) => drained?,
        name = signals.next() => return Err(anyhow!("killed by a second {name} while stopping")),
    }
    match ended_early {
        None => Ok(()),
        Some(ended) => Err(ended.map_or_else(|| anyhow!("there is nothing to serve"), why_ended)),
    }
}

/// Before anything else counts; none unless `/metrics` has an address.
async fn start_counting(
    args: &ServeArgs,
) -> anyhow::Result<Option<(TcpListener, PrometheusHandle)>> {
    let Some(address) = args.metrics_listen else {
        return Ok(None);
    };
    let listener = listen(address).await?;
    let handle = metrics::start(kernels::from_environment()?)?;
    Ok(Some((listener, handle)))
}

fn api_limits(args: &ServeArgs) -> ApiLimits {
    ApiLimits {
        trusted_proxies: args.trusted_proxy.clone(),
        failing_auth_per_minute: args.failing_auth_per_minute,
        reads_per_second: args.reads_per_second,
        ..ApiLimits::default()
    }
}

/// Where images are made, the process is not ready before one came out right.
fn start_golden_image(args: &ServeArgs, state: &ApiState) -> anyhow::Result<()> {
    if let Some(worker) = worker_options(args)? {
        let mut child = worker.child;
        child.environment = kernels_environment().collect();
        state.expect_engine();
        tokio::spawn(golden::check_engine(state.clone(), child));
    }
    Ok(())
}

/// The worker; or, where there is none, the keeping of deadlines and refunds, which must go on while nobody works.
fn work(
    args: &ServeArgs,
    data: Data,
    stopped: watch::Receiver<bool>,
) -> anyhow::Result<impl Future<Output = anyhow::Result<()>> + use<>> {
    let Data { store, results } = data;
    let worker = match worker_options(args)? {
        Some(options) => Some(Worker::new(store.clone(), results.clone(), options)?),
        None => None,
    };
    Ok(async move {
        match worker {
            Some(worker) => worker.run(until(stopped)).await,
            None => {
                let options = HousekeepingOptions::default();
                keep_house(&store, &results, options, until(stopped)).await;
            }
        }
        Ok(())
    })
}

fn why_ended(ended: Result<anyhow::Result<()>, JoinError>) -> anyhow::Error {
    match ended {
        Ok(Err(error)) => error,
        Ok(Ok(())) => anyhow!("a part of the service ended by itself"),
        Err(error) => anyhow!("a part of the service broke: {error}"),
    }
}

async fn drain(mut parts: JoinSet<anyhow::Result<()>>) -> anyhow::Result<()> {
    while let Some(ended) = parts.join_next().await {
        ended.context("a part of the service broke")??;
    }
    tracing::info!("stopped");
    Ok(())
}

fn store_options(args: &ServeArgs) -> StoreOptions {
    StoreOptions {
        deadline_seconds: args.deadline,
        lease_seconds: args.lease,
        result_retention_hours: args.result_retention,
        record_retention_days: args.record_retention,
    }
}

async fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address)
        .await
        .with_context(|| format!("cannot listen on {address}"))
}

async fn front(
    listener: TcpListener,
    router: Router,
    limits: ServeLimits,
    stopped: watch::Receiver<bool>,
) -> anyhow::Result<()> {
    Ok(serve_http(listener, router, limits, until(stopped)).await?)
}

/// Resolves when it is time to stop, and also when nobody is left to say so.
async fn until(mut stopped: watch::Receiver<bool>) {
    let _ = stopped.wait_for(|&stopped| stopped).await;
}

/// The embedded worker; none with `--workers 0`.
fn worker_options(args: &ServeArgs) -> anyhow::Result<Option<WorkerOptions>> {
    let cores = threads(None);
    let slots = args.workers.unwrap_or(u32::try_from(cores)?);
    if slots == 0 {
        return Ok(None);
    }
    let threads = args
        .threads
        .map_or(cores / usize::try_from(slots)?, |threads| threads as usize)
        .max(1);
    let lease = Duration::from_secs(args.lease.unsigned_abs());
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
        drain: Duration::from_secs(args.drain),
        ..WorkerOptions::new(slots, child_options(args, u16::try_from(threads)?))
    }))
}

/// Asks a child what its cage lacks here: a loud warning, or the end where the operator wants it whole.
async fn check_sandbox(required: bool) -> anyhow::Result<()> {
    let mut probe = Command::new(PROGRAM);
    probe.args(["child", "--probe"]).stdin(Stdio::null());
    let output = timeout(PROBE_TIMEOUT, probe.kill_on_drop(true).output())
        .await
        .context("the sandbox's probe hangs")?
        .context("the sandbox's probe did not start")?;
    let missing: Vec<String> = serde_json::from_slice(&output.stdout).with_context(|| {
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        format!(
            "the sandbox's probe said nothing ({}): {words}",
            output.status
        )
    })?;
    for part in &missing {
        let name = part.split(':').next().unwrap_or_default().to_owned();
        gauge!("upscale_sandbox_missing", "part" => name).set(1.0);
        tracing::warn!(
            missing = part,
            "images are decoded without a part of the sandbox"
        );
    }
    if required && !missing.is_empty() {
        bail!(
            "--require-sandbox: this kernel lacks {}",
            missing.join(", ")
        );
    }
    Ok(())
}

/// What children see of our environment: the choice of kernels, and nothing else.
fn child_environment(args: &ServeArgs) -> Vec<(OsString, OsString)> {
    kernels_environment().chain(child_fault(args)).collect()
}

fn kernels_environment() -> impl Iterator<Item = (OsString, OsString)> {
    let value = std::env::var_os(kernels::VARIABLE);
    value
        .map(|value| (kernels::VARIABLE.into(), value))
        .into_iter()
}

#[cfg(debug_assertions)]
fn child_fault(args: &ServeArgs) -> Option<(OsString, OsString)> {
    let name = args.child_fault.as_ref()?;
    Some((crate::fault::VARIABLE.into(), name.into()))
}

/// A release build's children commit no fault.
#[cfg(not(debug_assertions))]
fn child_fault(_: &ServeArgs) -> Option<(OsString, OsString)> {
    None
}

fn child_options(args: &ServeArgs, threads: u16) -> ChildOptions {
    let seconds = u32::try_from(args.deadline).unwrap_or(u32::MAX);
    ChildOptions {
        program: PathBuf::from(PROGRAM),
        arguments: vec!["child".into()],
        environment: child_environment(args),
        wall_clock: CHILD_WALL_CLOCK.min(Duration::from_secs(seconds.into())),
        threads,
        memory_bytes_max: CHILD_BYTES_MAX + u64::from(threads) * THREAD_BYTES,
        cpu_seconds_max: seconds.saturating_mul(threads.into()),
    }
}

/// The one line on standard output.
#[derive(Serialize)]
struct Ready {
    event: &'static str,
    api: String,
    results: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    metrics: Option<String>,
}

impl Ready {
    fn new(
        api: &TcpListener,
        results: &TcpListener,
        metrics: Option<&TcpListener>,
    ) -> anyhow::Result<Self> {
        let url = |listener: &TcpListener| -> anyhow::Result<String> {
            Ok(format!("http://{}", listener.local_addr()?))
        };
        Ok(Self {
            event: "ready",
            api: url(api)?,
            results: url(results)?,
            metrics: metrics.map(url).transpose()?,
        })
    }
}

/// The two signals that mean "stop".
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn listen() -> anyhow::Result<Self> {
        let listen = |kind| signal(kind).context("signals cannot be received");
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
        })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

//! `upscale serve`, `api` and `worker`: opens the store, listens, starts the worker, says so, and ends all of it in
//! order. How requests are answered and tasks done is the other rooms'.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use ::metrics::gauge;
use anyhow::{Context, anyhow};
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::{
    net::TcpListener,
    signal::unix::{Signal, SignalKind, signal},
    sync::watch,
    task::{JoinError, JoinSet},
};
use upscale_api::{ApiState, ServeLimits};
use upscale_pipeline::kernels;
use upscale_store::StoreOptions;
use upscale_worker::{MaintenanceOptions, Worker, maintain};

use crate::{
    args::{ProcessArgs, Role, WorkArgs},
    data::Data,
    device,
    front::{self, Front, front, inside, listen, url},
    golden,
    metrics::{self, Readiness},
    model::Served,
    open_files,
    ready::Ready,
    secret_keys,
    serve_lock::ServeLock,
    slots::slots,
    telemetry, traces,
    work::{check_sandbox, kernels_environment, load_models, worker_options},
};

/// The service waits for disks and sockets; what computes are children.
const RUNTIME_THREADS: usize = 2;
/// Threads for reading and writing result files.
const BLOCKING_THREADS_MAX: usize = 16;

/// Runs the role until SIGTERM or SIGINT.
///
/// # Errors
/// When it cannot start, or a part of it ended by itself.
pub(crate) fn run(role: &Role<'_>) -> anyhow::Result<()> {
    telemetry::start(&role.process.log, role.process.log_format)?;
    open_files::check()?;
    let traces = traces::start(role.process)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(RUNTIME_THREADS)
        .max_blocking_threads(BLOCKING_THREADS_MAX)
        .enable_all()
        .build()
        .context("the runtime did not start")?;
    let ended = runtime.block_on(run_parts(role));
    // A file operation that hangs must not keep a process alive that was told twice to stop.
    runtime.shutdown_background();
    if let Some(traces) = traces {
        traces.stop();
    }
    ended
}

async fn run_parts(role: &Role<'_>) -> anyhow::Result<()> {
    let mut signals = Signals::listen()?;
    let tls = role.front.map(front::check).transpose()?.flatten();
    let counting = start_counting(role.process)?;
    let (mut models, mut sandbox) = (Served::default(), None);
    if let Some(work) = role.work {
        sandbox = Some(check_sandbox(work).await?);
        models = load_models(work).await?;
        tell_slots(work, &models);
    }
    let _alone = lock_directory(role).await?;
    let data = tokio::select! {
        opened = Data::open(role.location, store_options(role.process)) => opened?,
        // A migration may wait half an hour for a table.
        name = signals.next() => {
            tracing::info!(signal = name, "stopped before the database was open");
            return Ok(());
        }
    };
    if role.front.is_some() {
        secret_keys::seal(&data.store, role.location).await?;
    }
    let (stop, stopped) = watch::channel(false);
    let mut parts = Parts::new();
    let mut ready = Ready::default();
    let state = match role.front {
        Some(args) => {
            let mut front = Front::listen(args, tls, &mut ready)?;
            let state = front.state(args, &data).await?;
            front.start(&state, args, role.process, &mut parts, &stopped);
            Some(state)
        }
        None => {
            // Or the alert of a storage that is down would ring for every process that does not try it.
            gauge!("upscale_storage_up").set(1.0);
            None
        }
    };
    let has_started = Arc::new(AtomicBool::new(false));
    if let Some((listener, handle)) = counting {
        ready.metrics = Some(url(&listener, false)?);
        let readiness = readiness(state.as_ref(), &data, &has_started);
        let router = metrics::router(handle, data.store.clone(), readiness);
        parts.spawn(front(
            listener,
            router,
            inside(&ServeLimits::default()),
            stopped.clone(),
        ));
    }
    if let (Some(state), Some(sandbox)) = (&state, &sandbox) {
        state.sandbox_checked(sandbox.holding(), sandbox.missing_names());
    }
    check_engine(role, state.as_ref()).await?;
    parts.spawn(work(role, &models, data, stopped)?);
    has_started.store(true, Ordering::Relaxed);
    ready.announce(role.location)?;
    tracing::info!(api = ready.api, results = ready.results, "ready");
    until_over(signals, parts, stop, state, role.process.drain_delay).await
}

/// Waits for a signal, or for a part that ends by itself; then ends all of them in order.
async fn until_over(
    mut signals: Signals,
    mut parts: Parts,
    stop: watch::Sender<bool>,
    state: Option<ApiState>,
    drain_delay: u64,
) -> anyhow::Result<()> {
    let ended_early = tokio::select! {
        name = signals.next() => {
            tracing::info!(signal = name, "stopping");
            None
        }
        ended = parts.join_next() => Some(ended),
    };
    let delay = match ended_early {
        None => Duration::from_secs(drain_delay),
        Some(_) => Duration::ZERO,
    };
    let ending = async {
        linger(state, delay).await;
        stop.send_replace(true);
        drain(parts).await
    };
    tokio::select! {
        drained = ending => drained?,
        name = signals.next() => return Err(anyhow!("killed by a second {name} while stopping")),
    }
    match ended_early {
        None => Ok(()),
        Some(ended) => Err(ended.map_or_else(|| anyhow!("there is nothing to serve"), why_ended)),
    }
}

/// Says that it goes, and takes requests until balancers have heard.
async fn linger(state: Option<ApiState>, delay: Duration) {
    if let Some(state) = state {
        state.begin_draining();
        tokio::time::sleep(delay).await;
    }
}

fn readiness(state: Option<&ApiState>, data: &Data, has_started: &Arc<AtomicBool>) -> Readiness {
    match state {
        Some(state) => Readiness::Api(state.clone()),
        None => Readiness::Worker {
            store: data.store.clone(),
            has_started: Arc::clone(has_started),
        },
    }
}

/// A database on a server is for several processes; a directory is for one `serve`.
async fn lock_directory(role: &Role<'_>) -> anyhow::Result<Option<ServeLock>> {
    match (
        role.share_data,
        &role.location.data,
        &role.location.database,
    ) {
        (Some(shared), Some(directory), None) => ServeLock::take(directory, shared).await.map(Some),
        _ => Ok(None),
    }
}

/// More images at a time than memory holds are the operator's choice, made loudly.
fn tell_slots(work: &WorkArgs, models: &Served) {
    let slots = slots(work, models.bytes);
    let (count, why) = (slots.count, slots.why);
    if slots.is_too_many {
        tracing::warn!(
            count,
            why,
            "images at a time may need more memory than there is"
        );
    } else {
        tracing::info!(count, why, "images at a time");
    }
}

pub(crate) type Parts = JoinSet<anyhow::Result<()>>;

/// Before anything else counts; none unless `/metrics` has an address.
fn start_counting(args: &ProcessArgs) -> anyhow::Result<Option<(TcpListener, PrometheusHandle)>> {
    let Some(address) = args.metrics_listen else {
        return Ok(None);
    };
    let listener = listen(address)?;
    let handle = metrics::start(kernels::from_environment()?)?;
    Ok(Some((listener, handle)))
}

/// Where images are made, the process is not ready before one came out right: the API says so in the meantime,
/// and a worker alone does not start.
async fn check_engine(role: &Role<'_>, state: Option<&ApiState>) -> anyhow::Result<()> {
    let options = match role.work {
        // Models that were brought have been verified; what is tried here are the kernels.
        Some(args) => worker_options(args, role.process, &Served::default(), None)?,
        None => None,
    };
    let Some(mut options) = options else {
        // Or the alert of a wrong engine would ring for every process that has none.
        gauge!("upscale_engine_ready").set(1.0);
        return Ok(());
    };
    options.child.environment = kernels_environment().collect();
    match state {
        Some(state) => {
            state.expect_engine();
            tokio::spawn(golden::check_engine(state.clone(), options.child));
            Ok(())
        }
        None => golden::check(&options.child)
            .await
            .context("the golden image failed"),
    }
}

/// The worker; or, where there is none, the keeping of deadlines and refunds, which must go on while no one works.
fn work(
    role: &Role<'_>,
    models: &Served,
    data: Data,
    stopped: watch::Receiver<bool>,
) -> anyhow::Result<impl Future<Output = anyhow::Result<()>> + use<>> {
    let Data {
        store,
        results,
        owners,
    } = data;
    let options = match role.work {
        // Beside all that follows: a service does not wait for its GPU.
        Some(args) => worker_options(args, role.process, models, device::start(args, models))?,
        None => None,
    };
    let maintenance = MaintenanceOptions {
        only_tasks: role.front.is_none(),
        owners: owners.clone(),
        ..MaintenanceOptions::default()
    };
    let worker = match options {
        Some(mut options) => {
            options.maintenance = Some(maintenance.clone());
            options.owners = owners;
            Some(Worker::new(store.clone(), results.clone(), options)?)
        }
        None => None,
    };
    Ok(async move {
        match worker {
            Some(worker) => worker.run(until(stopped)).await,
            None => maintain(&store, &results, maintenance, until(stopped)).await,
        }
        Ok(())
    })
}

fn why_ended(ended: Result<anyhow::Result<()>, JoinError>) -> anyhow::Error {
    match ended {
        Ok(Err(error)) => error,
        Ok(Ok(())) => anyhow!("a part of the service stopped unexpectedly"),
        Err(error) => anyhow!("a part of the service failed: {error}"),
    }
}

async fn drain(mut parts: Parts) -> anyhow::Result<()> {
    while let Some(ended) = parts.join_next().await {
        ended.context("a part of the service failed")??;
    }
    tracing::info!("stopped");
    Ok(())
}

fn store_options(args: &ProcessArgs) -> StoreOptions {
    StoreOptions {
        deadline_seconds: args.deadline,
        lease_seconds: args.lease,
        result_retention_hours: args.result_retention,
        record_retention_days: args.record_retention,
        ..StoreOptions::default()
    }
}

/// Resolves when it is time to stop, and also when no one is left to say so.
pub(crate) async fn until(mut stopped: watch::Receiver<bool>) {
    let _ = stopped.wait_for(|&stopped| stopped).await;
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

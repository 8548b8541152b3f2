//! `upscale serve`, `api` and `worker`: opens the store, listens, starts the worker, says so, and ends all of it in
//! order. How requests are answered and tasks done is the other rooms'.

use std::{net::SocketAddr, time::Duration};

use ::metrics::gauge;
use anyhow::{Context, anyhow};
use axum::Router;
use metrics_exporter_prometheus::PrometheusHandle;
use serde::Serialize;
use tokio::{
    net::TcpListener,
    signal::unix::{Signal, SignalKind, signal},
    sync::watch,
    task::{JoinError, JoinSet},
};
use upscale_api::{
    ApiLimits, ApiState, ConsoleOptions, ConsoleState, Listener, PlaceLimits, SendMail,
    ServeLimits, Stripe, api_router, console_router, results_router, serve as serve_http,
};
use upscale_pipeline::kernels;
use upscale_store::StoreOptions;
use upscale_worker::{HousekeepingOptions, Worker, keep_house};

use crate::{
    admin::Admin,
    args::{FrontArgs, ProcessArgs, Role, WorkArgs},
    data::Data,
    golden, mail, metrics,
    model::Served,
    open_files::{self, OpenFiles},
    output,
    slots::slots,
    stripe, telemetry, traces,
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
    let counting = start_counting(role.process)?;
    let (mut models, mut sandbox) = (Served::default(), None);
    if let Some(work) = role.work {
        sandbox = Some(check_sandbox(work).await?);
        models = load_models(work).await?;
        tell_slots(work, &models);
    }
    let data = Data::open(role.place, store_options(role.process)).await?;
    let (stop, stopped) = watch::channel(false);
    let mut parts = Parts::new();
    let mut ready = Ready::default();
    if let Some((listener, handle)) = counting {
        ready.metrics = Some(url(&listener)?);
        let router = metrics::router(handle, data.store.clone());
        let limits = inside(&ServeLimits::default());
        parts.spawn(front(listener, router, limits, stopped.clone()));
    }
    let state = match role.front {
        Some(args) => {
            let front = Front::listen(args, &mut ready)?;
            Some(front.start(args, role.process, &data, &mut parts, &stopped))
        }
        None => None,
    };
    if let (Some(state), Some(sandbox)) = (&state, &sandbox) {
        state.sandbox_checked(sandbox.holding(), sandbox.missing_names());
    }
    check_engine(role, state.as_ref()).await?;
    parts.spawn(work(role, &models, data, stopped)?);
    output::json(&ready)?;
    tracing::info!(api = ready.api, results = ready.results, "ready");
    let ended_early = tokio::select! {
        name = signals.next() => {
            tracing::info!(signal = name, "stopping");
            None
        }
        ended = parts.join_next() => Some(ended),
    };
    if let Some(state) = state {
        state.begin_draining();
    }
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

type Parts = JoinSet<anyhow::Result<()>>;

/// The listeners of what customers reach, and of what operators do.
struct Front {
    api: TcpListener,
    results: TcpListener,
    console: Option<TcpListener>,
    /// As people reach the customers' console, where it is served.
    console_url: Option<String>,
    admin: Option<Admin>,
    base_url: String,
    result_url: String,
    stripe: Option<Stripe>,
    send_mail: Option<SendMail>,
}

impl Front {
    fn listen(args: &FrontArgs, ready: &mut Ready) -> anyhow::Result<Self> {
        let (api, results) = (listen(args.listen)?, listen(args.results_listen)?);
        let (api_url, results_url) = (url(&api)?, url(&results)?);
        (ready.api, ready.results) = (Some(api_url.clone()), Some(results_url.clone()));
        let console = args.console_listen.map(listen).transpose()?;
        ready.console = console.as_ref().map(url).transpose()?;
        let admin = Admin::listen(&args.admin)?;
        ready.admin = admin.as_ref().map(|admin| admin.url.clone());
        Ok(Self {
            api,
            results,
            console,
            console_url: args.console_url.clone().or_else(|| ready.console.clone()),
            admin,
            base_url: args.base_url.clone().unwrap_or(api_url),
            result_url: args.result_url.clone().unwrap_or(results_url),
            stripe: stripe::configured(&args.stripe)?,
            send_mail: mail::configured(args)?,
        })
    }

    /// Answers from now on.
    fn start(
        self,
        args: &FrontArgs,
        process: &ProcessArgs,
        data: &Data,
        parts: &mut Parts,
        stopped: &watch::Receiver<bool>,
    ) -> ApiState {
        let files = open_files::budget();
        let mut state = ApiState::new(
            data.store.clone(),
            data.results.clone(),
            &self.base_url,
            &self.result_url,
            api_limits(args, files),
        );
        if let Some(stripe) = self.stripe {
            state = state.with_stripe(stripe);
        }
        let limits = ServeLimits {
            drain_timeout: Duration::from_secs(process.drain),
            connections_max: files.connections,
            trusted_proxies: args.trusted_proxy.clone(),
            ..ServeLimits::default()
        };
        let router = api_router(state.clone());
        parts.spawn(front(self.api, router, limits.clone(), stopped.clone()));
        let router = results_router(state.clone());
        parts.spawn(front(self.results, router, limits.clone(), stopped.clone()));
        if let Some(listener) = self.console {
            let options = ConsoleOptions {
                url: args.console_url.clone(),
                send_mail: self.send_mail,
            };
            let state = ConsoleState::new(state.clone(), options);
            parts.spawn(console(listener, state, limits.clone(), stopped.clone()));
        }
        if let Some(admin) = self.admin {
            let (listener, file, router) = admin.serve(state.clone(), self.console_url);
            let limits = inside(&limits);
            let stopped = stopped.clone();
            parts.spawn(async move {
                let _until_the_end = file;
                front(listener, router, limits, stopped).await
            });
        }
        state
    }
}

/// Before anything else counts; none unless `/metrics` has an address.
fn start_counting(args: &ProcessArgs) -> anyhow::Result<Option<(TcpListener, PrometheusHandle)>> {
    let Some(address) = args.metrics_listen else {
        return Ok(None);
    };
    let listener = listen(address)?;
    let handle = metrics::start(kernels::from_environment()?)?;
    Ok(Some((listener, handle)))
}

/// Of a listener that operators and their programs reach: few connections, and all of one address, as it is with loopback.
fn inside(limits: &ServeLimits) -> ServeLimits {
    ServeLimits {
        connections_max: open_files::INSIDE_CONNECTIONS,
        address_connections_max: None,
        ..limits.clone()
    }
}

fn api_limits(args: &FrontArgs, files: OpenFiles) -> ApiLimits {
    ApiLimits {
        places: PlaceLimits {
            downloads: files.downloads,
            ..PlaceLimits::default()
        },
        trusted_proxies: args.trusted_proxy.clone(),
        failing_auth_per_minute: args.failing_auth_per_minute,
        reads_per_second: args.reads_per_second,
        ..ApiLimits::default()
    }
}

/// Where images are made, the process is not ready before one came out right: the API says so in the meantime,
/// and a worker alone does not start.
async fn check_engine(role: &Role<'_>, state: Option<&ApiState>) -> anyhow::Result<()> {
    let options = match role.work {
        // Models that were brought have been verified; what is tried here are the kernels.
        Some(args) => worker_options(args, role.process, &Served::default())?,
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

/// The worker; or, where there is none, the keeping of deadlines and refunds, which must go on while nobody works.
fn work(
    role: &Role<'_>,
    models: &Served,
    data: Data,
    stopped: watch::Receiver<bool>,
) -> anyhow::Result<impl Future<Output = anyhow::Result<()>> + use<>> {
    let Data { store, results } = data;
    let options = match role.work {
        Some(args) => worker_options(args, role.process, models)?,
        None => None,
    };
    let chores = HousekeepingOptions {
        only_tasks: role.front.is_none(),
        ..HousekeepingOptions::default()
    };
    let worker = match options {
        Some(mut options) => {
            options.housekeeping = Some(chores);
            Some(Worker::new(store.clone(), results.clone(), options)?)
        }
        None => None,
    };
    Ok(async move {
        match worker {
            Some(worker) => worker.run(until(stopped)).await,
            None => keep_house(&store, &results, chores, until(stopped)).await,
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

async fn drain(mut parts: Parts) -> anyhow::Result<()> {
    while let Some(ended) = parts.join_next().await {
        ended.context("a part of the service broke")??;
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

fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    upscale_api::listen(address).with_context(|| format!("cannot listen on {address}"))
}

async fn front(
    listener: impl Into<Listener>,
    router: Router,
    limits: ServeLimits,
    stopped: watch::Receiver<bool>,
) -> anyhow::Result<()> {
    Ok(serve_http(listener, router, limits, until(stopped)).await?)
}

/// Its pages, and the mail they promised: that goes out while there is time to stop in.
async fn console(
    listener: TcpListener,
    state: ConsoleState,
    limits: ServeLimits,
    stopped: watch::Receiver<bool>,
) -> anyhow::Result<()> {
    let (drain, router) = (limits.drain_timeout, console_router(state.clone()));
    let too_late = async {
        until(stopped.clone()).await;
        tokio::time::sleep(drain).await;
    };
    let all = async {
        front(listener, router, limits, stopped.clone()).await?;
        state.mailed().await;
        Ok(())
    };
    tokio::select! {
        biased;
        ended = all => ended,
        () = too_late => {
            tracing::warn!(?drain, "the console's last mails were not waited for any longer");
            Ok(())
        }
    }
}

/// Resolves when it is time to stop, and also when nobody is left to say so.
async fn until(mut stopped: watch::Receiver<bool>) {
    let _ = stopped.wait_for(|&stopped| stopped).await;
}

/// The one line on standard output: the addresses of what listens.
#[derive(Serialize)]
struct Ready {
    event: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    api: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    results: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    console: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    admin: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metrics: Option<String>,
}

impl Default for Ready {
    fn default() -> Self {
        Self {
            event: "ready",
            api: None,
            results: None,
            console: None,
            admin: None,
            metrics: None,
        }
    }
}

fn url(listener: &TcpListener) -> anyhow::Result<String> {
    Ok(format!("http://{}", listener.local_addr()?))
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

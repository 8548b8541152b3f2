//! The worker of one process: keeps its slots busy, says that it lives, and stops in order: no more claims,
//! then what is under way may end, then the rest is given back.

use std::{path::PathBuf, pin::pin, sync::Arc, time::Duration};

use tokio::{
    sync::{Semaphore, watch},
    task::{JoinError, JoinSet},
    time::{interval, sleep, timeout},
};
use upscale_core::{NoRandomness, limits::HEARTBEAT_SECONDS, random_bytes, random_token};
use upscale_pipeline::ChildOptions;
use upscale_store::{Results, Store};

use crate::{
    AttemptEnd, FetchOptions, FetchSetupError, Fetcher, MaintenanceOptions, alone::Company,
    maintenance, owners::Owner, process::Tools, slots::Slots,
};

/// Jobs claimed at a time: an account's first ones may be more than it may have under way, and go back.
const CLAIMED_AT_ONCE: usize = 4;

/// How a worker works; the defaults of [`WorkerOptions::new`] are the service's.
#[derive(Debug, Clone)]
pub struct WorkerOptions {
    /// Tasks at a time, at least 1.
    pub slots: u32,
    /// Cores that the images under way share, see [`upscale_core::slots_of_image`]; none: each child has the threads
    /// that its options say.
    pub cores: Option<u32>,
    /// How sources are downloaded.
    pub fetch: FetchOptions,
    /// How children are started and bounded.
    pub child: ChildOptions,
    /// Between two heartbeats of a claim.
    pub heartbeat_every: Duration,
    /// Without an acknowledged heartbeat a claim is given up this long before its lease ends.
    pub lease_margin: Duration,
    /// Work is cut this long before a task's deadline.
    pub deadline_margin: Duration,
    /// Between two looks at an empty queue, at most.
    pub poll_idle: Duration,
    /// Between two looks at a queue that had something.
    pub poll_busy: Duration,
    /// After shutdown began, what is under way has this long.
    pub drain: Duration,
    /// Then giving back has this long; what is left after it is recovered by its lease.
    pub release: Duration,
    /// Reaping, refunds, retention, audit; none where another process does them.
    pub maintenance: Option<MaintenanceOptions>,
    /// Folder of this machine's workers' lock files; without one a worker's death shows by its leases alone.
    pub owners: Option<PathBuf>,
}

impl WorkerOptions {
    /// One slot for each child of these options, and the service's times.
    #[must_use]
    pub fn new(slots: u32, child: ChildOptions) -> Self {
        Self {
            slots,
            cores: None,
            fetch: FetchOptions::default(),
            child,
            heartbeat_every: Duration::from_secs(HEARTBEAT_SECONDS.unsigned_abs()),
            lease_margin: Duration::from_secs(10),
            deadline_margin: Duration::from_secs(2),
            poll_idle: Duration::from_secs(1),
            poll_busy: Duration::from_millis(100),
            drain: Duration::from_secs(25),
            release: Duration::from_secs(5),
            maintenance: Some(MaintenanceOptions::default()),
            owners: None,
        }
    }
}

/// Why a worker cannot start.
#[derive(Debug, thiserror::Error)]
pub enum WorkerSetupError {
    /// Downloads cannot be set up as told.
    #[error(transparent)]
    Fetch(#[from] FetchSetupError),
    /// It cannot be named.
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
}

/// Everything that an attempt needs.
#[derive(Debug)]
pub struct Worker {
    pub(crate) store: Store,
    pub(crate) tools: Tools,
    pub(crate) options: WorkerOptions,
    pub(crate) slots: Slots,
    name: String,
    /// Held for as long as any attempt runs.
    owner: Option<Owner>,
}

impl Worker {
    /// Ready to work under a name of its own; nothing runs yet.
    ///
    /// # Errors
    /// [`WorkerSetupError`] when an option cannot be followed.
    pub fn new(
        store: Store,
        results: Results,
        options: WorkerOptions,
    ) -> Result<Self, WorkerSetupError> {
        let name = format!("worker_{}", random_token()?);
        Ok(Self {
            store,
            tools: Tools {
                fetcher: Fetcher::new(&options.fetch)?,
                company: Company::new(options.child.clone()),
                results,
                storing: Semaphore::new(options.slots.max(1) as usize),
            },
            owner: own(&options, &name),
            name,
            slots: Slots::new(options.slots),
            options,
        })
    }

    /// Works until `shutdown` resolves and what was under way has ended or was given back. Dropping this
    /// future kills the children; their claims run out.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        let worker = Arc::new(self);
        let maintenance = worker
            .options
            .maintenance
            .clone()
            .map(|options| maintenance::start(&worker.store, &worker.tools.results, options));
        let mut reports = JoinSet::new();
        reports.spawn(Arc::clone(&worker).keep_reporting());
        let (release, released) = watch::channel(false);
        let mut attempts = JoinSet::new();
        worker.work_until(shutdown, &mut attempts, &released).await;
        reports.shutdown().await;
        worker.stop(attempts, &release).await;
        drop(maintenance);
    }

    async fn work_until(
        self: &Arc<Self>,
        shutdown: impl Future<Output = ()>,
        attempts: &mut JoinSet<AttemptEnd>,
        released: &watch::Receiver<bool>,
    ) {
        let mut shutdown = pin!(shutdown);
        let mut look_after = Duration::ZERO;
        loop {
            tokio::select! {
                biased;
                () = &mut shutdown => return,
                Some(ended) = attempts.join_next() => {
                    log_panic(ended);
                    look_after = Duration::ZERO;
                }
                () = self.may_claim(look_after) => {
                    look_after = self.fill(attempts, released).await;
                }
            }
        }
    }

    /// Claims for some free slots, past the accounts that may not download now; when to look again. How many attempts there
    /// are is bounded by the downloads under way and the slots.
    async fn fill(
        self: &Arc<Self>,
        attempts: &mut JoinSet<AttemptEnd>,
        released: &watch::Receiver<bool>,
    ) -> Duration {
        let fetcher = &self.tools.fetcher;
        let slots = self.slots.take_free(fetcher.free().min(CLAIMED_AT_ONCE));
        let free = u32::try_from(slots.len()).unwrap_or(u32::MAX);
        if free == 0 {
            return self.options.poll_busy;
        }
        let at_bound = fetcher.at_bound();
        let claims = match self.store.tasks().claim(&self.name, free, &at_bound).await {
            Ok(claims) => claims,
            Err(error) => {
                tracing::warn!(%error, "nothing could be claimed");
                return self.options.poll_idle;
            }
        };
        let look_after = match claims.len() {
            0 if at_bound.is_empty() => self.options.poll_idle,
            // There may be more, and newcomers' downloads leave the slots at once.
            some if some == slots.len() => Duration::ZERO,
            _ => self.options.poll_busy,
        };
        for (claim, slot) in claims.into_iter().zip(slots) {
            let (worker, released) = (Arc::clone(self), released.clone());
            let permit = fetcher.begin(claim.account_id);
            attempts.spawn(async move { worker.work_in(slot, permit, &claim, released).await });
        }
        look_after
    }

    async fn may_claim(&self, look_after: Duration) {
        self.slots.one_free().await;
        self.job_may_be_due(look_after).await;
    }

    /// Woken by a create in this process, or after a while: other processes and delayed retries wake no one.
    async fn job_may_be_due(&self, look_after: Duration) {
        tokio::select! {
            () = self.store.job_added() => {}
            () = sleep(jittered(look_after)) => {}
        }
    }

    /// Three reports fit into a lease, after which a silent worker is not counted.
    async fn keep_reporting(self: Arc<Self>) {
        let lease_seconds = self.store.options().lease_seconds.unsigned_abs();
        let mut ticks = interval(Duration::from_millis(lease_seconds.max(1) * 1_000 / 3));
        loop {
            ticks.tick().await;
            let reported = self
                .store
                .tasks()
                .report_worker(&self.name, self.options.slots);
            if let Err(error) = reported.await {
                tracing::warn!(%error, "the worker could not report itself");
            }
        }
    }

    async fn stop(&self, mut attempts: JoinSet<AttemptEnd>, release: &watch::Sender<bool>) {
        tracing::info!(under_way = attempts.len(), "the worker stops");
        // Admission must not count on slots that take nothing any more.
        if let Err(error) = self.store.tasks().remove_worker(&self.name).await {
            tracing::warn!(%error, "the worker could not sign off");
        }
        if timeout(self.options.drain, all(&mut attempts))
            .await
            .is_err()
        {
            release.send_replace(true);
            if timeout(self.options.release, all(&mut attempts))
                .await
                .is_err()
            {
                tracing::warn!(left = attempts.len(), "claims were not given back in time");
            }
        }
        attempts.shutdown().await;
        self.end_own_leases().await;
    }

    /// What could not be given back is free at once all the same, for nothing runs here any more.
    async fn end_own_leases(&self) {
        match self.store.tasks().end_leases(&self.name).await {
            Ok(_) => self.owner.iter().for_each(Owner::remove_file),
            Err(error) => tracing::warn!(%error, "the claims of this worker could not be ended"),
        }
    }
}

/// The lock by which others see that this worker lives. A file system without locks leaves its death to the leases.
fn own(options: &WorkerOptions, name: &str) -> Option<Owner> {
    let folder = options.owners.as_ref()?;
    let owner = Owner::begin(folder, name);
    owner
        .inspect_err(|error| {
            tracing::warn!(folder = %folder.display(), %error, "no lock file: if this process dies, its claims wait for their leases");
        })
        .ok()
}

async fn all(attempts: &mut JoinSet<AttemptEnd>) {
    while let Some(ended) = attempts.join_next().await {
        log_panic(ended);
    }
}

/// The claim of an attempt that panicked runs out, as an interruption.
fn log_panic(ended: Result<AttemptEnd, JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "an attempt crashed");
    }
}

/// Between half and all of it, so that many workers do not look in step.
fn jittered(wait: Duration) -> Duration {
    let share = random_bytes().map_or(255, |[byte]: [u8; 1]| byte);
    wait.mul_f64(0.5 + f64::from(share) / 510.0)
}

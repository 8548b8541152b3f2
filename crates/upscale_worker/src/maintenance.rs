//! Maintenance, which is due whether or not there is work: end what is overdue, finish refunds,
//! remove what is past retention, check the books. Every maintenance task may run on many processes at once; those that read
//! everything there is are left to the few.

use std::{path::PathBuf, time::Duration};

use metrics::{counter, gauge};
use tokio::{
    task::{JoinSet, spawn_blocking},
    time::{Instant, MissedTickBehavior, interval},
};
use upscale_core::limits::CLOCK_LOOK_SECONDS;
use upscale_store::{AuditReport, Breach, Results, Store, StoreError};

use crate::owners::find_dead;

/// Lines logged of one audit; a whole ledger gone wrong must not fill the disk.
const BREACHES_SHOWN: usize = 20;

/// A maintenance task rests at least this many times as long as it took: an audit of a million tasks takes half a minute, and
/// every minute would be half a core forever.
const REST_FACTOR: u32 = 20;

/// Older transactions are an alarm.
const OLD_TRANSACTION_SECONDS: i64 = 60;

/// How often, at most.
#[derive(Debug, Clone)]
pub struct MaintenanceOptions {
    /// Only what tasks wait for: deadlines and refunds. The rest reads every record and asks after every file, so a
    /// fleet's few API processes do it and its many workers do not.
    pub only_tasks: bool,
    /// Tasks past their deadline are failed and refunded.
    pub reap_every: Duration,
    /// Refunds that a crash left pending are finished.
    pub refund_every: Duration,
    /// The store's clock is looked at, so that one that steps deletes nothing.
    pub look_at_clock_every: Duration,
    /// Files and records past retention are removed.
    pub sweep_every: Duration,
    /// The books are checked.
    pub audit_every: Duration,
    /// The books are checked, and every result file with them.
    pub audit_files_every: Duration,
    /// The database is asked for transactions that someone left open.
    pub transactions_every: Duration,
    /// Folder of this machine's workers' lock files, where there is one: a worker that died leaves what it had claimed to
    /// others.
    pub owners: Option<PathBuf>,
    /// The lock files are looked at.
    pub owners_every: Duration,
}

impl Default for MaintenanceOptions {
    fn default() -> Self {
        Self {
            only_tasks: false,
            reap_every: Duration::from_secs(1),
            refund_every: Duration::from_secs(2),
            look_at_clock_every: Duration::from_secs(CLOCK_LOOK_SECONDS.unsigned_abs()),
            sweep_every: Duration::from_secs(3_600),
            audit_every: Duration::from_secs(60),
            audit_files_every: Duration::from_secs(3_600),
            transactions_every: Duration::from_secs(30),
            owners: None,
            owners_every: Duration::from_millis(500),
        }
    }
}

#[derive(Debug, Clone)]
enum MaintenanceTask {
    Reap,
    FinishRefunds,
    LookAtClock,
    Sweep,
    Audit,
    AuditFiles,
    OldTransactions,
    DeadOwners(PathBuf),
}

/// Does the maintenance until `shutdown` resolves: for processes that have no [`crate::Worker`], so that
/// tasks end in time even while every worker is dead.
pub async fn maintain(
    store: &Store,
    results: &Results,
    options: MaintenanceOptions,
    shutdown: impl Future<Output = ()>,
) {
    let tasks = start(store, results, options);
    shutdown.await;
    drop(tasks);
}

/// Each maintenance task on its own, so that a long sweep keeps no deadline waiting. They stop when the set is dropped.
pub(crate) fn start(store: &Store, results: &Results, options: MaintenanceOptions) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    for (task, every) in tasks_of(options) {
        tasks.spawn(keep_doing(task, every, store.clone(), results.clone()));
    }
    tasks
}

fn tasks_of(options: MaintenanceOptions) -> Vec<(MaintenanceTask, Duration)> {
    let mut tasks = vec![
        (MaintenanceTask::Reap, options.reap_every),
        (MaintenanceTask::FinishRefunds, options.refund_every),
    ];
    if let Some(folder) = options.owners {
        tasks.push((MaintenanceTask::DeadOwners(folder), options.owners_every));
    }
    if !options.only_tasks {
        tasks.extend([
            (MaintenanceTask::LookAtClock, options.look_at_clock_every),
            (MaintenanceTask::Sweep, options.sweep_every),
            (MaintenanceTask::Audit, options.audit_every),
            (MaintenanceTask::AuditFiles, options.audit_files_every),
            (MaintenanceTask::OldTransactions, options.transactions_every),
        ]);
    }
    tasks
}

async fn keep_doing(task: MaintenanceTask, every: Duration, store: Store, results: Results) {
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut failing = false;
    loop {
        ticks.tick().await;
        let begun = Instant::now();
        let done = task.do_it(&store, &results).await;
        if done.is_err() {
            counter!("upscale_maintenance_failures_total", "task" => task.name()).increment(1);
        }
        let rest = begun.elapsed() * REST_FACTOR;
        if rest > every {
            ticks.reset_after(rest);
        }
        // An outage is logged when it begins and when it ends, not every second.
        match &done {
            Err(error) if !failing => {
                tracing::warn!(maintenance = ?task, %error, "a maintenance task fails")
            }
            Ok(()) if failing => {
                tracing::info!(maintenance = ?task, "a maintenance task works again")
            }
            _ => {}
        }
        failing = done.is_err();
    }
}

impl MaintenanceTask {
    async fn do_it(&self, store: &Store, results: &Results) -> Result<(), StoreError> {
        match self {
            Self::Reap => {
                // Page after page, so that a pile of overdue tasks does not wait for a tick each.
                while log_count(store.tasks().reap().await?, "overdue tasks were failed") {}
            }
            Self::FinishRefunds => {
                while log_count(
                    store.tasks().finish_refunds().await?,
                    "pending refunds were made",
                ) {}
            }
            Self::LookAtClock => {
                let look = store.look_at_clock().await?;
                gauge!("upscale_deletion_pause_seconds").set(look.pause_seconds as f64);
            }
            Self::Sweep => {
                log_count(store.sweep(results).await?, "result files were removed");
            }
            Self::Audit => audit(store, None).await?,
            Self::AuditFiles => audit(store, Some(results)).await?,
            Self::OldTransactions => look_for_old_transactions(store).await?,
            Self::DeadOwners(folder) => end_leases_of_the_dead(store, folder.clone()).await?,
        }
        Ok(())
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Reap => "reap",
            Self::FinishRefunds => "refund",
            Self::LookAtClock => "clock",
            Self::Sweep => "sweep",
            Self::Audit => "audit",
            Self::AuditFiles => "audit_files",
            Self::OldTransactions => "old_transactions",
            Self::DeadOwners(_) => "dead_owners",
        }
    }
}

/// The file stays until the store has acknowledged the death, so that nothing is forgotten while it is away.
async fn end_leases_of_the_dead(store: &Store, folder: PathBuf) -> Result<(), StoreError> {
    let cannot_look = |why: String| StoreError::Unavailable(format!("the lock files: {why}"));
    let looked = spawn_blocking(move || find_dead(&folder)).await;
    let dead = looked
        .map_err(|error| cannot_look(error.to_string()))?
        .map_err(|error| cannot_look(error.to_string()))?;
    for owner in dead {
        let claims = store.tasks().end_leases(&owner.worker).await?;
        owner.remove_file();
        tracing::warn!(
            worker = owner.worker,
            claims,
            "a worker of this machine died: what it had claimed is free again"
        );
    }
    Ok(())
}

async fn audit(store: &Store, results: Option<&Results>) -> Result<(), StoreError> {
    let begun = Instant::now();
    let report = store.audit(results).await?;
    gauge!("upscale_audit_seconds").set(begun.elapsed().as_secs_f64());
    counter!("upscale_audits_total").increment(1);
    for invariant in &report.checked {
        let of_it = |breach: &&Breach| breach.invariant == *invariant;
        let breaches = report.breaches.iter().filter(of_it).count();
        gauge!("upscale_ledger_breaches", "invariant" => invariant.clone()).set(breaches as f64);
    }
    log(&report);
    Ok(())
}

/// While one stays open the database removes nothing that died since it began, and the queue grows slow. Nothing
/// here holds one for a minute, so it is someone else's, for an operator to end.
async fn look_for_old_transactions(store: &Store) -> Result<(), StoreError> {
    let old = store
        .operator()
        .list_old_transactions(OLD_TRANSACTION_SECONDS)
        .await?;
    let oldest = old.iter().map(|one| one.seconds).max().unwrap_or(0);
    gauge!("upscale_database_oldest_transaction_seconds").set(oldest as f64);
    for one in &old {
        tracing::error!(
            process = one.process,
            user = one.user,
            application = one.application,
            state = one.state,
            seconds = one.seconds,
            "a database transaction stays open: nothing dead can be removed until it ends"
        );
    }
    Ok(())
}

/// Whether there was anything.
fn log_count(count: u32, what: &str) -> bool {
    if count > 0 {
        tracing::info!(count, "{what}");
    }
    count > 0
}

fn log(report: &AuditReport) {
    for breach in report.breaches.iter().take(BREACHES_SHOWN) {
        tracing::error!(
            invariant = breach.invariant,
            account = breach.account_id.as_ref().map(|id| id.as_str()),
            detail = breach.detail,
            breaches = report.breaches.len(),
            "an invariant is broken"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_of_a_fleet_end_tasks_and_leave_the_reading_of_everything_to_others() {
        let names = |only_tasks| {
            let options = MaintenanceOptions {
                only_tasks,
                ..MaintenanceOptions::default()
            };
            let tasks = tasks_of(options).into_iter();
            tasks.map(|(task, _)| task.name()).collect::<Vec<_>>()
        };
        assert_eq!(names(true), ["reap", "refund"]);
        assert_eq!(names(false).len(), 7);
        let options = MaintenanceOptions {
            owners: Some("owners".into()),
            only_tasks: true,
            ..MaintenanceOptions::default()
        };
        assert_eq!(tasks_of(options).len(), 3);
    }
}

//! What somebody must do now and then whether or not there is work: end what is overdue, finish refunds,
//! remove what is past retention, check the books. Every chore may run on many processes at once; those that read
//! everything there is are left to the few.

use std::time::Duration;

use metrics::{counter, gauge};
use tokio::{
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval},
};
use upscale_store::{AuditReport, Breach, Results, Store, StoreError};

/// Lines logged of one audit; a whole ledger gone wrong must not fill the disk.
const BREACHES_SHOWN: usize = 20;

/// A chore rests at least this many times as long as it took: an audit of a million tasks takes half a minute, and
/// every minute would be half a core for ever.
const REST_FACTOR: u32 = 20;

/// Older transactions are an alarm.
const OLD_TRANSACTION_SECONDS: i64 = 60;

/// How often, at most.
#[derive(Debug, Clone, Copy)]
pub struct HousekeepingOptions {
    /// Only what tasks wait for: deadlines and refunds. The rest reads every record and asks after every file, so a
    /// fleet's few API processes do it and its many workers do not.
    pub only_tasks: bool,
    /// Tasks past their deadline are failed and refunded.
    pub reap_every: Duration,
    /// Refunds that a crash left pending are finished.
    pub refund_every: Duration,
    /// Files and records past retention are removed.
    pub sweep_every: Duration,
    /// The books are checked.
    pub audit_every: Duration,
    /// The books are checked, and every result file with them.
    pub audit_files_every: Duration,
    /// The database is asked for transactions that somebody left open.
    pub transactions_every: Duration,
}

impl Default for HousekeepingOptions {
    fn default() -> Self {
        Self {
            only_tasks: false,
            reap_every: Duration::from_secs(1),
            refund_every: Duration::from_secs(2),
            sweep_every: Duration::from_secs(3_600),
            audit_every: Duration::from_secs(60),
            audit_files_every: Duration::from_secs(3_600),
            transactions_every: Duration::from_secs(30),
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Chore {
    Reap,
    FinishRefunds,
    Sweep,
    Audit,
    AuditFiles,
    OldTransactions,
}

/// Looks after the house until `shutdown` resolves: for processes that have no [`crate::Worker`], so that
/// tasks end in time even while every worker is dead.
pub async fn keep_house(
    store: &Store,
    results: &Results,
    options: HousekeepingOptions,
    shutdown: impl Future<Output = ()>,
) {
    let chores = start(store, results, options);
    shutdown.await;
    drop(chores);
}

/// Each chore on its own, so that a long sweep keeps no deadline waiting. They stop when the set is dropped.
pub(crate) fn start(store: &Store, results: &Results, options: HousekeepingOptions) -> JoinSet<()> {
    let mut chores = JoinSet::new();
    for (chore, every) in chores_of(options) {
        chores.spawn(keep_doing(chore, every, store.clone(), results.clone()));
    }
    chores
}

fn chores_of(options: HousekeepingOptions) -> Vec<(Chore, Duration)> {
    let mut chores = vec![
        (Chore::Reap, options.reap_every),
        (Chore::FinishRefunds, options.refund_every),
    ];
    if !options.only_tasks {
        chores.extend([
            (Chore::Sweep, options.sweep_every),
            (Chore::Audit, options.audit_every),
            (Chore::AuditFiles, options.audit_files_every),
            (Chore::OldTransactions, options.transactions_every),
        ]);
    }
    chores
}

async fn keep_doing(chore: Chore, every: Duration, store: Store, results: Results) {
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut failing = false;
    loop {
        ticks.tick().await;
        let begun = Instant::now();
        let done = chore.do_it(&store, &results).await;
        if done.is_err() {
            counter!("upscale_chore_failures_total", "chore" => chore.name()).increment(1);
        }
        let rest = begun.elapsed() * REST_FACTOR;
        if rest > every {
            ticks.reset_after(rest);
        }
        // An outage is logged when it begins and when it ends, not every second.
        match &done {
            Err(error) if !failing => tracing::warn!(?chore, %error, "a chore fails"),
            Ok(()) if failing => tracing::info!(?chore, "a chore works again"),
            _ => {}
        }
        failing = done.is_err();
    }
}

impl Chore {
    async fn do_it(self, store: &Store, results: &Results) -> Result<(), StoreError> {
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
            Self::Sweep => {
                log_count(store.sweep(results).await?, "result files were removed");
            }
            Self::Audit => audit(store, None).await?,
            Self::AuditFiles => audit(store, Some(results)).await?,
            Self::OldTransactions => look_for_old_transactions(store).await?,
        }
        Ok(())
    }

    fn name(self) -> &'static str {
        match self {
            Self::Reap => "reap",
            Self::FinishRefunds => "refund",
            Self::Sweep => "sweep",
            Self::Audit => "audit",
            Self::AuditFiles => "audit_files",
            Self::OldTransactions => "old_transactions",
        }
    }
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
/// here holds one for a minute, so it is somebody else's, for an operator to end.
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
            let options = HousekeepingOptions {
                only_tasks,
                ..HousekeepingOptions::default()
            };
            let chores = chores_of(options).into_iter();
            chores.map(|(chore, _)| chore.name()).collect::<Vec<_>>()
        };
        assert_eq!(names(true), ["reap", "refund"]);
        assert_eq!(names(false).len(), 6);
    }
}

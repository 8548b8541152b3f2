//! What an operator looks at beside accounts: tasks of anyone, workers, the ledger as a whole, and what other sessions
//! do to the database.

use upscale_core::{RequestId, TaskId, Timestamp};

use super::Operator;
use crate::{
    JobRecord, LedgerKind, LedgerSum, OldTransaction, OperatorTask, OperatorTaskFilter, Purse,
    StoreError, WorkerRecord,
    row::Row,
    tasks::row::{TASK, task},
    tx::Tx,
};

/// Old transactions listed at most.
const LISTED_MAX: u32 = 20;
/// A task as [`task_record`] reads it, for a WHERE to follow.
pub(super) fn select_record() -> String {
    format!(
        "SELECT {TASK}, job.attempt, job.transient_failures, job.crashes, job.worker
         FROM task LEFT JOIN job ON job.task_id = task.id"
    )
}

impl Operator<'_> {
    /// The task, anyone who's it is.
    pub async fn find_task(self, task: &TaskId) -> Result<Option<OperatorTask>, StoreError> {
        let task = *task;
        self.store
            .read(async move |tx: &mut Tx| {
                let sql = format!("{} WHERE task.id = $1", select_record());
                tx.find(&sql, &[&task], task_record).await
            })
            .await
    }

    /// Tasks of anyone.
    pub async fn list_tasks(
        self,
        filter: &OperatorTaskFilter,
        limit: u32,
    ) -> Result<Vec<OperatorTask>, StoreError> {
        let (condition, value) = match filter {
            OperatorTaskFilter::OfAccount(account) => (
                "task.account_id = $1 ORDER BY task.day DESC, task.created_at DESC",
                account.to_string(),
            ),
            OperatorTaskFilter::OfRequest(request) => (
                "task.request_id = $1 ORDER BY task.created_at",
                request.to_string(),
            ),
            OperatorTaskFilter::Processing => (
                "job.task_id IS NOT NULL AND $1 = '' ORDER BY job.prio_at",
                String::new(),
            ),
            OperatorTaskFilter::RefundPending => (
                "task.refund = 'pending' AND $1 = '' ORDER BY task.finished_at",
                String::new(),
            ),
        };
        let sql = format!("{} WHERE {condition} LIMIT $2", select_record());
        self.store
            .read(async move |tx: &mut Tx| tx.list(&sql, &[&value, &limit], task_record).await)
            .await
    }

    /// Workers that reported within the last day, the latest first.
    pub async fn list_workers(self) -> Result<Vec<WorkerRecord>, StoreError> {
        self.store
            .read(async |tx: &mut Tx| {
                let (now, lease) = (tx.now, tx.options.lease_seconds);
                let sql =
                    "SELECT id, slots, seen_at FROM worker ORDER BY seen_at DESC, id LIMIT 1000";
                let worker = |row: &dyn Row| {
                    let seen_at = row.time("seen_at")?;
                    Ok(WorkerRecord {
                        id: row.string("id")?,
                        slots: row.whole("slots")?,
                        seen_at,
                        alive: now < seen_at.plus_seconds(lease),
                    })
                };
                tx.list(sql, &[], worker).await
            })
            .await
    }

    /// The ledger of all accounts added up, kind by kind. Reads every line.
    pub async fn sum_ledger(self) -> Result<Vec<LedgerSum>, StoreError> {
        self.store.snapshot(async |tx: &mut Tx| {
            tx.list(
                "SELECT kind, debit, credit, count(*) AS transfers, CAST(sum(amount) AS BIGINT) AS amount FROM ledger
                 GROUP BY kind, debit, credit ORDER BY min(sequence)",
                &[],
                ledger_sum,
            )
            .await
        })
        .await
    }

    /// The ledger's lines from this moment on added up, kind by kind. Reads them and those of the hour before.
    pub async fn sum_ledger_since(self, from: Timestamp) -> Result<Vec<LedgerSum>, StoreError> {
        self.store.read(async move |tx: &mut Tx| {
            // There is no index by time. Numbers grow with it but for moments, so the last line of an hour before
            // stands below all that are wanted; it is found from the newest backwards.
            tx.list(
                "SELECT kind, debit, credit, count(*) AS transfers, CAST(sum(amount) AS BIGINT) AS amount FROM ledger
                 WHERE at >= $1 AND sequence > coalesce(
                     (SELECT sequence FROM ledger WHERE at < $2 ORDER BY sequence DESC LIMIT 1), 0)
                 GROUP BY kind, debit, credit ORDER BY min(sequence)",
                &[&from, &from.plus_seconds(-3_600)],
                ledger_sum,
            )
            .await
        })
        .await
    }

    /// Transactions of anyone that keep the database from cleaning up, open for longer than this, oldest
    /// first. None on SQLite, whose readers end by themselves.
    ///
    /// As long as one lasts, vacuum removes nothing that died since it began, in the whole database, and a queue that
    /// lives by updates and deletions grows slow. No one here keeps one open for long (sessions are cut after 10 s of
    /// idling in one), so an old one is someone else's: a forgotten console, a dump, a replica's feedback. Of other
    /// roles' sessions the server tells nothing unless ours may see them (`GRANT pg_read_all_stats`).
    pub async fn list_old_transactions(
        self,
        seconds: i64,
    ) -> Result<Vec<OldTransaction>, StoreError> {
        self.store
            .read(async move |tx: &mut Tx| {
                if !tx.is_shared() {
                    return Ok(Vec::new());
                }
                tx.list(
                    "SELECT CAST(pid AS BIGINT) AS process, coalesce(usename, '') AS role,
                     coalesce(application_name, '') AS application, coalesce(state, '') AS state,
                     CAST(extract(epoch FROM clock_timestamp() - xact_start) AS BIGINT) AS seconds
                 FROM pg_stat_activity
                 WHERE datname = current_database() AND pid <> pg_backend_pid()
                     AND xact_start < clock_timestamp() - make_interval(secs => CAST($1 AS BIGINT))
                 ORDER BY xact_start LIMIT $2",
                    &[&seconds, &LISTED_MAX],
                    old_transaction,
                )
                .await
            })
            .await
    }
}

fn ledger_sum(row: &dyn Row) -> Result<LedgerSum, StoreError> {
    Ok(LedgerSum {
        kind: row.parsed("kind", LedgerKind::parse)?,
        debit: row.parsed("debit", Purse::parse)?,
        credit: row.parsed("credit", Purse::parse)?,
        transfers: row.whole("transfers")?,
        amount: row.credits("amount")?,
    })
}

pub(super) fn task_record(row: &dyn Row) -> Result<OperatorTask, StoreError> {
    let has_job = row.number_if_any("attempt")?.is_some();
    Ok(OperatorTask {
        task: task(row)?,
        source_url: row.string("source_url")?,
        request_id: row.parsed("request_id", RequestId::parse)?,
        finished_at: row.time_if_any("finished_at")?,
        job: has_job.then(|| job_record(row)).transpose()?,
    })
}

fn job_record(row: &dyn Row) -> Result<JobRecord, StoreError> {
    Ok(JobRecord {
        attempt: row.whole("attempt")?,
        transient_failures: row.whole("transient_failures")?,
        crashes: row.whole("crashes")?,
        worker: row.string_if_any("worker")?,
    })
}

fn old_transaction(row: &dyn Row) -> Result<OldTransaction, StoreError> {
    Ok(OldTransaction {
        process: row.number("process")?,
        user: row.string("role")?,
        application: row.string("application")?,
        state: row.string("state")?,
        seconds: row.number("seconds")?,
    })
}

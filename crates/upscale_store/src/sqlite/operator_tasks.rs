//! What an operator looks at beside accounts: tasks of anyone, workers, and the ledger as a whole.

use rusqlite::{Row, params};
use upscale_core::{Credits, RequestId, TaskId, Timestamp};

use super::{
    Db,
    rows::{count, parsed, time, time_if_any},
    task_rows,
};
use crate::{
    JobRecord, LedgerKind, LedgerSum, OperatorTask, OperatorTaskFilter, Purse, StoreError,
    WorkerRecord, task_row::whole_column,
};

const RECORD: &str = "SELECT task.*, job.attempt, job.transient_failures, job.crashes, job.worker
     FROM task LEFT JOIN job ON job.task_id = task.id";

impl Db {
    pub(crate) async fn find_task_of_anyone(
        &self,
        task: &TaskId,
    ) -> Result<Option<OperatorTask>, StoreError> {
        let task = *task;
        self.read(move |tx| {
            let sql = format!("{RECORD} WHERE task.id = ?1");
            tx.find(&sql, [task.as_str()], task_record)
        })
        .await
    }

    pub(crate) async fn list_tasks_of_anyone(
        &self,
        filter: &OperatorTaskFilter,
        limit: u32,
    ) -> Result<Vec<OperatorTask>, StoreError> {
        let (condition, value) = match filter {
            OperatorTaskFilter::OfAccount(account) => (
                "task.account_id = ?1 ORDER BY task.day DESC, task.created_at DESC",
                account.to_string(),
            ),
            OperatorTaskFilter::OfRequest(request) => (
                "task.request_id = ?1 ORDER BY task.created_at",
                request.to_string(),
            ),
            OperatorTaskFilter::Processing => (
                "job.task_id IS NOT NULL AND ?1 = '' ORDER BY job.prio_at",
                String::new(),
            ),
            OperatorTaskFilter::RefundPending => (
                "task.refund = 'pending' AND ?1 = '' ORDER BY task.finished_at",
                String::new(),
            ),
        };
        let sql = format!("{RECORD} WHERE {condition} LIMIT ?2");
        self.read(move |tx| tx.list(&sql, params![value, limit], task_record))
            .await
    }

    pub(crate) async fn list_workers(&self) -> Result<Vec<WorkerRecord>, StoreError> {
        self.read(|tx| {
            let (now, lease) = (tx.now, tx.options.lease_seconds);
            tx.list(
                "SELECT id, slots, seen_at FROM worker ORDER BY seen_at DESC, id LIMIT 1000",
                [],
                |row| {
                    let seen_at = time(row, "seen_at")?;
                    Ok(WorkerRecord {
                        id: row.get("id")?,
                        slots: count(row, "slots")?,
                        seen_at,
                        alive: now < seen_at.plus_seconds(lease),
                    })
                },
            )
        })
        .await
    }

    pub(crate) async fn sum_ledger(&self) -> Result<Vec<LedgerSum>, StoreError> {
        self.read(|tx| {
            tx.list(
                "SELECT kind, debit, credit, count(*) AS transfers, sum(amount) AS amount FROM ledger
                 GROUP BY kind, debit, credit ORDER BY min(sequence)",
                [],
                ledger_sum,
            )
        })
        .await
    }

    pub(crate) async fn sum_ledger_since(
        &self,
        from: Timestamp,
    ) -> Result<Vec<LedgerSum>, StoreError> {
        self.read(move |tx| {
            // There is no index by time. Numbers grow with it but for moments, so the last line of an hour before
            // stands below all that are wanted; it is found from the newest backwards.
            tx.list(
                "SELECT kind, debit, credit, count(*) AS transfers, sum(amount) AS amount FROM ledger
                 WHERE at >= ?1 AND sequence > coalesce(
                     (SELECT sequence FROM ledger WHERE at < ?2 ORDER BY sequence DESC LIMIT 1), 0)
                 GROUP BY kind, debit, credit ORDER BY min(sequence)",
                [from.micros(), from.plus_seconds(-3_600).micros()],
                ledger_sum,
            )
        })
        .await
    }
}

fn ledger_sum(row: &Row<'_>) -> Result<LedgerSum, StoreError> {
    Ok(LedgerSum {
        kind: parsed(row, "kind", LedgerKind::parse)?,
        debit: parsed(row, "debit", Purse::parse)?,
        credit: parsed(row, "credit", Purse::parse)?,
        transfers: whole_column("transfers", row.get("transfers")?)?,
        amount: Credits::from_thousandths(row.get("amount")?),
    })
}

fn task_record(row: &Row<'_>) -> Result<OperatorTask, StoreError> {
    let has_job = row.get::<_, Option<i64>>("attempt")?.is_some();
    Ok(OperatorTask {
        task: task_rows::task(row)?,
        source_url: row.get("source_url")?,
        request_id: parsed(row, "request_id", RequestId::parse)?,
        finished_at: time_if_any(row, "finished_at")?,
        job: has_job.then(|| job_record(row)).transpose()?,
    })
}

fn job_record(row: &Row<'_>) -> Result<JobRecord, StoreError> {
    Ok(JobRecord {
        attempt: count(row, "attempt")?,
        transient_failures: count(row, "transient_failures")?,
        crashes: count(row, "crashes")?,
        worker: row.get("worker")?,
    })
}

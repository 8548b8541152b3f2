//! A worker takes due jobs, in order; what has crashed too often is failed here instead of handed out.

use rusqlite::{Row, params};
use upscale_core::{RequestId, SourceUrl};

use super::{
    Db, Tx,
    rows::{account_id, count, parsed, task_id, time},
    settle::fail_task,
    task_rows::parameters,
};
use crate::{
    StoreError,
    due_job::{CLAIMS_MAX, Claimed, DueJob, NextAttempt, ROUNDS_MAX},
};

/// Due jobs in order; the rowid keeps the order of arrival where two are equal.
const DUE: &str =
    "SELECT task.*, job.task_id, job.attempt, job.transient_failures, job.crashes, job.worker
     FROM job JOIN task ON task.id = job.task_id
     WHERE job.visible_at <= ?1 AND job.deadline_at > ?1 ORDER BY job.prio_at, job.rowid LIMIT ?2";

impl Db {
    pub(crate) async fn claim(&self, worker: &str, count: u32) -> Result<Claimed, StoreError> {
        let worker = worker.to_owned();
        self.write(move |tx| claim(tx, &worker, count.min(CLAIMS_MAX)))
            .await
    }
}

fn claim(tx: &Tx<'_>, worker: &str, count: u32) -> Result<Claimed, StoreError> {
    let mut claimed = Claimed::default();
    for _ in 0..ROUNDS_MAX {
        let missing = count as usize - claimed.claims.len();
        let due = tx.list(DUE, params![tx.now.micros(), missing as i64], due)?;
        let ended_before = claimed.failed.len();
        for job in due {
            take(tx, worker, job, &mut claimed)?;
        }
        // Others may stand behind what was ended; where nothing was, there is no more to find.
        if claimed.failed.len() == ended_before {
            break;
        }
    }
    Ok(claimed)
}

fn take(tx: &Tx<'_>, worker: &str, job: DueJob, claimed: &mut Claimed) -> Result<(), StoreError> {
    match job.next_attempt(tx.now) {
        NextAttempt::End(task, message) => {
            tx.execute_one("DELETE FROM job WHERE task_id = ?1", [task.as_str()])?;
            fail_task(tx, &task, &message)?;
            claimed.failed.push(task);
        }
        NextAttempt::HandOut(claim) => {
            tx.execute_one(
                "UPDATE job SET attempt = ?2, worker = ?3, visible_at = ?4, crashes = ?5 WHERE task_id = ?1",
                params![
                    claim.task_id.as_str(),
                    claim.attempt,
                    worker,
                    tx.now.plus_seconds(tx.options.lease_seconds).micros(),
                    claim.crashes
                ],
            )?;
            claimed.claims.push(claim);
        }
    }
    Ok(())
}

fn due(row: &Row<'_>) -> Result<DueJob, StoreError> {
    let source_url: String = row.get("source_url")?;
    Ok(DueJob {
        task_id: task_id(row, "task_id")?,
        account_id: account_id(row)?,
        attempt: row.get("attempt")?,
        transient_failures: count(row, "transient_failures")?,
        crashes: count(row, "crashes")?,
        was_claimed: row.get::<_, Option<String>>("worker")?.is_some(),
        source_url: SourceUrl::parse(&source_url).ok(),
        parameters: parameters(row)?,
        request_id: parsed(row, "request_id", RequestId::parse)?,
        created_at: time(row, "created_at")?,
        deadline_at: time(row, "deadline_at")?,
    })
}

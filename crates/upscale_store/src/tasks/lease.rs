//! What a worker reports of a claim it keeps or gives back. Each report carries the attempt, the fence: once the job
//! is with another worker, or waiting, the old attempt changes nothing. And what is known of a worker that died.

use upscale_core::{AttemptFailure, TaskId, after_interruption_millis};

use super::{Tasks, due_job::retry_counts};
use crate::{FenceOutcome, StoreError, param::Params, tx::Tx};

impl Tasks<'_> {
    /// Renews the lease.
    pub async fn heartbeat(self, task: &TaskId, attempt: i64) -> Result<FenceOutcome, StoreError> {
        let task = *task;
        self.store
            .write(async move |tx: &mut Tx| {
                let until = tx.now.plus_seconds(tx.options.lease_seconds);
                let sql = "UPDATE job SET visible_at = $3
                 WHERE task_id = $1 AND attempt = $2 AND worker IS NOT NULL";
                fenced(tx, sql, &[&task, &attempt, &until]).await
            })
            .await
    }

    /// Gives the job back unharmed (shutdown): no crash, no failure.
    pub async fn release(self, task: &TaskId, attempt: i64) -> Result<FenceOutcome, StoreError> {
        let task = *task;
        let outcome = self
            .store
            .write(async move |tx: &mut Tx| {
                let sql = "UPDATE job SET visible_at = $3, worker = NULL
                     WHERE task_id = $1 AND attempt = $2 AND worker IS NOT NULL";
                fenced(tx, sql, &[&task, &attempt, &tx.now]).await
            })
            .await?;
        self.store.tell_job_added();
        Ok(outcome)
    }

    /// Gives the job back after a transient failure or a crash of the child, counted, or because others were first,
    /// not counted; due after the delay (at most 60 s). A permanent failure is settled, never retried: `Refused`.
    pub async fn retry_later(
        self,
        task: &TaskId,
        attempt: i64,
        failure: AttemptFailure,
        delay_millis: u64,
    ) -> Result<FenceOutcome, StoreError> {
        let (transient, crash, delay_micros) = retry_counts(task, failure, delay_millis)?;
        let task = *task;
        self.store.write(async move |tx: &mut Tx| {
            let due_at = tx.now.micros() + delay_micros;
            let sql = "UPDATE job SET visible_at = $3, worker = NULL,
                     transient_failures = transient_failures + $4, crashes = crashes + $5,
                     failing_since = CASE WHEN $4 = 0 THEN failing_since ELSE coalesce(failing_since, $6) END
                 WHERE task_id = $1 AND attempt = $2 AND worker IS NOT NULL";
            let counts: Params<'_> = &[&task, &attempt, &due_at, &transient, &crash, &tx.now];
            fenced(tx, sql, counts).await
        })
        .await
    }
}

impl Tasks<'_> {
    /// Ends all leases of a worker that is known to have ended, as if they had run out, and forgets the worker; how many
    /// there were. Should it live after all, the fence keeps its late reports from changing anything.
    pub async fn end_leases(self, worker: &str) -> Result<u32, StoreError> {
        let worker = worker.to_owned();
        let ended = self
            .store
            .write(async move |tx: &mut Tx| end_leases(tx, &worker).await)
            .await?;
        if ended > 0 {
            self.store.tell_job_added();
        }
        Ok(ended)
    }
}

async fn end_leases(tx: &Tx, worker: &str) -> Result<u32, StoreError> {
    tx.execute("DELETE FROM worker WHERE id = $1", &[&worker])
        .await?;
    let held =
        "SELECT task_id, interruptions FROM job WHERE worker = $1 ORDER BY task_id FOR UPDATE";
    let held = tx
        .list(held, &[&worker], |row| {
            Ok((row.task_id("task_id")?, row.whole::<u32>("interruptions")?))
        })
        .await?;
    let sql =
        "UPDATE job SET worker = NULL, interruptions = $2, visible_at = $3 WHERE task_id = $1";
    for (task, before) in &held {
        let interruptions = before.saturating_add(1);
        let delay_micros = after_interruption_millis(interruptions) as i64 * 1_000;
        let due_at = tx.now.micros() + delay_micros;
        tx.execute_one(sql, &[task, &interruptions, &due_at])
            .await?;
    }
    Ok(u32::try_from(held.len()).unwrap_or(u32::MAX))
}

/// Runs a statement whose WHERE is the fence.
pub(super) async fn fenced(
    tx: &Tx,
    sql: &str,
    params: Params<'_>,
) -> Result<FenceOutcome, StoreError> {
    Ok(match tx.execute(sql, params).await? {
        0 => FenceOutcome::Lost,
        _ => FenceOutcome::Done,
    })
}

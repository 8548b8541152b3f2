//! What a worker reports of a claim it keeps or gives back. Each report carries the attempt, the fence: once the job
//! is with another worker, or waiting, the old attempt changes nothing.

use upscale_core::{AttemptFailure, TaskId};

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

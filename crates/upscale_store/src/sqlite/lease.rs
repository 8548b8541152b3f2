//! A worker's words about a claim it keeps or gives back. Each carries the attempt, the fence: once the job
//! is with someone else, or waiting, the old attempt changes nothing.

use rusqlite::{Params, params};
use upscale_core::{AttemptFailure, TaskId};

use super::{Db, Tx};
use crate::{FenceOutcome, StoreError, due_job::retry_counts};

impl Db {
    pub(crate) async fn heartbeat(
        &self,
        task: &TaskId,
        attempt: i64,
    ) -> Result<FenceOutcome, StoreError> {
        let task = *task;
        self.write(move |tx| {
            let until = tx.now.plus_seconds(tx.options.lease_seconds);
            fenced(
                tx,
                "UPDATE job SET visible_at = ?3 WHERE task_id = ?1 AND attempt = ?2 AND worker IS NOT NULL",
                params![task.as_str(), attempt, until.micros()],
            )
        })
        .await
    }

    pub(crate) async fn release(
        &self,
        task: &TaskId,
        attempt: i64,
    ) -> Result<FenceOutcome, StoreError> {
        let task = *task;
        let outcome = self
            .write(move |tx| {
                fenced(
                    tx,
                    "UPDATE job SET visible_at = ?3, worker = NULL
                     WHERE task_id = ?1 AND attempt = ?2 AND worker IS NOT NULL",
                    params![task.as_str(), attempt, tx.now.micros()],
                )
            })
            .await?;
        self.job_added.notify_one();
        Ok(outcome)
    }

    pub(crate) async fn retry_later(
        &self,
        task: &TaskId,
        attempt: i64,
        failure: AttemptFailure,
        delay_millis: u64,
    ) -> Result<FenceOutcome, StoreError> {
        let (transient, crash, delay_micros) = retry_counts(task, failure, delay_millis)?;
        let task = *task;
        self.write(move |tx| {
            let due_at = tx.now.micros() + delay_micros;
            fenced(
                tx,
                "UPDATE job SET visible_at = ?3, worker = NULL,
                     transient_failures = transient_failures + ?4, crashes = crashes + ?5
                 WHERE task_id = ?1 AND attempt = ?2 AND worker IS NOT NULL",
                params![task.as_str(), attempt, due_at, transient, crash],
            )
        })
        .await
    }
}

/// Runs a statement whose WHERE is the fence.
pub(super) fn fenced(
    tx: &Tx<'_>,
    sql: &str,
    params: impl Params,
) -> Result<FenceOutcome, StoreError> {
    Ok(match tx.execute(sql, params)? {
        0 => FenceOutcome::Lost,
        _ => FenceOutcome::Done,
    })
}

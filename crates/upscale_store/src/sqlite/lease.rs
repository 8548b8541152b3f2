//! A worker's words about a claim it keeps or gives back. Each carries the attempt, the fence: once the job
//! is with someone else, or waiting, the old attempt changes nothing.

use rusqlite::{Params, params};
use upscale_core::{AttemptFailure, TaskId};

use super::{Db, Tx};
use crate::{FenceOutcome, StoreError};

/// Longest delay before another attempt; core's back-off ends at 20 s.
pub(super) const RETRY_DELAY_SECONDS_MAX: i64 = 60;

impl Db {
    pub(crate) async fn heartbeat(
        &self,
        task: &TaskId,
        attempt: i64,
    ) -> Result<FenceOutcome, StoreError> {
        let task = task.clone();
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
        let task = task.clone();
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
        let (transient, crash) = match failure {
            AttemptFailure::Transient => (1, 0),
            AttemptFailure::Crash => (0, 1),
            AttemptFailure::Permanent => {
                let what = format!("{task}: a permanent failure is settled, not retried");
                return Err(StoreError::Corrupt(what));
            }
        };
        let delay_micros = delay_millis.min(RETRY_DELAY_SECONDS_MAX as u64 * 1_000) as i64 * 1_000;
        let task = task.clone();
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

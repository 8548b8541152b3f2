//! A worker's words about a claim it keeps or gives back. Each carries the attempt, the fence: once the job
//! is with someone else, or waiting, the old attempt changes nothing.

use tokio_postgres::types::ToSql;
use upscale_core::{AttemptFailure, TaskId};

use super::{Db, Tx};
use crate::{FenceOutcome, StoreError, due_job::retry_counts};

impl Db {
    pub(crate) async fn heartbeat(
        &self,
        task: &TaskId,
        attempt: i64,
    ) -> Result<FenceOutcome, StoreError> {
        let tx = self.begin().await?;
        let until = tx.now.plus_seconds(tx.options.lease_seconds).micros();
        let sql = "UPDATE job SET visible_at = $3 WHERE task_id = $1 AND attempt = $2 AND worker IS NOT NULL";
        let heard = fenced(&tx, sql, &[&task.as_str(), &attempt, &until]).await;
        tx.end(heard).await
    }

    pub(crate) async fn release(
        &self,
        task: &TaskId,
        attempt: i64,
    ) -> Result<FenceOutcome, StoreError> {
        let tx = self.begin().await?;
        let sql = "UPDATE job SET visible_at = $3, worker = NULL
                   WHERE task_id = $1 AND attempt = $2 AND worker IS NOT NULL";
        let heard = fenced(&tx, sql, &[&task.as_str(), &attempt, &tx.now.micros()]).await;
        let outcome = tx.end(heard).await?;
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
        let tx = self.begin().await?;
        let due_at = tx.now.micros() + delay_micros;
        let sql = "UPDATE job SET visible_at = $3, worker = NULL,
                       transient_failures = transient_failures + $4, crashes = crashes + $5
                   WHERE task_id = $1 AND attempt = $2 AND worker IS NOT NULL";
        let params: [&(dyn ToSql + Sync); 5] =
            [&task.as_str(), &attempt, &due_at, &transient, &crash];
        let heard = fenced(&tx, sql, &params).await;
        tx.end(heard).await
    }
}

/// Runs a statement whose WHERE is the fence.
pub(super) async fn fenced(
    tx: &Tx,
    sql: &str,
    params: &[&(dyn ToSql + Sync)],
) -> Result<FenceOutcome, StoreError> {
    Ok(match tx.execute(sql, params).await? {
        0 => FenceOutcome::Lost,
        _ => FenceOutcome::Done,
    })
}

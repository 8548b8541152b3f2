//! Ends what passed its deadline, and mends what a clock that stepped back would leave asleep.

use upscale_core::TaskId;

use super::{
    Db, Tx,
    rows::task_id,
    settle::{fail_task, lock_owners},
};
use crate::{
    StoreError,
    due_job::{RETRY_DELAY_SECONDS_MAX, overdue_message},
};

/// Tasks one call ends at most.
const REAPED_A_PAGE: i64 = 100;

impl Db {
    /// Fails a page of overdue tasks; their refunds are due.
    pub(crate) async fn reap(&self) -> Result<Vec<TaskId>, StoreError> {
        let mut tx = self.begin().await?;
        let reaped = reap(&mut tx).await;
        tx.end(reaped).await
    }
}

async fn reap(tx: &mut Tx) -> Result<Vec<TaskId>, StoreError> {
    mend_after_clock_step(tx).await?;
    let overdue = tx
        .list(
            "SELECT task_id FROM job WHERE deadline_at <= $1 ORDER BY deadline_at LIMIT $2",
            &[&tx.now.micros(), &REAPED_A_PAGE],
            |row| task_id(row, "task_id"),
        )
        .await?;
    if overdue.is_empty() {
        return Ok(overdue);
    }
    // Accounts before jobs, as a settlement does; what it settled meanwhile is not there any more.
    lock_owners(tx, &overdue).await?;
    let tasks: Vec<&str> = overdue.iter().map(TaskId::as_str).collect();
    let reaped = tx
        .list(
            "DELETE FROM job WHERE task_id = ANY($1) AND deadline_at <= $2 RETURNING task_id",
            &[&tasks, &tx.now.micros()],
            |row| task_id(row, "task_id"),
        )
        .await?;
    let message = overdue_message(tx.options.deadline_seconds);
    for task in &reaped {
        fail_task(tx, task, &message).await?;
    }
    Ok(reaped)
}

/// No moment of a job lies further ahead than was written when it was the future: if one does, the clock
/// stepped back since, and leases, delays and deadlines would last as much longer. They start anew, so a
/// live worker has a whole lease to speak up and a task ends one deadline after the step at the latest.
/// Jobs that a claim holds just now are left to the next time.
async fn mend_after_clock_step(tx: &Tx) -> Result<(), StoreError> {
    let in_seconds = |seconds| tx.now.plus_seconds(seconds).micros();
    tx.execute(
        "UPDATE job SET deadline_at = $1 WHERE task_id IN
             (SELECT task_id FROM job WHERE deadline_at > $1 FOR UPDATE SKIP LOCKED)",
        &[&in_seconds(tx.options.deadline_seconds)],
    )
    .await?;
    let lease = tx.options.lease_seconds;
    tx.execute(
        "UPDATE job SET visible_at = $2 WHERE task_id IN
             (SELECT task_id FROM job WHERE visible_at > $1 FOR UPDATE SKIP LOCKED)",
        &[
            &in_seconds(lease.max(RETRY_DELAY_SECONDS_MAX)),
            &in_seconds(lease),
        ],
    )
    .await
    .map(drop)
}

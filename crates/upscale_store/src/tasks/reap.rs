//! Ends what passed its deadline, and mends what a clock that stepped back would leave asleep.

use upscale_core::{FailureMessage, TaskId, limits::RETRY_DELAY_SECONDS_MAX};

use super::{Tasks, due_job::overdue_message, settle::fail_task};
use crate::{StoreError, row::Row, tx::Tx};

/// Tasks one call ends at most.
const REAPED_A_PAGE: u32 = 100;

impl Tasks<'_> {
    /// Fails and refunds up to a page of tasks past their deadline; how many.
    pub async fn reap(self) -> Result<u32, StoreError> {
        let overdue = self.store.write(async |tx: &mut Tx| reap(tx).await).await?;
        let reaped = u32::try_from(overdue.len()).unwrap_or(u32::MAX);
        self.refund_now(overdue).await;
        Ok(reaped)
    }
}

/// Accounts before jobs, as a settlement does. Mending holds jobs, so it comes last: a reaper that mended first held a
/// job while it waited for its account, whose settlement waited for that job (1 crowd in some 60 on a busy machine).
async fn reap(tx: &mut Tx) -> Result<Vec<TaskId>, StoreError> {
    let reaped = end_overdue(tx).await?;
    mend_after_clock_step(tx).await?;
    Ok(reaped)
}

async fn end_overdue(tx: &mut Tx) -> Result<Vec<TaskId>, StoreError> {
    let overdue = tx
        .list(
            "SELECT task_id FROM job WHERE deadline_at <= $1 ORDER BY deadline_at LIMIT $2",
            &[&tx.now, &REAPED_A_PAGE],
            |row| row.task_id("task_id"),
        )
        .await?;
    if overdue.is_empty() {
        return Ok(overdue);
    }
    // What a settlement ended meanwhile is not there any more.
    tx.lock_owners(&overdue).await?;
    let overdue: Vec<&str> = overdue.iter().map(TaskId::as_str).collect();
    let sql = "DELETE FROM job WHERE task_id = ANY($1) AND deadline_at <= $2
         RETURNING task_id, attempt, interruptions, worker";
    let deadline = tx.options.deadline_seconds;
    let reaped = tx
        .list_each(sql, &overdue, &[&tx.now], |row| reaped(row, deadline))
        .await?;
    for (task, message) in &reaped {
        fail_task(tx, task, message).await?;
    }
    Ok(reaped.into_iter().map(|(task, _)| task).collect())
}

/// A job that is still claimed was interrupted: a process that lives ends its attempts before the deadline.
fn reaped(row: &dyn Row, deadline_seconds: i64) -> Result<(TaskId, FailureMessage), StoreError> {
    let interrupted_now = row.text_if_any("worker")?.is_some();
    let interruptions = row.whole::<u32>("interruptions")? + u32::from(interrupted_now);
    let message = overdue_message(deadline_seconds, row.number("attempt")?, interruptions);
    Ok((row.task_id("task_id")?, message))
}

/// No moment of a job lies further ahead than was written when it was the future: if one does, the clock
/// stepped back since, and leases, delays and deadlines would last as much longer. They start anew, so a
/// live worker has a whole lease to speak up and a task ends one deadline after the step at the latest.
/// Jobs that a claim holds just now are left to the next time. It happens without any step: a job that a process wrote
/// after this transaction read its clock lies ahead, too.
async fn mend_after_clock_step(tx: &Tx) -> Result<(), StoreError> {
    let deadline = tx.now.plus_seconds(tx.options.deadline_seconds);
    tx.execute(
        "UPDATE job SET deadline_at = $1 WHERE task_id IN
             (SELECT task_id FROM job WHERE deadline_at > $1 FOR UPDATE SKIP LOCKED)",
        &[&deadline],
    )
    .await?;
    let lease = tx.options.lease_seconds;
    let furthest = tx.now.plus_seconds(lease.max(RETRY_DELAY_SECONDS_MAX));
    tx.execute(
        "UPDATE job SET visible_at = $2 WHERE task_id IN
             (SELECT task_id FROM job WHERE visible_at > $1 FOR UPDATE SKIP LOCKED)",
        &[&furthest, &tx.now.plus_seconds(lease)],
    )
    .await
    .map(drop)
}

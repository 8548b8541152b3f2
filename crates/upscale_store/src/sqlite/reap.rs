//! Ends what passed its deadline, and mends what a clock that stepped back would leave asleep.

use rusqlite::params;
use upscale_core::TaskId;

use super::{Db, Tx, rows::task_id, settle::fail_task};
use crate::{
    StoreError,
    due_job::{RETRY_DELAY_SECONDS_MAX, overdue_message},
};

/// Tasks one call ends at most.
const REAPED_A_PAGE: u32 = 100;

impl Db {
    /// Fails a page of overdue tasks; their refunds are due.
    pub(crate) async fn reap(&self) -> Result<Vec<TaskId>, StoreError> {
        self.write(|tx| {
            mend_after_clock_step(tx)?;
            let overdue = tx.list(
                "DELETE FROM job WHERE task_id IN
                     (SELECT task_id FROM job WHERE deadline_at <= ?1 ORDER BY deadline_at LIMIT ?2)
                 RETURNING task_id",
                params![tx.now.micros(), REAPED_A_PAGE],
                |row| task_id(row, "task_id"),
            )?;
            let message = overdue_message(tx.options.deadline_seconds);
            for task in &overdue {
                fail_task(tx, task, &message)?;
            }
            Ok(overdue)
        })
        .await
    }
}

/// No moment of a job lies further ahead than was written when it was the future: if one does, the clock
/// stepped back since, and leases, delays and deadlines would last as much longer. They start anew, so a
/// live worker has a whole lease to speak up and a task ends one deadline after the step at the latest.
fn mend_after_clock_step(tx: &Tx<'_>) -> Result<(), StoreError> {
    let in_seconds = |seconds| tx.now.plus_seconds(seconds).micros();
    let deadline = in_seconds(tx.options.deadline_seconds);
    tx.execute(
        "UPDATE job SET deadline_at = ?1 WHERE deadline_at > ?1",
        [deadline],
    )?;
    let lease = tx.options.lease_seconds;
    tx.execute(
        "UPDATE job SET visible_at = ?2 WHERE visible_at > ?1",
        params![
            in_seconds(lease.max(RETRY_DELAY_SECONDS_MAX)),
            in_seconds(lease)
        ],
    )
    .map(drop)
}

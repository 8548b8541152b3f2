//! The rows behind retention: which result files are due to go, which files no task names, which records
//! are old enough to forget. Files are removed by the caller, before their rows say so.

use rusqlite::params;
use upscale_core::{ResultFile, TaskId};

use super::{Db, Tx, rows::task_id, task_rows::result_file};
use crate::{
    StoreError,
    retention::{DAYS_A_PAGE, records_kept_from_day, results_kept_after, yesterday},
};

impl Db {
    /// Succeeded tasks whose files are past retention, oldest first.
    pub(crate) async fn list_expired_results(
        &self,
        limit: u32,
    ) -> Result<Vec<(TaskId, String)>, StoreError> {
        self.read(move |tx| {
            tx.list(
                "SELECT id, result_name FROM task
                 WHERE state = 'succeeded' AND result_removed_at IS NULL AND finished_at <= ?1
                 ORDER BY finished_at LIMIT ?2",
                params![results_kept_after(tx.now, tx.options).micros(), limit],
                |row| Ok((task_id(row, "id")?, row.get("result_name")?)),
            )
        })
        .await
    }

    /// Records that these tasks' files are gone.
    pub(crate) async fn mark_results_removed(&self, tasks: Vec<TaskId>) -> Result<(), StoreError> {
        self.write(move |tx| {
            for task in &tasks {
                tx.execute_one(
                    "UPDATE task SET result_removed_at = coalesce(result_removed_at, ?2)
                     WHERE id = ?1 AND state = 'succeeded'",
                    params![task.as_str(), tx.now.micros()],
                )?;
            }
            Ok(())
        })
        .await
    }

    /// Those of the names that no task keeps a file under.
    pub(crate) async fn list_unnamed(&self, names: Vec<String>) -> Result<Vec<String>, StoreError> {
        self.read(move |tx| {
            let mut unnamed = Vec::new();
            for name in names {
                let kept = tx.find(
                    "SELECT 1 FROM task WHERE result_name = ?1 AND result_removed_at IS NULL",
                    [&name],
                    |_| Ok(()),
                )?;
                if kept.is_none() {
                    unnamed.push(name);
                }
            }
            Ok(unnamed)
        })
        .await
    }

    /// A page of results that must be there now, in order of task id, after `after`.
    pub(crate) async fn list_kept_results(
        &self,
        after: String,
        limit: u32,
    ) -> Result<Vec<(TaskId, ResultFile)>, StoreError> {
        self.read(move |tx| {
            // A minute's margin: the sweep may be removing what has just expired.
            let since = results_kept_after(tx.now, tx.options).plus_seconds(60);
            tx.list(
                "SELECT * FROM task WHERE id > ?1 AND state = 'succeeded' AND result_removed_at IS NULL
                     AND finished_at > ?2 ORDER BY id LIMIT ?3",
                params![after, since.micros(), limit],
                |row| Ok((task_id(row, "id")?, result_file(row)?)),
            )
        })
        .await
    }

    /// Forgets a page of old records, whole account days at a time so that the day counters stay exact;
    /// false when none was left. The ledger stays.
    pub(crate) async fn forget_records(&self) -> Result<bool, StoreError> {
        self.write(|tx| {
            forget_what_is_over(tx)?;
            let from_day = records_kept_from_day(tx.now, tx.options);
            let days = tx.list(
                "SELECT account_id, day FROM account_day WHERE day < ?1 AND NOT EXISTS
                     (SELECT 1 FROM task WHERE task.account_id = account_day.account_id
                          AND task.day = account_day.day AND (state = 'processing' OR refund = 'pending'
                              OR (state = 'succeeded' AND result_removed_at IS NULL)))
                 ORDER BY day LIMIT ?2",
                params![from_day, DAYS_A_PAGE],
                |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?)),
            )?;
            for (account, day) in &days {
                tx.execute("DELETE FROM task WHERE account_id = ?1 AND day = ?2", params![account, day])?;
                tx.execute_one(
                    "DELETE FROM account_day WHERE account_id = ?1 AND day = ?2",
                    params![account, day],
                )?;
            }
            Ok(!days.is_empty())
        })
        .await
    }
}

/// Create windows and workers of yesterday count for nothing any more; nor do sessions, reset links and counted
/// tries whose time is over.
fn forget_what_is_over(tx: &Tx<'_>) -> Result<(), StoreError> {
    let (yesterday, window) = yesterday(tx.now);
    for over in [
        "DELETE FROM console_session WHERE expires_at <= ?1",
        "DELETE FROM password_reset WHERE expires_at <= ?1",
        "DELETE FROM sign_in_attempt WHERE ends_at <= ?1",
    ] {
        tx.execute(over, [tx.now.micros()])?;
    }
    tx.execute("DELETE FROM rate_window WHERE window < ?1", [window])?;
    tx.execute(
        "DELETE FROM worker WHERE seen_at < ?1",
        [yesterday.micros()],
    )
    .map(drop)
}

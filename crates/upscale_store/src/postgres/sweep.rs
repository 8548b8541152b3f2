//! The rows behind retention: which result files are due to go, which files no task names, which records
//! are old enough to forget. Files are removed by the caller, before their rows say so.

use std::collections::HashSet;

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
        let tx = self.read().await?;
        let until = results_kept_after(tx.now, tx.options).micros();
        tx.list(
            "SELECT id, result_name FROM task
             WHERE state = 'succeeded' AND result_removed_at IS NULL AND finished_at <= $1
             ORDER BY finished_at LIMIT $2",
            &[&until, &i64::from(limit)],
            |row| Ok((task_id(row, "id")?, row.try_get("result_name")?)),
        )
        .await
    }

    /// Records that these tasks' files are gone.
    pub(crate) async fn mark_results_removed(&self, tasks: Vec<TaskId>) -> Result<(), StoreError> {
        let tx = self.begin().await?;
        let tasks: Vec<&str> = tasks.iter().map(TaskId::as_str).collect();
        let marked = tx
            .execute(
                "UPDATE task SET result_removed_at = coalesce(result_removed_at, $2)
                 WHERE id = ANY($1) AND state = 'succeeded'",
                &[&tasks, &tx.now.micros()],
            )
            .await;
        let marked = tx.end(marked).await?;
        if marked != tasks.len() as u64 {
            let what = format!("{marked} of {} removed results have a task", tasks.len());
            return Err(StoreError::Corrupt(what));
        }
        Ok(())
    }

    /// Those of the names that no task keeps a file under.
    pub(crate) async fn list_unnamed(&self, names: Vec<String>) -> Result<Vec<String>, StoreError> {
        let sql = "SELECT result_name FROM task WHERE result_name = ANY($1) AND result_removed_at IS NULL";
        let tx = self.read().await?;
        let kept = tx
            .list(sql, &[&names], |row| Ok(row.try_get::<_, String>(0)?))
            .await?;
        let kept: HashSet<String> = kept.into_iter().collect();
        Ok(names
            .into_iter()
            .filter(|name| !kept.contains(name))
            .collect())
    }

    /// A page of results that must be there now, in order of task id, after `after`.
    pub(crate) async fn list_kept_results(
        &self,
        after: String,
        limit: u32,
    ) -> Result<Vec<(TaskId, ResultFile)>, StoreError> {
        let tx = self.read().await?;
        // A minute's margin: the sweep may be removing what has just expired.
        let since = results_kept_after(tx.now, tx.options).plus_seconds(60);
        tx.list(
            "SELECT * FROM task WHERE id > $1 AND state = 'succeeded' AND result_removed_at IS NULL
                 AND finished_at > $2 ORDER BY id LIMIT $3",
            &[&after, &since.micros(), &i64::from(limit)],
            |row| Ok((task_id(row, "id")?, result_file(row)?)),
        )
        .await
    }

    /// Forgets a page of old records, whole account days at a time so that the day counters stay exact;
    /// false when none was left. The ledger stays.
    pub(crate) async fn forget_records(&self) -> Result<bool, StoreError> {
        let tx = self.begin().await?;
        let forgotten = forget_records(&tx).await;
        tx.end(forgotten).await
    }
}

async fn forget_records(tx: &Tx) -> Result<bool, StoreError> {
    forget_what_is_over(tx).await?;
    // Two sweeps at once take different days.
    let days = tx
        .list(
            "SELECT account_id, day FROM account_day WHERE day < $1 AND NOT EXISTS
                 (SELECT 1 FROM task WHERE task.account_id = account_day.account_id
                      AND task.day = account_day.day AND (state = 'processing' OR refund = 'pending'
                          OR (state = 'succeeded' AND result_removed_at IS NULL)))
             ORDER BY day LIMIT $2 FOR UPDATE SKIP LOCKED",
            &[
                &records_kept_from_day(tx.now, tx.options),
                &i64::from(DAYS_A_PAGE),
            ],
            |row| Ok((row.try_get::<_, String>(0)?, row.try_get::<_, i64>(1)?)),
        )
        .await?;
    for (account, day) in &days {
        let tasks = "DELETE FROM task WHERE account_id = $1 AND day = $2";
        tx.execute(tasks, &[account, day]).await?;
        let counter = "DELETE FROM account_day WHERE account_id = $1 AND day = $2";
        tx.execute_one(counter, &[account, day]).await?;
    }
    Ok(!days.is_empty())
}

/// Create windows and workers of yesterday count for nothing any more; nor do sessions, reset links and counted
/// tries whose time is over.
async fn forget_what_is_over(tx: &Tx) -> Result<(), StoreError> {
    let (yesterday, window) = yesterday(tx.now);
    for over in [
        "DELETE FROM console_session WHERE expires_at <= $1",
        "DELETE FROM password_reset WHERE expires_at <= $1",
        "DELETE FROM sign_in_attempt WHERE ends_at <= $1",
    ] {
        tx.execute(over, &[&tx.now.micros()]).await?;
    }
    tx.execute("DELETE FROM rate_window WHERE \"window\" < $1", &[&window])
        .await?;
    let workers = "DELETE FROM worker WHERE seen_at < $1";
    tx.execute(workers, &[&yesterday.micros()]).await.map(drop)
}

//! Retention: files first, rows after, so that a crash in between leaves a row that says "still there" and
//! the next sweep removes nothing twice and forgets nothing.

use std::collections::HashSet;

use futures_util::StreamExt;
use upscale_core::{ResultFile, TaskId, limits::ORPHAN_SECONDS};

use crate::{
    Results, Store, StoreError,
    retention::{DAYS_A_PAGE, records_kept_from_day, results_kept_after, yesterday},
    tasks::row::result_file,
    tx::Tx,
};

/// Files removed before their rows are marked.
const FILES_A_PAGE: u32 = 100;
/// Results an audit looks at in one read.
const KEPT_A_PAGE: u32 = 200;
/// Pages one sweep does at most; the rest waits for the next.
const PAGES_MAX: u32 = 1_000;
/// Names looked up at a time in the search for orphans.
const NAMES_A_PAGE: usize = 500;

impl Store {
    /// Removes result files past retention, files no task names for an hour, and records past theirs;
    /// how many files.
    ///
    /// # Errors
    /// [`StoreError`] when a row or file cannot be read or removed; what was done stays done.
    pub async fn sweep(&self, results: &Results) -> Result<u32, StoreError> {
        let expired = self.remove_expired(results).await?;
        let orphans = self.remove_orphans(results).await?;
        for _ in 0..PAGES_MAX {
            if !self
                .write(async |tx: &mut Tx| forget_records(tx).await)
                .await?
            {
                break;
            }
        }
        Ok(expired + orphans)
    }

    async fn remove_expired(&self, results: &Results) -> Result<u32, StoreError> {
        let mut removed = 0;
        for _ in 0..PAGES_MAX {
            let page = self
                .read(async |tx: &mut Tx| list_expired_results(tx).await)
                .await?;
            if page.is_empty() {
                break;
            }
            let (tasks, names): (Vec<_>, Vec<_>) = page.into_iter().unzip();
            results.delete_all(&names).await?;
            removed += u32::try_from(names.len()).unwrap_or(u32::MAX);
            self.write(async move |tx: &mut Tx| mark_results_removed(tx, &tasks).await)
                .await?;
        }
        Ok(removed)
    }

    /// What lost attempts left behind. An hour is far beyond every deadline, so no attempt that could still
    /// name its file is alive.
    async fn remove_orphans(&self, results: &Results) -> Result<u32, StoreError> {
        let before = self.now().plus_seconds(-ORPHAN_SECONDS);
        let mut pages = results.list_older_than(before).chunks(NAMES_A_PAGE);
        let mut removed = results.remove_unfinished(before).await?;
        while let Some(page) = pages.next().await {
            let names = page.into_iter().collect::<Result<Vec<_>, _>>()?;
            let orphans = self
                .read(async move |tx: &mut Tx| list_unnamed(tx, names).await)
                .await?;
            results.delete_all(&orphans).await?;
            removed += u32::try_from(orphans.len()).unwrap_or(u32::MAX);
        }
        Ok(removed)
    }

    /// A page of results that must be there now, in order of task id, after `after`.
    pub(crate) async fn list_kept_results(
        &self,
        after: String,
    ) -> Result<Vec<(TaskId, ResultFile)>, StoreError> {
        self.read(async move |tx: &mut Tx| {
            // A minute's margin: the sweep may be removing what has just expired.
            let since = results_kept_after(tx.now, tx.options).plus_seconds(60);
            tx.list(
                "SELECT * FROM task WHERE id > $1 AND state = 'succeeded' AND result_removed_at IS NULL
                     AND finished_at > $2 ORDER BY id LIMIT $3",
                &[&after, &since, &KEPT_A_PAGE],
                |row| Ok((row.task_id("id")?, result_file(row)?)),
            )
            .await
        })
        .await
    }
}

/// Succeeded tasks whose files are past retention, oldest first.
async fn list_expired_results(tx: &Tx) -> Result<Vec<(TaskId, String)>, StoreError> {
    tx.list(
        "SELECT id, result_name FROM task
         WHERE state = 'succeeded' AND result_removed_at IS NULL AND finished_at <= $1
         ORDER BY finished_at LIMIT $2",
        &[&results_kept_after(tx.now, tx.options), &FILES_A_PAGE],
        |row| Ok((row.task_id("id")?, row.string("result_name")?)),
    )
    .await
}

/// Records that these tasks' files are gone.
async fn mark_results_removed(tx: &Tx, tasks: &[TaskId]) -> Result<(), StoreError> {
    let tasks: Vec<&str> = tasks.iter().map(TaskId::as_str).collect();
    let sql = "UPDATE task SET result_removed_at = coalesce(result_removed_at, $2)
         WHERE id = ANY($1) AND state = 'succeeded'";
    let marked = tx.execute_each(sql, &tasks, &[&tx.now]).await?;
    if marked != tasks.len() as u64 {
        let what = format!("{marked} of {} removed results have a task", tasks.len());
        return Err(StoreError::Corrupt(what));
    }
    Ok(())
}

/// Those of the names that no task keeps a file under.
async fn list_unnamed(tx: &Tx, names: Vec<String>) -> Result<Vec<String>, StoreError> {
    let sql =
        "SELECT result_name FROM task WHERE result_name = ANY($1) AND result_removed_at IS NULL";
    let each: Vec<&str> = names.iter().map(String::as_str).collect();
    let kept = tx
        .list_each(sql, &each, &[], |row| row.string("result_name"))
        .await?;
    let kept: HashSet<String> = kept.into_iter().collect();
    let unnamed = names.into_iter().filter(|name| !kept.contains(name));
    Ok(unnamed.collect())
}

/// Forgets a page of old records, whole account days at a time so that the day counters stay exact;
/// false when none was left. The ledger stays.
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
            &[&records_kept_from_day(tx.now, tx.options), &DAYS_A_PAGE],
            |row| Ok((row.string("account_id")?, row.number("day")?)),
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
        tx.execute(over, &[&tx.now]).await?;
    }
    let windows = "DELETE FROM rate_window WHERE \"window\" < $1";
    tx.execute(windows, &[&window]).await?;
    let workers = "DELETE FROM worker WHERE seen_at < $1";
    tx.execute(workers, &[&yesterday]).await.map(drop)
}

//! Retention: files first, rows after, so that a crash in between leaves a row that says "still there" and
//! the next sweep removes nothing twice and forgets nothing. A result goes in two sweeps: the first that finds it past its
//! retention notes when, one at least an hour later removes it. While the clock is not to be trusted nothing goes at all.

use std::collections::{BTreeSet, HashSet};

use futures_util::StreamExt;
use upscale_core::{
    ResultFile, TaskId, Timestamp,
    limits::{ORPHAN_SECONDS, RESULT_DUE_SECONDS},
};

use crate::{
    Results, Store, StoreError,
    retention::{
        DAYS_A_PAGE, KEYS_A_PAGE, keys_kept_from_day, records_kept_from_day, results_kept_after,
        revoked_keys_kept_after, yesterday,
    },
    tasks::{
        row::{TASK, result_file},
        used_key,
    },
    tx::Tx,
};

/// Files removed before their rows are marked, and results noted as due in one transaction.
const FILES_A_PAGE: u32 = 100;
/// Results an audit looks at in one read.
const KEPT_A_PAGE: u32 = 200;
/// Pages one sweep does at most; the rest waits for the next.
const PAGES_MAX: u32 = 1_000;
/// Names looked up at a time in the search for orphans.
const NAMES_A_PAGE: usize = 500;

impl Store {
    /// Removes result files past retention, files no task names for an hour, and records past theirs; how many files.
    /// Nothing while deletions pause (see [`Store::look_at_clock`]). All of it compares with the one moment at which the
    /// sweep began, so that a clock that steps in the middle of it makes nothing old.
    ///
    /// # Errors
    /// [`StoreError`] when a row or file cannot be read or removed; what was done stays done.
    pub async fn sweep(&self, results: &Results) -> Result<u32, StoreError> {
        let look = self.look_at_clock().await?;
        if look.pause_seconds > 0 {
            return Ok(0);
        }
        let now = look.now;
        self.write(async move |tx: &mut Tx| forget_premature(tx, now).await)
            .await?;
        let expired = self.remove_due(results, now).await?;
        self.repeat(async move |tx: &mut Tx| note_due(tx, now).await)
            .await?;
        let orphans = self.remove_orphans(results, now).await?;
        self.repeat(async move |tx: &mut Tx| forget_records(tx, now).await)
            .await?;
        Ok(expired + orphans)
    }

    /// Page after page, until one says that none is left.
    async fn repeat(
        &self,
        page: impl AsyncFnOnce(&mut Tx) -> Result<bool, StoreError> + Copy + Send + 'static,
    ) -> Result<(), StoreError> {
        for _ in 0..PAGES_MAX {
            if !self.write(page).await? {
                break;
            }
        }
        Ok(())
    }

    async fn remove_due(&self, results: &Results, now: Timestamp) -> Result<u32, StoreError> {
        let mut removed = 0;
        for _ in 0..PAGES_MAX {
            let page = self
                .read(async move |tx: &mut Tx| list_due(tx, now).await)
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
    async fn remove_orphans(&self, results: &Results, now: Timestamp) -> Result<u32, StoreError> {
        let before = now.plus_seconds(-ORPHAN_SECONDS);
        let mut pages = results.list_older_than(before).chunks(NAMES_A_PAGE);
        let mut removed = results.remove_unfinished(before).await?;
        while let Some(page) = pages.next().await {
            // A result and its thumbnail have one name.
            let names = page.into_iter().collect::<Result<BTreeSet<_>, _>>()?;
            let names = names.into_iter().collect();
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
            let sql = format!(
                "SELECT {TASK} FROM task WHERE id > $1 AND state = 'succeeded' AND result_removed_at IS NULL
                     AND finished_at > $2 ORDER BY id LIMIT $3"
            );
            tx.list(
                &sql,
                &[&after, &since, &KEPT_A_PAGE],
                |row| Ok((row.task_id("id")?, result_file(row)?)),
            )
            .await
        })
        .await
    }
}

/// What a clock that was wrong has noted as due, and is not, is due no more.
async fn forget_premature(tx: &Tx, now: Timestamp) -> Result<(), StoreError> {
    let kept_after = results_kept_after(now, tx.options);
    let sql = "UPDATE task SET result_due_at = NULL WHERE result_due_at IS NOT NULL AND result_removed_at IS NULL
             AND (result_due_at > $1 OR finished_at > $2)";
    tx.execute(sql, &[&now, &kept_after]).await.map(drop)
}

/// Notes a page of results that are past retention from now on; whether there were any.
async fn note_due(tx: &Tx, now: Timestamp) -> Result<bool, StoreError> {
    let sql = "UPDATE task SET result_due_at = $1 WHERE id IN (SELECT id FROM task
         WHERE state = 'succeeded' AND result_removed_at IS NULL AND result_due_at IS NULL AND finished_at <= $2
         ORDER BY finished_at LIMIT $3)";
    let kept_after = results_kept_after(now, tx.options);
    let noted = tx.execute(sql, &[&now, &kept_after, &FILES_A_PAGE]).await?;
    Ok(noted > 0)
}

/// Results that have been due for an hour, the longest first.
async fn list_due(tx: &Tx, now: Timestamp) -> Result<Vec<(TaskId, String)>, StoreError> {
    tx.list(
        "SELECT id, result_name FROM task WHERE result_due_at <= $1 AND result_removed_at IS NULL
             AND result_due_at IS NOT NULL AND finished_at <= $2
         ORDER BY result_due_at LIMIT $3",
        &[
            &now.plus_seconds(-RESULT_DUE_SECONDS),
            &results_kept_after(now, tx.options),
            &FILES_A_PAGE,
        ],
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

/// Forgets a page of old records, whole account days at a time so that the day counters stay exact, and of keys older
/// still; false when none was left. The ledger stays.
async fn forget_records(tx: &Tx, now: Timestamp) -> Result<bool, StoreError> {
    forget_what_is_over(tx, now).await?;
    // Two sweeps at once take different days.
    let days = tx
        .list(
            "SELECT account_id, day FROM account_day WHERE day < $1 AND NOT EXISTS
                 (SELECT 1 FROM task WHERE task.account_id = account_day.account_id
                      AND task.day = account_day.day AND (state = 'processing' OR refund = 'pending'
                          OR (state = 'succeeded' AND result_removed_at IS NULL)))
             ORDER BY day LIMIT $2 FOR UPDATE SKIP LOCKED",
            &[&records_kept_from_day(now, tx.options), &DAYS_A_PAGE],
            |row| Ok((row.string("account_id")?, row.number("day")?)),
        )
        .await?;
    for (account, day) in &days {
        used_key::keep_keys_of_day(tx, account, *day).await?;
        let tasks = "DELETE FROM task WHERE account_id = $1 AND day = $2";
        tx.execute(tasks, &[account, day]).await?;
        let counter = "DELETE FROM account_day WHERE account_id = $1 AND day = $2";
        tx.execute_one(counter, &[account, day]).await?;
    }
    let before = keys_kept_from_day(now, tx.options);
    let keys = used_key::forget_keys_before(tx, before, KEYS_A_PAGE).await?;
    Ok(!days.is_empty() || keys > 0)
}

/// Create windows and workers of yesterday count for nothing any more; nor do sessions, links, browsers and
/// counted tries whose time is over, and keys that were revoked long ago.
async fn forget_what_is_over(tx: &Tx, now: Timestamp) -> Result<(), StoreError> {
    let (yesterday, window) = yesterday(now);
    for over in [
        "DELETE FROM console_session WHERE expires_at <= $1",
        "DELETE FROM password_reset WHERE expires_at <= $1",
        "DELETE FROM email_verification WHERE expires_at <= $1",
        "DELETE FROM email_change WHERE expires_at <= $1",
        "DELETE FROM known_browser WHERE expires_at <= $1",
        "DELETE FROM sign_in_attempt WHERE ends_at <= $1",
    ] {
        tx.execute(over, &[&now]).await?;
    }
    let windows = "DELETE FROM rate_window WHERE \"window\" < $1";
    tx.execute(windows, &[&window]).await?;
    let workers = "DELETE FROM worker WHERE seen_at < $1";
    tx.execute(workers, &[&yesterday]).await?;
    // Nothing refers to a key's row; what operators did to it is told in words of their own.
    let keys = "DELETE FROM api_key WHERE revoked_at <= $1";
    let before = revoked_keys_kept_after(now);
    tx.execute(keys, &[&before]).await.map(drop)
}

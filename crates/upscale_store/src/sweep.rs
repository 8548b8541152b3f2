//! Retention: files first, rows after, so that a crash in between leaves a row that says "still there" and
//! the next sweep removes nothing twice and forgets nothing.

use futures_util::StreamExt;
use upscale_core::limits::ORPHAN_SECONDS;

use crate::{Results, Store, StoreError};

/// Files removed before their rows are marked.
const FILES_A_PAGE: u32 = 100;
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
            let more = match self {
                Self::Sqlite(db) => db.forget_records().await?,
                Self::Postgres(db) => db.forget_records().await?,
            };
            if !more {
                break;
            }
        }
        Ok(expired + orphans)
    }

    async fn remove_expired(&self, results: &Results) -> Result<u32, StoreError> {
        let mut removed = 0;
        for _ in 0..PAGES_MAX {
            let page = match self {
                Self::Sqlite(db) => db.list_expired_results(FILES_A_PAGE).await?,
                Self::Postgres(db) => db.list_expired_results(FILES_A_PAGE).await?,
            };
            if page.is_empty() {
                break;
            }
            let (tasks, names): (Vec<_>, Vec<_>) = page.into_iter().unzip();
            results.delete_all(&names).await?;
            removed += u32::try_from(names.len()).unwrap_or(u32::MAX);
            match self {
                Self::Sqlite(db) => db.mark_results_removed(tasks).await?,
                Self::Postgres(db) => db.mark_results_removed(tasks).await?,
            }
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
            let orphans = match self {
                Self::Sqlite(db) => db.list_unnamed(names).await?,
                Self::Postgres(db) => db.list_unnamed(names).await?,
            };
            results.delete_all(&orphans).await?;
            removed += u32::try_from(orphans.len()).unwrap_or(u32::MAX);
        }
        Ok(removed)
    }
}

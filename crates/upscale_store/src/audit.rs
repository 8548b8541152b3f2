//! The audit as a whole: what the engine's rows show, what the result files show (I7), and the consequence:
//! an account whose books are wrong gets no further task until an audit finds them right.

use std::collections::BTreeSet;

use futures_util::{StreamExt, stream};
use upscale_core::{AccountId, ResultFile, TaskId};

use crate::{AuditReport, Breach, Results, Store, StoreError};

/// Results looked at in one read, and at a time.
const RESULTS_A_PAGE: u32 = 200;
const FILES_AT_A_TIME: usize = 16;

impl Store {
    /// Checks every invariant that rows can show, and I7 (a succeeded task's file is there, whole) when
    /// `results` is given. Accounts with a breach are stopped, the others may go on. Reads every kept task:
    /// some tens of microseconds each, so whoever repeats it leaves a multiple of its own time between.
    ///
    /// # Errors
    /// [`StoreError`] when the store or a result file cannot be read; then nothing is stopped or freed.
    pub async fn audit(&self, results: Option<&Results>) -> Result<AuditReport, StoreError> {
        let mut report = match self {
            Self::Sqlite(db) => db.audit().await?,
            Self::Postgres(db) => db.audit().await?,
        };
        if let Some(results) = results {
            report.checked.push("I7".to_owned());
            report.breaches.extend(self.check_files(results).await?);
        }
        self.stop_accounts(&report).await?;
        Ok(report)
    }

    /// Writes only when somebody is to be stopped or freed: most audits find nothing new.
    async fn stop_accounts(&self, report: &AuditReport) -> Result<(), StoreError> {
        let breached: BTreeSet<AccountId> = report
            .breaches
            .iter()
            .filter_map(|breach| breach.account_id)
            .collect();
        let stopped = match self {
            Self::Sqlite(db) => db.list_stopped().await?,
            Self::Postgres(db) => db.list_stopped().await?,
        };
        if stopped == breached {
            return Ok(());
        }
        match self {
            Self::Sqlite(db) => db.set_stopped(breached).await,
            Self::Postgres(db) => db.set_stopped(breached).await,
        }
    }

    async fn check_files(&self, results: &Results) -> Result<Vec<Breach>, StoreError> {
        let mut breaches = Vec::new();
        let mut after = String::new();
        loop {
            let page = match self {
                Self::Sqlite(db) => db.list_kept_results(after, RESULTS_A_PAGE).await?,
                Self::Postgres(db) => db.list_kept_results(after, RESULTS_A_PAGE).await?,
            };
            let Some((last, _)) = page.last() else {
                return Ok(breaches);
            };
            after = last.as_str().to_owned();
            let checked = stream::iter(page).map(|(task, file)| check_file(results, task, file));
            let mut checked = checked.buffer_unordered(FILES_AT_A_TIME);
            while let Some(breach) = checked.next().await {
                breaches.extend(breach?);
            }
        }
    }
}

async fn check_file(
    results: &Results,
    task: TaskId,
    file: ResultFile,
) -> Result<Option<Breach>, StoreError> {
    let found = results.size_bytes(&file.name).await?;
    Ok((found != Some(file.size_bytes)).then(|| Breach {
        invariant: "I7".to_owned(),
        // No account: its books may be right, and an audit without files would let it go on at once.
        account_id: None,
        detail: match found {
            None => format!("task {task} succeeded and its file is not there"),
            Some(size) => format!("task {task}: {size} bytes instead of {}", file.size_bytes),
        },
    }))
}

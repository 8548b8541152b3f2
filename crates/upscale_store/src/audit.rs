//! The audit as a whole: what the engine's rows show, what the result files show (I7), and the consequence:
//! an account whose books are wrong gets no further task until an audit finds them right.

use std::collections::BTreeSet;

use futures_util::{StreamExt, stream};
use upscale_core::{AccountId, ResultFile, TaskId};

use crate::{
    AuditReport, Breach, Results, Store, StoreError, accounts::list_stopped, audit_checks::checks,
    tx::Tx,
};

/// Results looked at at a time.
const FILES_AT_A_TIME: usize = 16;

impl Store {
    /// Checks every invariant that rows can show, and I7 (a succeeded task's file is there, whole) when
    /// `results` is given. Accounts with a breach are stopped, the others may go on. Reads every kept task:
    /// some tens of microseconds each, so whoever repeats it leaves a multiple of its own time between.
    ///
    /// # Errors
    /// [`StoreError`] when the store or a result file cannot be read; then nothing is stopped or freed.
    pub async fn audit(&self, results: Option<&Results>) -> Result<AuditReport, StoreError> {
        let mut report = self.snapshot(async |tx: &mut Tx| audit(tx).await).await?;
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
        let stopped = self
            .read(async |tx: &mut Tx| list_stopped(tx).await)
            .await?;
        if stopped == breached {
            return Ok(());
        }
        self.write(async move |tx: &mut Tx| set_stopped(tx, &breached).await)
            .await
    }

    async fn check_files(&self, results: &Results) -> Result<Vec<Breach>, StoreError> {
        let mut breaches = Vec::new();
        let mut after = String::new();
        loop {
            let page = self.list_kept_results(after).await?;
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

/// The queries over one snapshot.
async fn audit(tx: &Tx) -> Result<AuditReport, StoreError> {
    let mut report = AuditReport::default();
    for check in checks() {
        let breached = tx.list(&check.sql, &[], |row| {
            Ok((row.string_if_any("account_id")?, row.string("detail")?))
        });
        report.add(check.invariant, breached.await?);
    }
    Ok(report)
}

/// Stops creates of these accounts and lets every other go on.
async fn set_stopped(tx: &mut Tx, accounts: &BTreeSet<AccountId>) -> Result<(), StoreError> {
    let stopped = list_stopped(tx).await?;
    let changed: Vec<AccountId> = stopped.symmetric_difference(accounts).copied().collect();
    let changed: Vec<&str> = changed.iter().map(AccountId::as_str).collect();
    tx.lock_accounts(&changed).await?;
    for (is_stopped, those) in [
        (false, stopped.difference(accounts)),
        (true, accounts.difference(&stopped)),
    ] {
        // A tampered row may name an account that is not there: how many rows change says nothing.
        let sql = "UPDATE account SET stopped = $2 WHERE id = ANY($1)";
        let those: Vec<&str> = those.map(AccountId::as_str).collect();
        tx.execute_each(sql, &those, &[&is_stopped]).await?;
    }
    Ok(())
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

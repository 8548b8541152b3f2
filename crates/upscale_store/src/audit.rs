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
    /// Checks every invariant that rows can show; with `results` also I7 (a succeeded task's file is there, whole) and
    /// I14 (SQLite's own file is whole; PostgreSQL looks after its pages itself). Accounts with a breach are stopped, the others may go on. Reads every kept task:
    /// some tens of microseconds each, so anyone who repeats it leaves a multiple of its own time between.
    ///
    /// # Errors
    /// [`StoreError`] when the store or a result file cannot be read; then nothing is stopped or freed.
    pub async fn audit(&self, results: Option<&Results>) -> Result<AuditReport, StoreError> {
        let with_file = results.is_some();
        let report = self.snapshot(async move |tx: &mut Tx| audit(tx, with_file).await);
        let mut report = report.await?;
        if let Some(results) = results {
            report.checked.push("I7".to_owned());
            report.breaches.extend(self.check_files(results).await?);
        }
        self.stop_accounts(&report).await?;
        Ok(report)
    }

    /// Writes only when someone is to be stopped or freed: most audits find nothing new.
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

/// The queries over one snapshot. In a file that is damaged some cannot be read: then the damage is what there is to say.
async fn audit(tx: &Tx, with_file: bool) -> Result<AuditReport, StoreError> {
    let with_file = with_file && !tx.is_shared();
    let damage = match with_file {
        true => find_damage(tx).await?,
        false => Vec::new(),
    };
    let mut report = AuditReport::default();
    for check in checks() {
        let breached = tx.list(&check.sql, &[], |row| {
            Ok((row.string_if_any("account_id")?, row.string("detail")?))
        });
        match breached.await {
            Err(StoreError::Corrupt(_)) if !damage.is_empty() => {}
            breached => report.add(check.invariant, breached?),
        }
    }
    if with_file {
        report.add("I14", damage);
    }
    Ok(report)
}

/// What SQLite finds wrong with its own file: pages that do not fit together, values that no column may hold.
async fn find_damage(tx: &Tx) -> Result<Vec<(Option<String>, String)>, StoreError> {
    let found = tx.list("PRAGMA quick_check", &[], |row| row.string("quick_check"));
    let found = match found.await {
        Err(StoreError::Corrupt(why)) => vec![why],
        found => found?,
    };
    let damage = found.into_iter().filter(|line| line != "ok");
    Ok(damage.map(|line| (None, line)).collect())
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
    if found != Some(file.size_bytes) {
        return Ok(Some(file_breach(match found {
            None => format!("task {task} succeeded and its file is not there"),
            Some(size) => format!("task {task}: {size} bytes instead of {}", file.size_bytes),
        })));
    }
    check_thumbnail(results, task, &file).await
}

/// One that is gone is no breach: nothing was sold with it, and pages show none.
async fn check_thumbnail(
    results: &Results,
    task: TaskId,
    file: &ResultFile,
) -> Result<Option<Breach>, StoreError> {
    let kept = file.preview.map_or(0, |preview| preview.thumbnail_bytes);
    if kept == 0 {
        return Ok(None);
    }
    let found = results.thumbnail_bytes(&file.name).await?;
    let is_wrong = found.is_some_and(|size| size != u64::from(kept));
    Ok(is_wrong.then(|| {
        let size = found.unwrap_or_default();
        file_breach(format!(
            "task {task}: a thumbnail of {size} bytes instead of {kept}"
        ))
    }))
}

/// No account: its books may be right, and an audit without files would let it go on at once.
fn file_breach(detail: String) -> Breach {
    Breach {
        invariant: "I7".to_owned(),
        account_id: None,
        detail,
    }
}

//! The audit's queries over one snapshot of the database, and the accounts that a breach stops.

use std::collections::BTreeSet;

use upscale_core::AccountId;

use super::{Db, Tx, rows::account_id};
use crate::{AuditReport, StoreError, audit_checks::checks};

impl Db {
    pub(crate) async fn audit(&self) -> Result<AuditReport, StoreError> {
        let tx = self.snapshot().await?;
        let report = audit(&tx).await;
        tx.end(report).await
    }

    /// Accounts that an earlier audit stopped.
    pub(crate) async fn list_stopped(&self) -> Result<BTreeSet<AccountId>, StoreError> {
        let sql = "SELECT id AS account_id FROM account WHERE stopped = 1";
        let listed = self.read().await?.list(sql, &[], account_id).await?;
        Ok(listed.into_iter().collect())
    }

    /// Stops creates of these accounts and lets every other go on.
    pub(crate) async fn set_stopped(
        &self,
        accounts: BTreeSet<AccountId>,
    ) -> Result<(), StoreError> {
        let accounts: Vec<String> = accounts.iter().map(ToString::to_string).collect();
        let mut tx = self.begin().await?;
        let set = set_stopped(&mut tx, &accounts).await;
        tx.end(set).await
    }
}

async fn set_stopped(tx: &mut Tx, accounts: &[String]) -> Result<(), StoreError> {
    let changed = tx
        .list(
            "SELECT id FROM account WHERE stopped <> CASE WHEN id = ANY($1) THEN 1 ELSE 0 END",
            &[&accounts],
            |row| Ok(row.try_get::<_, String>(0)?),
        )
        .await?;
    tx.lock_accounts(&changed).await?;
    tx.execute(
        "UPDATE account SET stopped = CASE WHEN id = ANY($1) THEN 1 ELSE 0 END WHERE id = ANY($2)",
        &[&accounts, &changed],
    )
    .await
    .map(drop)
}

async fn audit(tx: &Tx) -> Result<AuditReport, StoreError> {
    let mut report = AuditReport::default();
    for check in checks() {
        let breached = tx
            .list(&check.sql, &[], |row| {
                Ok((row.try_get(0)?, row.try_get(1)?))
            })
            .await?;
        report.add(check.invariant, breached);
    }
    Ok(report)
}

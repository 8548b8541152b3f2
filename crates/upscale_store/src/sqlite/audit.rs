//! The audit's queries over one snapshot of the file, and the accounts that a breach stops.

use std::collections::BTreeSet;

use upscale_core::AccountId;

use super::{Db, Tx, rows::account_id};
use crate::{AuditReport, StoreError, audit_checks::checks};

impl Db {
    pub(crate) async fn audit(&self) -> Result<AuditReport, StoreError> {
        self.read(audit).await
    }

    /// Accounts that an earlier audit stopped.
    pub(crate) async fn list_stopped(&self) -> Result<BTreeSet<AccountId>, StoreError> {
        self.read(list_stopped).await
    }

    /// Stops creates of these accounts and lets every other go on.
    pub(crate) async fn set_stopped(
        &self,
        accounts: BTreeSet<AccountId>,
    ) -> Result<(), StoreError> {
        self.write(move |tx| {
            let stopped = list_stopped(tx)?;
            for freed in stopped.difference(&accounts) {
                tx.execute_one(
                    "UPDATE account SET stopped = 0 WHERE id = ?1",
                    [freed.as_str()],
                )?;
            }
            for breached in accounts.difference(&stopped) {
                // A tampered row may name an account that is not there.
                tx.execute(
                    "UPDATE account SET stopped = 1 WHERE id = ?1",
                    [breached.as_str()],
                )?;
            }
            Ok(())
        })
        .await
    }
}

fn list_stopped(tx: &Tx<'_>) -> Result<BTreeSet<AccountId>, StoreError> {
    let sql = "SELECT id AS account_id FROM account WHERE stopped = 1";
    Ok(tx.list(sql, [], account_id)?.into_iter().collect())
}

fn audit(tx: &Tx<'_>) -> Result<AuditReport, StoreError> {
    let mut report = AuditReport::default();
    for check in checks() {
        let breached = tx.list(&check.sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
        report.add(check.invariant, breached);
    }
    Ok(report)
}

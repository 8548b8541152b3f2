//! A purchase: credits become available once per payment reference, and the first one opens access.

use upscale_core::{AccountId, Credits};

use super::{Db, Tx, ledger::transfer};
use crate::{
    PurchaseOutcome, StoreError,
    purchase::{check_purchase, credited_before},
    transfer::Transfer,
};

impl Db {
    pub(crate) async fn credit_account(
        &self,
        account: &AccountId,
        credits: Credits,
        reference: &str,
    ) -> Result<PurchaseOutcome, StoreError> {
        check_purchase(credits, reference)?;
        let mut tx = self.begin().await?;
        let credited = credit_account(&mut tx, account, credits, reference).await;
        tx.end(credited).await
    }
}

pub(super) async fn credit_account(
    tx: &mut Tx,
    account: &AccountId,
    credits: Credits,
    reference: &str,
) -> Result<PurchaseOutcome, StoreError> {
    // One reference may arrive for two accounts at once, and an account's lock does not keep those apart.
    // Two references with one hash only wait for each other.
    tx.execute(
        "SELECT pg_advisory_xact_lock(1, hashtext($1))",
        &[&reference],
    )
    .await?;
    if !tx.lock_account(account).await? {
        return Ok(PurchaseOutcome::NoSuchAccount);
    }
    let before = tx
        .find(
            "SELECT account_id, amount FROM ledger WHERE kind = 'purchase' AND external_reference = $1",
            &[&reference],
            |row| Ok((row.try_get(0)?, row.try_get(1)?)),
        )
        .await?;
    if let Some(before) = before {
        return Ok(credited_before(before, account, credits));
    }
    transfer(tx, account, &Transfer::Purchase(reference), credits).await?;
    tx.execute_one(
        "UPDATE account SET activated_at = coalesce(activated_at, $2) WHERE id = $1",
        &[&account.as_str(), &tx.now.micros()],
    )
    .await?;
    Ok(PurchaseOutcome::Credited)
}

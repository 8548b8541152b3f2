//! A purchase: credits become available once per payment reference, and the first one opens access.

use rusqlite::params;
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
        let (account, reference) = (*account, reference.to_owned());
        self.write(move |tx| credit_account(tx, &account, credits, &reference))
            .await
    }
}

pub(super) fn credit_account(
    tx: &Tx<'_>,
    account: &AccountId,
    credits: Credits,
    reference: &str,
) -> Result<PurchaseOutcome, StoreError> {
    check_purchase(credits, reference)?;
    let known = tx.find(
        "SELECT 1 FROM account WHERE id = ?1",
        [account.as_str()],
        |_| Ok(()),
    )?;
    if known.is_none() {
        return Ok(PurchaseOutcome::NoSuchAccount);
    }
    let before = tx.find(
        "SELECT account_id, amount FROM ledger WHERE kind = 'purchase' AND external_reference = ?1",
        [reference],
        |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?)),
    )?;
    if let Some(before) = before {
        return Ok(credited_before(before, account, credits));
    }
    transfer(tx, account, &Transfer::Purchase(reference), credits)?;
    tx.execute_one(
        "UPDATE account SET activated_at = coalesce(activated_at, ?2) WHERE id = ?1",
        params![account.as_str(), tx.now.micros()],
    )?;
    Ok(PurchaseOutcome::Credited)
}

//! A purchase: credits become available once per payment reference, and the first one opens access.

use rusqlite::params;
use upscale_core::{AccountId, Credits, limits::REFERENCE_BYTES_MAX};

use super::{
    Db, Tx,
    ledger::{Transfer, transfer},
};
use crate::{PurchaseOutcome, StoreError};

impl Db {
    pub(crate) async fn credit_account(
        &self,
        account: &AccountId,
        credits: Credits,
        reference: &str,
    ) -> Result<PurchaseOutcome, StoreError> {
        let (account, reference) = (account.clone(), reference.to_owned());
        self.write(move |tx| credit_account(tx, &account, credits, &reference))
            .await
    }
}

fn credit_account(
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
    match before {
        Some((owner, amount)) if owner == account.as_str() && amount == credits.thousandths() => {
            return Ok(PurchaseOutcome::AlreadyCredited);
        }
        Some(_) => return Ok(PurchaseOutcome::ReferenceTaken),
        None => {}
    }
    transfer(tx, account, &Transfer::Purchase(reference), credits)?;
    tx.execute_one(
        "UPDATE account SET activated_at = coalesce(activated_at, ?2) WHERE id = ?1",
        params![account.as_str(), tx.now.micros()],
    )?;
    Ok(PurchaseOutcome::Credited)
}

fn check_purchase(credits: Credits, reference: &str) -> Result<(), StoreError> {
    if credits <= Credits::ZERO {
        return Err(StoreError::Corrupt(format!(
            "a purchase of {credits} credits: it must be above 0"
        )));
    }
    if reference.is_empty() || reference.len() > REFERENCE_BYTES_MAX {
        return Err(StoreError::Corrupt(format!(
            "a payment reference of {} bytes: 1 to {REFERENCE_BYTES_MAX} are allowed",
            reference.len()
        )));
    }
    Ok(())
}

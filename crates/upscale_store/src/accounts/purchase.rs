//! A purchase: credits become available once per payment reference, and the first one opens access.

use upscale_core::{AccountId, Credits, limits::REFERENCE_BYTES_MAX};

use super::Accounts;
use super::ledger::{Transfer, transfer};
use crate::{
    PurchaseOutcome, StoreError,
    tx::{Reference, Tx},
};

impl Accounts<'_> {
    /// A purchase of more than 0 credits; the same reference (1 to 200 bytes) is credited once; the first
    /// one opens access.
    pub async fn credit(
        self,
        account: &AccountId,
        credits: Credits,
        reference: &str,
    ) -> Result<PurchaseOutcome, StoreError> {
        check_purchase(credits, reference)?;
        let (account, reference) = (*account, reference.to_owned());
        self.store
            .write(async move |tx: &mut Tx| credit_account(tx, &account, credits, &reference).await)
            .await
    }
}

pub(crate) async fn credit_account(
    tx: &mut Tx,
    account: &AccountId,
    credits: Credits,
    reference: &str,
) -> Result<PurchaseOutcome, StoreError> {
    tx.lock_reference(Reference::Payment, reference).await?;
    if !tx.lock_account(account).await? {
        return Ok(PurchaseOutcome::NoSuchAccount);
    }
    if let Some(before) = find_purchase(tx, reference).await? {
        return Ok(credited_before(before, account, credits));
    }
    purchase(tx, account, credits, reference).await?;
    Ok(PurchaseOutcome::Credited)
}

/// The purchase that stands in the ledger under this reference: whose, how many thousandths.
pub(crate) async fn find_purchase(
    tx: &Tx,
    reference: &str,
) -> Result<Option<(String, i64)>, StoreError> {
    tx.find(
        "SELECT account_id, amount FROM ledger WHERE kind = 'purchase' AND external_reference = $1",
        &[&reference],
        |row| Ok((row.string("account_id")?, row.number("amount")?)),
    )
    .await
}

/// Writes a purchase, the account's row being locked.
pub(crate) async fn purchase(
    tx: &Tx,
    account: &AccountId,
    credits: Credits,
    reference: &str,
) -> Result<(), StoreError> {
    transfer(tx, account, &Transfer::Purchase(reference), credits).await?;
    let activate = "UPDATE account SET activated_at = coalesce(activated_at, $2) WHERE id = $1";
    tx.execute_one(activate, &[account, &tx.now]).await
}

/// More than zero credits, and a reference of 1 to 200 bytes.
pub(crate) fn check_purchase(credits: Credits, reference: &str) -> Result<(), StoreError> {
    if credits <= Credits::ZERO {
        return Err(StoreError::Refused(format!(
            "a purchase of {credits} credits: it must be above 0"
        )));
    }
    check_reference(reference)
}

/// 1 to 200 bytes.
pub(crate) fn check_reference(reference: &str) -> Result<(), StoreError> {
    if reference.is_empty() || reference.len() > REFERENCE_BYTES_MAX {
        return Err(StoreError::Refused(format!(
            "a reference of {} bytes: 1 to {REFERENCE_BYTES_MAX} are allowed",
            reference.len()
        )));
    }
    Ok(())
}

/// The answer to a reference that stands in the ledger with this owner and amount.
fn credited_before(
    (owner, amount): (String, i64),
    account: &AccountId,
    credits: Credits,
) -> PurchaseOutcome {
    if owner == account.as_str() && amount == credits.thousandths() {
        PurchaseOutcome::AlreadyCredited
    } else {
        PurchaseOutcome::ReferenceTaken
    }
}

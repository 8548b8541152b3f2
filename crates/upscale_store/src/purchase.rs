//! What a purchase must be, and what a reference that was credited before answers.

use upscale_core::{AccountId, Credits, limits::REFERENCE_BYTES_MAX};

use crate::{PurchaseOutcome, StoreError};

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
pub(crate) fn credited_before(
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

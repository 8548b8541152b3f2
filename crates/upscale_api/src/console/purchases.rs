//! Payments through Stripe as their payer sees them: what was paid for what, and what has become of it since.

use upscale_core::{AccountId, Credits};
use upscale_store::{PaymentCursor, PaymentFilter, PaymentRecord, PaymentState};

use super::{error::ConsoleError, shown::Moment, state::ConsoleState};
use crate::pages::listing::{Page, asked_for, cursor};

/// Payments of one page.
const PAYMENTS_A_PAGE: usize = 10;

/// A page of them.
pub(crate) struct Purchases {
    pub(crate) rows: Vec<Purchase>,
    /// Where the next page begins.
    pub(crate) older: Option<String>,
}

/// One payment.
pub(crate) struct Purchase {
    pub(crate) at: Moment,
    pub(crate) credits: Option<Credits>,
    pub(crate) price: Option<String>,
    pub(crate) state: &'static str,
    /// How the state is coloured.
    pub(crate) tone: &'static str,
    /// Credits that are gone again, if any are.
    pub(crate) taken_back: Option<Credits>,
    pub(crate) payment: String,
    pub(crate) invoice: Option<String>,
}

impl Purchase {
    fn of(record: &PaymentRecord) -> Self {
        let (state, tone) = state_of(record);
        Self {
            at: Moment::of(record.first_at),
            credits: record.credits,
            price: record
                .price
                .as_ref()
                .map(|(price, currency)| currency.show(*price)),
            state,
            tone,
            taken_back: Some(record.taken_back).filter(|gone| *gone != Credits::ZERO),
            payment: record.id.clone(),
            invoice: record.invoice.clone(),
        }
    }
}

/// In words. Why a payment was refused may name another account, so the operator alone reads it.
fn state_of(record: &PaymentRecord) -> (&'static str, &'static str) {
    let is_gone = record.credits == Some(record.taken_back);
    match record.state {
        PaymentState::Unknown => ("waiting for Stripe", "processing"),
        PaymentState::Refused(_) => ("paid, not credited", "failed"),
        PaymentState::Credited if record.in_dispute => ("disputed", "processing"),
        PaymentState::Credited if is_gone => ("refunded", "quiet"),
        PaymentState::Credited if record.taken_back != Credits::ZERO => {
            ("refunded in part", "quiet")
        }
        PaymentState::Credited => ("paid", "succeeded"),
    }
}

/// The account's payments after this one, newest first.
pub(crate) async fn find_purchases(
    state: &ConsoleState,
    account: &AccountId,
    after: Option<&PaymentCursor>,
) -> Result<Purchases, ConsoleError> {
    let filter = PaymentFilter::OfAccount(*account);
    let found = state
        .api
        .store
        .payments()
        .list_after(&filter, after, asked_for(PAYMENTS_A_PAGE))
        .await?;
    let page = Page::of(found, PAYMENTS_A_PAGE);
    Ok(Purchases {
        rows: page.items.iter().map(Purchase::of).collect(),
        older: page.older(|last| cursor(last.first_at, &last.id)),
    })
}

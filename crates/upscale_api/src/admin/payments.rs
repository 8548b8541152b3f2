//! Payments as Stripe reported them, the newest first, page by page.

use askama::Template;
use axum::{extract::State, http::StatusCode, response::Response};
use serde::Deserialize;
use upscale_core::AccountId;
use upscale_store::{PaymentCursor, PaymentFilter};

use super::{rows::PaymentRow, state::AdminState, visitor::Operator};
use crate::pages::{
    error::ConsoleError,
    listing::{Page, asked_for, cursor},
    page::{Layout, show},
    query::{PageQuery, read},
};

/// Payments of one page.
const PAYMENTS_A_PAGE: usize = 50;

/// All of them, those refused, or those of one account.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Wanted {
    show: String,
    #[serde(deserialize_with = "read")]
    account: Option<AccountId>,
    #[serde(deserialize_with = "read")]
    after: Option<PaymentCursor>,
}

#[derive(Template)]
#[template(path = "admin/payments.html")]
struct PaymentsPage {
    layout: Layout,
    shown: &'static str,
    account: Option<String>,
    payments: Vec<PaymentRow>,
    /// Where the next page begins.
    older: Option<String>,
}

/// `GET /payments`.
pub(crate) async fn list(
    State(state): State<AdminState>,
    Operator(visitor): Operator,
    PageQuery(wanted): PageQuery<Wanted>,
) -> Result<Response, ConsoleError> {
    let (shown, filter) = match (wanted.show.as_str(), wanted.account) {
        (_, Some(account)) => ("account", PaymentFilter::OfAccount(account)),
        ("refused", None) => ("refused", PaymentFilter::Refused),
        _ => ("all", PaymentFilter::All),
    };
    let payments = state.api.store.payments().list_after(
        &filter,
        wanted.after.as_ref(),
        asked_for(PAYMENTS_A_PAGE),
    );
    let payments = Page::of(payments.await?, PAYMENTS_A_PAGE);
    let page = PaymentsPage {
        layout: visitor.layout("/payments", "Payments"),
        shown,
        account: wanted.account.map(|account| account.to_string()),
        older: payments.older(|last| cursor(last.first_at, &last.id)),
        payments: payments.items.iter().map(PaymentRow::of).collect(),
    };
    Ok(show(StatusCode::OK, &page))
}

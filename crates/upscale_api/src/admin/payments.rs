//! Payments as Stripe told of them, those first that were credited to nobody.

use askama::Template;
use axum::{extract::State, http::StatusCode, response::Response};
use serde::Deserialize;
use upscale_core::AccountId;
use upscale_store::PaymentFilter;

use super::{rows::PaymentRow, state::AdminState, visitor::Operator};
use crate::pages::{
    error::ConsoleError,
    listing::{Page, asked_for},
    page::{Layout, show},
    query::{PageQuery, read},
};

/// Payments shown at most; `upscale account payments` shows all.
const SHOWN_MAX: usize = 200;

/// All of them, those refused, or those of one account.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Wanted {
    show: String,
    #[serde(deserialize_with = "read")]
    account: Option<AccountId>,
}

#[derive(Template)]
#[template(path = "admin/payments.html")]
struct PaymentsPage {
    layout: Layout,
    shown: &'static str,
    account: Option<String>,
    payments: Vec<PaymentRow>,
    is_cut: bool,
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
    let payments = state
        .api
        .store
        .payments()
        .list(&filter, asked_for(SHOWN_MAX));
    let payments = Page::of(payments.await?, SHOWN_MAX);
    let page = PaymentsPage {
        layout: visitor.layout("/payments", "Payments"),
        shown,
        account: wanted.account.map(|account| account.to_string()),
        is_cut: payments.is_cut(),
        payments: payments.items.iter().map(PaymentRow::of).collect(),
    };
    Ok(show(StatusCode::OK, &page))
}

//! Payments as Stripe told of them, those first that were credited to nobody.

use askama::Template;
use axum::{
    extract::{RawQuery, State},
    http::StatusCode,
    response::Response,
};
use upscale_core::AccountId;
use upscale_store::PaymentFilter;

use super::{rows::PaymentRow, state::AdminState, visitor::Operator};
use crate::pages::{
    error::ConsoleError,
    form::Fields,
    page::{Layout, show},
};

/// Payments shown at most; `upscale account payments` shows all.
const SHOWN_MAX: u32 = 200;

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
    RawQuery(query): RawQuery,
) -> Result<Response, ConsoleError> {
    let query = Fields::parse(query.unwrap_or_default().as_bytes());
    let account = AccountId::parse(query.get("account"));
    let (shown, filter) = match (query.get("show"), account) {
        (_, Some(account)) => ("account", PaymentFilter::OfAccount(account)),
        ("refused", None) => ("refused", PaymentFilter::Refused),
        _ => ("all", PaymentFilter::All),
    };
    let payments = state.api.store.list_payments(&filter, SHOWN_MAX).await?;
    let page = PaymentsPage {
        layout: visitor.layout("/payments", "Payments"),
        shown,
        account: account.map(|account| account.to_string()),
        is_cut: payments.len() == SHOWN_MAX as usize,
        payments: payments.iter().map(PaymentRow::of).collect(),
    };
    Ok(show(StatusCode::OK, &page))
}

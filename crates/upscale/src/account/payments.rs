//! `upscale account payments`: what customers paid, and which payments wait for an operator.

use serde::Serialize;
use upscale_store::{PaymentFilter, PaymentRecord, PaymentState};

use crate::{
    args::DataArgs,
    data::{account_id, open_existing_store},
    output,
    shown::{Amount, time},
};

#[derive(Serialize)]
struct PaymentBody {
    payment: String,
    state: &'static str,
    refusal: Option<String>,
    at: String,
    account: Option<String>,
    package: Option<String>,
    price: Option<i64>,
    currency: Option<String>,
    credits: Option<Amount>,
    taken_back: Amount,
    invoice: Option<String>,
}

impl From<&PaymentRecord> for PaymentBody {
    fn from(payment: &PaymentRecord) -> Self {
        let (state, refusal) = match &payment.state {
            PaymentState::Unknown => ("unknown", None),
            PaymentState::Credited => ("credited", None),
            PaymentState::Refused(reason) => ("refused", Some(reason.clone())),
        };
        Self {
            payment: payment.id.clone(),
            state,
            refusal,
            at: time(payment.first_at),
            account: payment.account_id.as_ref().map(ToString::to_string),
            package: payment.package.clone(),
            price: payment.price.as_ref().map(|(price, _)| *price),
            currency: payment
                .price
                .as_ref()
                .map(|(_, currency)| currency.to_string()),
            credits: payment.credits.map(Amount),
            taken_back: Amount(payment.taken_back),
            invoice: payment.invoice.clone(),
        }
    }
}

/// What was paid.
pub(super) async fn payments(
    account: Option<&str>,
    refused: bool,
    limit: u32,
    data: &DataArgs,
) -> anyhow::Result<()> {
    let store = open_existing_store(&data.location).await?;
    let filter = match account {
        Some(account) => PaymentFilter::OfAccount(account_id(account)?),
        None if refused => PaymentFilter::Refused,
        None => PaymentFilter::All,
    };
    let found = store.payments().list(&filter, limit).await?;
    if data.json {
        let payments: Vec<PaymentBody> = found.iter().map(PaymentBody::from).collect();
        return output::json(&serde_json::json!({ "payments": payments }));
    }
    let row = |payment: &PaymentRecord| {
        let body = PaymentBody::from(payment);
        let price = payment.price.as_ref();
        vec![
            body.payment,
            body.state.to_owned(),
            body.at,
            body.account.unwrap_or_default(),
            price
                .map(|(price, currency)| currency.show(*price))
                .unwrap_or_default(),
            payment
                .credits
                .map(|credits| credits.to_string())
                .unwrap_or_default(),
            payment.taken_back.to_string(),
            body.invoice.unwrap_or_default(),
            body.refusal.or(body.package).unwrap_or_default(),
        ]
    };
    let names = [
        "PAYMENT",
        "STATE",
        "AT",
        "ACCOUNT",
        "PRICE",
        "CREDITS",
        "TAKEN BACK",
        "INVOICE",
        "PACKAGE OR REFUSAL",
    ];
    output::table(&names, &found.iter().map(row).collect::<Vec<_>>())
}

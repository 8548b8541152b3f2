//! Credits: what there is, what can be bought, what was, and the ledger as it is, every line.

use askama::Template;
use axum::{extract::State, http::StatusCode, response::Response};
use serde::Deserialize;
use upscale_core::{AccountId, Credits};
use upscale_store::PaymentCursor;

use super::{
    error::ConsoleError,
    page::{Layout, Sources, show},
    purchases::{Purchases, find_purchases},
    session::SignedIn,
    shop::{CheckoutView, Shop, WayBack, find_checkout},
    shown::grouped,
    state::ConsoleState,
};
use crate::pages::{
    listing::{Page, asked_for},
    query::{PageQuery, read},
    rows::{LedgerRow, with_balances},
};

/// Lines of one page.
const LINES_A_PAGE: usize = 50;

/// Which purchases and which lines of the ledger.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Wanted {
    #[serde(deserialize_with = "read")]
    purchases: Option<PaymentCursor>,
    #[serde(deserialize_with = "read")]
    before: Option<i64>,
}

#[derive(Template)]
#[template(path = "console/credits.html")]
pub(crate) struct CreditsPage {
    layout: Layout,
    account: String,
    available: String,
    reserved: String,
    charged: String,
    price: Credits,
    is_open: bool,
    /// What is for sale, where Stripe is configured.
    shop: Option<Shop>,
    /// Why the last wish to buy came to nothing.
    pub(crate) problem: Option<String>,
    /// What became of the checkout that the buyer comes back from.
    checkout: Option<CheckoutView>,
    purchases: Purchases,
    lines: Vec<LedgerRow>,
    /// Where the next page begins.
    older: Option<i64>,
}

/// `GET /credits`, with `?order=` or `?left=` from Stripe's page.
pub(crate) async fn credits(
    State(state): State<ConsoleState>,
    who: SignedIn,
    PageQuery(wanted): PageQuery<Wanted>,
    PageQuery(back): PageQuery<WayBack>,
) -> Result<Response, ConsoleError> {
    let mut page = CreditsPage::new(&state, &who, &wanted).await?;
    page.checkout = find_checkout(&state, &who, &back).await?;
    Ok(page.show(&state, StatusCode::OK))
}

impl CreditsPage {
    /// The pages of purchases and of the ledger that the query asks for.
    pub(crate) async fn new(
        state: &ConsoleState,
        who: &SignedIn,
        wanted: &Wanted,
    ) -> Result<Self, ConsoleError> {
        let account = &who.session.user.account_id;
        let standing = state.api.store.accounts().find(account).await?;
        let standing = standing.ok_or(ConsoleError::NotFound)?;
        let price = state.api.store.options().price;
        let (lines, older) = find_lines(state, account, wanted.before.unwrap_or(i64::MAX)).await?;
        Ok(Self {
            layout: Layout::new(&who.visitor, "/credits", "Credits"),
            account: account.to_string(),
            available: grouped(standing.available),
            reserved: grouped(standing.reserved),
            charged: grouped(standing.charged),
            price,
            is_open: standing.activated_at.is_some(),
            shop: state
                .api
                .stripe
                .as_deref()
                .map(|stripe| Shop::of(stripe, price)),
            problem: None,
            checkout: None,
            purchases: find_purchases(state, account, wanted.purchases.as_ref()).await?,
            lines,
            older,
        })
    }

    /// No second purchase while a payment is on its way.
    fn is_waiting(&self) -> bool {
        matches!(self.checkout, Some(CheckoutView::Waiting(_)))
    }

    /// Its form may lead to Stripe's pages, where there is one.
    pub(crate) fn show(&self, state: &ConsoleState, status: StatusCode) -> Response {
        let mut response = show(status, self);
        if let Some(stripe) = &state.api.stripe {
            let sources = Sources {
                forms: vec![stripe.checkout_origin.to_string()],
                ..Sources::default()
            };
            sources.allow(&mut response);
        }
        response
    }
}

async fn find_lines(
    state: &ConsoleState,
    account: &AccountId,
    before: i64,
) -> Result<(Vec<LedgerRow>, Option<i64>), ConsoleError> {
    let lines = state
        .api
        .store
        .accounts()
        .list_ledger_before(account, before, asked_for(LINES_A_PAGE))
        .await?;
    let page = Page::of(lines, LINES_A_PAGE);
    let older = page.older(|line| line.sequence);
    let available = match page.items.first() {
        Some(first) => {
            let accounts = state.api.store.accounts();
            accounts
                .find_available_after(account, first.sequence)
                .await?
        }
        None => None,
    };
    Ok((with_balances(&page.items, available), older))
}

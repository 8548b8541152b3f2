//! Buying credits: what is for sale, the way to Stripe's page, and what is known when the buyer comes back. He comes back
//! before or after Stripe has told us of the payment, so the page says which, and nothing more than is known.

use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse, Redirect, Response},
};
use upscale_core::{CheckoutId, Credits, Package};

use super::{
    credits::CreditsPage,
    error::ConsoleError,
    form::{Fields, SignedForm},
    session::SignedIn,
    shown::grouped,
    state::ConsoleState,
    tasks::StateBody,
};
use crate::stripe::{BuyOutcome, Stripe};

/// The price table.
pub(crate) struct Shop {
    pub(crate) packages: Vec<PackageView>,
    /// Whether no real money moves.
    pub(crate) is_test: bool,
}

/// One package.
pub(crate) struct PackageView {
    pub(crate) name: String,
    pub(crate) credits: String,
    /// Upscales that it pays for.
    pub(crate) tasks: String,
    pub(crate) price: String,
}

/// What is known of an order that somebody comes back from.
pub(crate) enum OrderView {
    /// It is paid.
    Credited(String),
    /// He says he paid; Stripe has not, yet. The order's id.
    Waiting(String),
    /// He came back without paying.
    Left,
}

impl Shop {
    /// `task_price` says how many upscales a package pays for.
    pub(crate) fn of(stripe: &Stripe, task_price: Credits) -> Self {
        let packages = stripe.packages.iter();
        let packages = packages.map(|package| PackageView::of(package, task_price));
        Self {
            packages: packages.collect(),
            is_test: !stripe.is_live,
        }
    }
}

impl PackageView {
    fn of(package: &Package, task_price: Credits) -> Self {
        Self {
            name: package.name.clone(),
            credits: grouped(package.credits),
            tasks: grouped(package.credits.thousandths() / task_price.thousandths()),
            price: package.currency.show(package.price),
        }
    }
}

/// `POST /credits`: keeps an order and leads to the page where it is paid.
pub(crate) async fn buy(
    State(state): State<ConsoleState>,
    form: SignedForm,
) -> Result<Response, ConsoleError> {
    let stripe = state.api.stripe.as_deref().ok_or(ConsoleError::NotFound)?;
    let user = &form.who.session.user;
    let (package, email) = (form.fields.get("package"), user.email.to_string());
    let back = format!("{}/credits", form.origin);
    let outcome = stripe
        .buy(
            &state.api.store,
            &user.account_id,
            package,
            &back,
            Some(email),
        )
        .await;
    let (status, problem) = match outcome {
        BuyOutcome::PayAt(url) => return Ok(Redirect::to(&url).into_response()),
        refused => why_not(refused),
    };
    let mut page = CreditsPage::new(&state, &form.who, &Fields::default()).await?;
    page.problem = Some(problem.to_owned());
    Ok(page.show(&state, status))
}

fn why_not(outcome: BuyOutcome) -> (StatusCode, &'static str) {
    match outcome {
        BuyOutcome::NoSuchPackage => (
            StatusCode::UNPROCESSABLE_ENTITY,
            "This package is not for sale any more. Choose one of these.",
        ),
        BuyOutcome::TooMany => (
            StatusCode::TOO_MANY_REQUESTS,
            "Twenty orders were begun within the hour, more than anybody pays. Nothing was charged for this one; wait a while.",
        ),
        BuyOutcome::Unavailable(why) => {
            tracing::error!(why, "nobody can buy: Stripe gave no page");
            (
                StatusCode::SERVICE_UNAVAILABLE,
                "Stripe cannot be reached at the moment. Nothing was charged; try again in a minute.",
            )
        }
        BuyOutcome::PayAt(_) => (StatusCode::OK, ""),
    }
}

/// What the query says of coming back, held against what the store knows. Another account's order does not exist.
pub(crate) async fn find_order(
    state: &ConsoleState,
    who: &SignedIn,
    query: &Fields,
) -> Result<Option<OrderView>, ConsoleError> {
    let (paid, left) = (query.get("order"), query.get("left"));
    let Some(id) = CheckoutId::parse(paid).or_else(|| CheckoutId::parse(left)) else {
        return Ok(None);
    };
    let account = &who.session.user.account_id;
    let found = state.api.store.find_checkout(account, &id).await?;
    Ok(found.map(|(checkout, payment)| match payment {
        Some(_) => OrderView::Credited(grouped(checkout.package.credits)),
        None if paid.is_empty() => OrderView::Left,
        None => OrderView::Waiting(id.as_str().to_owned()),
    }))
}

/// `GET /credits/orders/{id}/state`: what the page's script asks while Stripe has not told.
pub(crate) async fn order_state(
    State(state): State<ConsoleState>,
    who: SignedIn,
    Path(id): Path<String>,
) -> Result<Json<StateBody>, ConsoleError> {
    let id = CheckoutId::parse(&id).ok_or(ConsoleError::NotFound)?;
    let account = &who.session.user.account_id;
    let found = state.api.store.find_checkout(account, &id).await?;
    let (_, payment) = found.ok_or(ConsoleError::NotFound)?;
    Ok(Json(StateBody {
        state: match payment {
            Some(_) => "credited",
            None => "processing",
        },
    }))
}

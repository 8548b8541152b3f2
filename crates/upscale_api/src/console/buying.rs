//! Buying credits: the way to Stripe's page, why there may be none, and whether a checkout has been paid since.

use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse, Redirect, Response},
};
use upscale_core::CheckoutId;

use super::{
    credits::{CreditsPage, Wanted},
    error::ConsoleError,
    form::SignedForm,
    session::SignedIn,
    state::ConsoleState,
    tasks::StateBody,
};
use crate::stripe::BuyOutcome;

/// `POST /credits`: keeps a checkout and leads to the page where it is paid.
pub(crate) async fn buy(
    State(state): State<ConsoleState>,
    form: SignedForm,
) -> Result<Response, ConsoleError> {
    form.check_verified()?;
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
    let mut page = CreditsPage::new(&state, &form.who, &Wanted::default()).await?;
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
            "Too many checkouts were started within the hour (20). Nothing was charged. Try again later.",
        ),
        BuyOutcome::Unavailable(why) => {
            tracing::error!(why, "purchases fail: Stripe returned no checkout page");
            (
                StatusCode::SERVICE_UNAVAILABLE,
                "Stripe cannot be reached at the moment. Nothing was charged; try again in a minute.",
            )
        }
        BuyOutcome::PayAt(_) => (StatusCode::OK, ""),
    }
}

/// `GET /credits/orders/{id}/state`: what the page's script asks while Stripe has not told.
pub(crate) async fn checkout_state(
    State(state): State<ConsoleState>,
    who: SignedIn,
    Path(id): Path<String>,
) -> Result<Json<StateBody>, ConsoleError> {
    let id = CheckoutId::parse(&id).ok_or(ConsoleError::NotFound)?;
    let account = &who.session.user.account_id;
    let found = state
        .api
        .store
        .payments()
        .find_checkout(account, &id)
        .await?;
    let (_, payment) = found.ok_or(ConsoleError::NotFound)?;
    Ok(Json(StateBody {
        state: match payment {
            Some(_) => "credited",
            None => "processing",
        },
    }))
}

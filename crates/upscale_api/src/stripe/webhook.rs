//! `POST /webhooks/stripe`: Stripe tells what became of payments. What is not signed is refused; what is signed is
//! answered with 200 once it is durable, however often it comes. Anything else and Stripe sends it again, for days.

use std::sync::Arc;

use axum::{Extension, body::Body, extract::State, http::HeaderMap};
use metrics::counter;
use upscale_core::InvalidRequest;
use upscale_store::PaymentOutcome;

use super::{
    Stripe, event,
    signature::{self, Distrust},
};
use crate::{
    api_state::ApiState,
    client_address::ClientAddress,
    connection::Connection,
    error::ApiError,
    permits::Owner,
    request_body::{self, Allowance, NoBody, check_not_encoded},
};

/// Events are a few kilobytes; a dispute with its evidence is the largest.
const BODY_BYTES_MAX: usize = 512 * 1024;

/// Takes in one event. The header is looked at before the body is: anyone who cannot even say when they signed makes no one
/// wait.
pub(crate) async fn receive(
    State(state): State<ApiState>,
    ClientAddress(address): ClientAddress,
    connection: Option<Extension<Arc<Connection>>>,
    headers: HeaderMap,
    body: Body,
) -> Result<&'static str, ApiError> {
    let stripe = state.stripe.as_deref().ok_or(ApiError::NotFound)?;
    check_not_encoded(&headers)?;
    let header = headers.get("stripe-signature");
    let header = header.map_or(&b""[..], |value| value.as_bytes());
    let claim = signature::read(header, state.store.now().unix_seconds());
    let claim = claim.map_err(|distrust| refuse(&state, distrust))?;
    let allowance = Allowance {
        bytes_max: BODY_BYTES_MAX,
        deadline: state.limits.body_timeout,
        pool: &state.permits.unknown_bodies,
        owner: Owner::Address(address),
        is_known: false,
        connection: connection.map(|Extension(connection)| connection),
    };
    let body = request_body::read(body, allowance).await;
    let body = body.map_err(|no_body| match no_body {
        NoBody::TooLarge => refusal("The event is larger than 512 KiB."),
        other => other.into(),
    })?;
    let fits = claim.check(&body, &stripe.webhook_secrets);
    fits.map_err(|distrust| refuse(&state, distrust))?;
    // From here on it is Stripe, whom no crowd of unknown callers keeps from its permit.
    let _permit = state.permits.keyed.take(Owner::Stripe)?;
    record(&state, stripe, &body).await
}

async fn record(state: &ApiState, stripe: &Stripe, body: &[u8]) -> Result<&'static str, ApiError> {
    let event = event::parse(body, stripe.is_live).map_err(|error| {
        tracing::error!(%error, "a signed event of Stripe cannot be used");
        count("unusable");
        refusal("The event is not what its type says.")
    })?;
    let outcome = state.store.payments().record_event(&event).await?;
    tell(&event.id, &event.kind, &outcome);
    Ok("received\n")
}

fn refuse(state: &ApiState, distrust: Distrust) -> ApiError {
    let (why, message) = match distrust {
        Distrust::Unreadable => (
            "unsigned",
            "The Stripe-Signature header is empty or malformed.",
        ),
        Distrust::Stale => ("stale", "The event was signed more than five minutes ago."),
        Distrust::Wrong => ("forged", "The Stripe-Signature header does not match."),
    };
    if state.refusals.may_write(why) {
        tracing::warn!(why, "a call to Stripe's webhook was refused");
    }
    count(why);
    refusal(message)
}

fn refusal(message: &str) -> ApiError {
    InvalidRequest::Request(message.to_owned()).into()
}

fn tell(event: &str, kind: &str, outcome: &PaymentOutcome) {
    match outcome {
        PaymentOutcome::Credited(account, credits) => {
            tracing::info!(event, kind, %account, %credits, "a payment was credited");
            count("credited");
        }
        PaymentOutcome::Refused(reason) => {
            tracing::error!(
                event,
                kind,
                reason,
                "a payment does not match its order: no account was credited"
            );
            count("refused");
        }
        PaymentOutcome::TakenBack(account, credits) => {
            tracing::warn!(event, kind, %account, %credits, "credits of a returned payment were taken back");
            count("taken_back");
        }
        PaymentOutcome::Reinstated(account, credits) => {
            tracing::info!(event, kind, %account, %credits, "credits of a payment are there again");
            count("reinstated");
        }
        PaymentOutcome::Noted => count("noted"),
        PaymentOutcome::Repeated => count("repeated"),
    }
}

fn count(outcome: &'static str) {
    counter!("upscale_payment_events_total", "outcome" => outcome).increment(1);
}

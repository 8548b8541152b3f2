//! `POST /webhooks/stripe`: Stripe tells what became of payments. What is not signed is refused; what is signed is
//! answered with 200 once it is durable, however often it comes. Anything else and Stripe sends it again, for days.

use axum::{
    body::{Body, Bytes},
    extract::State,
    http::HeaderMap,
};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use metrics::counter;
use upscale_core::InvalidRequest;
use upscale_store::PaymentOutcome;

use super::{
    Stripe, event,
    signature::{self, Distrust},
};
use crate::{api_state::ApiState, error::ApiError};

/// Events are a few kilobytes; a dispute with its evidence is the largest.
const BODY_BYTES_MAX: usize = 512 * 1024;

/// Takes in one event.
pub(crate) async fn receive(
    State(state): State<ApiState>,
    headers: HeaderMap,
    body: Body,
) -> Result<&'static str, ApiError> {
    let stripe = state.stripe.as_deref().ok_or(ApiError::NotFound)?;
    let body = read_body(&state, body).await?;
    check_signature(&state, stripe, &headers, &body)?;
    let event = event::parse(&body, stripe.is_live).map_err(|error| {
        tracing::error!(%error, "a signed event of Stripe cannot be used");
        count("unusable");
        refusal("The event is not what its type says.")
    })?;
    let outcome = state.store.payments().record_event(&event).await?;
    tell(&event.id, &event.kind, &outcome);
    Ok("received\n")
}

async fn read_body(state: &ApiState, body: Body) -> Result<Bytes, ApiError> {
    let limited = Limited::new(body, BODY_BYTES_MAX);
    let collected = tokio::time::timeout(state.limits.body_timeout, limited.collect()).await;
    match collected.map_err(|_| ApiError::BodyTimeout)? {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            Err(refusal("The event is larger than 512 KiB."))
        }
        Err(_) => Err(refusal("The body broke off or is badly framed.")),
    }
}

fn check_signature(
    state: &ApiState,
    stripe: &Stripe,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<(), ApiError> {
    let header = headers.get("stripe-signature");
    let header = header.map_or(&b""[..], |value| value.as_bytes());
    let now = state.store.now().unix_seconds();
    signature::check(header, body, &stripe.webhook_secrets, now).map_err(|distrust| {
        let (why, message) = match distrust {
            Distrust::Unreadable => ("unsigned", "The Stripe-Signature header says nothing."),
            Distrust::Stale => ("stale", "The event was signed more than five minutes ago."),
            Distrust::Wrong => ("forged", "The Stripe-Signature header does not fit."),
        };
        tracing::warn!(why, "a call to Stripe's webhook was refused");
        count(why);
        refusal(message)
    })
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
                "a payment does not fit its order: nobody was credited"
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

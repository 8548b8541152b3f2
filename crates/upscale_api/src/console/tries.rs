//! Tries to sign in, to sign up or to set a password, each counted before a password is looked at; and the answer when
//! there were too many.

use askama::Template;
use axum::{
    http::{HeaderValue, StatusCode, header},
    response::Response,
};
use sha2::{Digest, Sha256};
use upscale_core::hex;
use upscale_store::AttemptOutcome;

use super::{error::ConsoleError, page::show, session::Visitor, state::ConsoleState};

/// Tries to sign in or up, or to reset a password, from one address in a window.
const ADDRESS_TRIES: u32 = 30;
/// Tries to sign in with one e-mail address in a window, from wherever.
const EMAIL_TRIES: u32 = 10;
const WINDOW_SECONDS: i64 = 15 * 60;
pub(crate) const HOUR_SECONDS: i64 = 3_600;

/// Counts a try by address and by what was typed as e-mail; the seconds to wait when there were too many of either.
pub(crate) async fn count_tries(
    state: &ConsoleState,
    visitor: &Visitor,
    email: &str,
) -> Result<Option<i64>, ConsoleError> {
    let by_address = format!("address {}", visitor.address);
    if let Some(seconds) = count(state, &by_address, ADDRESS_TRIES, WINDOW_SECONDS).await? {
        return Ok(Some(seconds));
    }
    // A hash, because people type their passwords into the wrong field.
    let typed = email.trim().to_ascii_lowercase();
    let by_email = format!("e-mail {}", hex(&Sha256::digest(typed.as_bytes())));
    count(state, &by_email, EMAIL_TRIES, WINDOW_SECONDS).await
}

/// Counts one try of this subject; the seconds to wait when there were too many.
pub(crate) async fn count(
    state: &ConsoleState,
    subject: &str,
    limit: u32,
    window_seconds: i64,
) -> Result<Option<i64>, ConsoleError> {
    let counted = state
        .api
        .store
        .users()
        .count_attempt(subject, limit, window_seconds);
    match counted.await? {
        AttemptOutcome::Allowed => Ok(None),
        AttemptOutcome::TooMany {
            retry_after_seconds,
        } => Ok(Some(retry_after_seconds)),
    }
}

/// How long to wait, as a page says it.
pub(crate) fn too_many(seconds: i64) -> String {
    let minutes = (seconds + 59) / 60;
    let unit = if minutes == 1 { "minute" } else { "minutes" };
    format!("Too many tries. Wait {minutes} {unit} and try again.")
}

/// The page with 429 and when to come back.
pub(crate) fn refuse_for(seconds: i64, page: &impl Template) -> Response {
    metrics::counter!("upscale_limits_hit_total", "limit" => "sign_in").increment(1);
    let mut response = show(StatusCode::TOO_MANY_REQUESTS, page);
    let headers = response.headers_mut();
    headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    response
}

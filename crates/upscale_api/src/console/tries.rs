//! Tries to sign in, to sign up or to set a password, each counted before a password is looked at; and the answer when
//! there were too many.

use askama::Template;
use axum::{
    http::{HeaderValue, StatusCode, header},
    response::Response,
};
use sha2::{Digest, Sha256};
use upscale_core::{Email, TokenHash, hex};
use upscale_store::AttemptOutcome;

use super::{
    error::ConsoleError,
    page::show,
    session::{SignedIn, Visitor},
    state::ConsoleState,
};

/// Tries to sign in or up, or to reset a password, from one address in a window.
const ADDRESS_TRIES: u32 = 30;
/// Tries in a window: to sign in as one user from all browsers together that are not known as theirs, from each one that
/// is, and to change something with the password when signed in.
const USER_TRIES: u32 = 10;
const WINDOW_SECONDS: i64 = 15 * 60;
pub(crate) const HOUR_SECONDS: i64 = 3_600;

/// Counts a try to sign in; the seconds to wait when there were too many. A browser in which the user signed in before has
/// a count of its own: no wrong password typed elsewhere keeps it out (OWASP, device cookies). All others share one,
/// beside that of their address.
pub(crate) async fn count_tries(
    state: &ConsoleState,
    visitor: &Visitor,
    email: &str,
) -> Result<Option<i64>, ConsoleError> {
    if let Some(browser) = known_browser(state, visitor, email).await? {
        let by_browser = format!("browser {}", browser.as_str());
        return count(state, &by_browser, USER_TRIES, WINDOW_SECONDS).await;
    }
    if let Some(seconds) = count_address(state, visitor).await? {
        return Ok(Some(seconds));
    }
    // A hash, because people type their passwords into the wrong field.
    let typed = email.trim().to_ascii_lowercase();
    let by_email = format!("e-mail {}", hex(&Sha256::digest(typed.as_bytes())));
    count(state, &by_email, USER_TRIES, WINDOW_SECONDS).await
}

async fn known_browser(
    state: &ConsoleState,
    visitor: &Visitor,
    email: &str,
) -> Result<Option<TokenHash>, ConsoleError> {
    let (Some(browser), Ok(email)) = (&visitor.browser, Email::parse(email)) else {
        return Ok(None);
    };
    let hash = browser.hash();
    let is_known = state.api.store.users().knows_browser(&email, &hash).await?;
    Ok(is_known.then_some(hash))
}

/// Counts a try by its address alone: where nothing is guessed, or a link has said who it is.
pub(crate) async fn count_address(
    state: &ConsoleState,
    visitor: &Visitor,
) -> Result<Option<i64>, ConsoleError> {
    let by_address = format!("address {}", visitor.address);
    count(state, &by_address, ADDRESS_TRIES, WINDOW_SECONDS).await
}

/// Counts a try of the password by anyone who is signed in: no one else can use these up.
pub(crate) async fn count_signed_in(
    state: &ConsoleState,
    who: &SignedIn,
) -> Result<Option<i64>, ConsoleError> {
    let by_user = format!("signed in {}", who.session.user.id);
    count(state, &by_user, USER_TRIES, WINDOW_SECONDS).await
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
    format!("Too many attempts. Wait {minutes} {unit} and try again.")
}

/// The page with 429 and when to come back.
pub(crate) fn refuse_for(seconds: i64, page: &impl Template) -> Response {
    metrics::counter!("upscale_limits_hit_total", "limit" => "sign_in").increment(1);
    let mut response = show(StatusCode::TOO_MANY_REQUESTS, page);
    let headers = response.headers_mut();
    headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    response
}

//! The three headers that tell a client where its create-request window stands.

use axum::http::{HeaderMap, HeaderValue};
use upscale_core::Timestamp;
use upscale_store::RateWindow;

/// `X-RateLimit-Limit`, `-Remaining` and `-Reset` (Unix seconds, rounded up: never too early).
pub(crate) fn write(window: &RateWindow, headers: &mut HeaderMap) {
    let reset = window.reset_at.seconds_since(Timestamp::from_micros(0));
    headers.insert("x-ratelimit-limit", HeaderValue::from(window.limit));
    headers.insert("x-ratelimit-remaining", HeaderValue::from(window.remaining));
    headers.insert("x-ratelimit-reset", HeaderValue::from(reset));
}

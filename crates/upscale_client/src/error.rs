//! What can go wrong, apart by what the caller can do about it.

use std::time::Duration;

use serde::Deserialize;

use crate::{Failure, IdempotencyKey};

/// Why there is no answer or no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The client could not be made, or was given something that can never work.
    #[error("{0}")]
    Setup(String),
    /// The service said no, or said "not now" for longer than the caller's patience.
    #[error(transparent)]
    Refused(#[from] ApiError),
    /// The service could not be reached, or the connection broke, until patience ended.
    #[error("the service cannot be reached: {0}")]
    Unreachable(String),
    /// An answer that this client does not understand.
    #[error("unexpected answer: {0}")]
    Unexpected(String),
    /// Patience ended first. The task goes on: read `id` later, or send the order again under `key`; neither pays twice.
    #[error("task {id} is not over after {} s; it goes on and can be read later", waited.as_secs())]
    GaveUp {
        /// The task.
        id: String,
        /// The key of the order, where this call had it.
        key: Option<String>,
        /// How long it was waited for.
        waited: Duration,
    },
    /// The task ended without a result and without a charge.
    #[error("task {id} failed: {}", failure.message)]
    Failed {
        /// The task.
        id: String,
        /// Why, and where the credits are.
        failure: Failure,
    },
    /// The result did not arrive as the service made it.
    #[error("the result is damaged: {0}")]
    Damaged(String),
}

/// An answer of the service that is no success.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{status} {code}: {message}{}", request_id.as_deref().map(|id| format!(" (request {id})")).unwrap_or_default())]
pub struct ApiError {
    /// HTTP status.
    pub status: u16,
    /// `error.type`, such as `invalid_request_error`.
    pub kind: String,
    /// `error.code`, such as `invalid_scale`.
    pub code: String,
    /// For people.
    pub message: String,
    /// For support.
    pub request_id: Option<String>,
    /// How long the service asks to wait.
    pub retry_after: Option<Duration>,
}

#[derive(Deserialize)]
struct Envelope {
    error: Inner,
}

#[derive(Deserialize)]
struct Inner {
    #[serde(rename = "type")]
    kind: String,
    code: String,
    message: String,
    request_id: Option<String>,
}

/// Longest part of a body that is not ours which an error repeats.
const FOREIGN_BODY_CHARS: usize = 200;

impl ApiError {
    /// From an answer; a body that is not the service's (a proxy's, say) becomes the message.
    pub(crate) fn read(status: u16, retry_after: Option<Duration>, body: &[u8]) -> Self {
        let inner = serde_json::from_slice::<Envelope>(body).map_or_else(
            |_| Inner {
                kind: "unknown".to_owned(),
                code: "unknown".to_owned(),
                message: String::from_utf8_lossy(body)
                    .chars()
                    .take(FOREIGN_BODY_CHARS)
                    .collect(),
                request_id: None,
            },
            |envelope| envelope.error,
        );
        Self {
            status,
            kind: inner.kind,
            code: inner.code,
            message: inner.message,
            request_id: inner.request_id,
            retry_after,
        }
    }

    /// Whether the same request may succeed later: limits that pass, and the server's own troubles.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        matches!(self.status, 408 | 429 | 500 | 502 | 503 | 504)
    }
}

impl Error {
    /// Whether the same request may succeed later.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Refused(error) => error.is_temporary(),
            Self::Unreachable(_) | Self::Damaged(_) => true,
            _ => false,
        }
    }

    /// How long the service asks to wait.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused(error) => error.retry_after,
            _ => None,
        }
    }

    pub(crate) fn gave_up(id: &str, key: Option<&IdempotencyKey>, waited: Duration) -> Self {
        Self::GaveUp {
            id: id.to_owned(),
            key: key.map(|key| key.as_str().to_owned()),
            waited,
        }
    }
}

impl From<reqwest::Error> for Error {
    /// Without the address: a result's holds a signature.
    fn from(error: reqwest::Error) -> Self {
        let error = error.without_url();
        let mut text = error.to_string();
        let mut source = std::error::Error::source(&error);
        while let Some(cause) = source {
            text = format!("{text}: {cause}");
            source = cause.source();
        }
        Self::Unreachable(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxys_page_becomes_a_short_message() {
        let error = ApiError::read(502, None, "<html>".repeat(100).as_bytes());
        assert_eq!((error.code.as_str(), error.message.len()), ("unknown", 200));
        assert!(error.is_temporary());
    }

    #[test]
    fn the_services_own_words_are_kept() {
        let body = br#"{"error":{"type":"billing_error","code":"insufficient_credits","message":"m","request_id":"req_1"}}"#;
        let error = ApiError::read(402, None, body);
        assert!(!error.is_temporary());
        assert_eq!(
            error.to_string(),
            "402 insufficient_credits: m (request req_1)"
        );
    }
}

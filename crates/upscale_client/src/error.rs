//! What can go wrong, apart by what the caller can do about it.

use std::time::Duration;

use serde::Deserialize;

use crate::{Failure, IdempotencyKey};

/// Why there is no answer or no result, and under which key the order was sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind}")]
pub struct Error {
    /// What happened, by what the caller can do about it.
    pub kind: Box<ErrorKind>,
    /// Of the call's order, minted or the caller's: sent again under it, the order is the same task and the same charge.
    pub idempotency_key: Option<IdempotencyKey>,
}

/// The kinds of error, by what the caller can do about them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The client could not be made, or was given something that can never work.
    #[error("{0}")]
    Setup(String),
    /// The service said no, or said "not now" until tries or time were used up.
    #[error(transparent)]
    Status(#[from] StatusError),
    /// The service could not be reached, or the connection broke.
    #[error("the service cannot be reached: {0}")]
    Connection(String),
    /// An answer that this client does not understand.
    #[error("unexpected response: {0}")]
    UnexpectedResponse(String),
    /// The timeout passed first. The task goes on: wait for `id` later, or send the order again under its key; neither pays
    /// twice.
    #[error("task {id} has not ended after {} s; it continues, wait for it again later", waited.as_secs())]
    PollTimeout {
        /// Identifier of the task, `ups_…`.
        id: String,
        /// Time spent waiting, at least the timeout.
        waited: Duration,
    },
    /// The task ended without a result and without a charge.
    #[error("task {id} failed: {}", failure.message)]
    TaskFailed {
        /// Identifier of the task, `ups_…`.
        id: String,
        /// Why, and where the credits are.
        failure: Failure,
    },
    /// The result did not arrive as the service made it.
    #[error("the result is damaged: {0}")]
    Checksum(String),
    /// The result could not be written.
    #[error("{0}")]
    File(String),
}

/// What the caller can do, by HTTP status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StatusKind {
    /// 400: mend the request.
    BadRequest,
    /// 401: the key is wrong or was revoked.
    Authentication,
    /// 402: buy credits.
    InsufficientCredits,
    /// 403: the account or the key may not.
    PermissionDenied,
    /// 404: no such task of this account.
    NotFound,
    /// 409: the key belongs to another order.
    Conflict,
    /// 410: the result is no longer kept.
    Gone,
    /// 429: later, as `retry_after` says.
    RateLimit,
    /// 5xx: not the caller's fault.
    Server,
    /// A status that the contract does not name.
    Other,
}

/// An answer of the service that is no success.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{status} {code}: {message}{}", request_id.as_deref().map(|id| format!(" (request {id})")).unwrap_or_default())]
pub struct StatusError {
    /// HTTP status, 400 to 599.
    pub status: u16,
    /// `error.type`, such as `invalid_request_error`.
    pub error_type: String,
    /// `error.code`, such as `invalid_scale`.
    pub code: String,
    /// Sentence for people: what happened and what to do next. Do not parse it.
    pub message: String,
    /// `X-Request-Id` of the answer, `req_…`; include it when contacting support.
    pub request_id: Option<String>,
    /// `Retry-After` of the answer.
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

impl StatusError {
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
            error_type: inner.kind,
            code: inner.code,
            message: inner.message,
            request_id: inner.request_id,
            retry_after,
        }
    }

    /// What can be done about it.
    #[must_use]
    pub fn kind(&self) -> StatusKind {
        match self.status {
            400 => StatusKind::BadRequest,
            401 => StatusKind::Authentication,
            402 => StatusKind::InsufficientCredits,
            403 => StatusKind::PermissionDenied,
            404 => StatusKind::NotFound,
            409 => StatusKind::Conflict,
            410 => StatusKind::Gone,
            429 => StatusKind::RateLimit,
            500.. => StatusKind::Server,
            _ => StatusKind::Other,
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
        match &*self.kind {
            ErrorKind::Status(error) => error.is_temporary(),
            ErrorKind::Connection(_) | ErrorKind::Checksum(_) => true,
            _ => false,
        }
    }

    /// `Retry-After` of the answer.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match &*self.kind {
            ErrorKind::Status(error) => error.retry_after,
            _ => None,
        }
    }

    pub(crate) fn under(mut self, key: &IdempotencyKey) -> Self {
        self.idempotency_key = Some(key.clone());
        self
    }
}

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Self {
        Self {
            kind: Box::new(kind),
            idempotency_key: None,
        }
    }
}

impl From<StatusError> for Error {
    fn from(error: StatusError) -> Self {
        ErrorKind::Status(error).into()
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
        ErrorKind::Connection(text).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxys_page_becomes_a_short_message() {
        let error = StatusError::read(502, None, "<html>".repeat(100).as_bytes());
        assert_eq!((error.code.as_str(), error.message.len()), ("unknown", 200));
        assert!(error.is_temporary());
    }

    #[test]
    fn the_services_own_words_are_kept() {
        let body = br#"{"error":{"type":"billing_error","code":"insufficient_credits","message":"m","request_id":"req_1"}}"#;
        let error = StatusError::read(402, None, body);
        assert!(!error.is_temporary());
        assert_eq!(
            error.to_string(),
            "402 insufficient_credits: m (request req_1)"
        );
    }
}

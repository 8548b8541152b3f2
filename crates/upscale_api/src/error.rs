//! Every answer that is an error: one enum, one table of status, type, code and message. The body is
//! rendered by `follow.rs`, which knows the request id, and by `bare_refusal.rs` for what was no request; nothing else
//! writes an error.

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use upscale_core::{Credits, InvalidRequest};
use upscale_store::StoreError;
use utoipa::ToSchema;

use crate::{permits::Full, request_body::NoBody};

/// Why a request is not answered with what it asked for. `Display` is the message the customer reads.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum ApiError {
    /// The request is wrong.
    #[error(transparent)]
    Invalid(#[from] InvalidRequest),
    /// No credentials at all.
    #[error("Send your API key in the header \"Authorization: Bearer <API_KEY>\".")]
    MissingApiKey,
    /// Malformed, unknown and revoked keys look the same: a guesser learns nothing.
    #[error("The API key is invalid or has been revoked.")]
    InvalidApiKey,
    /// Fewer credits than the price.
    #[error("Not enough credits: a task costs {price}, {available} are available.")]
    InsufficientCredits { available: Credits, price: Credits },
    /// The account never bought credits.
    #[error("API access requires a first credit purchase. Buy credits to enable it.")]
    ApiAccessRequired,
    /// The key may not do this.
    #[error("This API key lacks the permission to {0} tasks. Use another key.")]
    InsufficientPermissions(&'static str),
    /// The signed URL is past its hour.
    #[error("This result URL has expired. Get the task again for a fresh one.")]
    ResultUrlExpired,
    /// Malformed, unknown and foreign ids look the same.
    #[error("Task not found in this account.")]
    TaskNotFound,
    /// Nothing is served at this path.
    #[error("Not found. Check the path of the request.")]
    NotFound,
    /// The path exists, the method does not.
    #[error("Method not allowed; see the Allow header.")]
    MethodNotAllowed,
    /// The body came too slowly.
    #[error("The request body did not arrive in time. Send it again.")]
    BodyTimeout,
    /// The request's head is larger than we read.
    #[error("The request headers exceed {bytes_max} bytes or {headers_max} fields.")]
    HeadTooLarge {
        bytes_max: usize,
        headers_max: usize,
    },
    /// The key belongs to another request.
    #[error(
        "This Idempotency-Key was used with different parameters. Use a new key for a new request."
    )]
    IdempotencyConflict,
    /// Retention has removed the file.
    #[error(
        "The result file has been deleted. To upscale the image again, use a new Idempotency-Key."
    )]
    ResultExpired,
    /// The range lies outside the file.
    #[error("The range is outside the file of {size_bytes} bytes.")]
    RangeNotSatisfiable { size_bytes: u64 },
    /// More create requests than the window holds.
    #[error(
        "More than {limit} create requests in one minute. Retry after the seconds in Retry-After."
    )]
    CreateRate {
        limit: u32,
        retry_after_seconds: i64,
    },
    /// More reads, or more failing authentications, than anyone needs.
    #[error("Too many requests. Retry after the seconds in Retry-After.")]
    TooFast { retry_after_seconds: i64 },
    /// As many tasks as may be active are.
    #[error("{limit} tasks are processing, the limit of this account. Retry when some have ended.")]
    ActiveLimit {
        limit: u32,
        retry_after_seconds: i64,
    },
    /// The day is full.
    #[error("{limit} tasks were accepted this UTC day, the limit of this account. Retry tomorrow.")]
    DailyLimit {
        limit: u32,
        retry_after_seconds: i64,
    },
    /// Nothing was reserved; `detail` is for the log alone.
    #[error("The service is temporarily unavailable. Retry with the same Idempotency-Key.")]
    Unavailable {
        retry_after_seconds: i64,
        detail: String,
    },
    /// The store did not answer in time: whether it acted is unknown, the key makes a retry safe.
    #[error("The request took too long. Retry with the same Idempotency-Key.")]
    UpstreamTimeout,
    /// The store's answer was lost after it had been told to commit; `detail` is for the log alone.
    #[error(
        "The outcome of this request is unknown. Send it again with the same Idempotency-Key; it is never charged twice."
    )]
    OutcomeUnknown { detail: String },
    /// Our fault; `detail` is for the log alone.
    #[error("Internal error. Retry; if it persists, contact support with the request ID.")]
    Internal { detail: String },
}

const INVALID: &str = "invalid_request_error";
const LIMITED: &str = "rate_limit_error";
const DENIED: &str = "permission_error";
const OURS: &str = "api_error";

impl ApiError {
    /// The table: status, type, code.
    pub(crate) fn row(&self) -> (StatusCode, &'static str, &'static str) {
        match self {
            Self::Invalid(invalid) => (StatusCode::BAD_REQUEST, INVALID, invalid.code()),
            Self::MissingApiKey => (
                StatusCode::UNAUTHORIZED,
                "authentication_error",
                "missing_api_key",
            ),
            Self::InvalidApiKey => (
                StatusCode::UNAUTHORIZED,
                "authentication_error",
                "invalid_api_key",
            ),
            Self::InsufficientCredits { .. } => (
                StatusCode::PAYMENT_REQUIRED,
                "billing_error",
                "insufficient_credits",
            ),
            Self::ApiAccessRequired => (StatusCode::FORBIDDEN, DENIED, "api_access_required"),
            Self::InsufficientPermissions(_) => {
                (StatusCode::FORBIDDEN, DENIED, "insufficient_permissions")
            }
            Self::ResultUrlExpired => (StatusCode::FORBIDDEN, DENIED, "result_url_expired"),
            Self::TaskNotFound => (StatusCode::NOT_FOUND, INVALID, "task_not_found"),
            Self::NotFound => (StatusCode::NOT_FOUND, INVALID, "not_found"),
            Self::MethodNotAllowed => (
                StatusCode::METHOD_NOT_ALLOWED,
                INVALID,
                "method_not_allowed",
            ),
            Self::BodyTimeout => (StatusCode::BAD_REQUEST, INVALID, "invalid_request"),
            Self::HeadTooLarge { .. } => (
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
                INVALID,
                "request_too_large",
            ),
            Self::IdempotencyConflict => (StatusCode::CONFLICT, INVALID, "idempotency_conflict"),
            Self::ResultExpired => (StatusCode::GONE, INVALID, "result_expired"),
            Self::RangeNotSatisfiable { .. } => (
                StatusCode::RANGE_NOT_SATISFIABLE,
                INVALID,
                "invalid_request",
            ),
            Self::CreateRate { .. } | Self::TooFast { .. } => (
                StatusCode::TOO_MANY_REQUESTS,
                LIMITED,
                "rate_limit_exceeded",
            ),
            Self::ActiveLimit { .. } => (
                StatusCode::TOO_MANY_REQUESTS,
                LIMITED,
                "active_task_limit_exceeded",
            ),
            Self::DailyLimit { .. } => (
                StatusCode::TOO_MANY_REQUESTS,
                LIMITED,
                "daily_limit_exceeded",
            ),
            Self::Unavailable { .. } => {
                (StatusCode::SERVICE_UNAVAILABLE, OURS, "service_unavailable")
            }
            Self::UpstreamTimeout | Self::OutcomeUnknown { .. } => {
                (StatusCode::GATEWAY_TIMEOUT, OURS, "upstream_timeout")
            }
            Self::Internal { .. } => (StatusCode::INTERNAL_SERVER_ERROR, OURS, "internal_error"),
        }
    }

    /// The stable code.
    pub(crate) fn code(&self) -> &'static str {
        self.row().2
    }

    /// The limit that was reached, where it was one, as metrics name it.
    pub(crate) fn limit(&self) -> Option<&'static str> {
        match self {
            Self::CreateRate { .. } => Some("create_requests"),
            Self::TooFast { .. } => Some("requests"),
            Self::ActiveLimit { .. } => Some("active_tasks"),
            Self::DailyLimit { .. } => Some("daily_tasks"),
            _ => None,
        }
    }

    /// The body as the contract shapes it.
    pub(crate) fn body(&self, request_id: &str) -> ErrorBody {
        let (_, kind, code) = self.row();
        ErrorBody {
            error: ErrorFields {
                kind: kind.to_owned(),
                code: code.to_owned(),
                message: self.to_string(),
                request_id: request_id.to_owned(),
            },
        }
    }

    /// When the same request may be answered.
    pub(crate) fn retry_after_seconds(&self) -> Option<i64> {
        match self {
            Self::CreateRate {
                retry_after_seconds,
                ..
            }
            | Self::TooFast {
                retry_after_seconds,
            }
            | Self::ActiveLimit {
                retry_after_seconds,
                ..
            }
            | Self::DailyLimit {
                retry_after_seconds,
                ..
            }
            | Self::Unavailable {
                retry_after_seconds,
                ..
            } => Some((*retry_after_seconds).max(1)),
            Self::UpstreamTimeout | Self::OutcomeUnknown { .. } => Some(1),
            _ => None,
        }
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(detail) => Self::Unavailable {
                retry_after_seconds: 1,
                detail,
            },
            StoreError::OutcomeUnknown(detail) => Self::OutcomeUnknown { detail },
            StoreError::Refused(detail) | StoreError::Corrupt(detail) => Self::Internal { detail },
        }
    }
}

impl From<Full> for ApiError {
    fn from(full: Full) -> Self {
        Self::Unavailable {
            retry_after_seconds: 1,
            detail: full.0,
        }
    }
}

impl From<NoBody> for ApiError {
    fn from(no_body: NoBody) -> Self {
        let invalid = |text: &str| InvalidRequest::Request(text.to_owned()).into();
        match no_body {
            NoBody::TooSlow => Self::BodyTimeout,
            NoBody::NoPermit(full) => full.into(),
            NoBody::Broken => invalid("The request body is incomplete or malformed."),
            NoBody::TooLarge => invalid("The request body is too large."),
        }
    }
}

impl IntoResponse for ApiError {
    /// Status and headers; the error itself rides along for `follow.rs`, which writes the body.
    fn into_response(self) -> Response {
        let mut response = self.row().0.into_response();
        let headers = response.headers_mut();
        if let Some(seconds) = self.retry_after_seconds() {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        match self {
            Self::MissingApiKey | Self::InvalidApiKey => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            // What is left of a body that comes too slowly must not be read as the next request.
            Self::BodyTimeout => {
                headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            Self::RangeNotSatisfiable { size_bytes } => {
                if let Ok(value) = HeaderValue::try_from(format!("bytes */{size_bytes}")) {
                    headers.insert(header::CONTENT_RANGE, value);
                }
            }
            _ => {}
        }
        response.extensions_mut().insert(self);
        response
    }
}

/// The body of every error response.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ErrorBody {
    error: ErrorFields,
}

/// What went wrong.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ErrorFields {
    /// Type of the error.
    #[serde(rename = "type")]
    kind: String,
    /// Stable error code. Branch on it.
    code: String,
    /// Human-readable message. It may change.
    message: String,
    /// Request ID, the same as in `X-Request-Id`. Include it when you contact support.
    request_id: String,
}

#[cfg(test)]
mod tests {
    use upscale_core::limits;

    use super::*;

    #[test]
    fn a_store_that_is_not_there_is_503_to_be_retried_and_its_reason_stays_in_the_log() {
        let error = ApiError::from(StoreError::Unavailable("disk on fire".to_owned()));
        assert_eq!(error.row().0, StatusCode::SERVICE_UNAVAILABLE);
        assert!(!error.to_string().contains("fire"));
        let response = error.into_response();
        assert_eq!(response.headers()[header::RETRY_AFTER], "1");
    }

    #[test]
    fn an_outcome_that_is_unknown_is_504_and_sends_the_caller_back_with_the_same_key() {
        let error = ApiError::from(StoreError::OutcomeUnknown("a line was cut".to_owned()));
        assert_eq!(error.row().0, StatusCode::GATEWAY_TIMEOUT);
        assert_eq!(error.code(), "upstream_timeout");
        let message = error.to_string();
        assert!(message.contains("same Idempotency-Key"), "{message}");
        assert!(!message.contains("line was cut"), "{message}");
        let response = error.into_response();
        assert_eq!(response.headers()[header::RETRY_AFTER], "1");
    }

    #[test]
    fn a_store_that_holds_the_impossible_is_500_and_its_reason_stays_in_the_log() {
        let error = ApiError::from(StoreError::Corrupt("row 7 is blue".to_owned()));
        assert_eq!(error.row().0, StatusCode::INTERNAL_SERVER_ERROR);
        assert!(!error.to_string().contains("blue"));
    }

    #[test]
    fn no_wait_is_shorter_than_a_second() {
        for retry_after_seconds in [-3, 0, 1] {
            let response = ApiError::DailyLimit {
                limit: limits::DAILY_TASKS_MAX,
                retry_after_seconds,
            }
            .into_response();
            assert_eq!(response.headers()[header::RETRY_AFTER], "1");
        }
    }
}

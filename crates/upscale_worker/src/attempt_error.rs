//! Why an attempt at a task did not end in a result: which kind of failure, a sentence for the customer,
//! and what the logs may know beyond it. What follows is decided by `core::after_failure`.

use std::time::Duration;

use upscale_core::AttemptFailure;
use upscale_pipeline::ChildEnd;

const UNFAITHFUL: &str = "The upscaled image did not pass the comparison with its source";
const CRASHED: &str = "The image could not be processed";
const NOT_NOW: &str =
    "The image could not be processed at the moment. Try again with a new Idempotency-Key.";

/// Why an attempt failed, for the customer and for the decision to retry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} {detail}")]
pub struct AttemptError {
    /// Whether another attempt may help, and how it counts.
    pub failure: AttemptFailure,
    /// For the customer, with numbers; never an address, a port or a word of the source's own.
    pub message: String,
    /// For the logs; may be empty.
    pub detail: String,
    /// What the source asked for with `Retry-After`.
    pub retry_after: Option<Duration>,
}

impl AttemptError {
    /// Trying again cannot help.
    pub fn permanent(message: impl Into<String>) -> Self {
        Self::new(AttemptFailure::Permanent, message)
    }

    /// A failure that another attempt may not meet.
    pub fn transient(message: impl Into<String>) -> Self {
        Self::new(AttemptFailure::Transient, message)
    }

    /// Neither the picture's fault nor the source's: nothing was begun, or given up because others were first.
    pub(crate) fn busy(message: impl Into<String>) -> Self {
        Self::new(AttemptFailure::Busy, message)
    }

    /// The child did not survive or did not keep to the protocol.
    pub fn crash(message: impl Into<String>) -> Self {
        Self::new(AttemptFailure::Crash, message)
    }

    fn new(failure: AttemptFailure, message: impl Into<String>) -> Self {
        Self {
            failure,
            message: message.into(),
            detail: String::new(),
            retry_after: None,
        }
    }

    /// As metrics and traces name it.
    pub(crate) fn kind(&self) -> &'static str {
        match self.failure {
            AttemptFailure::Permanent => "permanent",
            AttemptFailure::Transient => "transient",
            AttemptFailure::Crash => "crash",
            AttemptFailure::Busy => "busy",
        }
    }

    /// Not to be tried again before so long has passed.
    #[must_use]
    pub(crate) fn not_before(mut self, retry_after: Option<Duration>) -> Self {
        self.retry_after = retry_after;
        self
    }

    /// With what the logs may know.
    #[must_use]
    pub fn with_detail(mut self, detail: impl std::fmt::Display) -> Self {
        self.detail = detail.to_string();
        self
    }
}

impl From<ChildEnd> for AttemptError {
    fn from(end: ChildEnd) -> Self {
        match end {
            ChildEnd::Refused(message) => Self::permanent(message),
            ChildEnd::Unfaithful(reason) => Self::permanent(UNFAITHFUL).with_detail(reason),
            ChildEnd::OutOfTime { limit, end } => {
                Self::permanent(format!("The image could not be processed within {limit}."))
                    .with_detail(end.reason)
            }
            ChildEnd::Crashed(end) => Self::crash(CRASHED).with_detail(end.reason),
            ChildEnd::NotStarted(_) => Self::transient(NOT_NOW).with_detail(end),
            // The machine's fault: another time or another worker may do better, and the picture is not blamed.
            ChildEnd::WeakSandbox(end) | ChildEnd::Killed(end) => {
                Self::transient(NOT_NOW).with_detail(end.reason)
            }
        }
    }
}

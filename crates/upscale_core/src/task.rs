//! A task as everyone sees it: what was ordered, and the three states it can be in.

use crate::{AccountId, Credits, Look, Parameters, SourceUrl, TaskId, Timestamp, limits};

/// What a customer orders, after defaults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTask {
    /// Where the source is.
    pub source_url: SourceUrl,
    /// What is to be done with it.
    pub parameters: Parameters,
}

/// One task of one account.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// Stable identifier, `ups_…`.
    pub id: TaskId,
    /// Who alone may read it.
    pub account_id: AccountId,
    /// Scale and options of the order.
    pub parameters: Parameters,
    /// What was reserved when it was accepted, and is charged or returned, whatever a task costs today.
    pub price: Credits,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// When it is terminal at the latest.
    pub deadline_at: Timestamp,
    /// Processing, succeeded or failed; the latter two never change.
    pub state: TaskState,
}

/// The contract's three states. Succeeded and failed are terminal.
#[derive(Debug, Clone, PartialEq)]
pub enum TaskState {
    /// Accepted, credits reserved.
    Processing,
    /// Charged; the result existed before this was committed.
    Succeeded(ResultFile),
    /// No result and no charge.
    Failed {
        /// For the customer: what was wrong, with numbers.
        message: FailureMessage,
        /// Whether the credits are back.
        refund: RefundStatus,
    },
}

/// A finished result: where its bytes are and what they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultFile {
    /// The unguessable token that names the file; unique per attempt.
    pub name: String,
    /// SHA-256 of the bytes, lower-case hex.
    pub sha256: String,
    /// Length of the PNG in bytes, > 0.
    pub size_bytes: u64,
    /// Columns of the PNG.
    pub width: u32,
    /// Rows of the PNG.
    pub height: u32,
    /// What pages show of it before its bytes; none of results that older programs made.
    pub preview: Option<Preview>,
    /// The look of our networks that made it; none of older results and of models that an operator brought.
    pub look: Option<Look>,
}

/// How a result is shown before it is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preview {
    /// Length of the thumbnail that lies beside the result's file; 0 when none was stored.
    pub thumbnail_bytes: u32,
    /// Where the result differs most from its smoothly enlarged source: columns and rows in thousandths of its sides.
    pub focus_permille: [u16; 2],
}

/// Where the reserved credits of a failed task are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefundStatus {
    /// About to be returned; a crash here is finished by anyone who comes next.
    Pending,
    /// The credits are available again.
    Refunded,
}

impl RefundStatus {
    /// As the contract writes it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Refunded => "refunded",
        }
    }
}

/// The only failure code a task body shows.
pub const FAILURE_CODE: &str = "image_processing_failed";
const FAILURE_ENDING: &str = "No credits were charged.";

/// The message of a failed task: at most 500 bytes, ends "No credits were charged."
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailureMessage(String);

impl FailureMessage {
    /// From the sentence that says what was wrong; shortened at a character boundary when too long.
    #[must_use]
    pub fn new(what_was_wrong: &str) -> Self {
        let what = what_was_wrong.trim().trim_end_matches('.');
        let room = limits::FAILURE_MESSAGE_BYTES_MAX - FAILURE_ENDING.len() - 2;
        let end = (0..=room.min(what.len()))
            .rev()
            .find(|&at| what.is_char_boundary(at))
            .unwrap_or(0);
        Self(format!("{}. {FAILURE_ENDING}", &what[..end]))
    }

    /// As stored: already whole, taken as it is.
    #[must_use]
    pub fn from_stored(text: String) -> Self {
        Self(text)
    }

    /// The whole text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_that_nothing_was_charged_however_long_its_cause() {
        assert_eq!(
            FailureMessage::new("The image is 1200 x 1300 = 1.56 MP.").as_str(),
            "The image is 1200 x 1300 = 1.56 MP. No credits were charged."
        );
        let long = FailureMessage::new(&"é".repeat(1_000));
        assert!(long.as_str().len() <= limits::FAILURE_MESSAGE_BYTES_MAX);
        assert!(long.as_str().ends_with(". No credits were charged."));
    }
}

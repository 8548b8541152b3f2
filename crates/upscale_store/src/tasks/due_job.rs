//! A due job as it was read, and whether it is handed out: an expired lease is an ordinary due job
//! whose last attempt was interrupted. That is counted and never ends the task: its deadline does.

use upscale_core::{
    AccountId, AttemptFailure, FailureMessage, Parameters, RequestId, SourceUrl, TaskId, Timestamp,
    limits::RETRY_DELAY_SECONDS_MAX,
};

use crate::{Claim, StoreError};

/// Jobs one call hands out at most.
pub(crate) const CLAIMS_MAX: u32 = 64;
/// Rounds of looking for due jobs in one call, should those that end instead fill the first ones.
pub(crate) const ROUNDS_MAX: u32 = 4;

/// What a claim did.
#[derive(Debug, Default)]
pub(crate) struct Claimed {
    /// Jobs handed out.
    pub(crate) claims: Vec<Claim>,
    /// Tasks that failed instead; their refunds are due.
    pub(crate) failed: Vec<TaskId>,
}

/// The job and what its task says about the work.
pub(crate) struct DueJob {
    pub(crate) task_id: TaskId,
    pub(crate) account_id: AccountId,
    pub(crate) attempt: i64,
    pub(crate) transient_failures: u32,
    pub(crate) failing_since: Option<Timestamp>,
    pub(crate) crashes: u32,
    pub(crate) interruptions: u32,
    /// Its last attempt gave no sign of life for a lease.
    pub(crate) was_claimed: bool,
    /// None when today's rules refuse what was accepted before an upgrade.
    pub(crate) source_url: Option<SourceUrl>,
    pub(crate) parameters: Parameters,
    pub(crate) request_id: RequestId,
    pub(crate) created_at: Timestamp,
    pub(crate) deadline_at: Timestamp,
}

/// What becomes of a due job.
pub(crate) enum NextAttempt {
    /// It is handed out, with the fence and the count of interruptions to write.
    HandOut(Box<Claim>),
    /// The task fails with this message.
    End(TaskId, FailureMessage),
}

impl DueJob {
    /// Decides; nothing is written.
    pub(crate) fn next_attempt(self, now: Timestamp) -> NextAttempt {
        let Some(source_url) = self.source_url else {
            let message = FailureMessage::new("The image_url is not accepted any more.");
            return NextAttempt::End(self.task_id, message);
        };
        NextAttempt::HandOut(Box::new(Claim {
            task_id: self.task_id,
            account_id: self.account_id,
            attempt: self.attempt + 1,
            transient_failures: self.transient_failures,
            failing_since: self.failing_since,
            crashes: self.crashes,
            interruptions: self.interruptions + u32::from(self.was_claimed),
            source_url,
            parameters: self.parameters,
            request_id: self.request_id,
            created_at: self.created_at,
            deadline_at: self.deadline_at,
            claimed_at: now,
        }))
    }
}

/// What a failed attempt adds to the transient failures and the crashes of its job, and the microseconds
/// until it is due again.
///
/// # Errors
/// `Refused` for a permanent failure: that is settled, never retried.
pub(crate) fn retry_counts(
    task: &TaskId,
    failure: AttemptFailure,
    delay_millis: u64,
) -> Result<(i64, i64, i64), StoreError> {
    let delay_micros = delay_millis.min(RETRY_DELAY_SECONDS_MAX as u64 * 1_000) as i64 * 1_000;
    match failure {
        AttemptFailure::Transient => Ok((1, 0, delay_micros)),
        AttemptFailure::Crash => Ok((0, 1, delay_micros)),
        AttemptFailure::Busy => Ok((0, 0, delay_micros)),
        AttemptFailure::Permanent => Err(StoreError::Refused(format!(
            "to retry {task}: a permanent failure is settled"
        ))),
    }
}

/// What a task past its deadline is told, by its job: `attempts` made, `interruptions` among them.
pub(crate) fn overdue_message(
    deadline_seconds: i64,
    attempts: i64,
    interruptions: u32,
) -> FailureMessage {
    let why = match (attempts, interruptions) {
        (0, _) => ": it was still waiting for its first attempt".to_owned(),
        (_, 0) => String::new(),
        (_, 1) => ": its processing was interrupted".to_owned(),
        (_, times) => format!(": its processing was interrupted {times} times"),
    };
    FailureMessage::new(&format!(
        "The image could not be processed within {deadline_seconds} seconds{why}."
    ))
}

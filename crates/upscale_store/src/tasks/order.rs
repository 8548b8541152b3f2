//! A create as it is decided: what is asked, what the account's row says, and the answer of core's admission.

use upscale_core::{
    AccountFacts, AccountId, Admission, Credits, IdempotencyKey, KeyId, NewTask, NoRandomness,
    QueueFacts, RequestId, Task, TaskId, TaskState, Timestamp, admit,
};

use crate::{CreateOutcome, StoreOptions};

/// What a stopped account is told to wait: the live audit runs every minute.
const STOPPED_RETRY_SECONDS: i64 = 60;

/// What one create asks for.
pub(crate) struct Order {
    pub(crate) account: AccountId,
    pub(crate) key: IdempotencyKey,
    pub(crate) task: NewTask,
    pub(crate) request: RequestId,
    /// Which API key asked; none for the playground.
    pub(crate) api_key: Option<KeyId>,
}

/// The account row as the transaction found it.
pub(crate) struct Standing {
    pub(crate) facts: AccountFacts,
    /// By an audit that found its books wrong.
    pub(crate) stopped: bool,
}

impl Order {
    /// The task to write once it is accepted.
    pub(crate) fn accepted(
        &self,
        now: Timestamp,
        options: StoreOptions,
    ) -> Result<Task, NoRandomness> {
        Ok(Task {
            id: TaskId::random()?,
            account_id: self.account,
            parameters: self.task.parameters,
            price: options.price,
            created_at: now,
            deadline_at: now.plus_seconds(options.deadline_seconds),
            state: TaskState::Processing,
        })
    }
}

/// The answer to a key that is known.
pub(crate) fn known_key(before: &str, fingerprint: &str, task: Task) -> CreateOutcome {
    if before == fingerprint {
        CreateOutcome::Replayed(task)
    } else {
        CreateOutcome::Conflict
    }
}

impl Standing {
    /// The answer to every create of a stopped account whose key is new.
    pub(crate) fn stop(&self) -> Option<CreateOutcome> {
        self.stopped.then_some(CreateOutcome::Overloaded {
            retry_after_seconds: STOPPED_RETRY_SECONDS,
        })
    }

    /// Core's no, in the store's words; none when the task is to be accepted.
    pub(crate) fn refuse(
        &self,
        queue: QueueFacts,
        price: Credits,
        now: Timestamp,
    ) -> Option<CreateOutcome> {
        match admit(self.facts, queue, price, now) {
            Admission::Accept => None,
            Admission::ActiveLimit {
                retry_after_seconds,
            } => Some(CreateOutcome::ActiveLimit {
                limit: self.facts.limits.active_tasks,
                retry_after_seconds,
            }),
            Admission::DailyLimit {
                retry_after_seconds,
            } => Some(CreateOutcome::DailyLimit {
                limit: self.facts.limits.daily_tasks,
                retry_after_seconds,
            }),
            Admission::InsufficientCredits => Some(CreateOutcome::InsufficientCredits {
                available: self.facts.available,
                price,
            }),
            Admission::Overloaded {
                retry_after_seconds,
            } => Some(CreateOutcome::Overloaded {
                retry_after_seconds,
            }),
        }
    }
}

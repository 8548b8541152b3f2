//! A task's columns as an engine read them, into the words of core: a text that cannot be what its column
//! says is a corrupt store, said with the column.

use upscale_core::{
    AccountId, Credits, FailureMessage, Parameters, RefundStatus, ResultFile, Scale, Task, TaskId,
    TaskState, Timestamp, is_token, limits::NAME_CHARS_MAX,
};

use crate::{Stages, StoreError};

/// The columns of `task` that make a [`Task`].
pub(crate) struct TaskRow {
    pub(crate) id: TaskId,
    pub(crate) account_id: AccountId,
    pub(crate) parameters: Parameters,
    pub(crate) price: Credits,
    pub(crate) created_at: Timestamp,
    pub(crate) deadline_at: Timestamp,
    pub(crate) state: String,
    pub(crate) failure_message: Option<String>,
    pub(crate) refund: Option<String>,
    pub(crate) result: Option<ResultFile>,
}

impl TaskRow {
    pub(crate) fn into_task(self) -> Result<Task, StoreError> {
        let state = match (self.state.as_str(), self.result, self.failure_message) {
            ("processing", _, _) => TaskState::Processing,
            ("succeeded", Some(file), _) => TaskState::Succeeded(file),
            ("failed", _, Some(message)) => TaskState::Failed {
                message: FailureMessage::from_stored(message),
                refund: refund_status(self.refund.as_deref())?,
            },
            (other, _, _) => {
                return Err(StoreError::Corrupt(format!(
                    "column state holds {other:?}, and the columns beside it something else"
                )));
            }
        };
        Ok(Task {
            id: self.id,
            account_id: self.account_id,
            parameters: self.parameters,
            price: self.price,
            created_at: self.created_at,
            deadline_at: self.deadline_at,
            state,
        })
    }
}

fn refund_status(text: Option<&str>) -> Result<RefundStatus, StoreError> {
    [RefundStatus::Pending, RefundStatus::Refunded]
        .into_iter()
        .find(|status| Some(status.as_str()) == text)
        .ok_or_else(|| StoreError::Corrupt(format!("column refund holds {text:?}")))
}

/// A text through a parser of core.
pub(crate) fn parse_column<T>(
    column: &str,
    text: &str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T, StoreError> {
    parse(text).ok_or_else(|| StoreError::Corrupt(format!("column {column} holds {text:?}")))
}

/// A count or size, which no row may hold below zero.
pub(crate) fn whole_column<T: TryFrom<i64>>(column: &str, number: i64) -> Result<T, StoreError> {
    T::try_from(number).map_err(|_| StoreError::Corrupt(format!("column {column} holds {number}")))
}

/// A key may go without a name; a longer one than the contract allows should have been refused before.
pub(crate) fn check_name(name: &str) -> Result<(), StoreError> {
    let chars = name.chars().count();
    if chars <= NAME_CHARS_MAX {
        return Ok(());
    }
    let what = format!("a key name of {chars} characters: up to {NAME_CHARS_MAX} are allowed");
    Err(StoreError::Refused(what))
}

/// A factor that is offered.
pub(crate) fn scale_column(factor: i64) -> Result<Scale, StoreError> {
    let scale = Scale::from_factor(factor);
    scale.ok_or_else(|| StoreError::Corrupt(format!("column scale holds {factor}")))
}

/// All three, or none where nobody measured.
pub(crate) fn stages(
    download_micros: Option<i64>,
    picture_micros: Option<i64>,
    storing_micros: Option<i64>,
) -> Option<Stages> {
    Some(Stages {
        download_micros: download_micros?,
        picture_micros: picture_micros?,
        storing_micros: storing_micros?,
    })
}

/// The size to write for a result that may be recorded: its name is a token, its size a number of the file.
pub(crate) fn check_result(task: &TaskId, file: &ResultFile) -> Result<i64, StoreError> {
    if !is_token(&file.name) {
        return Err(StoreError::Refused(format!(
            "{:?} for {task}: it cannot name a result",
            file.name
        )));
    }
    i64::try_from(file.size_bytes).map_err(|_| {
        StoreError::Refused(format!("a result of {} bytes for {task}", file.size_bytes))
    })
}

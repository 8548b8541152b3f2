//! Rows into the words of core: a text that cannot be what its column says is a corrupt store, said with
//! table and column.

use rusqlite::Row;
use upscale_core::{
    AccountId, FailureMessage, RefundStatus, ResultFile, Task, TaskId, TaskState, Timestamp,
};

use crate::StoreError;

/// Reads a text column through a parser of core.
pub(super) fn parsed<T>(
    row: &Row<'_>,
    column: &str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T, StoreError> {
    let text: String = row.get(column)?;
    parse(&text).ok_or_else(|| StoreError::Corrupt(format!("column {column} holds {text:?}")))
}

pub(super) fn account_id(row: &Row<'_>) -> Result<AccountId, StoreError> {
    parsed(row, "account_id", AccountId::parse)
}

pub(super) fn task_id(row: &Row<'_>, column: &str) -> Result<TaskId, StoreError> {
    parsed(row, column, TaskId::parse)
}

pub(super) fn time(row: &Row<'_>, column: &str) -> Result<Timestamp, StoreError> {
    Ok(Timestamp::from_micros(row.get(column)?))
}

pub(super) fn time_if_any(row: &Row<'_>, column: &str) -> Result<Option<Timestamp>, StoreError> {
    let micros: Option<i64> = row.get(column)?;
    Ok(micros.map(Timestamp::from_micros))
}

/// A count or size, which no row may hold below zero.
pub(super) fn count(row: &Row<'_>, column: &str) -> Result<u32, StoreError> {
    let number: i64 = row.get(column)?;
    u32::try_from(number)
        .map_err(|_| StoreError::Corrupt(format!("column {column} holds {number}")))
}

/// A task from a row with every column of the table.
pub(super) fn task(row: &Row<'_>) -> Result<Task, StoreError> {
    Ok(Task {
        id: task_id(row, "id")?,
        account_id: account_id(row)?,
        created_at: time(row, "created_at")?,
        deadline_at: time(row, "deadline_at")?,
        state: state(row)?,
    })
}

fn state(row: &Row<'_>) -> Result<TaskState, StoreError> {
    let state: String = row.get("state")?;
    match state.as_str() {
        "processing" => Ok(TaskState::Processing),
        "succeeded" => Ok(TaskState::Succeeded(result_file(row)?)),
        "failed" => Ok(TaskState::Failed {
            message: FailureMessage::from_stored(row.get("failure_message")?),
            refund: parsed(row, "refund", refund_status)?,
        }),
        other => Err(StoreError::Corrupt(format!("column state holds {other:?}"))),
    }
}

/// The result of a succeeded task.
pub(super) fn result_file(row: &Row<'_>) -> Result<ResultFile, StoreError> {
    let size: i64 = row.get("result_size")?;
    Ok(ResultFile {
        name: row.get("result_name")?,
        sha256: row.get("result_sha256")?,
        size_bytes: u64::try_from(size)
            .map_err(|_| StoreError::Corrupt(format!("column result_size holds {size}")))?,
        width: count(row, "result_width")?,
        height: count(row, "result_height")?,
    })
}

fn refund_status(text: &str) -> Option<RefundStatus> {
    [RefundStatus::Pending, RefundStatus::Refunded]
        .into_iter()
        .find(|status| status.as_str() == text)
}

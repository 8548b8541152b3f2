//! Columns of a row, each into the word of core that it holds.

use rusqlite::Row;
use upscale_core::{AccountId, OwnLimits, TaskId, Timestamp};

use crate::{
    StoreError,
    task_row::{parse_column, whole_column},
};

/// Reads a text column through a parser of core.
pub(super) fn parsed<T>(
    row: &Row<'_>,
    column: &str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T, StoreError> {
    let text: String = row.get(column)?;
    parse_column(column, &text, parse)
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
    whole_column(column, row.get(column)?)
}

/// What an operator set for an account; its columns are null where he set nothing.
pub(super) fn own_limits(row: &Row<'_>) -> Result<OwnLimits, StoreError> {
    Ok(OwnLimits {
        create_requests_per_minute: row.get("limit_create_requests")?,
        active_tasks: row.get("limit_active_tasks")?,
        daily_tasks: row.get("limit_daily_tasks")?,
    })
}

//! Columns of a row, each into the word of core that it holds.

use tokio_postgres::Row;
use upscale_core::{AccountId, OwnLimits, TaskId, Timestamp};

use crate::{
    StoreError,
    task_row::{parse_column, whole_column},
};

/// Reads a text column through a parser of core.
pub(super) fn parsed<T>(
    row: &Row,
    column: &str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T, StoreError> {
    parse_column(column, row.try_get(column)?, parse)
}

pub(super) fn account_id(row: &Row) -> Result<AccountId, StoreError> {
    parsed(row, "account_id", AccountId::parse)
}

pub(super) fn task_id(row: &Row, column: &str) -> Result<TaskId, StoreError> {
    parsed(row, column, TaskId::parse)
}

pub(super) fn time(row: &Row, column: &str) -> Result<Timestamp, StoreError> {
    Ok(Timestamp::from_micros(row.try_get(column)?))
}

pub(super) fn time_if_any(row: &Row, column: &str) -> Result<Option<Timestamp>, StoreError> {
    let micros: Option<i64> = row.try_get(column)?;
    Ok(micros.map(Timestamp::from_micros))
}

/// A count or size, which no row may hold below zero.
pub(super) fn count(row: &Row, column: &str) -> Result<u32, StoreError> {
    whole_column(column, row.try_get(column)?)
}

/// What an operator set for an account; its columns are null where he set nothing.
pub(super) fn own_limits(row: &Row) -> Result<OwnLimits, StoreError> {
    let number = |column: &str| -> Result<Option<u32>, StoreError> {
        let set: Option<i64> = row.try_get(column)?;
        set.map(|set| whole_column(column, set)).transpose()
    };
    Ok(OwnLimits {
        create_requests_per_minute: number("limit_create_requests")?,
        active_tasks: number("limit_active_tasks")?,
        daily_tasks: number("limit_daily_tasks")?,
    })
}

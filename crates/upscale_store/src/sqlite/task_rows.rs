//! The rows of tasks: how one is written and what is read of it.

use rusqlite::{Row, params};
use upscale_core::{Credits, Parameters, ResultFile, Task};

use super::{
    Tx,
    rows::{account_id, count, task_id, time},
};
use crate::{
    StoreError,
    order::Order,
    task_row::{TaskRow, scale_column, whole_column},
};

/// Writes a task that was just accepted.
pub(super) fn insert_task(
    tx: &Tx<'_>,
    task: &Task,
    order: &Order,
    fingerprint: &str,
) -> Result<(), StoreError> {
    tx.execute_one(
        "INSERT INTO task (id, account_id, idempotency_key, fingerprint, source_url, scale, face_enhance,
             price, request_id, created_at, day, deadline_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        params![
            task.id.as_str(),
            order.account.as_str(),
            order.key.as_str(),
            fingerprint,
            order.task.source_url.as_str(),
            task.parameters.scale.factor() as i64,
            task.parameters.face_enhance,
            task.price.thousandths(),
            order.request.as_str(),
            task.created_at.micros(),
            task.created_at.utc_day(),
            task.deadline_at.micros()
        ],
    )
}

/// A task from a row with every column of the table.
pub(super) fn task(row: &Row<'_>) -> Result<Task, StoreError> {
    let has_result = row.get::<_, Option<String>>("result_name")?.is_some();
    TaskRow {
        id: task_id(row, "id")?,
        account_id: account_id(row)?,
        parameters: parameters(row)?,
        price: Credits::from_thousandths(row.get("price")?),
        created_at: time(row, "created_at")?,
        deadline_at: time(row, "deadline_at")?,
        state: row.get("state")?,
        failure_message: row.get("failure_message")?,
        refund: row.get("refund")?,
        result: has_result.then(|| result_file(row)).transpose()?,
    }
    .into_task()
}

/// What was ordered.
pub(super) fn parameters(row: &Row<'_>) -> Result<Parameters, StoreError> {
    Ok(Parameters {
        scale: scale_column(row.get("scale")?)?,
        face_enhance: row.get("face_enhance")?,
    })
}

/// The result of a succeeded task.
pub(super) fn result_file(row: &Row<'_>) -> Result<ResultFile, StoreError> {
    Ok(ResultFile {
        name: row.get("result_name")?,
        sha256: row.get("result_sha256")?,
        size_bytes: whole_column("result_size", row.get("result_size")?)?,
        width: count(row, "result_width")?,
        height: count(row, "result_height")?,
    })
}

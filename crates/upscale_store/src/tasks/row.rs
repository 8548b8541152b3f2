//! The rows of tasks: how one is written and what is read of it.

use upscale_core::{
    AccountId, Credits, FailureMessage, Look, NotALook, Parameters, Preview, RefundStatus,
    ResultFile, Scale, Task, TaskId, TaskState, is_token,
};

use super::order::Order;
use crate::{Stages, StoreError, row::Row, tx::Tx};

pub(super) const INSERT_TASK: &str =
    "INSERT INTO task (id, account_id, idempotency_key, fingerprint, source_url, scale,
         face_enhance, price, request_id, created_at, day, deadline_at, key_id)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)";

/// Every column that a task, its record or its result is read from. Columns by name, here and in every other statement:
/// PostgreSQL refuses a prepared statement that would return others than before, and a newer program may add some at any
/// moment of a rolling upgrade.
pub(crate) const TASK: &str =
    "task.id, task.account_id, task.fingerprint, task.source_url, task.scale, task.face_enhance, task.price,
     task.request_id, task.created_at, task.day, task.deadline_at, task.state, task.finished_at, task.failure_message,
     task.refund, task.result_name, task.result_sha256, task.result_size, task.result_width, task.result_height,
     task.result_removed_at, task.download_micros, task.picture_micros, task.storing_micros, task.thumbnail_bytes,
     task.focus_x, task.focus_y, task.look";

/// Writes a task that was just accepted.
pub(super) async fn insert_task(
    tx: &Tx,
    task: &Task,
    order: &Order,
    fingerprint: &str,
) -> Result<(), StoreError> {
    tx.execute_one(
        INSERT_TASK,
        &[
            &task.id,
            &order.account,
            &order.key.as_str(),
            &fingerprint,
            &order.task.source_url.as_str(),
            &(task.parameters.scale.factor() as i64),
            &task.parameters.face_enhance,
            &task.price,
            &order.request,
            &task.created_at,
            &task.created_at.utc_day(),
            &task.deadline_at,
            &order.api_key,
        ],
    )
    .await
}

/// A task from a row with the columns of [`TASK`].
pub(crate) fn task(row: &dyn Row) -> Result<Task, StoreError> {
    let result = row.text_if_any("result_name")?;
    let result = result.map(|_| result_file(row)).transpose()?;
    let message = row.string_if_any("failure_message")?;
    let state = match (row.text("state")?, result, message) {
        ("processing", _, _) => TaskState::Processing,
        ("succeeded", Some(file), _) => TaskState::Succeeded(file),
        ("failed", _, Some(message)) => TaskState::Failed {
            message: FailureMessage::from_stored(message),
            refund: refund_status(row.text_if_any("refund")?)?,
        },
        (other, _, _) => {
            return Err(StoreError::Corrupt(format!(
                "column state holds {other:?}, and the columns beside it something else"
            )));
        }
    };
    Ok(Task {
        id: row.task_id("id")?,
        account_id: row.account_id()?,
        parameters: parameters(row)?,
        price: row.credits("price")?,
        created_at: row.time("created_at")?,
        deadline_at: row.time("deadline_at")?,
        state,
    })
}

/// What was ordered.
pub(super) fn parameters(row: &dyn Row) -> Result<Parameters, StoreError> {
    Ok(Parameters {
        scale: scale(row.number("scale")?)?,
        face_enhance: row.flag("face_enhance")?,
    })
}

/// The result of a succeeded task.
pub(crate) fn result_file(row: &dyn Row) -> Result<ResultFile, StoreError> {
    Ok(ResultFile {
        name: row.string("result_name")?,
        sha256: row.string("result_sha256")?,
        size_bytes: row.whole("result_size")?,
        width: row.whole("result_width")?,
        height: row.whole("result_height")?,
        preview: preview(row)?,
        look: look(row)?,
    })
}

/// None of a result that an older program recorded, or that a brought model made.
fn look(row: &dyn Row) -> Result<Option<Look>, StoreError> {
    let text = row.text_if_any("look")?;
    let look = text.map(str::parse).transpose();
    look.map_err(|error: NotALook| StoreError::Corrupt(format!("column look: {error}")))
}

/// None of a result that an older program recorded.
fn preview(row: &dyn Row) -> Result<Option<Preview>, StoreError> {
    if row.number_if_any("focus_x")?.is_none() {
        return Ok(None);
    }
    Ok(Some(Preview {
        thumbnail_bytes: row.whole("thumbnail_bytes")?,
        focus_permille: [row.whole("focus_x")?, row.whole("focus_y")?],
    }))
}

/// Whose the task is, and its price.
pub(super) fn owner_and_price(row: &dyn Row) -> Result<(AccountId, Credits), StoreError> {
    Ok((row.account_id()?, row.credits("price")?))
}

/// All three stages, or none where no one measured.
pub(super) fn stages(row: &dyn Row) -> Result<Option<Stages>, StoreError> {
    let stages = [
        row.number_if_any("download_micros")?,
        row.number_if_any("picture_micros")?,
        row.number_if_any("storing_micros")?,
    ];
    let [
        Some(download_micros),
        Some(picture_micros),
        Some(storing_micros),
    ] = stages
    else {
        return Ok(None);
    };
    Ok(Some(Stages {
        download_micros,
        picture_micros,
        storing_micros,
    }))
}

/// A factor that is offered.
fn scale(factor: i64) -> Result<Scale, StoreError> {
    let scale = Scale::from_factor(factor);
    scale.ok_or_else(|| StoreError::Corrupt(format!("column scale holds {factor}")))
}

fn refund_status(text: Option<&str>) -> Result<RefundStatus, StoreError> {
    [RefundStatus::Pending, RefundStatus::Refunded]
        .into_iter()
        .find(|status| Some(status.as_str()) == text)
        .ok_or_else(|| StoreError::Corrupt(format!("column refund holds {text:?}")))
}

/// The size to write for a result that may be recorded: its name is a token, its size a number of the file.
pub(super) fn check_result(task: &TaskId, file: &ResultFile) -> Result<i64, StoreError> {
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

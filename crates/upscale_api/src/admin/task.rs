//! One task's whole story: what was ordered, how the work on it went, what it cost; and its refund, should that hang.

use askama::Template;
use axum::{
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse, Redirect, Response},
};
use upscale_core::{RefundStatus, TaskId, TaskState};
use upscale_store::{OperatorTask, RefundOutcome, TaskRecord};

use super::{
    change::{Change, Form},
    rows::{TaskRow, short},
    state::AdminState,
    visitor::{Operator, Visitor},
};
use crate::pages::{
    error::ConsoleError,
    page::{Layout, show},
    query::{Done, PageQuery},
    rows::LedgerRow,
    shown::{self, Moment},
};

#[derive(Template)]
#[template(path = "admin/task.html")]
struct TaskPage {
    layout: Layout,
    may_change: bool,
    row: TaskRow,
    /// As it was sent, query and all: text, not a link.
    source: String,
    request: String,
    deadline: Moment,
    took: Option<String>,
    job: Option<JobView>,
    result: Option<ResultView>,
    stages: Vec<(&'static str, String)>,
    ledger: Vec<LedgerRow>,
    is_refund_pending: bool,
    form: Form,
}

struct JobView {
    attempt: u32,
    transient_failures: u32,
    crashes: u32,
    worker: Option<String>,
}

struct ResultView {
    size: String,
    bytes: String,
    sha256: String,
    is_removed: bool,
}

/// `GET /tasks/{id}`.
pub(crate) async fn one(
    State(state): State<AdminState>,
    Operator(visitor): Operator,
    Path(id): Path<String>,
    PageQuery(Done { done }): PageQuery<Done>,
) -> Result<Response, ConsoleError> {
    let mut page = page(&state, &visitor, &id, Form::empty()?).await?;
    page.layout.notice = match done.as_str() {
        "refunded" => Some("Credits refunded. The reason is recorded."),
        "before" => Some("Already refunded; nothing changed."),
        _ => None,
    };
    Ok(show(StatusCode::OK, &page))
}

/// `POST /tasks/{id}/refund`: returns the credits of a failed task whose refund hangs.
pub(crate) async fn refund(
    State(state): State<AdminState>,
    Path(id): Path<String>,
    change: Change,
) -> Result<Response, ConsoleError> {
    let task = TaskId::parse(&id).ok_or(ConsoleError::NotFound)?;
    let mut form = Form::of(&change.fields)?;
    if let Some(by) = change.on_behalf(&mut form) {
        let done = |what| Redirect::to(&format!("/tasks/{task}?done={what}")).into_response();
        match state.api.store.operator().retry_refund(&task, &by).await? {
            RefundOutcome::Refunded => return Ok(done("refunded")),
            RefundOutcome::AlreadyRefunded => return Ok(done("before")),
            RefundOutcome::NoSuchTask => return Err(ConsoleError::NotFound),
            RefundOutcome::NotFailed => {
                form.complain("reason", "this task has not failed: nothing is owed");
            }
        }
    }
    let page = page(&state, &change.visitor, &id, form).await?;
    Ok(show(StatusCode::UNPROCESSABLE_ENTITY, &page))
}

async fn page(
    state: &AdminState,
    visitor: &Visitor,
    id: &str,
    form: Form,
) -> Result<TaskPage, ConsoleError> {
    let store = &state.api.store;
    let id = TaskId::parse(id).ok_or(ConsoleError::NotFound)?;
    let found = store.operator().find_task(&id).await?;
    let found = found.ok_or(ConsoleError::NotFound)?;
    let record = store
        .tasks()
        .find_record(&found.task.account_id, &id)
        .await?;
    let record = record.ok_or(ConsoleError::NotFound)?;
    let ledger = store.accounts().list_ledger_of_task(&id).await?;
    Ok(TaskPage {
        layout: visitor.layout("/tasks", "A task"),
        may_change: visitor.operator().is_some(),
        row: TaskRow::of(&found),
        source: found.source_url.clone(),
        request: found.request_id.to_string(),
        deadline: Moment::of(found.task.deadline_at),
        took: took(&found),
        job: job(&found),
        result: result(&record),
        stages: stages(&record),
        ledger: ledger.iter().map(LedgerRow::of).collect(),
        is_refund_pending: matches!(
            found.task.state,
            TaskState::Failed {
                refund: RefundStatus::Pending,
                ..
            }
        ),
        form,
    })
}

fn took(task: &OperatorTask) -> Option<String> {
    let micros = task.finished_at?.micros() - task.task.created_at.micros();
    Some(shown::duration(micros))
}

fn job(task: &OperatorTask) -> Option<JobView> {
    task.job.as_ref().map(|job| JobView {
        attempt: job.attempt,
        transient_failures: job.transient_failures,
        crashes: job.crashes,
        worker: job.worker.as_deref().map(|worker| short(worker).to_owned()),
    })
}

fn result(record: &TaskRecord) -> Option<ResultView> {
    match &record.task.state {
        TaskState::Succeeded(file) => Some(ResultView {
            size: format!("{} × {}", file.width, file.height),
            bytes: shown::bytes(file.size_bytes),
            sha256: file.sha256.clone(),
            is_removed: record.result_removed,
        }),
        _ => None,
    }
}

fn stages(record: &TaskRecord) -> Vec<(&'static str, String)> {
    let Some(stages) = record.stages else {
        return Vec::new();
    };
    [
        ("Downloading the source", stages.download_micros),
        (
            "Decoding, enlarging, checking, encoding",
            stages.picture_micros,
        ),
        ("Storing the result", stages.storing_micros),
    ]
    .map(|(name, micros)| (name, shown::duration(micros)))
    .to_vec()
}

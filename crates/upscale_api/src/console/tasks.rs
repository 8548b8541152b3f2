//! Tasks of the account: a list with filter and paging, and one task with everything that is known of it.

use askama::Template;
use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
    response::Response,
};
use serde::Serialize;
use upscale_core::{TaskId, TaskState};
use upscale_store::{TaskFilter, TaskRecord};

use super::{
    error::ConsoleError,
    page::{Layout, show},
    session::SignedIn,
    shown::{self, Moment, failure, money, state_word},
    state::ConsoleState,
    task_view::TaskView,
};
use crate::pages::{
    listing::{Page, asked_for, cursor},
    query::{PageQuery, TasksOf},
};

/// Tasks of one page.
const TASKS_A_PAGE: usize = 20;
/// Larger results are not loaded as thumbnails: a page of twenty must not weigh hundreds of megabytes.
const THUMBNAIL_BYTES_MAX: u64 = 3_000_000;

#[derive(Template)]
#[template(path = "console/tasks.html")]
struct TasksPage {
    layout: Layout,
    filter: TaskFilter,
    filters: [TaskFilter; 4],
    tasks: Vec<TaskRow>,
    /// Where the next page begins.
    older: Option<String>,
}

#[derive(Template)]
#[template(path = "console/task.html")]
struct TaskPage {
    layout: Layout,
    view: TaskView,
}

/// A task as a table shows it.
pub(crate) struct TaskRow {
    pub(crate) id: String,
    pub(crate) source: String,
    pub(crate) created: Moment,
    pub(crate) parameters: String,
    pub(crate) state: &'static str,
    pub(crate) took: Option<String>,
    pub(crate) money: String,
    pub(crate) failure: Option<String>,
    pub(crate) thumbnail: Option<String>,
    pub(crate) size: Option<String>,
}

impl TaskRow {
    pub(crate) async fn of(
        state: &ConsoleState,
        record: &TaskRecord,
    ) -> Result<Self, ConsoleError> {
        let task = &record.task;
        let file = match &task.state {
            TaskState::Succeeded(file) => Some(file),
            _ => None,
        };
        let thumbnail = match file {
            Some(file) if !record.result_removed && file.size_bytes <= THUMBNAIL_BYTES_MAX => {
                Some(state.result_url(file).await?)
            }
            _ => None,
        };
        Ok(Self {
            id: task.id.to_string(),
            source: record.source_url.as_str().to_owned(),
            created: Moment::of(task.created_at),
            parameters: task.parameters.to_string(),
            state: state_word(&task.state),
            took: took(record),
            money: money(task),
            failure: failure(&task.state),
            thumbnail,
            size: file.map(|file| format!("{} × {}", file.width, file.height)),
        })
    }
}

fn took(record: &TaskRecord) -> Option<String> {
    let micros = record.finished_at?.micros() - record.task.created_at.micros();
    Some(shown::duration(micros))
}

/// `GET /tasks`.
pub(crate) async fn list(
    State(state): State<ConsoleState>,
    who: SignedIn,
    PageQuery(wanted): PageQuery<TasksOf>,
) -> Result<Response, ConsoleError> {
    let filter = wanted.filter();
    let account = &who.session.user.account_id;
    let found = state.api.store.tasks().list(
        account,
        filter,
        wanted.after.as_ref(),
        asked_for(TASKS_A_PAGE),
    );
    let found = Page::of(found.await?, TASKS_A_PAGE);
    let mut tasks = Vec::new();
    for record in &found.items {
        tasks.push(TaskRow::of(&state, record).await?);
    }
    let page = TasksPage {
        layout: Layout::new(&who.visitor, "/tasks", "Tasks"),
        filter,
        filters: TaskFilter::EVERY,
        tasks,
        older: found.older(|last| cursor(last.task.created_at, last.task.id)),
    };
    let mut response = show(StatusCode::OK, &page);
    state.result_pictures().await?.allow(&mut response);
    Ok(response)
}

/// `GET /tasks/{id}`.
pub(crate) async fn one(
    State(state): State<ConsoleState>,
    who: SignedIn,
    Path(id): Path<String>,
) -> Result<Response, ConsoleError> {
    let record = find(&state, &who, &id).await?;
    let view = TaskView::of(&state, &record).await?;
    let sources = view.sources(&state).await?;
    let page = TaskPage {
        layout: Layout::new(&who.visitor, "/tasks", "Task"),
        view,
    };
    let mut response = show(StatusCode::OK, &page);
    sources.allow(&mut response);
    Ok(response)
}

/// What a page's script waits for: anything but `processing`.
#[derive(Serialize)]
pub(crate) struct StateBody {
    pub(crate) state: &'static str,
}

/// `GET /tasks/{id}/state`: what the page's script asks while a task is processing.
pub(crate) async fn state_of(
    State(state): State<ConsoleState>,
    who: SignedIn,
    Path(id): Path<String>,
) -> Result<Json<StateBody>, ConsoleError> {
    let record = find(&state, &who, &id).await?;
    Ok(Json(StateBody {
        state: state_word(&record.task.state),
    }))
}

/// Only a task of this account; another's does not exist.
pub(crate) async fn find(
    state: &ConsoleState,
    who: &SignedIn,
    id: &str,
) -> Result<TaskRecord, ConsoleError> {
    let id = TaskId::parse(id).ok_or(ConsoleError::NotFound)?;
    let account = &who.session.user.account_id;
    let record = state.api.store.tasks().find_record(account, &id).await?;
    record.ok_or(ConsoleError::NotFound)
}

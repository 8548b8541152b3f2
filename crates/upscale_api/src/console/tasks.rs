//! Tasks of the account: a list with search, filters and paging, and one task with everything that is known of it.

use askama::Template;
use axum::{
    Extension, Json,
    extract::{Path, State},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use upscale_core::{Parameters, Scale, TaskId, TaskState, Timestamp, limits::source_pixels_max};
use upscale_store::{SEARCHED_MAX, TaskFilter, TaskRecord};

use super::{
    error::ConsoleError,
    page::{Layout, show},
    session::{PermitInHand, SignedIn},
    shown::{self, Moment, ago, failure, grouped, money, state_word},
    state::ConsoleState,
    task_search::TasksWanted,
    task_view::TaskView,
    title::title,
};
use crate::{
    pages::{
        listing::{Page, asked_for, cursor},
        query::PageQuery,
    },
    request_context::Followed,
    waiting::Wish,
};

/// Tasks of one page.
const TASKS_A_PAGE: usize = 20;

#[derive(Template)]
#[template(path = "console/tasks.html")]
struct TasksPage {
    layout: Layout,
    wanted: TasksWanted,
    filters: [TaskFilter; 4],
    tasks: Vec<TaskRow>,
    /// Address of the next page.
    older: Option<String>,
    /// Whether this is the first page, which shows what changes.
    is_newest: bool,
    searched_max: String,
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
    pub(crate) title: String,
    pub(crate) source: String,
    pub(crate) created: Moment,
    pub(crate) ago: String,
    pub(crate) parameters: String,
    pub(crate) state: &'static str,
    pub(crate) took: Option<String>,
    pub(crate) money: String,
    pub(crate) failure: Option<String>,
    pub(crate) has_thumbnail: bool,
    /// Whether the result can be had.
    pub(crate) is_kept: bool,
    pub(crate) size: Option<String>,
    /// The scale that the same source can be ordered at instead.
    pub(crate) again: Option<Scale>,
}

impl TaskRow {
    pub(crate) fn of(record: &TaskRecord, now: Timestamp) -> Self {
        let task = &record.task;
        let file = match &task.state {
            TaskState::Succeeded(file) => Some(file),
            _ => None,
        };
        let kept = file.filter(|_| !record.result_removed);
        let preview = kept.and_then(|file| file.preview);
        Self {
            id: task.id.to_string(),
            title: title(&record.source_url),
            source: record.source_url.as_str().to_owned(),
            created: Moment::of(task.created_at),
            ago: ago(task.created_at, now),
            parameters: task.parameters.to_string(),
            state: state_word(&task.state),
            took: took(record),
            money: money(task),
            failure: failure(&task.state),
            has_thumbnail: preview.is_some_and(|preview| preview.thumbnail_bytes > 0),
            is_kept: kept.is_some(),
            size: file.map(|file| format!("{} × {}", file.width, file.height)),
            again: other_scale(record),
        }
    }
}

fn took(record: &TaskRecord) -> Option<String> {
    let micros = record.finished_at?.micros() - record.task.created_at.micros();
    Some(shown::duration(micros))
}

/// The other scale, unless the source is known to be too large for it or the task has not ended.
pub(crate) fn other_scale(record: &TaskRecord) -> Option<Scale> {
    let parameters = record.task.parameters;
    let scale = Scale::ALL
        .into_iter()
        .find(|scale| *scale != parameters.scale)?;
    let other = Parameters {
        scale,
        ..parameters
    };
    let fits = match &record.task.state {
        TaskState::Processing => false,
        TaskState::Failed { .. } => true,
        TaskState::Succeeded(file) => {
            let factor = parameters.scale.factor() as u64;
            let pixels = u64::from(file.width) * u64::from(file.height) / (factor * factor);
            pixels <= source_pixels_max(other)
        }
    };
    fits.then_some(scale)
}

/// `GET /tasks`.
pub(crate) async fn list(
    State(state): State<ConsoleState>,
    who: SignedIn,
    PageQuery(wanted): PageQuery<TasksWanted>,
) -> Result<Response, ConsoleError> {
    let account = &who.session.user.account_id;
    let search = wanted.search();
    let found = state.api.store.tasks().search(
        account,
        &search,
        wanted.after.as_ref(),
        asked_for(TASKS_A_PAGE),
    );
    let found = Page::of(found.await?, TASKS_A_PAGE);
    let now = state.api.store.now();
    let older = found.older(|last| cursor(last.task.created_at, last.task.id));
    let page = TasksPage {
        layout: Layout::new(&who.visitor, "/tasks", "Tasks"),
        filters: TaskFilter::EVERY,
        tasks: found
            .items
            .iter()
            .map(|record| TaskRow::of(record, now))
            .collect(),
        older: older.map(|after| wanted.link(&[("after", &after)])),
        is_newest: wanted.after.is_none(),
        searched_max: grouped(SEARCHED_MAX),
        wanted,
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
        layout: Layout::new(&who.visitor, "/tasks", &view.title),
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

/// `GET /tasks/{id}/state`: what the page's script asks while a task is processing, and waits for as the API's callers may.
pub(crate) async fn state_of(
    State(state): State<ConsoleState>,
    Followed(context): Followed,
    who: SignedIn,
    Path(id): Path<String>,
    Extension(permit): Extension<PermitInHand>,
    headers: HeaderMap,
) -> Result<Response, ConsoleError> {
    let record = find(&state, &who, &id).await?;
    permit.give_back();
    let wish = Wish::of(&headers, who.visitor.address);
    let held = state.api.hold(&context, &wish, record.task).await;
    let mut response = Json(StateBody {
        state: state_word(&held.task.state),
    })
    .into_response();
    held.write(&mut response);
    Ok(response)
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

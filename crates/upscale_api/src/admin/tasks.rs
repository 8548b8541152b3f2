//! Tasks of anyone: what is open, whose refund hangs, and whatever an id leads to.

use askama::Template;
use axum::{
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Redirect, Response},
};
use serde::Deserialize;
use upscale_core::{AccountId, RequestId, TaskId};
use upscale_store::OperatorTaskFilter;

use super::{rows::TaskRow, state::AdminState, visitor::Operator};
use crate::pages::{
    error::ConsoleError,
    listing::{Page, asked_for},
    page::{Layout, show},
    query::{PageQuery, read},
};

/// Tasks shown at most.
const SHOWN_MAX: usize = 200;

/// Those processing, those whose refund hangs, or those of one request.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Wanted {
    show: String,
    #[serde(deserialize_with = "read")]
    request: Option<RequestId>,
}

/// What was typed to be found.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Search {
    pub(crate) q: String,
}

#[derive(Template)]
#[template(path = "admin/tasks.html")]
struct TasksPage {
    layout: Layout,
    shown: &'static str,
    /// The request whose tasks these are.
    request: Option<String>,
    tasks: Vec<TaskRow>,
    is_cut: bool,
}

/// `GET /tasks`: those processing, those whose refund hangs, or those of one request.
pub(crate) async fn list(
    State(state): State<AdminState>,
    Operator(visitor): Operator,
    PageQuery(wanted): PageQuery<Wanted>,
) -> Result<Response, ConsoleError> {
    let (shown, filter) = match (wanted.show.as_str(), wanted.request) {
        (_, Some(request)) => ("request", OperatorTaskFilter::OfRequest(request)),
        ("refund-pending", None) => ("refund-pending", OperatorTaskFilter::RefundPending),
        _ => ("processing", OperatorTaskFilter::Processing),
    };
    let tasks = state
        .api
        .store
        .operator()
        .list_tasks(&filter, asked_for(SHOWN_MAX));
    let tasks = Page::of(tasks.await?, SHOWN_MAX);
    let page = TasksPage {
        layout: visitor.layout("/tasks", "Tasks"),
        shown,
        request: wanted.request.map(|request| request.to_string()),
        is_cut: tasks.is_cut(),
        tasks: tasks.items.iter().map(TaskRow::of).collect(),
    };
    Ok(show(StatusCode::OK, &page))
}

/// `GET /search`: an id leads to what it names, anything else to the accounts that hold it.
pub(crate) async fn search(_operator: Operator, PageQuery(search): PageQuery<Search>) -> Response {
    let text = search.q.trim();
    let place = if TaskId::parse(text).is_some() {
        format!("/tasks/{text}")
    } else if RequestId::parse(text).is_some() {
        format!("/tasks?request={text}")
    } else if AccountId::parse(text).is_some() {
        format!("/accounts/{text}")
    } else {
        let encoded: String = url::form_urlencoded::byte_serialize(text.as_bytes()).collect();
        format!("/accounts?q={encoded}")
    };
    Redirect::to(&place).into_response()
}

//! Tasks of anyone: what is open, whose refund hangs, and whatever an id leads to.

use askama::Template;
use axum::{
    extract::{RawQuery, State},
    http::StatusCode,
    response::{IntoResponse, Redirect, Response},
};
use upscale_core::{AccountId, RequestId, TaskId};
use upscale_store::OperatorTaskFilter;

use super::{rows::TaskRow, state::AdminState, visitor::Operator};
use crate::pages::{
    error::ConsoleError,
    form::Fields,
    page::{Layout, show},
};

/// Tasks shown at most.
const SHOWN_MAX: u32 = 200;

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
    RawQuery(query): RawQuery,
) -> Result<Response, ConsoleError> {
    let query = Fields::parse(query.unwrap_or_default().as_bytes());
    let request = RequestId::parse(query.get("request"));
    let (shown, filter) = match (query.get("show"), request) {
        (_, Some(request)) => ("request", OperatorTaskFilter::OfRequest(request)),
        ("refund-pending", None) => ("refund-pending", OperatorTaskFilter::RefundPending),
        _ => ("processing", OperatorTaskFilter::Processing),
    };
    let tasks = state.api.store.list_tasks_of_anyone(&filter, SHOWN_MAX);
    let tasks = tasks.await?;
    let page = TasksPage {
        layout: visitor.layout("/tasks", "Tasks"),
        shown,
        request: request.map(|request| request.to_string()),
        is_cut: tasks.len() == SHOWN_MAX as usize,
        tasks: tasks.iter().map(TaskRow::of).collect(),
    };
    Ok(show(StatusCode::OK, &page))
}

/// `GET /search`: an id leads to what it names, anything else to the accounts that hold it.
pub(crate) async fn search(_operator: Operator, RawQuery(query): RawQuery) -> Response {
    let query = Fields::parse(query.unwrap_or_default().as_bytes());
    let text = query.get("q").trim();
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

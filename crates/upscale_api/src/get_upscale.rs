//! `GET /api/v1/upscales/{id}`: the task as it is now, or at its end for who would rather wait.

use axum::{
    extract::{Path, State, rejection::PathRejection},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use upscale_core::{AccountId, Task, TaskId, TaskState, Timestamp, limits};

use crate::{
    api_state::ApiState,
    error::ApiError,
    extract::Reader,
    permits::Owner,
    request_context::Followed,
    results::etag_matches,
    task_body::{add_poll_headers, task_response},
    waiting::Wish,
};

/// Reads one task of the caller's account; what is not theirs does not exist.
pub(crate) async fn get_upscale(
    State(state): State<ApiState>,
    Followed(context): Followed,
    Reader(caller): Reader,
    id: Result<Path<String>, PathRejection>,
    wish: Wish,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let task = find(&state, &caller.account_id, id).await?;
    let _ = context.task_id.set(task.id);
    let held = state.hold(&context, &wish, task).await;
    let mut response = read(&state, &held.task, &headers).await?;
    held.write(&mut response);
    Ok(response)
}

/// In a permit of the keyed, which is free again while the request is held.
async fn find(
    state: &ApiState,
    account: &AccountId,
    id: Result<Path<String>, PathRejection>,
) -> Result<Task, ApiError> {
    let _permit = state.permits.keyed.take(Owner::Account(*account))?;
    state.throttle.count_read(account)?;
    let id = id
        .ok()
        .and_then(|Path(text)| TaskId::parse(&text))
        .ok_or(ApiError::TaskNotFound)?;
    let found = state.store.tasks().find(account, &id).await?;
    found.ok_or(ApiError::TaskNotFound)
}

async fn read(state: &ApiState, task: &Task, headers: &HeaderMap) -> Result<Response, ApiError> {
    let etag = state_etag(task, state.store.now());
    let mut response = if etag_matches(headers, &etag) {
        let mut unchanged = StatusCode::NOT_MODIFIED.into_response();
        add_poll_headers(task, state, &mut unchanged);
        unchanged
    } else {
        task_response(state, task).await?
    };
    if let Ok(value) = HeaderValue::try_from(etag) {
        response.headers_mut().insert(header::ETAG, value);
    }
    Ok(response)
}

/// Names the state, weakly: bodies of one state say the same in different bytes, for each carries a new
/// result URL. A quarter of that URL's life is part of the tag, so that a client told "not modified" holds
/// a URL with at least three quarters of its hour left.
fn state_etag(task: &Task, now: Timestamp) -> String {
    let state = match &task.state {
        TaskState::Processing => "processing".to_owned(),
        TaskState::Succeeded(_) => {
            let quarter = now.unix_seconds() / (limits::RESULT_URL_SECONDS / 4);
            format!("succeeded-{quarter}")
        }
        TaskState::Failed { refund, .. } => format!("failed-{}", refund.as_str()),
    };
    format!("W/\"{state}\"")
}

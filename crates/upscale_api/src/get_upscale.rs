//! `GET /api/v1/upscales/{id}`: the task as it is now.

use axum::{
    extract::{Path, State, rejection::PathRejection},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use upscale_core::{Task, TaskId, TaskState, Timestamp, limits};

use crate::{
    api_state::ApiState,
    error::ApiError,
    extract::Reader,
    places::Owner,
    results::etag_matches,
    task_body::{add_reading_headers, task_response},
    trail::Followed,
};

/// Reads one task of the caller's account; what is not theirs does not exist.
pub(crate) async fn get_upscale(
    State(state): State<ApiState>,
    Followed(trail): Followed,
    Reader(caller): Reader,
    id: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let _place = state.places.keyed.take(Owner::Account(caller.account_id))?;
    state.throttle.count_read(&caller.account_id)?;
    let id = id
        .ok()
        .and_then(|Path(text)| TaskId::parse(&text))
        .ok_or(ApiError::TaskNotFound)?;
    let task = state
        .store
        .tasks()
        .find(&caller.account_id, &id)
        .await?
        .ok_or(ApiError::TaskNotFound)?;
    let _ = trail.task_id.set(id);
    let etag = state_etag(&task, state.store.now());
    let mut response = if etag_matches(&headers, &etag) {
        let mut unchanged = StatusCode::NOT_MODIFIED.into_response();
        add_reading_headers(&task, &state, &mut unchanged);
        unchanged
    } else {
        task_response(&state, &task).await?
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

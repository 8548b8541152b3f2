//! `POST /api/v1/upscales`: count, parse, create, answer.

use std::sync::Arc;

use axum::{
    Extension,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use metrics::counter;
use upscale_core::{AccountId, IdempotencyKey, InvalidRequest, NewTask, Task, limits};
use upscale_store::{CreateOutcome, StoreError};

use crate::{
    api_state::ApiState,
    connection::Connection,
    create_body::CreateBody,
    error::ApiError,
    extract::Writer,
    permits::Owner,
    request_body::{self, Allowance, NoBody},
    request_context::{Followed, RequestContext},
    task_body::task_response,
    waiting::Wish,
};

/// Creates one task, or answers with the one this key already named.
pub(crate) async fn create_upscale(
    State(state): State<ApiState>,
    Followed(context): Followed,
    Writer(caller): Writer,
    connection: Option<Extension<Arc<Connection>>>,
    wish: Wish,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let owner = Owner::Account(caller.account_id);
    {
        let _permit = state.permits.keyed.take(owner)?;
        count_request(&state, &context, &caller.account_id).await?;
    }
    let body = read_body(&state, body, owner, connection.map(|found| found.0)).await?;
    let (task, is_replay) = {
        let _permit = state.permits.keyed.take(owner)?;
        let body = CreateBody::parse(&headers, &body)?;
        let key = idempotency_key(&headers)?;
        let new_task = body.into_task()?;
        order(&state, &context, &caller.account_id, &key, &new_task).await?
    };
    // The task is durable: a caller who loses this answer finds it by its key.
    let held = state.hold(&context, &wish, task).await;
    let mut response = accepted(&state, &held.task).await?;
    held.write(&mut response);
    if is_replay {
        let yes = HeaderValue::from_static("true");
        response.headers_mut().insert("idempotent-replayed", yes);
    }
    Ok(response)
}

/// The task, and whether an earlier request made it. The console orders by this, too. While results cannot be stored,
/// only what was accepted before is answered.
pub(crate) async fn order(
    state: &ApiState,
    context: &RequestContext,
    account: &AccountId,
    key: &IdempotencyKey,
    new_task: &NewTask,
) -> Result<(Task, bool), ApiError> {
    let (request, tasks) = (&context.request_id, state.store.tasks());
    let outcome = match state.storage.check() {
        Ok(()) => {
            let api_key = context.caller.get().and_then(|(_, key)| *key);
            tasks
                .create_by(api_key, account, key, new_task, request)
                .await
        }
        Err(outage) => {
            let known = tasks.find_known(account, key, new_task).await?;
            Ok(known.ok_or(outage)?)
        }
    };
    if matches!(outcome, Err(StoreError::OutcomeUnknown(_))) {
        counter!("upscale_creates_total", "outcome" => "unknown").increment(1);
    }
    let outcome = outcome?;
    count(&outcome);
    let (task, is_replay) = match outcome {
        CreateOutcome::Created(task) => {
            let _ = context.made_the_task.set(());
            (task, false)
        }
        CreateOutcome::Replayed(task) => (task, true),
        refused => return Err(refusal(refused)),
    };
    let _ = context.task_id.set(task.id);
    Ok((task, is_replay))
}

/// Every authenticated create counts, whatever becomes of it; from here on every answer shows the window.
pub(crate) async fn count_request(
    state: &ApiState,
    context: &RequestContext,
    account: &AccountId,
) -> Result<(), ApiError> {
    let window = state.store.accounts().count_create_request(account).await?;
    let _ = context.window.set(window);
    if window.allowed {
        return Ok(());
    }
    let retry_after_seconds = window.reset_at.seconds_since(window.now).max(1);
    Err(ApiError::CreateRate {
        limit: window.limit,
        retry_after_seconds,
    })
}

async fn read_body(
    state: &ApiState,
    body: Body,
    owner: Owner,
    connection: Option<Arc<Connection>>,
) -> Result<Bytes, ApiError> {
    let allowance = Allowance {
        bytes_max: limits::BODY_BYTES_MAX,
        deadline: state.limits.body_timeout,
        pool: &state.permits.keyed_bodies,
        owner,
        is_known: true,
        connection,
    };
    let body = request_body::read(body, allowance).await;
    body.map_err(|no_body| match no_body {
        NoBody::TooLarge => InvalidRequest::TooLarge.into(),
        other => other.into(),
    })
}

fn idempotency_key(headers: &HeaderMap) -> Result<IdempotencyKey, InvalidRequest> {
    let mut values = headers.get_all("idempotency-key").iter();
    let value = values.next().ok_or(InvalidRequest::MissingIdempotencyKey)?;
    if values.next().is_some() {
        return Err(InvalidRequest::IdempotencyKey);
    }
    IdempotencyKey::parse(value.as_bytes())
}

async fn accepted(state: &ApiState, task: &Task) -> Result<Response, ApiError> {
    let body = task_response(state, task).await?;
    let location =
        HeaderValue::try_from(state.task_url(&task.id)).map_err(|_| ApiError::Internal {
            detail: "the base URL is no header value".to_owned(),
        })?;
    let mut response = (StatusCode::ACCEPTED, body).into_response();
    response.headers_mut().insert(header::LOCATION, location);
    Ok(response)
}

fn count(outcome: &CreateOutcome) {
    let outcome = match outcome {
        CreateOutcome::Created(_) => "created",
        CreateOutcome::Replayed(_) => "replayed",
        CreateOutcome::Conflict => "conflict",
        CreateOutcome::ActiveLimit { .. } => "active_tasks",
        CreateOutcome::DailyLimit { .. } => "daily_tasks",
        CreateOutcome::InsufficientCredits { .. } => "credits",
        CreateOutcome::Overloaded { .. } => {
            counter!("upscale_limits_hit_total", "limit" => "capacity").increment(1);
            "capacity"
        }
    };
    counter!("upscale_creates_total", "outcome" => outcome).increment(1);
}

fn refusal(outcome: CreateOutcome) -> ApiError {
    match outcome {
        CreateOutcome::Conflict => ApiError::IdempotencyConflict,
        CreateOutcome::ActiveLimit {
            limit,
            retry_after_seconds,
        } => ApiError::ActiveLimit {
            limit,
            retry_after_seconds,
        },
        CreateOutcome::DailyLimit {
            limit,
            retry_after_seconds,
        } => ApiError::DailyLimit {
            limit,
            retry_after_seconds,
        },
        CreateOutcome::InsufficientCredits { available, price } => {
            ApiError::InsufficientCredits { available, price }
        }
        CreateOutcome::Overloaded {
            retry_after_seconds,
        } => ApiError::Unavailable {
            retry_after_seconds,
            detail: "a new task would pass its deadline, or the account is stopped".to_owned(),
        },
        CreateOutcome::Created(_) | CreateOutcome::Replayed(_) => ApiError::Internal {
            detail: "an accepted task was taken for a refusal".to_owned(),
        },
    }
}

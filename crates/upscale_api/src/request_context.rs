//! What is learnt about a request on its way: kept apart from the answer, and written beside it.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use axum::{extract::FromRequestParts, http::request::Parts};
use tokio::time::Instant;
use upscale_core::{AccountId, KeyId, RequestId, TaskId};
use upscale_store::RateWindow;

use crate::error::ApiError;

/// What is learnt about one request on its way, for its log line and its headers: kept apart from the
/// handler's answer, so that a panic or a timeout loses none of it.
#[derive(Debug)]
pub(crate) struct RequestContext {
    /// The request's own name.
    pub(crate) request_id: RequestId,
    /// Who called, once known; by which key, but for the console.
    pub(crate) caller: OnceLock<(AccountId, Option<KeyId>)>,
    /// Which task it was about, once known.
    pub(crate) task_id: OnceLock<TaskId>,
    /// Whether this request made the task, so that its trace hangs from it.
    pub(crate) made_the_task: OnceLock<()>,
    /// The create window, once counted: from then on every answer carries it.
    pub(crate) window: OnceLock<RateWindow>,
    /// Until when the request is held at its own wish, once it is: so long it is not late.
    pub(crate) held_until: OnceLock<Instant>,
    /// How long it was held: time that is none of ours.
    pub(crate) held: OnceLock<Duration>,
}

impl RequestContext {
    /// Of a request of which nothing is known yet.
    pub(crate) fn of(request_id: RequestId) -> Self {
        Self {
            request_id,
            caller: OnceLock::new(),
            task_id: OnceLock::new(),
            made_the_task: OnceLock::new(),
            window: OnceLock::new(),
            held_until: OnceLock::new(),
            held: OnceLock::new(),
        }
    }
}

/// The request's context, for handlers that add to it.
pub(crate) struct Followed(pub(crate) Arc<RequestContext>);

impl<S: Send + Sync> FromRequestParts<S> for Followed {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        let context = parts.extensions.get::<Arc<RequestContext>>().cloned();
        context.map(Self).ok_or_else(|| ApiError::Internal {
            detail: "the route is not wrapped by the context layer".to_owned(),
        })
    }
}

//! Every route, one function a listener; every layer, one function.

use std::{any::Any, pin::pin, sync::Arc, time::Duration};

use axum::{
    Router,
    extract::{Request, State},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use tokio::time::{timeout, timeout_at};
use tower_http::catch_panic::CatchPanicLayer;

use crate::{
    api_state::ApiState,
    clients,
    create_upscale::create_upscale,
    error::ApiError,
    follow,
    get_upscale::get_upscale,
    health::{healthz, readyz},
    openapi::get_openapi,
    refusal_log::RefusalLog,
    request_context::RequestContext,
    results::deliver,
    stripe,
};

/// The contract's two endpoints, its description, the clients' packages, result files, the probes and Stripe's webhook. `HEAD` answers wherever
/// `GET` does. No key opens a result file, and downloads have permits of their own.
pub fn api_router(state: ApiState) -> Router {
    let routes = Router::new()
        .route("/api/v1/upscales", post(create_upscale))
        .route("/api/v1/upscales/{id}", get(get_upscale))
        .route("/r/{file}", get(deliver))
        .route("/openapi.json", get(get_openapi))
        .route("/clients", get(clients::list))
        .route("/clients/{file}", get(clients::package))
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        // Beside the contract, not in it: Stripe calls it, no one else has a use for it.
        .route("/webhooks/stripe", post(stripe::receive));
    layered(routes, state)
}

/// Result files alone, for a listener of their own, to which no key is sent.
pub fn results_router(state: ApiState) -> Router {
    let routes = Router::new()
        .route("/r/{file}", get(deliver))
        .route("/healthz", get(healthz));
    layered(routes, state)
}

/// Outermost last: the context layer sees every answer, those to panics, timeouts and unknown paths included.
fn layered(routes: Router<ApiState>, state: ApiState) -> Router {
    let bounds = Bounds::of(&state);
    let routes = routes
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .with_state(state);
    bounded(routes, bounds, internal_error)
}

/// What every listener's answers pass; `panicked` is the answer to a panic.
pub(crate) fn bounded(
    routes: Router,
    bounds: Bounds,
    panicked: fn(Box<dyn Any + Send>) -> Response,
) -> Router {
    routes
        .layer(CatchPanicLayer::custom(panicked))
        .layer(middleware::from_fn_with_state(
            bounds.clone(),
            answer_in_time,
        ))
        .layer(middleware::from_fn_with_state(
            bounds.refusals,
            follow::follow,
        ))
}

async fn not_found() -> ApiError {
    ApiError::NotFound
}

async fn method_not_allowed() -> ApiError {
    ApiError::MethodNotAllowed
}

/// The panic's text may hold anything, so it stays on the process' standard error.
fn internal_error(_panic: Box<dyn Any + Send>) -> Response {
    let detail = "a handler panicked".to_owned();
    ApiError::Internal { detail }.into_response()
}

/// What one request may take of time, and where refusals are written. Of room it takes a permit of its class, once its head,
/// its caller and its body are there (`permits.rs`); the probes take none.
#[derive(Clone)]
pub(crate) struct Bounds {
    timeout: Duration,
    refusals: Arc<RefusalLog>,
}

impl Bounds {
    pub(crate) fn of(state: &ApiState) -> Self {
        Self {
            timeout: state.limits.request_timeout,
            refusals: Arc::clone(&state.refusals),
        }
    }
}

/// A request that is held at its own wish has its time once more when that is over.
async fn answer_in_time(State(bounds): State<Bounds>, request: Request, next: Next) -> Response {
    let context = request.extensions().get::<Arc<RequestContext>>().cloned();
    let mut answering = pin!(next.run(request));
    if let Ok(response) = timeout(bounds.timeout, &mut answering).await {
        return response;
    }
    let held_until = context.and_then(|context| context.held_until.get().copied());
    let answered = match held_until {
        Some(until) => timeout_at(until + bounds.timeout, answering).await.ok(),
        None => None,
    };
    answered.unwrap_or_else(|| ApiError::UpstreamTimeout.into_response())
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use tower::ServiceExt;
    use upscale_core::{Clock, RequestId};
    use upscale_store::{Results, Store, StoreOptions};

    use super::*;
    use crate::api_limits::ApiLimits;

    async fn panics() -> ApiError {
        panic!("with a secret in its text")
    }

    #[tokio::test]
    async fn a_panic_is_500_with_a_request_id_and_says_nothing_of_itself() {
        let directory = tempfile::TempDir::new().unwrap();
        let options = StoreOptions::default();
        let store = Store::open_sqlite(directory.path(), Clock::System, options);
        let results = Results::local(directory.path()).unwrap();
        let limits = ApiLimits::default();
        let state = ApiState::new(
            store.await.unwrap(),
            results,
            "http://a",
            "http://b",
            limits,
        );
        let router = layered(Router::new().route("/", get(panics)), state);
        let request = Request::get("/").header("host", "a").body(Body::empty());
        let response = router.oneshot(request.unwrap()).await.unwrap();
        assert_eq!(response.status().as_u16(), 500);
        let id = response.headers()["x-request-id"]
            .to_str()
            .unwrap()
            .to_owned();
        assert!(RequestId::parse(&id).is_some());
        let body = axum::body::to_bytes(response.into_body(), 10_000)
            .await
            .unwrap();
        let body = String::from_utf8(body.to_vec()).unwrap();
        assert!(
            body.contains("internal_error") && body.contains(&id),
            "{body}"
        );
        assert!(!body.contains("secret"), "{body}");
    }
}

//! `/healthz`: this process answers. `/readyz`: it can take requests.

use axum::{Json, extract::State};
use serde::Serialize;

use crate::{api_state::ApiState, error::ApiError};

/// The body of both probes.
#[derive(Debug, Serialize)]
pub(crate) struct HealthBody {
    status: &'static str,
}

/// Alive.
pub(crate) async fn healthz() -> Json<HealthBody> {
    Json(HealthBody { status: "ok" })
}

/// Ready for requests.
pub(crate) async fn readyz(State(state): State<ApiState>) -> Result<Json<HealthBody>, ApiError> {
    state.readiness.check(&state.store).await?;
    Ok(Json(HealthBody { status: "ready" }))
}

//! `/healthz`: this process answers. `/readyz`: it can take requests.

use axum::{Json, extract::State};
use serde::Serialize;

use crate::{api_state::ApiState, error::ApiError};

/// The body of both probes.
#[derive(Debug, Serialize)]
pub(crate) struct HealthBody {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    sandbox: Option<SandboxBody>,
}

/// The sandbox of the processes that decode images, part by part; only where this process starts them.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct SandboxBody {
    /// Parts that hold.
    pub(crate) holds: Vec<&'static str>,
    /// Parts that this machine lacks.
    pub(crate) missing: Vec<&'static str>,
}

/// Alive.
pub(crate) async fn healthz() -> Json<HealthBody> {
    Json(HealthBody {
        status: "ok",
        sandbox: None,
    })
}

/// Ready for requests.
pub(crate) async fn readyz(State(state): State<ApiState>) -> Result<Json<HealthBody>, ApiError> {
    state.readiness.check(&state.store).await?;
    state.storage.check()?;
    Ok(Json(HealthBody {
        status: "ready",
        sandbox: state.readiness.sandbox(),
    }))
}

//! Who is calling and whether they may: `Authorization` to [`Caller`], 401 and 403, before any body is read.

use std::sync::Arc;

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, header, request::Parts},
};
use upscale_core::ApiKey;
use upscale_store::Caller;

use crate::{
    api_state::ApiState, client_address::client_address, error::ApiError,
    request_context::RequestContext,
};

/// Uses of a key are recorded to the minute, so that reading a task is not a write.
const KEY_USE_SECONDS: i64 = 60;

/// A caller who may create tasks.
pub(crate) struct Writer(pub(crate) Caller);

/// A caller who may read tasks.
pub(crate) struct Reader(pub(crate) Caller);

impl FromRequestParts<ApiState> for Writer {
    type Rejection = ApiError;

    async fn from_request_parts(
        parts: &mut Parts,
        state: &ApiState,
    ) -> Result<Self, Self::Rejection> {
        let caller = authenticate(parts, state).await?;
        check_activated(&caller)?;
        if !caller.permission.may_write() {
            return Err(ApiError::InsufficientPermissions("create"));
        }
        Ok(Self(caller))
    }
}

impl FromRequestParts<ApiState> for Reader {
    type Rejection = ApiError;

    async fn from_request_parts(
        parts: &mut Parts,
        state: &ApiState,
    ) -> Result<Self, Self::Rejection> {
        let caller = authenticate(parts, state).await?;
        check_activated(&caller)?;
        if !caller.permission.may_read() {
            return Err(ApiError::InsufficientPermissions("read"));
        }
        Ok(Self(caller))
    }
}

fn check_activated(caller: &Caller) -> Result<(), ApiError> {
    if caller.activated {
        return Ok(());
    }
    Err(ApiError::ApiAccessRequired)
}

/// The caller behind a live key. A refusal counts against the address it came from; a success never does.
async fn authenticate(parts: &Parts, state: &ApiState) -> Result<Caller, ApiError> {
    let found = match bearer_key(&parts.headers) {
        Ok(key) => state.store.accounts().find_caller(&key.hash()).await?,
        Err(error) => return Err(refuse(error, parts, state)),
    };
    let caller = found.ok_or_else(|| refuse(ApiError::InvalidApiKey, parts, state))?;
    if let Some(context) = parts.extensions.get::<Arc<RequestContext>>() {
        let _ = context.caller.set((caller.account_id, Some(caller.key_id)));
    }
    record_use(&caller, state).await;
    Ok(caller)
}

fn refuse(error: ApiError, parts: &Parts, state: &ApiState) -> ApiError {
    let address = client_address(parts, &state.limits.trusted_proxies);
    match state.throttle.count_failing_auth(address) {
        Ok(()) => error,
        Err(too_fast) => too_fast,
    }
}

/// The key in the one `Authorization: Bearer …` header; the scheme in any case (RFC 9110 section 11.1).
fn bearer_key(headers: &HeaderMap) -> Result<ApiKey, ApiError> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let value = values.next().ok_or(ApiError::MissingApiKey)?;
    if values.next().is_some() {
        return Err(ApiError::InvalidApiKey);
    }
    let text = value.to_str().map_err(|_| ApiError::InvalidApiKey)?.trim();
    let (scheme, key) = text.split_once(' ').unwrap_or((text, ""));
    if text.is_empty() || (scheme.eq_ignore_ascii_case("bearer") && key.is_empty()) {
        return Err(ApiError::MissingApiKey);
    }
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(ApiError::InvalidApiKey);
    }
    ApiKey::parse(key.trim_start()).ok_or(ApiError::InvalidApiKey)
}

/// A use that cannot be recorded is no reason to refuse the caller.
async fn record_use(caller: &Caller, state: &ApiState) {
    let now = state.store.now();
    let is_fresh = |at| now.seconds_since(at) < KEY_USE_SECONDS;
    if caller.last_used_at.is_some_and(is_fresh) {
        return;
    }
    if let Err(error) = state.store.accounts().record_key_use(&caller.key_id).await {
        tracing::warn!(key_id = caller.key_id.as_str(), %error, "key use not recorded");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(values: &[&str]) -> &'static str {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::AUTHORIZATION, value.parse().unwrap());
        }
        bearer_key(&headers).map_or_else(|error| error.code(), |_| "a key")
    }

    #[test]
    fn exactly_one_bearer_header_with_a_well_formed_key_is_a_key() {
        let key = ApiKey::random().unwrap();
        let bearer = format!("Bearer {}", key.reveal());
        let lower = format!("bearer  {}", key.reveal());
        let basic = format!("Basic {}", key.reveal());
        let bare = key.reveal();
        for (values, expected) in [
            (&[bearer.as_str()][..], "a key"),
            (&[&lower], "a key"),
            (&[], "missing_api_key"),
            (&[""], "missing_api_key"),
            (&["Bearer"], "missing_api_key"),
            (&["Bearer "], "missing_api_key"),
            (&[&basic], "invalid_api_key"),
            (&[bare], "invalid_api_key"),
            (&["Bearer usk_live_x"], "invalid_api_key"),
            (&[&format!("{bearer} x")], "invalid_api_key"),
            (&[&format!("{bearer},{bearer}")], "invalid_api_key"),
            (&[&bearer, &bearer], "invalid_api_key"),
        ] {
            assert_eq!(answer(values), expected, "{values:?}");
        }
    }
}

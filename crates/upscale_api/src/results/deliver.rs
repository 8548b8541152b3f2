//! `GET /r/{token}.png`: checks the URL, then streams the file, from a directory or a bucket; or sends the client on to the
//! bucket, so that no result byte passes through here. A URL that we did not sign names nothing: 404, the same for every
//! file that exists and every one that does not.

use axum::{
    body::Body,
    extract::{Path, RawQuery, State, rejection::PathRejection},
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header},
    response::{IntoResponse, Response},
};
use futures_util::StreamExt;
use upscale_core::{Timestamp, is_token};
use upscale_store::{Link, ResultRecord};

use super::range::{Asked, asked};
use crate::{
    api_state::ApiState,
    client_address::ClientAddress,
    error::ApiError,
    permits::{Owner, Permit},
    request_context::Followed,
    task_body::add_look,
};

/// Seconds that a bucket honours a link: time to follow it, not to keep it. Anyone who comes back asks here again, so
/// that expiry, retention and rotated keys are judged together.
const LINK_SECONDS: u64 = 300;

/// Streams all of a result file or one range of it, or says where it is to be had.
pub(crate) async fn deliver(
    State(state): State<ApiState>,
    Followed(context): Followed,
    ClientAddress(address): ClientAddress,
    path: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let name = path.ok().and_then(|Path(file)| token_of(&file));
    let name = name.ok_or(ApiError::NotFound)?;
    let expires_at = state
        .signing_keys
        .check(&state.store, &name, &query.unwrap_or_default())
        .await?
        .ok_or(ApiError::NotFound)?;
    let permit = state.permits.downloads.take(Owner::Address(address))?;
    let record = state.store.tasks().find_result(&name).await?;
    let record = record.ok_or(ApiError::NotFound)?;
    let _ = context.task_id.set(record.task_id);
    check_still_there(&record, expires_at, state.store.now())?;
    if let Some(elsewhere) = send_on(&state, &record, &method).await? {
        return Ok(elsewhere);
    }

    let etag = format!("\"{}\"", record.file.sha256);
    let mut response = if etag_matches(&headers, &etag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        let is_get = method == Method::GET;
        let wanted = wanted(&headers, is_get, &record, &etag);
        body(&state, &record, wanted, is_get.then_some(permit)).await?
    };
    let lifetime = expires_at.seconds_since(state.store.now());
    add_headers(&record, &etag, lifetime, response.headers_mut());
    Ok(response)
}

fn token_of(file: &str) -> Option<String> {
    let token = file.strip_suffix(".png")?;
    is_token(token).then(|| token.to_owned())
}

/// After retention the file is gone however the URL stands: a new URL would not bring it back.
fn check_still_there(
    record: &ResultRecord,
    expires_at: Timestamp,
    now: Timestamp,
) -> Result<(), ApiError> {
    if record.removed {
        return Err(ApiError::ResultExpired);
    }
    if expires_at <= now {
        return Err(ApiError::ResultUrlExpired);
    }
    Ok(())
}

/// 307, so that method, range and conditions are asked again of the bucket; none when the file is served here.
async fn send_on(
    state: &ApiState,
    record: &ResultRecord,
    method: &Method,
) -> Result<Option<Response>, ApiError> {
    let link = Link {
        is_head: method == Method::HEAD,
        file_name: &file_name(record),
        seconds: LINK_SECONDS,
    };
    let Some(url) = state.link_elsewhere(&record.file.name, &link).await? else {
        return Ok(None);
    };
    let mut response = StatusCode::TEMPORARY_REDIRECT.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    insert(headers, header::LOCATION, url);
    Ok(Some(response))
}

fn file_name(record: &ResultRecord) -> String {
    format!("{}.png", record.task_id)
}

/// A range is for GET alone, and only of the very file that `If-Range` names (a date never matches).
fn wanted(headers: &HeaderMap, is_get: bool, record: &ResultRecord, etag: &str) -> Asked {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let is_same = headers.get(header::IF_RANGE).is_none() || text(header::IF_RANGE) == Some(etag);
    match text(header::RANGE) {
        Some(range) if is_get && is_same => asked(range, record.file.size_bytes),
        _ => Asked::Whole,
    }
}

/// With a body where there is a permit to send it from.
async fn body(
    state: &ApiState,
    record: &ResultRecord,
    wanted: Asked,
    to_send: Option<Permit>,
) -> Result<Response, ApiError> {
    let size_bytes = record.file.size_bytes;
    let (status, range) = match wanted {
        Asked::Whole => (StatusCode::OK, 0..size_bytes),
        Asked::Part(range) => (StatusCode::PARTIAL_CONTENT, range),
        Asked::Unsatisfiable => return Err(ApiError::RangeNotSatisfiable { size_bytes }),
    };
    let body = match to_send {
        Some(permit) => {
            let part = (status == StatusCode::PARTIAL_CONTENT).then(|| range.clone());
            open(state, record, part, permit).await?
        }
        None => Body::empty(),
    };
    let mut response = (status, body).into_response();
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_LENGTH,
        HeaderValue::from(range.end - range.start),
    );
    if status == StatusCode::PARTIAL_CONTENT {
        let text = format!("bytes {}-{}/{size_bytes}", range.start, range.end - 1);
        insert(headers, header::CONTENT_RANGE, text);
    }
    Ok(response)
}

/// The permit is held as long as the file is open: until the last byte is sent, or the client is gone.
async fn open(
    state: &ApiState,
    record: &ResultRecord,
    part: Option<std::ops::Range<u64>>,
    permit: Permit,
) -> Result<Body, ApiError> {
    match state.results.open(&record.file.name, part).await? {
        Some(file) => Ok(Body::from_stream(file.stream.inspect(move |_| {
            let _held = &permit;
        }))),
        None => {
            // Either retention ran between the record and the file, or the file was lost.
            let task_id = record.task_id.as_str();
            tracing::warn!(task_id, "a result file that is on record is not there");
            Err(ApiError::ResultExpired)
        }
    }
}

fn add_headers(record: &ResultRecord, etag: &str, lifetime_seconds: i64, headers: &mut HeaderMap) {
    let fixed = [
        (header::CONTENT_TYPE, "image/png"),
        (header::ACCEPT_RANGES, "bytes"),
        (
            header::CONTENT_SECURITY_POLICY,
            "sandbox; default-src 'none'",
        ),
        (HeaderName::from_static("x-robots-tag"), "noindex"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    add_look(&record.file, headers);
    insert(headers, header::ETAG, etag.to_owned());
    let cache = format!("private, no-transform, max-age={lifetime_seconds}");
    insert(headers, header::CACHE_CONTROL, cache);
    let attachment = format!("attachment; filename=\"{}\"", file_name(record));
    insert(headers, header::CONTENT_DISPOSITION, attachment);
}

/// All values are made of ASCII that we wrote; one that is not is left out rather than broken.
fn insert(headers: &mut HeaderMap, name: HeaderName, value: String) {
    if let Ok(value) = HeaderValue::try_from(value) {
        headers.insert(name, value);
    }
}

/// Whether `If-None-Match` names this tag; weak comparison (RFC 9110 section 13.1.2).
pub(crate) fn etag_matches(headers: &HeaderMap, etag: &str) -> bool {
    let opaque = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    headers
        .get_all(header::IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|tag| tag.trim() == "*" || opaque(tag) == opaque(etag))
}

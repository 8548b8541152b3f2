//! Pictures from the console's own address: thumbnails and results of the account, and the samples. Bytes are handed on
//! and never looked at; what is in a bucket is fetched from there by the browser.

use axum::{
    body::Body,
    extract::{Path, State},
    http::{HeaderValue, header},
    response::{IntoResponse, Redirect, Response},
};
use futures_util::StreamExt;
use upscale_core::{ResultFile, Sample, TaskState};
use upscale_store::{Link, ResultBody};

use super::{
    error::ConsoleError, session::SignedIn, state::ConsoleState, tasks::find, title::file_name,
};
use crate::permits::{Owner, Permit};

/// Seconds that a bucket honours a link: time to follow it.
const LINK_SECONDS: u64 = 300;
/// A task's thumbnail never changes; it goes with its result, so a browser keeps it for an hour.
const KEEP_THUMBNAIL: &str = "private, max-age=3600";
const KEEP_SAMPLE: &str = "public, max-age=86400";

/// `GET /tasks/{id}/thumbnail`.
pub(crate) async fn thumbnail(
    State(state): State<ConsoleState>,
    who: SignedIn,
    Path(id): Path<String>,
) -> Result<Response, ConsoleError> {
    let file = result_of(&state, &who, &id).await?.0;
    let kept = file.preview.map_or(0, |preview| preview.thumbnail_bytes);
    if kept == 0 {
        return Err(ConsoleError::NotFound);
    }
    let results = &state.api.results;
    let link = Link {
        is_head: false,
        file_name: "thumbnail.png",
        seconds: LINK_SECONDS,
    };
    if let Some(url) = results.thumbnail_link(&file.name, &link).await? {
        return Ok(Redirect::temporary(&url).into_response());
    }
    let permit = take_permit(&state, &who)?;
    let found = results.open_thumbnail(&file.name).await?;
    let body = found.ok_or(ConsoleError::NotFound)?;
    Ok(picture(body, permit, KEEP_THUMBNAIL, None))
}

/// `GET /tasks/{id}/download`: the result under a name of its source.
pub(crate) async fn download(
    State(state): State<ConsoleState>,
    who: SignedIn,
    Path(id): Path<String>,
) -> Result<Response, ConsoleError> {
    let (file, name) = result_of(&state, &who, &id).await?;
    let results = &state.api.results;
    let link = Link {
        is_head: false,
        file_name: &name,
        seconds: LINK_SECONDS,
    };
    if let Some(url) = results.link(&file.name, &link).await? {
        return Ok(Redirect::temporary(&url).into_response());
    }
    let permit = take_permit(&state, &who)?;
    let found = results.open(&file.name, None).await?;
    let body = found.ok_or(ConsoleError::NotFound)?;
    Ok(picture(body, permit, "no-store", Some(&name)))
}

/// `GET /samples/{file}`.
pub(crate) async fn sample(Path(file): Path<String>) -> Result<Response, ConsoleError> {
    let sample = Sample::named(&file).ok_or(ConsoleError::NotFound)?;
    let mut response = sample.bytes.into_response();
    add_headers(&mut response, KEEP_SAMPLE, None);
    Ok(response)
}

/// The kept result of a task of this account, and what a download of it is called.
async fn result_of(
    state: &ConsoleState,
    who: &SignedIn,
    id: &str,
) -> Result<(ResultFile, String), ConsoleError> {
    let record = find(state, who, id).await?;
    let name = file_name(&record);
    match record.task.state {
        TaskState::Succeeded(file) if !record.result_removed => Ok((file, name)),
        _ => Err(ConsoleError::NotFound),
    }
}

fn take_permit(state: &ConsoleState, who: &SignedIn) -> Result<Permit, ConsoleError> {
    let owner = Owner::Account(who.session.user.account_id);
    Ok(state.api.permits.downloads.take(owner)?)
}

/// The permit is held to the last byte.
fn picture(file: ResultBody, permit: Permit, cache: &str, attachment: Option<&str>) -> Response {
    let size = file.size_bytes;
    let stream = file.stream.inspect(move |_| {
        let _held = &permit;
    });
    let mut response = Body::from_stream(stream).into_response();
    let length = HeaderValue::from(size);
    response
        .headers_mut()
        .insert(header::CONTENT_LENGTH, length);
    add_headers(&mut response, cache, attachment);
    response
}

fn add_headers(response: &mut Response, cache: &str, attachment: Option<&str>) {
    let disposition = attachment.map(|name| format!("attachment; filename=\"{name}\""));
    let named = [
        (header::CONTENT_TYPE, Some("image/png")),
        (header::CACHE_CONTROL, Some(cache)),
        (header::CONTENT_DISPOSITION, disposition.as_deref()),
    ];
    for (name, value) in named {
        if let Some(value) = value.and_then(|value| HeaderValue::from_str(value).ok()) {
            response.headers_mut().insert(name, value);
        }
    }
}

//! The result's bytes, whole and as the service made them.

use std::time::Instant;

use reqwest::{
    Response, StatusCode,
    header::{ETAG, LOCATION},
};
use sha2::{Digest, Sha256};
use tokio::time::{sleep, timeout};

use crate::{
    ApiError, Client, Error, Outcome, Status, Task, backoff::wait_after, client::retry_after,
    order::hex,
};

/// The largest result: 12 MP of 16-bit RGBA that does not compress.
const RESULT_BYTES_MAX: usize = 128 << 20;
/// Redirects followed from a result's link.
const REDIRECTS_MAX: u32 = 3;
/// Tries of one download; between them the task is read again, for its link lives an hour only.
const TRIES: u32 = 4;

impl Client {
    /// Downloads the PNG of a task that succeeded and checks its SHA-256. Tries again with a new link when the
    /// connection breaks or the bytes are damaged.
    ///
    /// # Errors
    /// [`Error::Setup`] unless the task succeeded, [`Error::Damaged`], [`Error::Refused`] (410 after retention),
    /// [`Error::Unreachable`], [`Error::GaveUp`].
    pub async fn download(&self, task: &Task) -> Result<Vec<u8>, Error> {
        let mut outcome = outcome(task)?.clone();
        let started = Instant::now();
        let mut tries = 0;
        loop {
            let left = self.patience.total.saturating_sub(started.elapsed());
            let failure = match timeout(left, self.fetch(&outcome)).await {
                Ok(Ok(bytes)) => return Ok(bytes),
                Ok(Err(error)) if error.is_temporary() || is_stale(&error) => error,
                Ok(Err(error)) => return Err(error),
                Err(_) => return Err(Error::gave_up(&task.id, None, started.elapsed())),
            };
            let wait = wait_after(tries, failure.retry_after())?;
            tries += 1;
            if tries >= TRIES || started.elapsed() + wait > self.patience.total {
                return Err(failure);
            }
            sleep(wait).await;
            outcome = self::outcome(&self.read(&task.id).await?.task)?.clone();
        }
    }

    /// Fetches once and checks.
    async fn fetch(&self, outcome: &Outcome) -> Result<Vec<u8>, Error> {
        let mut response = self.follow(&outcome.url).await?;
        let status = response.status();
        if status != StatusCode::OK {
            let wait = retry_after(&response);
            let body = response.bytes().await.unwrap_or_default();
            return Err(ApiError::read(status.as_u16(), wait, &body).into());
        }
        let tag = response.headers().get(ETAG);
        let tag = tag
            .and_then(|tag| tag.to_str().ok())
            .map(|tag| tag.trim_matches('"').to_owned());
        let mut bytes = Vec::new();
        while let Some(piece) = response.chunk().await? {
            bytes.extend_from_slice(&piece);
            if bytes.len() > RESULT_BYTES_MAX {
                return Err(Error::Unexpected(format!(
                    "a result of more than {RESULT_BYTES_MAX} bytes"
                )));
            }
        }
        check(
            &hex(&Sha256::digest(&bytes)),
            outcome.sha256.as_deref(),
            tag,
        )?;
        Ok(bytes)
    }
    /// A service that keeps its results in a bucket sends us on to it. No key goes along.
    async fn follow(&self, url: &str) -> Result<Response, Error> {
        let mut response = self.http.get(url).send().await?;
        for _ in 0..REDIRECTS_MAX {
            let next = response.headers().get(LOCATION);
            let next = next.and_then(|next| next.to_str().ok());
            let Some(next) = next.filter(|_| response.status().is_redirection()) else {
                break;
            };
            let next = response.url().join(next);
            let next = next.map_err(|error| Error::Unexpected(format!("a redirect: {error}")))?;
            response = self.http.get(next).send().await?;
        }
        Ok(response)
    }
}

/// Against what the task said, else against the result's ETag where that is a SHA-256 (64 digits).
fn check(sha256: &str, told: Option<&str>, tag: Option<String>) -> Result<(), Error> {
    let is_sha256 = |text: &&str| text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit());
    let expected = told.or(tag.as_deref()).filter(is_sha256);
    match expected {
        Some(expected) if expected == sha256 => Ok(()),
        Some(expected) => Err(Error::Damaged(format!(
            "its SHA-256 is {sha256}, not {expected}"
        ))),
        None => Err(Error::Unexpected(
            "the service told no SHA-256 of the result".to_owned(),
        )),
    }
}

/// A link that has had its hour.
fn is_stale(error: &Error) -> bool {
    matches!(error, Error::Refused(error) if error.status == 403)
}

fn outcome(task: &Task) -> Result<&Outcome, Error> {
    match &task.status {
        Status::Succeeded(outcome) => Ok(outcome),
        _ => Err(Error::Setup(format!("task {} has no result", task.id))),
    }
}

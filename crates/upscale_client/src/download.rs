//! The result's bytes, whole and as the service made them.

use std::{path::Path, time::Instant};

use reqwest::{
    Response, StatusCode,
    header::{ETAG, LOCATION},
};
use sha2::{Digest, Sha256};
use tokio::time::{sleep, timeout};

use crate::{
    Error, ErrorKind, StatusError, Succeeded, Task, Upscales, backoff::wait_after,
    client::retry_after, order::hex,
};

/// The largest result: 12 MP of 16-bit RGBA that does not compress.
const RESULT_BYTES_MAX: usize = 128 << 20;
/// Redirects followed from a result's link.
const REDIRECTS_MAX: u32 = 3;
/// Tries of one download; between them the task is read again, for its link lives an hour only.
const TRIES: u32 = 4;

impl Upscales<'_> {
    /// Downloads the PNG and checks its SHA-256. Tries again with a new link when the connection breaks, the bytes are
    /// damaged or the link has had its hour.
    ///
    /// # Errors
    /// [`ErrorKind::Checksum`], [`ErrorKind::Status`] (410 after retention), [`ErrorKind::Connection`],
    /// [`ErrorKind::PollTimeout`].
    pub async fn download(self, task: &Succeeded) -> Result<Vec<u8>, Error> {
        let (mut task, started, mut tries) = (task.clone(), Instant::now(), 0);
        loop {
            let left = self.client.timeout.saturating_sub(started.elapsed());
            let failure = match timeout(left, self.fetch(&task)).await {
                Ok(Ok(bytes)) => return Ok(bytes),
                Ok(Err(error)) if error.is_temporary() || is_stale(&error) => error,
                Ok(Err(error)) => return Err(error),
                Err(_) => {
                    let (id, waited) = (task.id, started.elapsed());
                    return Err(ErrorKind::PollTimeout { id, waited }.into());
                }
            };
            let wait = wait_after(tries, failure.retry_after())?;
            tries += 1;
            if tries >= TRIES || started.elapsed() + wait > self.client.timeout {
                return Err(failure);
            }
            sleep(wait).await;
            if let Task::Succeeded(newer) = self.retrieve(&task.id).await? {
                task = newer;
            }
        }
    }

    /// Downloads the PNG into a file, which appears whole or not at all.
    ///
    /// # Errors
    /// As [`Upscales::download`], and [`ErrorKind::File`] when it cannot be written.
    pub async fn download_to(self, task: &Succeeded, path: impl AsRef<Path>) -> Result<(), Error> {
        let (png, path) = (self.download(task).await?, path.as_ref());
        let part = path.with_extension("part");
        let written = async {
            tokio::fs::write(&part, png).await?;
            tokio::fs::rename(&part, path).await
        };
        written
            .await
            .map_err(|error| ErrorKind::File(format!("{}: {error}", path.display())).into())
    }

    /// Fetches once and checks.
    async fn fetch(self, task: &Succeeded) -> Result<Vec<u8>, Error> {
        let mut response = self.follow(&task.result_url).await?;
        let status = response.status();
        if status != StatusCode::OK {
            let wait = retry_after(&response);
            let body = response.bytes().await.unwrap_or_default();
            return Err(StatusError::read(status.as_u16(), wait, &body).into());
        }
        let tag = response.headers().get(ETAG);
        let tag = tag
            .and_then(|tag| tag.to_str().ok())
            .map(|tag| tag.trim_matches('"').to_owned());
        let mut bytes = Vec::new();
        while let Some(piece) = response.chunk().await? {
            bytes.extend_from_slice(&piece);
            if bytes.len() > RESULT_BYTES_MAX {
                let what = format!("a result of more than {RESULT_BYTES_MAX} bytes");
                return Err(ErrorKind::UnexpectedResponse(what).into());
            }
        }
        check(&hex(&Sha256::digest(&bytes)), task.sha256.as_deref(), tag)?;
        Ok(bytes)
    }

    /// A service that keeps its results in a bucket sends us on to it. No key goes along.
    async fn follow(self, url: &str) -> Result<Response, Error> {
        let mut response = self.client.http.get(url).send().await?;
        for _ in 0..REDIRECTS_MAX {
            let next = response.headers().get(LOCATION);
            let next = next.and_then(|next| next.to_str().ok());
            let Some(next) = next.filter(|_| response.status().is_redirection()) else {
                break;
            };
            let next = response.url().join(next);
            let next = next
                .map_err(|error| ErrorKind::UnexpectedResponse(format!("a redirect: {error}")))?;
            response = self.client.http.get(next).send().await?;
        }
        Ok(response)
    }
}

/// Against what the task said, else against the result's ETag where that is a SHA-256 (64 digits).
fn check(sha256: &str, announced: Option<&str>, tag: Option<String>) -> Result<(), Error> {
    let is_sha256 = |text: &&str| text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit());
    let expected = announced.or(tag.as_deref()).filter(is_sha256);
    match expected {
        Some(expected) if expected == sha256 => Ok(()),
        Some(expected) => {
            let what = format!("its SHA-256 is {sha256}, not {expected}");
            Err(ErrorKind::Checksum(what).into())
        }
        None => {
            let what = "the service sent no SHA-256 of the result".to_owned();
            Err(ErrorKind::UnexpectedResponse(what).into())
        }
    }
}

/// A link that has had its hour.
fn is_stale(error: &Error) -> bool {
    matches!(&*error.kind, ErrorKind::Status(error) if error.status == 403)
}

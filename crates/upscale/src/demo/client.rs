//! The demo's customer: speaks to the API over HTTP as the reference client does. An idempotency key for each
//! picture, the first poll after 3 seconds, later ones when the service says, the result checked by its checksum.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use upscale_core::{hex, limits::POLL_SECONDS, random_token};

/// A client gives up after five minutes; the service has ended every task by then.
const PATIENCE: Duration = Duration::from_secs(300);
/// One request.
const REQUEST_PATIENCE: Duration = Duration::from_secs(30);
/// The largest result: 12 MP of 16-bit RGBA, incompressible.
const RESULT_BYTES_MAX: u64 = 128 << 20;

/// One account's key and where to use it.
pub(crate) struct Client {
    api: String,
    key: String,
    agent: ureq::Agent,
}

/// An order under way.
pub(crate) struct Ordered {
    /// The task as the last answer had it.
    pub(crate) task: Value,
    key: String,
    body: Value,
    started: Instant,
    poll_at: Instant,
}

impl Client {
    pub(crate) fn new(api: &str, key: &str) -> Self {
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(REQUEST_PATIENCE))
            .build()
            .new_agent();
        Self {
            api: api.to_owned(),
            key: key.to_owned(),
            agent,
        }
    }

    /// Creates a task under a key of its own.
    pub(crate) fn order(&self, image_url: &str, scale: usize) -> anyhow::Result<Ordered> {
        let key = random_token()?;
        let body = json!({ "image_url": image_url, "scale": scale });
        let (task, _) = self.create(&key, &body)?;
        let now = Instant::now();
        let first_poll = Duration::from_secs(POLL_SECONDS.start().unsigned_abs());
        Ok(Ordered {
            task,
            key,
            body,
            started: now,
            poll_at: now + first_poll,
        })
    }

    /// Sends the same order again, as after a lost answer: it must be the same task.
    pub(crate) fn repeat(&self, ordered: &Ordered) -> anyhow::Result<()> {
        let (task, is_replay) = self.create(&ordered.key, &ordered.body)?;
        ensure!(
            is_replay && task["id"] == ordered.task["id"],
            "a repeated create made another task: {task}"
        );
        Ok(())
    }

    fn create(&self, key: &str, body: &Value) -> anyhow::Result<(Value, bool)> {
        let mut response = self
            .agent
            .post(format!("{}/api/v1/upscales", self.api))
            .header("Authorization", format!("Bearer {}", self.key))
            .header("Content-Type", "application/json")
            .header("Idempotency-Key", key)
            .send(body.to_string())?;
        let is_replay = response.headers().contains_key("Idempotent-Replayed");
        let text = response.body_mut().read_to_string()?;
        ensure!(
            response.status() == 202,
            "the create was answered {}: {text}",
            response.status()
        );
        Ok((serde_json::from_str(&text)?, is_replay))
    }

    /// Waits for the next time to poll, polls, and says whether the task is over.
    pub(crate) fn poll(&self, ordered: &mut Ordered) -> anyhow::Result<bool> {
        ensure!(
            ordered.started.elapsed() < PATIENCE,
            "no end after {PATIENCE:?}: {}",
            ordered.task
        );
        thread::sleep(ordered.poll_at.saturating_duration_since(Instant::now()));
        let url = ordered.task["urls"]["get"]
            .as_str()
            .context("the task has no urls.get")?;
        let request = self
            .agent
            .get(url)
            .header("Authorization", format!("Bearer {}", self.key));
        let mut response = request.call()?;
        let wait = retry_after(response.headers().get("Retry-After"));
        let text = response.body_mut().read_to_string()?;
        ensure!(
            response.status() == 200,
            "the read was answered {}: {text}",
            response.status()
        );
        ordered.task = serde_json::from_str(&text)?;
        ordered.poll_at = Instant::now() + wait;
        match ordered.task["status"].as_str() {
            Some("processing") => Ok(false),
            Some("succeeded" | "failed") => Ok(true),
            _ => bail!("the task has an unknown status: {text}"),
        }
    }

    /// The result's bytes, whole and as the service hashed them; the ETag is their SHA-256.
    pub(crate) fn download(&self, task: &Value) -> anyhow::Result<Vec<u8>> {
        let url = task["result"]["url"]
            .as_str()
            .with_context(|| format!("there is no result: {task}"))?;
        let mut response = self.agent.get(url).call()?;
        ensure!(
            response.status() == 200,
            "the result was answered {}",
            response.status()
        );
        let etag = response
            .headers()
            .get("ETag")
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
            .to_owned();
        let bytes = response
            .body_mut()
            .with_config()
            .limit(RESULT_BYTES_MAX)
            .read_to_vec()?;
        let sha256 = hex(&Sha256::digest(&bytes));
        ensure!(
            etag.trim_matches('"') == sha256,
            "the result's SHA-256 is {sha256}, its ETag {etag}"
        );
        Ok(bytes)
    }
}

/// What the service asks for, within the contract's 3 to 10 seconds.
fn retry_after(value: Option<&ureq::http::HeaderValue>) -> Duration {
    let seconds = value.and_then(|value| value.to_str().ok()?.parse().ok());
    let seconds: i64 = seconds.unwrap_or(*POLL_SECONDS.end());
    Duration::from_secs(
        seconds
            .clamp(*POLL_SECONDS.start(), *POLL_SECONDS.end())
            .unsigned_abs(),
    )
}

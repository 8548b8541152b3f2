//! The task as the service tells it, read strictly where it matters: an unknown status or a status without what
//! belongs to it is an error, an unknown further field is not.

use serde::Deserialize;
use serde_json::Number;

use crate::Error;

/// A task at the moment of one answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Names the task for ever; opaque.
    pub id: String,
    /// Where it stands.
    pub status: Status,
    /// Reserved while processing, in thousandths of a credit: 700.
    pub thousandths_reserved: i64,
    /// Charged so far, in thousandths of a credit: 700 after success, else 0.
    pub thousandths_charged: i64,
}

/// Where a task stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// Waiting or being worked on; `url` is where to read it.
    Processing {
        /// `urls.get`.
        url: String,
    },
    /// Done and charged.
    Succeeded(Outcome),
    /// Not done; the credits are back, or on their way.
    Failed(Failure),
}

/// What a success left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Where to download the PNG, for an hour; every reading of the task gives a new address.
    pub url: String,
    /// SHA-256 of the PNG in lower-case hexadecimal digits, where the service told it.
    pub sha256: Option<String>,
}

/// Why there is no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Stable code, such as `image_processing_failed`.
    pub code: String,
    /// For people, with numbers.
    pub message: String,
    /// `pending` or `refunded`.
    pub refund_status: String,
}

impl Task {
    /// Whether nothing will change any more.
    #[must_use]
    pub fn is_over(&self) -> bool {
        !matches!(self.status, Status::Processing { .. })
    }

    /// Reads a task's JSON; `sha256` is what the header said of the result.
    pub(crate) fn read(body: &[u8], sha256: Option<String>) -> Result<Self, Error> {
        let raw: Raw = serde_json::from_slice(body)
            .map_err(|error| Error::Unexpected(format!("no task: {error}")))?;
        let status = match raw.status.as_str() {
            "processing" => Status::Processing {
                url: present(raw.urls, "urls")?.get,
            },
            "succeeded" => Status::Succeeded(Outcome {
                url: present(raw.result, "result")?.url,
                sha256,
            }),
            "failed" => {
                let error = present(raw.error, "error")?;
                Status::Failed(Failure {
                    code: error.code,
                    message: error.message,
                    refund_status: present(raw.usage.refund_status, "usage.refund_status")?,
                })
            }
            other => {
                return Err(Error::Unexpected(format!(
                    "task {} has the unknown status {other:?}",
                    raw.id
                )));
            }
        };
        Ok(Self {
            id: raw.id,
            status,
            thousandths_reserved: raw.usage.credits_reserved.map_or(Ok(0), thousandths)?,
            thousandths_charged: thousandths(raw.usage.credits_charged)?,
        })
    }
}

#[derive(Deserialize)]
struct Raw {
    id: String,
    status: String,
    urls: Option<Urls>,
    result: Option<RawResult>,
    error: Option<RawFailure>,
    usage: Usage,
}

#[derive(Deserialize)]
struct Urls {
    get: String,
}

#[derive(Deserialize)]
struct RawResult {
    url: String,
}

#[derive(Deserialize)]
struct RawFailure {
    code: String,
    message: String,
}

#[derive(Deserialize)]
struct Usage {
    credits_reserved: Option<Number>,
    credits_charged: Number,
    refund_status: Option<String>,
}

fn present<T>(part: Option<T>, name: &str) -> Result<T, Error> {
    part.ok_or_else(|| Error::Unexpected(format!("the task has no {name}")))
}

/// Credits have at most three decimals and stay far below 2⁵³ thousandths, so rounding gives them exactly.
fn thousandths(credits: Number) -> Result<i64, Error> {
    let value = credits.as_f64().filter(|value| value.abs() < 1e12);
    let value = value.ok_or_else(|| Error::Unexpected(format!("no credits: {credits}")))?;
    Ok((value * 1000.0).round() as i64)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn each_state_is_read_with_what_belongs_to_it() {
        let task = |body: &str| Task::read(body.as_bytes(), Some("00ff".to_owned())).unwrap();
        let processing = task(
            r#"{"id":"t","object":"upscale","status":"processing","urls":{"get":"u"},"usage":{"credits_reserved":0.7,"credits_charged":0}}"#,
        );
        assert!(!processing.is_over());
        assert_eq!(
            (
                processing.thousandths_reserved,
                processing.thousandths_charged
            ),
            (700, 0)
        );
        let done = task(
            r#"{"id":"t","status":"succeeded","urls":{"get":"u"},"result":{"url":"r","format":"png"},"usage":{"credits_charged":0.7},"later":1}"#,
        );
        let sha256 = Some("00ff".to_owned());
        let url = "r".to_owned();
        assert_eq!(done.status, Status::Succeeded(Outcome { url, sha256 }));
        assert_eq!(done.thousandths_charged, 700);
        let failed = task(
            r#"{"id":"t","status":"failed","error":{"code":"c","message":"m"},"usage":{"credits_charged":0,"refund_status":"pending"}}"#,
        );
        assert!(
            matches!(&failed.status, Status::Failed(failure) if failure.refund_status == "pending")
        );
    }

    #[test]
    fn a_status_nobody_knows_or_without_its_parts_is_an_error() {
        for (body, word) in [
            (
                r#"{"id":"t","status":"paused","usage":{"credits_charged":0}}"#,
                "paused",
            ),
            (
                r#"{"id":"t","status":"succeeded","usage":{"credits_charged":0.7}}"#,
                "result",
            ),
            (
                r#"{"id":"t","status":"processing","usage":{"credits_charged":0}}"#,
                "urls",
            ),
            ("[]", "no task"),
        ] {
            let error = Task::read(body.as_bytes(), None).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }
}

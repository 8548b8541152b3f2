//! The task as the service tells it, read strictly where it matters: an unknown status or a status without what
//! belongs to it is an error, an unknown further field is not.

use std::fmt;

use serde::Deserialize;
use serde_json::Number;

use crate::{Error, ErrorKind};

/// A task at the moment of one answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Task {
    /// Waiting or being worked on.
    Processing(Processing),
    /// Done and charged.
    Succeeded(Succeeded),
    /// Not done; the credits are back, or on their way.
    Failed(Failed),
}

/// A task that is not over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Processing {
    /// Names the task forever; opaque.
    pub id: String,
    /// `urls.get`: where to read it.
    pub url: String,
    /// In thousandths of a credit: 700.
    pub thousandths_reserved: i64,
}

/// A task with a result.
#[derive(Clone, PartialEq, Eq)]
pub struct Succeeded {
    /// Names the task forever; opaque.
    pub id: String,
    /// Where to download the PNG, for an hour; every reading of the task gives a new address.
    pub result_url: String,
    /// SHA-256 of the PNG in lower-case hexadecimal digits, where the service told it.
    pub sha256: Option<String>,
    /// In thousandths of a credit: 700.
    pub thousandths_charged: i64,
}

impl fmt::Debug for Succeeded {
    /// Without the signature of the address: anyone who has it can download the result.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = self.result_url.split('?').next().unwrap_or_default();
        f.debug_struct("Succeeded")
            .field("id", &self.id)
            .field("result_url", &format_args!("{address}?…"))
            .field("sha256", &self.sha256)
            .field("thousandths_charged", &self.thousandths_charged)
            .finish()
    }
}

/// A task without a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    /// Names the task forever; opaque.
    pub id: String,
    /// Why, and where the credits are.
    pub failure: Failure,
}

/// Why there is no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Stable code, such as `image_processing_failed`.
    pub code: String,
    /// For people, with numbers.
    pub message: String,
    /// `pending` while the credits are being returned, then `refunded`.
    pub refund_status: String,
}

impl Task {
    /// Names the task forever; opaque.
    #[must_use]
    pub fn id(&self) -> &str {
        match self {
            Self::Processing(task) => &task.id,
            Self::Succeeded(task) => &task.id,
            Self::Failed(task) => &task.id,
        }
    }

    /// Whether nothing will change any more.
    #[must_use]
    pub fn is_over(&self) -> bool {
        !matches!(self, Self::Processing(_))
    }

    /// Reads a task's JSON; `sha256` is what the header said of the result.
    pub(crate) fn read(body: &[u8], sha256: Option<String>) -> Result<Self, Error> {
        let raw: Raw = serde_json::from_slice(body)
            .map_err(|error| ErrorKind::UnexpectedResponse(format!("no task: {error}")))?;
        let id = raw.id;
        match raw.status.as_str() {
            "processing" => Ok(Self::Processing(Processing {
                id,
                url: present(raw.urls, "urls")?.get,
                thousandths_reserved: thousandths(present(
                    raw.usage.credits_reserved,
                    "usage.credits_reserved",
                )?)?,
            })),
            "succeeded" => Ok(Self::Succeeded(Succeeded {
                id,
                result_url: present(raw.result, "result")?.url,
                sha256,
                thousandths_charged: thousandths(raw.usage.credits_charged)?,
            })),
            "failed" => {
                let error = present(raw.error, "error")?;
                let failure = Failure {
                    code: error.code,
                    message: error.message,
                    refund_status: present(raw.usage.refund_status, "usage.refund_status")?,
                };
                Ok(Self::Failed(Failed { id, failure }))
            }
            other => {
                let what = format!("task {id} has the unknown status {other:?}");
                Err(ErrorKind::UnexpectedResponse(what).into())
            }
        }
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
    part.ok_or_else(|| ErrorKind::UnexpectedResponse(format!("the task has no {name}")).into())
}

/// Credits have at most three decimals and stay far below 2⁵³ thousandths, so rounding gives them exactly.
fn thousandths(credits: Number) -> Result<i64, Error> {
    let value = credits.as_f64().filter(|value| value.abs() < 1e12);
    let value =
        value.ok_or_else(|| ErrorKind::UnexpectedResponse(format!("no credits: {credits}")))?;
    Ok((value * 1000.0).round() as i64)
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::panic,
        reason = "a test fails by panicking"
    )]

    use super::*;

    #[test]
    fn each_state_is_read_with_what_belongs_to_it() {
        let task = |body: &str| Task::read(body.as_bytes(), Some("00ff".to_owned())).unwrap();
        let processing = task(
            r#"{"id":"t","object":"upscale","status":"processing","urls":{"get":"u"},"usage":{"credits_reserved":0.7,"credits_charged":0}}"#,
        );
        assert!(!processing.is_over());
        let Task::Processing(processing) = processing else {
            panic!("{processing:?}")
        };
        assert_eq!(
            (processing.url.as_str(), processing.thousandths_reserved),
            ("u", 700)
        );
        let done = task(
            r#"{"id":"t","status":"succeeded","urls":{"get":"u"},"result":{"url":"r?signature=secret","format":"png"},"usage":{"credits_charged":0.7},"later":1}"#,
        );
        assert!(!format!("{done:?}").contains("secret"));
        let expected = Succeeded {
            id: "t".to_owned(),
            result_url: "r?signature=secret".to_owned(),
            sha256: Some("00ff".to_owned()),
            thousandths_charged: 700,
        };
        assert_eq!(done, Task::Succeeded(expected));
        let failed = task(
            r#"{"id":"t","status":"failed","error":{"code":"c","message":"m"},"usage":{"credits_charged":0,"refund_status":"pending"}}"#,
        );
        assert!(
            matches!(&failed, Task::Failed(failed) if failed.failure.refund_status == "pending")
        );
    }

    #[test]
    fn a_status_no_one_knows_or_without_its_parts_is_an_error() {
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

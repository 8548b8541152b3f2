//! The task as JSON: one match, three arms, the contract's three shapes and nothing more.

use axum::{
    Json,
    http::{HeaderMap, HeaderName, HeaderValue, header},
    response::{IntoResponse, Response},
};
use serde::{Serialize, Serializer, ser::Error};
use serde_json::value::RawValue;
use upscale_core::{
    Credits, FAILURE_CODE, RefundStatus, ResultFile, Task, TaskId, TaskState, poll_after_seconds,
};

use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        RefOr, Schema,
        schema::{ObjectBuilder, Type},
    },
};

use crate::{api_state::ApiState, error::ApiError};

/// SHA-256 of the result in lower-case hexadecimal digits.
pub(crate) const RESULT_SHA256: HeaderName = HeaderName::from_static("x-result-sha256");
/// The look of a succeeded task's result.
pub(crate) const RESULT_LOOK: HeaderName = HeaderName::from_static("x-result-look");

/// A task in one of its three states.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum TaskBody {
    /// Accepted, not finished.
    Processing(ProcessingTask),
    /// Finished and charged.
    Succeeded(SucceededTask),
    /// Not done and not charged.
    Failed(FailedTask),
}

/// A task that is queued or running.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProcessingTask {
    /// Stable identifier of the task.
    id: String,
    #[schema(inline)]
    object: Upscale,
    #[schema(inline)]
    status: Processing,
    urls: Urls,
    usage: ReservedUsage,
}

/// A task whose result can be downloaded.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SucceededTask {
    /// Stable identifier of the task.
    id: String,
    #[schema(inline)]
    object: Upscale,
    #[schema(inline)]
    status: Succeeded,
    urls: Urls,
    result: ResultLink,
    usage: ChargedUsage,
}

/// A task that failed. Nothing was charged.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FailedTask {
    /// Stable identifier of the task.
    id: String,
    #[schema(inline)]
    object: Upscale,
    #[schema(inline)]
    status: Failed,
    error: Failure,
    usage: RefundedUsage,
}

/// URLs of the task.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Urls {
    /// URL to get this task.
    get: String,
}

/// The result file.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResultLink {
    /// Download URL, valid for one hour. Every read of the task returns a fresh one.
    url: String,
    #[schema(inline)]
    format: Png,
}

/// Why the task failed.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Failure {
    /// Stable error code.
    code: &'static str,
    /// Human-readable message with the numbers that matter.
    message: String,
}

/// Billing while processing.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReservedUsage {
    #[schema(inline)]
    credits_reserved: ExactCredits,
    #[schema(inline)]
    credits_charged: ExactCredits,
}

/// Billing after success.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChargedUsage {
    #[schema(inline)]
    credits_charged: ExactCredits,
}

/// Billing after failure.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RefundedUsage {
    #[schema(inline)]
    credits_charged: ExactCredits,
    #[schema(inline)]
    refund_status: Refund,
}

/// Type of the object.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Upscale {
    Upscale,
}

/// State of the task.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Processing {
    Processing,
}

/// State of the task.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Succeeded {
    Succeeded,
}

/// State of the task.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Failed {
    Failed,
}

/// The format of the result.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Png {
    Png,
}

/// Whether the reserved credits are back.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Refund {
    Pending,
    Refunded,
}

/// Credits as the JSON number of their shortest decimal; no float is ever involved.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExactCredits(Credits);

impl Serialize for ExactCredits {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let number = RawValue::from_string(self.0.to_string()).map_err(S::Error::custom)?;
        number.serialize(serializer)
    }
}

impl PartialSchema for ExactCredits {
    fn schema() -> RefOr<Schema> {
        let number = ObjectBuilder::new().schema_type(Type::Number);
        let number = number.description(Some("Credits, exact to the thousandth."));
        number.minimum(Some(0)).into()
    }
}

impl ToSchema for ExactCredits {}

impl ApiState {
    /// `urls.get` of a task.
    pub(crate) fn task_url(&self, id: &TaskId) -> String {
        format!("{}/api/v1/upscales/{id}", self.base_url)
    }
}

/// The task with the headers that go with every reading of it: never stored, and when to come again.
pub(crate) async fn task_response(state: &ApiState, task: &Task) -> Result<Response, ApiError> {
    let result_url = match &task.state {
        TaskState::Succeeded(file) => state.mint_result_url(file).await?,
        _ => String::new(),
    };
    let mut response = Json(task_body(task, state.task_url(&task.id), result_url)).into_response();
    add_poll_headers(task, state, &mut response);
    Ok(response)
}

/// `Cache-Control`, `Retry-After` while processing, and the result's SHA-256 after success: whatever stores the file and
/// whatever `ETag` that gives, a client can tell that the bytes are whole.
pub(crate) fn add_poll_headers(task: &Task, state: &ApiState, response: &mut Response) {
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    match &task.state {
        TaskState::Processing => {
            let seconds = poll_after_seconds(task.created_at, state.store.now());
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        TaskState::Succeeded(file) => {
            if let Ok(sha256) = HeaderValue::try_from(&file.sha256) {
                headers.insert(RESULT_SHA256, sha256);
            }
            add_look(file, headers);
        }
        TaskState::Failed { .. } => {}
    }
}

/// Which look of our networks made the result; a model that the operator brought has none.
pub(crate) fn add_look(file: &ResultFile, headers: &mut HeaderMap) {
    if let Some(look) = file.look {
        headers.insert(RESULT_LOOK, HeaderValue::from_static(look.as_str()));
    }
}

/// The shape of the task's state. `result_url` is read for a success alone.
pub(crate) fn task_body(task: &Task, get: String, result_url: String) -> TaskBody {
    let (id, object) = (task.id.as_str().to_owned(), Upscale::Upscale);
    let nothing = ExactCredits(Credits::ZERO);
    let price = ExactCredits(task.price);
    match &task.state {
        TaskState::Processing => TaskBody::Processing(ProcessingTask {
            id,
            object,
            status: Processing::Processing,
            urls: Urls { get },
            usage: ReservedUsage {
                credits_reserved: price,
                credits_charged: nothing,
            },
        }),
        TaskState::Succeeded(_) => TaskBody::Succeeded(SucceededTask {
            id,
            object,
            status: Succeeded::Succeeded,
            urls: Urls { get },
            result: ResultLink {
                url: result_url,
                format: Png::Png,
            },
            usage: ChargedUsage {
                credits_charged: price,
            },
        }),
        TaskState::Failed { message, refund } => TaskBody::Failed(FailedTask {
            id,
            object,
            status: Failed::Failed,
            error: Failure {
                code: FAILURE_CODE,
                message: message.as_str().to_owned(),
            },
            usage: RefundedUsage {
                credits_charged: nothing,
                refund_status: match refund {
                    RefundStatus::Pending => Refund::Pending,
                    RefundStatus::Refunded => Refund::Refunded,
                },
            },
        }),
    }
}

#[cfg(test)]
mod tests {
    use upscale_core::{AccountId, FailureMessage, Parameters, ResultFile, Timestamp, limits};

    use super::*;

    fn json(state: TaskState) -> String {
        let task = Task {
            id: TaskId::parse("ups_01234567890123456789012345").unwrap(),
            account_id: AccountId::random().unwrap(),
            parameters: Parameters::default(),
            price: limits::PRICE,
            created_at: Timestamp::from_micros(0),
            deadline_at: Timestamp::from_micros(0),
            state,
        };
        let body = task_body(
            &task,
            "https://api.example.org/1".to_owned(),
            "https://r.example.org/2".to_owned(),
        );
        serde_json::to_string(&body).unwrap()
    }

    #[test]
    fn a_processing_task_shows_what_is_reserved() {
        assert_eq!(
            json(TaskState::Processing),
            r#"{"id":"ups_01234567890123456789012345","object":"upscale","status":"processing","urls":{"get":"https://api.example.org/1"},"usage":{"credits_reserved":0.7,"credits_charged":0}}"#
        );
    }

    #[test]
    fn a_succeeded_task_shows_its_result_and_what_was_charged() {
        let file = ResultFile {
            name: "n".to_owned(),
            sha256: "s".to_owned(),
            size_bytes: 1,
            width: 1,
            height: 1,
            preview: None,
            look: None,
        };
        assert_eq!(
            json(TaskState::Succeeded(file)),
            r#"{"id":"ups_01234567890123456789012345","object":"upscale","status":"succeeded","urls":{"get":"https://api.example.org/1"},"result":{"url":"https://r.example.org/2","format":"png"},"usage":{"credits_charged":0.7}}"#
        );
    }

    #[test]
    fn a_failed_task_has_neither_urls_nor_result_and_says_where_the_refund_is() {
        for (refund, word) in [
            (RefundStatus::Pending, "pending"),
            (RefundStatus::Refunded, "refunded"),
        ] {
            let message = FailureMessage::new("It is no image");
            let expected = format!(
                r#"{{"id":"ups_01234567890123456789012345","object":"upscale","status":"failed","error":{{"code":"image_processing_failed","message":"It is no image. No credits were charged."}},"usage":{{"credits_charged":0,"refund_status":"{word}"}}}}"#
            );
            assert_eq!(json(TaskState::Failed { message, refund }), expected);
        }
    }
}

//! The OpenAPI 3.1 description of the contract's two endpoints. `answers.rs` lists what they answer, from
//! the very error table and bodies that the handlers use; `questions.rs` what they take.

mod answers;
mod questions;

use axum::{
    http::header,
    response::{IntoResponse, Response},
};
use utoipa::openapi::{
    ComponentsBuilder, HttpMethod, InfoBuilder, License, OpenApi, OpenApiBuilder, PathItem,
    PathsBuilder,
    path::{Operation, OperationBuilder},
    security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme},
};

use crate::{
    error::{ErrorBody, ErrorFields},
    task_body::{
        ChargedUsage, FailedTask, Failure, ProcessingTask, RefundedUsage, ReservedUsage,
        ResultLink, SucceededTask, TaskBody, Urls,
    },
};

const DESCRIPTION: &str = "Upscales images by 2x or 4x. A create request returns a task at once; poll the task until it has \
succeeded or failed. There are no webhooks. A succeeded task contains a signed URL of its result \
file; every read returns a fresh one.";

/// The description as indented JSON, the same for every build of one source; ends with a line break.
#[must_use]
pub fn openapi_json() -> String {
    // The document is made of strings and maps alone, which always have a JSON form.
    let json = description().to_pretty_json().unwrap_or_default();
    json + "\n"
}

/// Serves the description.
pub(crate) async fn get_openapi() -> Response {
    let json = (header::CONTENT_TYPE, "application/json");
    ([json], openapi_json()).into_response()
}

fn description() -> OpenApi {
    let create = PathItem::new(HttpMethod::Post, create_operation());
    let read = PathItem::new(HttpMethod::Get, read_operation());
    OpenApiBuilder::new()
        .info(
            InfoBuilder::new()
                .title("Upscale")
                .version("1")
                .description(Some(DESCRIPTION))
                .license(Some(License::new("Apache-2.0"))),
        )
        .paths(
            PathsBuilder::new()
                .path("/api/v1/upscales", create)
                .path("/api/v1/upscales/{id}", read),
        )
        .components(Some(components()))
        .security(Some([SecurityRequirement::new("api_key", NO_SCOPES)]))
        .build()
}

const NO_SCOPES: [&str; 0] = [];

fn components() -> utoipa::openapi::Components {
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some("An API key. Only ever used from a server."))
        .build();
    ComponentsBuilder::new()
        .schema("CreateUpscaleBody", questions::create_schema())
        .schema_from::<TaskBody>()
        .schema_from::<ProcessingTask>()
        .schema_from::<SucceededTask>()
        .schema_from::<FailedTask>()
        .schema_from::<Urls>()
        .schema_from::<ResultLink>()
        .schema_from::<Failure>()
        .schema_from::<ReservedUsage>()
        .schema_from::<ChargedUsage>()
        .schema_from::<RefundedUsage>()
        .schema_from::<ErrorBody>()
        .schema_from::<ErrorFields>()
        .security_scheme("api_key", SecurityScheme::Http(bearer))
        .build()
}

fn create_operation() -> Operation {
    OperationBuilder::new()
        .operation_id(Some("create_upscale"))
        .summary(Some("Create one upscale task"))
        .description(Some(
            "202 means accepted: 0.7 credit is reserved and the task is durable. After a timeout or a \
             5xx, retry with the same Idempotency-Key and the same parameters. You get the original \
             task in its current state, and nothing is charged twice. With Prefer: wait=N the response \
             waits until the task has succeeded or failed, for up to N seconds. Its status is still \
             202.",
        ))
        .parameter(questions::idempotency_key())
        .parameter(questions::prefer())
        .request_body(Some(questions::create_body()))
        .responses(answers::to_create())
        .build()
}

fn read_operation() -> Operation {
    OperationBuilder::new()
        .operation_id(Some("get_upscale"))
        .summary(Some("Get the state, result and billing of one task"))
        .description(Some(
            "With Prefer: wait=30 the response waits until the task has succeeded or failed. Without \
             it, poll after 3 seconds and then as Retry-After says. HEAD works too.",
        ))
        .parameter(questions::task_id())
        .parameter(questions::if_none_match())
        .parameter(questions::prefer())
        .responses(answers::to_read())
        .build()
}

//! What the two endpoints answer: every status with its headers, schema and examples, taken from the error
//! table and from the bodies themselves.

use std::collections::BTreeMap;

use upscale_core::{
    AccountId, Credits, FailureMessage, InvalidRequest, Parameters, RefundStatus, ResultFile, Task,
    TaskId, TaskState, Timestamp, limits,
};
use utoipa::openapi::{
    Content, ContentBuilder, HeaderBuilder, Ref, Response, ResponseBuilder, Responses,
    ResponsesBuilder,
    example::{Example, ExampleBuilder},
    schema::{ObjectBuilder, Type},
};

use crate::{error::ApiError, task_body::task_body};

const TASK_ID: &str = "ups_3k9v1c7m5x8q2w4e6r0t1y3n5p";
const TOKEN: &str = "7h2j4k6m8n0p1q3r5s7t9v1w3x";
const REQUEST_ID: &str = "req_1a2b3c4d5e6f7g8h9j0k1m2n3p";

/// A header's name, whether it holds a number, and what it says.
type HeaderRow = (&'static str, bool, &'static str);

const REQUEST_ID_ROW: HeaderRow = (
    "X-Request-Id",
    false,
    "Request ID. Include it when you contact support.",
);
const SHA256_ROW: HeaderRow = (
    "X-Result-SHA256",
    false,
    "SHA-256 of the result in lower-case hexadecimal digits, once the task has succeeded.",
);
const RETRY_AFTER_ROW: HeaderRow = ("Retry-After", true, "Whole seconds to wait, at least 1.");
const POLL_ROW: HeaderRow = (
    "Retry-After",
    true,
    "While processing: seconds to wait before the next read, 3 to 10.",
);
const WINDOW_ROWS: [HeaderRow; 3] = [
    (
        "X-RateLimit-Limit",
        true,
        "Create requests allowed in one window.",
    ),
    (
        "X-RateLimit-Remaining",
        true,
        "Create requests left in the current window.",
    ),
    (
        "X-RateLimit-Reset",
        true,
        "Unix time at which the window resets.",
    ),
];
const AUTHENTICATE_ROW: HeaderRow = ("WWW-Authenticate", false, "Always Bearer.");
const LOCATION_ROW: HeaderRow = ("Location", false, "Equal to urls.get.");
const REPLAYED_ROW: HeaderRow = (
    "Idempotent-Replayed",
    false,
    "true if this key was used before and the original task is returned.",
);
const LOOK_ROW: HeaderRow = (
    "X-Result-Look",
    false,
    "Which look made the result: faithful, natural or crisp. Absent before success, and where the service runs another model.",
);
const ETAG_ROW: HeaderRow = (
    "ETag",
    false,
    "Version of the task. It changes often enough that a result URL you keep after a 304 is still valid.",
);
const APPLIED_ROW: HeaderRow = (
    "Preference-Applied",
    false,
    "wait=N if the response waited: the task has ended, or N seconds have passed.",
);
const CACHE_ROW: HeaderRow = ("Cache-Control", false, "Always no-store.");

/// Everything `POST /api/v1/upscales` answers.
pub(super) fn to_create() -> Responses {
    let accepted = with_headers(
        ResponseBuilder::new()
            .description("Accepted, or the original task of this key.")
            .content("application/json", tasks()),
        &[
            REQUEST_ID_ROW,
            LOCATION_ROW,
            REPLAYED_ROW,
            APPLIED_ROW,
            CACHE_ROW,
            POLL_ROW,
            SHA256_ROW,
            LOOK_ROW,
        ],
    );
    let responses =
        ResponsesBuilder::new().response("202", with_headers(accepted, &WINDOW_ROWS).build());
    with_errors(responses, create_errors(), &WINDOW_ROWS).build()
}

/// Everything `GET /api/v1/upscales/{id}` answers.
pub(super) fn to_read() -> Responses {
    let rows = [
        REQUEST_ID_ROW,
        ETAG_ROW,
        APPLIED_ROW,
        CACHE_ROW,
        POLL_ROW,
        SHA256_ROW,
        LOOK_ROW,
    ];
    let found = ResponseBuilder::new()
        .description("The current task.")
        .content("application/json", tasks());
    let unchanged =
        ResponseBuilder::new().description("The task has not changed since If-None-Match.");
    let responses = ResponsesBuilder::new()
        .response("200", with_headers(found, &rows).build())
        .response("304", with_headers(unchanged, &rows).build());
    with_errors(responses, read_errors(), &[]).build()
}

fn create_errors() -> Vec<ApiError> {
    let retry_after_seconds = 12;
    let mut errors: Vec<ApiError> = invalid_requests().into_iter().map(ApiError::from).collect();
    errors.extend(errors_of_any_call("create"));
    errors.extend([
        ApiError::OutcomeUnknown {
            detail: String::new(),
        },
        ApiError::InsufficientCredits {
            available: Credits::from_thousandths(300),
            price: limits::PRICE,
        },
        ApiError::IdempotencyConflict,
        ApiError::CreateRate {
            limit: limits::CREATE_REQUESTS_PER_MINUTE,
            retry_after_seconds,
        },
        ApiError::ActiveLimit {
            limit: limits::ACTIVE_TASKS_MAX,
            retry_after_seconds,
        },
        ApiError::DailyLimit {
            limit: limits::DAILY_TASKS_MAX,
            retry_after_seconds,
        },
    ]);
    errors
}

fn read_errors() -> Vec<ApiError> {
    let host = InvalidRequest::Request("The Host header must be sent exactly once.".to_owned());
    let mut errors = errors_of_any_call("read");
    errors.extend([
        ApiError::UpstreamTimeout,
        ApiError::from(host),
        ApiError::TaskNotFound,
        ApiError::TooFast {
            retry_after_seconds: 1,
        },
    ]);
    errors
}

fn errors_of_any_call(verb: &'static str) -> Vec<ApiError> {
    let detail = String::new;
    vec![
        ApiError::MissingApiKey,
        ApiError::InvalidApiKey,
        ApiError::ApiAccessRequired,
        ApiError::InsufficientPermissions(verb),
        ApiError::Internal { detail: detail() },
        ApiError::Unavailable {
            retry_after_seconds: 5,
            detail: detail(),
        },
    ]
}

fn invalid_requests() -> Vec<InvalidRequest> {
    let mut requests = vec![
        InvalidRequest::Json("EOF while parsing an object at line 1 column 1".to_owned()),
        InvalidRequest::ContentType,
        InvalidRequest::Request("The request body is incomplete or malformed.".to_owned()),
        InvalidRequest::TooLarge,
        InvalidRequest::UnknownParameter("quality".to_owned()),
        InvalidRequest::Callback("callback_url".to_owned()),
        InvalidRequest::MissingImageUrl,
        InvalidRequest::ImageUrl("the host must be a DNS name, not an IP address"),
    ];
    requests.extend(wrong_parameters());
    requests.extend([
        InvalidRequest::OutputFormat,
        InvalidRequest::MissingIdempotencyKey,
        InvalidRequest::IdempotencyKey,
    ]);
    requests
}

/// What `null`, which is no value of any parameter, is answered with: for each its own code.
fn wrong_parameters() -> impl Iterator<Item = InvalidRequest> {
    let fields = Parameters::default().fields().into_iter();
    fields
        .filter_map(|(name, _)| Parameters::parse(|asked| (asked == name).then_some("null")).err())
}

/// One answer a status, naming every code that comes with it.
fn with_errors(
    mut responses: ResponsesBuilder,
    errors: Vec<ApiError>,
    counted: &[HeaderRow],
) -> ResponsesBuilder {
    let mut by_status: BTreeMap<u16, Vec<ApiError>> = BTreeMap::new();
    for error in errors {
        by_status
            .entry(error.row().0.as_u16())
            .or_default()
            .push(error);
    }
    for (status, errors) in by_status {
        let response = error_response(status, &errors, counted);
        responses = responses.response(status.to_string(), response);
    }
    responses
}

fn error_response(status: u16, errors: &[ApiError], counted: &[HeaderRow]) -> Response {
    let codes: Vec<String> = errors
        .iter()
        .map(|error| format!("`{}`", error.code()))
        .collect();
    let examples = errors.iter().map(|error| {
        let body = serde_json::to_value(error.body(REQUEST_ID)).ok();
        (error.code(), ExampleBuilder::new().value(body).build())
    });
    let content = content("ErrorBody", examples);
    let mut rows = vec![REQUEST_ID_ROW];
    match status {
        401 => rows.push(AUTHENTICATE_ROW),
        429 | 503 | 504 => rows.push(RETRY_AFTER_ROW),
        _ => {}
    }
    // Before the account is known and may create, nothing is counted.
    if !matches!(status, 401 | 403) {
        rows.extend(counted);
    }
    let response = ResponseBuilder::new()
        .description(codes.join(", "))
        .content("application/json", content);
    with_headers(response, &rows).build()
}

fn with_headers(mut response: ResponseBuilder, rows: &[HeaderRow]) -> ResponseBuilder {
    for (name, is_number, description) in rows {
        let kind = if *is_number {
            Type::Integer
        } else {
            Type::String
        };
        let header = HeaderBuilder::new()
            .schema(Some(ObjectBuilder::new().schema_type(kind)))
            .description(Some(*description));
        response = response.header(*name, header.build());
    }
    response
}

/// A task in each of its states.
fn tasks() -> Content {
    let result = ResultFile {
        name: TOKEN.to_owned(),
        sha256: String::new(),
        size_bytes: 1,
        width: 1,
        height: 1,
        preview: None,
        look: None,
    };
    let failed = |refund| TaskState::Failed {
        message: FailureMessage::new("The image is 1600 x 1000 = 1.6 MP, more than 1.5 MP for 2x"),
        refund,
    };
    let states = [
        ("processing", TaskState::Processing),
        ("succeeded", TaskState::Succeeded(result)),
        ("failed, refund pending", failed(RefundStatus::Pending)),
        ("failed, refunded", failed(RefundStatus::Refunded)),
    ];
    let examples = states
        .into_iter()
        .filter_map(|(name, state)| Some((name, example_task(state)?)));
    content("TaskBody", examples)
}

fn example_task(state: TaskState) -> Option<Example> {
    let task = Task {
        id: TaskId::parse(TASK_ID)?,
        account_id: AccountId::parse("acc_00000000000000000000000000")?,
        parameters: Parameters::default(),
        price: limits::PRICE,
        created_at: Timestamp::from_micros(0),
        deadline_at: Timestamp::from_micros(0),
        state,
    };
    let get = format!("https://api.example.com/api/v1/upscales/{TASK_ID}");
    let url = format!(
        "https://results.example.com/r/{TOKEN}.png?expires=1767225600&key=k1&signature=Zm9v"
    );
    let body = serde_json::to_value(task_body(&task, get, url)).ok()?;
    Some(ExampleBuilder::new().value(Some(body)).build())
}

fn content(schema: &str, examples: impl Iterator<Item = (&'static str, Example)>) -> Content {
    ContentBuilder::new()
        .schema(Some(Ref::from_schema_name(schema)))
        .examples_from_iter(examples)
        .build()
}

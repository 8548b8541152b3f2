//! The committed description is the one the code makes, it hangs together, and it is served.

use std::{collections::BTreeSet, fs, path::Path};

use serde_json::Value;

use crate::harness::{App, with_app};

/// Rewrites the committed file when `UPDATE_OPENAPI` is set, and fails when it differs otherwise.
#[test]
fn the_committed_description_is_the_one_the_code_makes() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
    let made = upscale_api::openapi_json();
    if std::env::var_os("UPDATE_OPENAPI").is_some() {
        fs::write(&path, &made).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == made,
        "docs/openapi.json is stale; run: UPDATE_OPENAPI=1 cargo test -p upscale_api --test http openapi"
    );
}

#[test]
fn every_reference_leads_somewhere_and_every_status_has_examples() {
    let description: Value = serde_json::from_str(&upscale_api::openapi_json()).unwrap();
    assert_eq!(description["openapi"], "3.1.0");
    // The generator joins a comment on an inlined field as "and it is an object", which no number is.
    assert!(!description.to_string().contains("allOf"));
    let mut references = BTreeSet::new();
    collect_references(&description, &mut references);
    assert!(references.len() >= 10, "{references:?}");
    for reference in &references {
        let pointer = reference.trim_start_matches('#');
        assert!(
            description.pointer(pointer).is_some(),
            "{reference} leads nowhere"
        );
    }
    for (path, verb, statuses) in [
        (
            "/api/v1/upscales",
            "post",
            &[
                "202", "400", "401", "402", "403", "409", "429", "500", "503", "504",
            ][..],
        ),
        (
            "/api/v1/upscales/{id}",
            "get",
            &[
                "200", "304", "400", "401", "403", "404", "429", "500", "503", "504",
            ],
        ),
    ] {
        let responses = description["paths"][path][verb]["responses"]
            .as_object()
            .unwrap();
        let documented: Vec<&str> = responses.keys().map(String::as_str).collect();
        assert_eq!(documented, statuses);
        for (status, response) in responses {
            let examples = &response["content"]["application/json"]["examples"];
            assert!(status == "304" || examples.is_object(), "{path} {status}");
            assert!(
                response["headers"]["X-Request-Id"].is_object(),
                "{path} {status}"
            );
        }
    }
}

/// Every row of the contract's table of statuses, types and codes that the two endpoints can answer with.
const ERRORS: [(&str, &str, &str); 10] = [
    (
        "400",
        "invalid_request_error",
        "callback_not_supported invalid_content_type invalid_face_enhance invalid_idempotency_key \
         invalid_image_url invalid_json invalid_output_format invalid_request invalid_scale \
         missing_idempotency_key missing_image_url request_too_large unknown_parameter",
    ),
    (
        "401",
        "authentication_error",
        "invalid_api_key missing_api_key",
    ),
    ("402", "billing_error", "insufficient_credits"),
    (
        "403",
        "permission_error",
        "api_access_required insufficient_permissions",
    ),
    ("404", "invalid_request_error", "task_not_found"),
    ("409", "invalid_request_error", "idempotency_conflict"),
    (
        "429",
        "rate_limit_error",
        "active_task_limit_exceeded daily_limit_exceeded rate_limit_exceeded",
    ),
    ("500", "api_error", "internal_error"),
    ("503", "api_error", "service_unavailable"),
    ("504", "api_error", "upstream_timeout"),
];

#[test]
fn the_error_table_is_the_contracts() {
    let description: Value = serde_json::from_str(&upscale_api::openapi_json()).unwrap();
    let row = |status: &str, kind: &str, code: &str| format!("{status} {kind} {code}");
    let mut found = BTreeSet::new();
    for operation in [
        "/paths/~1api~1v1~1upscales/post",
        "/paths/~1api~1v1~1upscales~1{id}/get",
    ] {
        let responses = &description.pointer(operation).unwrap()["responses"];
        for (status, response) in responses.as_object().unwrap() {
            let examples = &response["content"]["application/json"]["examples"];
            for example in examples
                .as_object()
                .into_iter()
                .flat_map(|all| all.values())
            {
                let error = &example["value"]["error"];
                if let (Some(kind), Some(code)) = (error["type"].as_str(), error["code"].as_str()) {
                    found.insert(row(status, kind, code));
                }
            }
        }
    }
    let mut expected = BTreeSet::new();
    for (status, kind, codes) in ERRORS {
        expected.extend(codes.split_whitespace().map(|code| row(status, kind, code)));
    }
    assert_eq!(found, expected);
}

fn collect_references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(text) if name == "$ref" => drop(found.insert(text.clone())),
                    other => collect_references(other, found),
                }
            }
        }
        Value::Array(values) => values
            .iter()
            .for_each(|value| collect_references(value, found)),
        _ => {}
    }
}

#[tokio::test]
async fn the_description_is_served() {
    with_app(async |app: &App| {
        let answer = app.request_without_key("GET", "/openapi.json").send().await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("content-type"), Some("application/json"));
        assert_eq!(answer.text(), upscale_api::openapi_json());
    })
    .await;
}

//! Paths, methods and ids that do not exist, and the request id that every answer carries.

use std::collections::HashSet;

use crate::harness::{App, with_app};

#[tokio::test]
async fn unknown_paths_are_404_without_a_key() {
    with_app(async |app: &App| {
        for path in [
            "/",
            "/api",
            "/api/v1",
            "/api/v1/upscales/",
            "/api/v1/upscales/a/b",
            "/api/v2/upscales",
            "//api/v1/upscales",
            "/api/v1/upscales/%2e%2e/x",
            "/r/x.png",
            "/favicon.ico",
        ] {
            let answer = app.request_without_key("GET", path).send().await;
            answer.expect(404, "not_found");
            assert_eq!(answer.json()["error"]["type"], "invalid_request_error");
        }
    })
    .await;
}

#[tokio::test]
async fn a_wrong_method_is_405_and_names_the_right_ones() {
    with_app(async |app: &App| {
        for (path, allowed) in [
            ("/api/v1/upscales", "POST"),
            ("/api/v1/upscales/ups_x", "GET,HEAD"),
            ("/openapi.json", "GET,HEAD"),
            ("/clients", "GET,HEAD"),
            ("/clients/upscale-api-0.1.0.tgz", "GET,HEAD"),
            ("/healthz", "GET,HEAD"),
        ] {
            let methods = [
                "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW",
            ];
            for method in methods.iter().filter(|method| !allowed.contains(**method)) {
                let answer = app.request_without_key(method, path).send().await;
                assert_eq!(answer.status, 405, "{method} {path}");
                assert_eq!(answer.header("allow"), Some(allowed), "{method} {path}");
                if *method != "HEAD" {
                    answer.expect(405, "method_not_allowed");
                }
            }
        }
    })
    .await;
}

#[tokio::test]
async fn each_request_gets_an_id_of_its_own_and_never_the_clients() {
    with_app(async |app: &App| {
        let mut seen = HashSet::new();
        for path in ["/healthz", "/nowhere", "/api/v1/upscales"] {
            for method in ["GET", "HEAD", "PUT"] {
                let asking = app.request_without_key(method, path);
                let asking = asking.header("x-request-id", "req_01234567890123456789012345");
                let answer = asking.send().await;
                let id = answer.header("x-request-id").unwrap().to_owned();
                assert_ne!(id, "req_01234567890123456789012345");
                assert!(seen.insert(id));
            }
        }
    })
    .await;
}

#[tokio::test]
async fn the_probes_answer_and_readiness_ends_with_draining() {
    with_app(async |app: &App| {
        let healthy = app.request_without_key("GET", "/healthz").send().await;
        assert_eq!(
            (healthy.status, healthy.text()),
            (200, r#"{"status":"ok"}"#)
        );
        let ready = app.request_without_key("GET", "/readyz").send().await;
        assert_eq!((ready.status, ready.text()), (200, r#"{"status":"ready"}"#));
        app.state.begin_draining();
        let draining = app.request_without_key("GET", "/readyz").send().await;
        draining.expect(503, "service_unavailable");
        let healthy = app.request_without_key("GET", "/healthz").send().await;
        assert_eq!(healthy.status, 200);
    })
    .await;
}

#[tokio::test]
async fn one_log_line_a_request_names_route_status_account_and_code_but_no_path() {
    with_app(async |app: &App| {
        let asking = app.request(
            "GET",
            "/api/v1/upscales/looks-like-a-secret?token=of-a-customer",
        );
        app.keep_secret("looks-like-a-secret");
        app.keep_secret("of-a-customer");
        let answer = asking.send().await;
        answer.expect(404, "task_not_found");
        let log = String::from_utf8(crate::harness::log().lock().unwrap().clone()).unwrap();
        let id = answer.header("x-request-id").unwrap();
        let lines: Vec<&str> = log.lines().filter(|line| line.contains(id)).collect();
        assert_eq!(lines.len(), 1, "{lines:?}");
        let line: serde_json::Value = serde_json::from_str(lines[0]).unwrap();
        let fields = &line["fields"];
        assert_eq!(fields["method"], "GET");
        assert_eq!(fields["route"], "/api/v1/upscales/{id}");
        assert_eq!(fields["status"], 404);
        assert_eq!(fields["error_code"], "task_not_found");
        assert_eq!(fields["account_id"], app.account.as_str());
        assert!(
            fields["micros"].is_u64() && fields["key_id"].is_string(),
            "{line}"
        );
    })
    .await;
}

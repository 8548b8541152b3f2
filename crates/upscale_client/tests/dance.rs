//! The whole dance against a scripted service on loopback: what is retried, what is not, what is sent again.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{HeaderMap, Response},
};
use sha2::{Digest, Sha256};
use upscale_client::{Client, Error, IdempotencyKey, Order, Patience, Status};

/// What the service answers next: status, headers, body.
type Scripted = (u16, Vec<(&'static str, String)>, Vec<u8>);

#[derive(Clone, Default)]
struct Script {
    answers: Arc<Mutex<VecDeque<Scripted>>>,
    seen: Arc<Mutex<Vec<(String, HeaderMap)>>>,
}

async fn answer(State(script): State<Script>, request: Request) -> Response<Body> {
    let line = format!("{} {}", request.method(), request.uri().path());
    script
        .seen
        .lock()
        .unwrap()
        .push((line, request.headers().clone()));
    let next = script.answers.lock().unwrap().pop_front();
    let (status, headers, body) = next.unwrap_or((500, vec![], b"the script is over".to_vec()));
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(name, value);
    }
    response.body(Body::from(body)).unwrap()
}

/// A service that answers with `answers` in turn; `{base}` in a body is its address.
async fn service(answers: Vec<Scripted>) -> (Client, Script) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let script = Script::default();
    for (status, headers, body) in answers {
        let body = match String::from_utf8(body) {
            Ok(text) => text.replace("{base}", &base).into_bytes(),
            Err(bytes) => bytes.into_bytes(),
        };
        let mut queue = script.answers.lock().unwrap();
        queue.push_back((status, headers, body));
    }
    let router = Router::new().fallback(answer).with_state(script.clone());
    tokio::spawn(async move { axum::serve(listener, router).await });
    let patience = Patience {
        total: Duration::from_secs(20),
        request: Duration::from_secs(5),
        first_poll: Duration::from_millis(10),
        slowest_poll: Duration::from_millis(40),
    };
    let client = Client::new(&base, "usk_live_test").unwrap();
    (client.patience(patience), script)
}

fn json(status: u16, body: &str) -> Scripted {
    (status, vec![], body.as_bytes().to_vec())
}

fn refusal(status: u16, code: &str) -> Scripted {
    let body = format!(
        r#"{{"error":{{"type":"api_error","code":"{code}","message":"m","request_id":"req_1"}}}}"#
    );
    json(status, &body)
}

fn processing(status: u16) -> Scripted {
    json(
        status,
        r#"{"id":"ups_1","object":"upscale","status":"processing","urls":{"get":"{base}/api/v1/upscales/ups_1"},"usage":{"credits_reserved":0.7,"credits_charged":0}}"#,
    )
}

fn succeeded(sha256: &str) -> Scripted {
    let body = r#"{"id":"ups_1","status":"succeeded","urls":{"get":"u"},"result":{"url":"{base}/r/1.png","format":"png"},"usage":{"credits_charged":0.7}}"#;
    let headers = vec![("X-Result-Sha256", sha256.to_owned())];
    (200, headers, body.as_bytes().to_vec())
}

fn png(bytes: &[u8]) -> Scripted {
    (200, vec![], bytes.to_vec())
}

fn sha256(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn order() -> Order {
    Order::new("https://images.example.com/a.png").scale(4)
}

fn lines(script: &Script) -> Vec<String> {
    let seen = script.seen.lock().unwrap();
    seen.iter().map(|(line, _)| line.clone()).collect()
}

#[tokio::test]
async fn a_lost_create_is_sent_again_under_the_same_key() {
    let (client, script) = service(vec![
        refusal(503, "service_unavailable"),
        refusal(504, "upstream_timeout"),
        processing(202),
        processing(200),
        refusal(503, "service_unavailable"),
        succeeded(&sha256(b"picture")),
        png(b"picture"),
    ])
    .await;
    let task = client.upscale(&order()).await.unwrap();
    assert_eq!((task.id.as_str(), task.thousandths_charged), ("ups_1", 700));
    assert_eq!(client.download(&task).await.unwrap(), b"picture");
    let seen = script.seen.lock().unwrap().clone();
    let keys: Vec<_> = seen[..3]
        .iter()
        .map(|(_, headers)| headers["idempotency-key"].clone())
        .collect();
    assert!(keys[0] == keys[1] && keys[1] == keys[2] && keys[0].len() == 32);
    assert!(
        seen[..6]
            .iter()
            .all(|(_, h)| h["authorization"] == "Bearer usk_live_test")
    );
    let (line, headers) = &seen[6];
    assert_eq!(line, "GET /r/1.png");
    assert!(
        !headers.contains_key("authorization"),
        "the key went to the result host"
    );
}

#[tokio::test]
async fn a_limit_is_waited_for_as_long_as_the_service_says() {
    let mut limited = refusal(429, "rate_limit_exceeded");
    limited.1.push(("Retry-After", "1".to_owned()));
    let (client, script) = service(vec![limited, processing(202)]).await;
    let started = std::time::Instant::now();
    let key = IdempotencyKey::mint().unwrap();
    let created = client.create(&order(), &key).await.unwrap();
    assert!(started.elapsed() >= Duration::from_secs(1));
    assert!(!created.is_replay && lines(&script).len() == 2);
}

#[tokio::test]
async fn a_limit_longer_than_patience_is_said_at_once() {
    let mut limited = refusal(429, "daily_limit_exceeded");
    limited.1.push(("Retry-After", "43200".to_owned()));
    let (client, script) = service(vec![limited]).await;
    let key = IdempotencyKey::mint().unwrap();
    let error = client.create(&order(), &key).await.unwrap_err();
    assert!(matches!(&error, Error::Refused(error) if error.code == "daily_limit_exceeded"));
    assert_eq!(lines(&script).len(), 1);
}

#[tokio::test]
async fn what_will_not_change_is_not_retried() {
    for (status, code) in [
        (400, "invalid_scale"),
        (401, "invalid_api_key"),
        (402, "insufficient_credits"),
        (403, "api_access_required"),
        (409, "idempotency_conflict"),
    ] {
        let (client, script) = service(vec![refusal(status, code)]).await;
        let error = client.upscale(&order()).await.unwrap_err();
        assert!(
            matches!(&error, Error::Refused(error) if error.code == code && error.status == status)
        );
        assert_eq!(lines(&script).len(), 1, "{code}");
    }
}

#[tokio::test]
async fn a_failed_task_is_an_error_that_says_where_the_credits_are() {
    let failed = r#"{"id":"ups_1","status":"failed","error":{"code":"image_processing_failed","message":"No image. No credits were charged."},"usage":{"credits_charged":0,"refund_status":"refunded"}}"#;
    let (client, _) = service(vec![processing(202), json(200, failed)]).await;
    let error = client.upscale(&order()).await.unwrap_err();
    assert!(
        matches!(&error, Error::Failed { id, failure } if id == "ups_1" && failure.refund_status == "refunded"),
        "{error}"
    );
}

#[tokio::test]
async fn an_unknown_status_is_an_error() {
    let paused = r#"{"id":"ups_1","status":"paused","usage":{"credits_charged":0}}"#;
    let (client, _) = service(vec![processing(202), json(200, paused)]).await;
    let error = client.upscale(&order()).await.unwrap_err();
    assert!(matches!(&error, Error::Unexpected(text) if text.contains("paused")));
}

#[tokio::test]
async fn giving_up_keeps_the_id_and_the_key() {
    let (client, _) = service(
        std::iter::repeat_n((), 500)
            .map(|()| processing(202))
            .collect(),
    )
    .await;
    let patience = Patience {
        total: Duration::from_millis(80),
        request: Duration::from_secs(5),
        first_poll: Duration::from_millis(100),
        slowest_poll: Duration::from_millis(100),
    };
    let error = client
        .patience(patience)
        .upscale(&order())
        .await
        .unwrap_err();
    assert!(
        matches!(&error, Error::GaveUp { id, key: Some(key), .. } if id == "ups_1" && key.len() == 32),
        "{error}"
    );
}

#[tokio::test]
async fn a_damaged_or_stale_download_is_fetched_again_with_a_new_link() {
    let whole = sha256(b"picture");
    let (client, script) = service(vec![
        succeeded(&whole),
        png(b"pictur"),
        succeeded(&whole),
        refusal(403, "result_url_expired"),
        succeeded(&whole),
        png(b"picture"),
    ])
    .await;
    let task = client.read("ups_1").await.unwrap().task;
    assert!(matches!(task.status, Status::Succeeded(_)));
    assert_eq!(client.download(&task).await.unwrap(), b"picture");
    assert_eq!(lines(&script).len(), 6);
}

#[tokio::test]
async fn a_result_that_is_gone_or_unverifiable_is_an_error() {
    let whole = sha256(b"picture");
    let (client, _) = service(vec![succeeded(&whole), refusal(410, "result_expired")]).await;
    let task = client.read("ups_1").await.unwrap().task;
    let error = client.download(&task).await.unwrap_err();
    assert!(matches!(&error, Error::Refused(error) if error.status == 410));
    let (client, _) = service(vec![succeeded("unknown"), png(b"picture")]).await;
    let task = client.read("ups_1").await.unwrap().task;
    let error = client.download(&task).await.unwrap_err();
    assert!(matches!(error, Error::Unexpected(_)));
}

#[tokio::test]
async fn a_service_that_is_not_there_is_unreachable_and_no_secret_is_told() {
    let client = Client::new("http://127.0.0.1:9", "usk_live_secret").unwrap();
    let patience = Patience {
        total: Duration::from_millis(300),
        ..Patience::default()
    };
    let error = client
        .patience(patience)
        .upscale(&order())
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Unreachable(_)), "{error}");
    assert!(!format!("{error} {error:?}").contains("secret"));
}

#[test]
fn a_base_address_that_cannot_be_one_is_refused() {
    for bad in ["", "api.example.com", "ftp://api.example.com", "https://"] {
        assert!(
            matches!(Client::new(bad, "k"), Err(Error::Setup(_))),
            "{bad}"
        );
    }
    assert!(Client::new("https://api.example.com/", "bad\nkey").is_err());
}

#[tokio::test]
async fn a_link_that_sends_us_on_to_a_bucket_is_followed_without_the_key() {
    let whole = b"the whole picture".to_vec();
    let elsewhere = vec![("location", "/elsewhere?signature=x".to_owned())];
    let answers = vec![
        succeeded(&sha256(&whole)),
        (307, elsewhere, vec![]),
        (200, vec![], whole.clone()),
    ];
    let (client, script) = service(answers).await;
    let task = client.read("ups_1").await.unwrap().task;
    assert_eq!(client.download(&task).await.unwrap(), whole);
    let seen = script.seen.lock().unwrap();
    let (line, headers) = seen.last().unwrap();
    assert_eq!(line, "GET /elsewhere");
    assert!(!headers.contains_key("authorization"));
}

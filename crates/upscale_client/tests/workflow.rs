//! The whole way against a scripted service on loopback: what is retried, what is not, what is sent again.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

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
use upscale_client::{Client, ErrorKind, IdempotencyKey, Order, StatusKind, Succeeded, Task};

/// How long the scripted service holds a request before it says that it did.
const HELD: Duration = Duration::from_millis(600);

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
    let held = headers
        .iter()
        .find(|(name, _)| *name == "Preference-Applied")
        .map(|_| ((), HELD));
    for (name, value) in headers {
        response = response.header(name, value);
    }
    // As a service that holds requests does.
    if let Some(((), held)) = held {
        tokio::time::sleep(held).await;
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
    let client = Client::new(&base, "usk_live_test").unwrap();
    (client.timeout(Duration::from_secs(20)), script)
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

/// Held until the wait was over, and the task is not.
fn held(status: u16) -> Scripted {
    let mut answer = processing(status);
    answer.1.push(("Preference-Applied", "wait=20".to_owned()));
    answer
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

/// The task that the script says has succeeded.
async fn retrieved(client: &Client) -> Succeeded {
    match client.upscales().retrieve("ups_1").await.unwrap() {
        Task::Succeeded(task) => task,
        other => panic!("{other:?}"),
    }
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
        held(202),
        held(200),
        refusal(503, "service_unavailable"),
        succeeded(&sha256(b"picture")),
        png(b"picture"),
    ])
    .await;
    let task = client.upscales().run(&order()).await.unwrap();
    assert_eq!((task.id.as_str(), task.thousandths_charged), ("ups_1", 700));
    assert_eq!(client.upscales().download(&task).await.unwrap(), b"picture");
    let seen = script.seen.lock().unwrap().clone();
    let keys: Vec<_> = seen[..3]
        .iter()
        .map(|(_, headers)| headers["idempotency-key"].clone())
        .collect();
    assert!(keys[0] == keys[1] && keys[1] == keys[2] && keys[0].len() == 32);
    for (_, headers) in &seen[..6] {
        let wait = headers["prefer"].to_str().unwrap();
        let seconds: u64 = wait.strip_prefix("wait=").unwrap().parse().unwrap();
        assert!((10..=20).contains(&seconds), "what is left of 20 s: {wait}");
    }
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
    let created = client.upscales().create(&order(), &key).await.unwrap();
    assert!(started.elapsed() >= Duration::from_secs(1));
    assert!(!created.is_replay && lines(&script).len() == 2);
}

#[tokio::test]
async fn a_limit_longer_than_the_timeout_is_said_at_once() {
    let mut limited = refusal(429, "daily_limit_exceeded");
    limited.1.push(("Retry-After", "43200".to_owned()));
    let (client, script) = service(vec![limited]).await;
    let key = IdempotencyKey::mint().unwrap();
    let error = client.upscales().create(&order(), &key).await.unwrap_err();
    assert!(
        matches!(&*error.kind, ErrorKind::Status(error) if error.code == "daily_limit_exceeded")
    );
    assert_eq!(lines(&script).len(), 1);
}

#[tokio::test]
async fn what_will_not_change_is_not_retried() {
    for (status, code, kind) in [
        (400, "invalid_scale", StatusKind::BadRequest),
        (401, "invalid_api_key", StatusKind::Authentication),
        (402, "insufficient_credits", StatusKind::InsufficientCredits),
        (403, "api_access_required", StatusKind::PermissionDenied),
        (409, "idempotency_conflict", StatusKind::Conflict),
    ] {
        let (client, script) = service(vec![refusal(status, code)]).await;
        let error = client.upscales().run(&order()).await.unwrap_err();
        let ErrorKind::Status(refused) = &*error.kind else {
            panic!("{error:?}");
        };
        assert_eq!((refused.code.as_str(), refused.kind()), (code, kind));
        assert_eq!(lines(&script).len(), 1, "{code}");
        let key = error.idempotency_key.unwrap();
        let sent = script.seen.lock().unwrap()[0].1["idempotency-key"].clone();
        assert_eq!(key.as_str(), sent, "the minted key is on the error");
    }
}

#[tokio::test]
async fn a_failed_task_is_an_error_that_says_where_the_credits_are() {
    let failed = r#"{"id":"ups_1","status":"failed","error":{"code":"image_processing_failed","message":"No image. No credits were charged."},"usage":{"credits_charged":0,"refund_status":"refunded"}}"#;
    let (client, _) = service(vec![held(202), json(200, failed)]).await;
    let error = client.upscales().run(&order()).await.unwrap_err();
    assert!(
        matches!(&*error.kind, ErrorKind::TaskFailed { id, failure } if id == "ups_1" && failure.refund_status == "refunded"),
        "{error}"
    );
}

#[tokio::test]
async fn an_unknown_status_is_an_error() {
    let paused = r#"{"id":"ups_1","status":"paused","usage":{"credits_charged":0}}"#;
    let (client, _) = service(vec![held(202), json(200, paused)]).await;
    let error = client.upscales().run(&order()).await.unwrap_err();
    assert!(matches!(&*error.kind, ErrorKind::UnexpectedResponse(text) if text.contains("paused")));
}

#[tokio::test]
async fn a_timeout_keeps_the_id_and_the_key() {
    let (client, script) = service(vec![processing(202)]).await;
    let client = client.timeout(Duration::from_millis(80));
    let error = client.upscales().run(&order()).await.unwrap_err();
    assert!(
        matches!(&*error.kind, ErrorKind::PollTimeout { id, .. } if id == "ups_1"),
        "{error}"
    );
    assert_eq!(error.idempotency_key.unwrap().as_str().len(), 32);
    assert_eq!(
        lines(&script).len(),
        1,
        "the first poll would come after 3 s"
    );
}

#[tokio::test]
async fn a_service_that_holds_nothing_is_asked_after_three_seconds() {
    let (client, script) = service(vec![processing(202), succeeded(&sha256(b"picture"))]).await;
    let began = std::time::Instant::now();
    client.upscales().run(&order()).await.unwrap();
    assert!(began.elapsed() >= Duration::from_secs(3));
    assert_eq!(lines(&script).len(), 2);
}

#[tokio::test]
async fn retries_end_with_their_number() {
    let (client, script) = service(vec![refusal(503, "service_unavailable"); 4]).await;
    let client = client.max_retries(1);
    let error = client.upscales().run(&order()).await.unwrap_err();
    assert!(matches!(&*error.kind, ErrorKind::Status(error) if error.kind() == StatusKind::Server));
    assert_eq!(lines(&script).len(), 2);
}

#[tokio::test]
async fn a_result_is_written_to_a_file_whole() {
    let answers = vec![succeeded(&sha256(b"picture")), png(b"picture")];
    let (client, _) = service(answers).await;
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("cat.png");
    let task = retrieved(&client).await;
    client.upscales().download_to(&task, &path).await.unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"picture");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
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
    let task = retrieved(&client).await;
    assert_eq!(client.upscales().download(&task).await.unwrap(), b"picture");
    assert_eq!(lines(&script).len(), 6);
}

#[tokio::test]
async fn a_result_that_is_gone_or_unverifiable_is_an_error() {
    let whole = sha256(b"picture");
    let (client, _) = service(vec![succeeded(&whole), refusal(410, "result_expired")]).await;
    let task = retrieved(&client).await;
    let error = client.upscales().download(&task).await.unwrap_err();
    assert!(matches!(&*error.kind, ErrorKind::Status(error) if error.kind() == StatusKind::Gone));
    let (client, _) = service(vec![succeeded("unknown"), png(b"picture")]).await;
    let task = retrieved(&client).await;
    let error = client.upscales().download(&task).await.unwrap_err();
    assert!(matches!(*error.kind, ErrorKind::UnexpectedResponse(_)));
}

#[tokio::test]
async fn a_service_that_is_not_there_is_unreachable_and_no_secret_is_told() {
    let client = Client::new("http://127.0.0.1:9", "usk_live_secret").unwrap();
    let client = client.timeout(Duration::from_millis(300));
    let error = client.upscales().run(&order()).await.unwrap_err();
    assert!(matches!(*error.kind, ErrorKind::Connection(_)), "{error}");
    assert!(!format!("{error} {error:?}").contains("secret"));
}

#[test]
fn a_base_address_that_cannot_be_one_is_refused() {
    for bad in ["", "api.example.com", "ftp://api.example.com", "https://"] {
        assert!(
            matches!(Client::new(bad, "k"), Err(error) if matches!(*error.kind, ErrorKind::Setup(_))),
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
    let task = retrieved(&client).await;
    assert_eq!(client.upscales().download(&task).await.unwrap(), whole);
    let seen = script.seen.lock().unwrap();
    let (line, headers) = seen.last().unwrap();
    assert_eq!(line, "GET /elsewhere");
    assert!(!headers.contains_key("authorization"));
}

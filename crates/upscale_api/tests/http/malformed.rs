//! Malformed and hostile HTTP on raw sockets. Each case ends in one 4xx or a closed connection: never in a
//! hang, a 5xx or a second answer.

use std::{net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use upscale_api::{ApiLimits, ServeLimits};

use crate::{
    harness::{App, Settings, log, with_app_set},
    malformed_cases::{CREATE, broken_bodies, broken_heads},
};

/// Long beyond every limit set below; reaching it is the failure.
const HANG: Duration = Duration::from_secs(20);

/// Sends the bytes, keeps the connection open and reads until the server closes it.
pub(crate) async fn exchange(to: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(to).await.unwrap();
    // A server that has seen enough may close while we still write.
    let _ = stream.write_all(bytes).await;
    let mut answer = Vec::new();
    let read = tokio::time::timeout(HANG, stream.read_to_end(&mut answer)).await;
    let closed = read.unwrap_or_else(|_| {
        panic!(
            "hangs: {:?}",
            String::from_utf8_lossy(&bytes[..bytes.len().min(200)])
        )
    });
    // A reset after the answer is a close as well.
    let _ = closed;
    String::from_utf8_lossy(&answer).into_owned()
}

/// The statuses of all answers in what came back.
fn statuses(answer: &str) -> Vec<u16> {
    answer
        .split("HTTP/1.")
        .skip(1)
        .filter_map(|rest| rest.get(2..5)?.parse().ok())
        .collect()
}

#[track_caller]
fn check(name: &str, answer: &str, may_repeat: bool) {
    let statuses = statuses(answer);
    let all_refused = statuses.iter().all(|status| (400..500).contains(status));
    assert!(all_refused, "{name}: {statuses:?} {answer:?}");
    assert!(
        may_repeat || statuses.len() <= 1,
        "{name}: {statuses:?} {answer:?}"
    );
    // Also what is no HTTP at all is refused in the contract's words, with an id that the log knows.
    let with_id = answer.matches("\r\nx-request-id: req_").count();
    let with_body = answer.matches(r#""request_id":"req_"#).count();
    assert_eq!(
        (with_id, with_body),
        (statuses.len(), statuses.len()),
        "{name}: {answer:?}"
    );
    assert!(
        !statuses.is_empty() || answer.is_empty(),
        "{name}: no HTTP: {answer:?}"
    );
}

/// Short times, so that "closed in the end" is soon.
fn impatient() -> Settings {
    Settings {
        api: ApiLimits {
            body_timeout: Duration::from_millis(300),
            ..ApiLimits::default()
        },
        serve: ServeLimits {
            header_timeout: Duration::from_millis(300),
            idle_timeout: Duration::from_millis(300),
            ..ServeLimits::default()
        },
        ..Settings::default()
    }
}

#[tokio::test]
async fn broken_heads_end_in_one_4xx_or_a_closed_connection() {
    with_app_set(impatient(), async |app: &App| {
        let cases = broken_heads();
        assert!(cases.len() >= 40);
        for (name, bytes) in cases {
            check(&name, &exchange(app.api, &bytes).await, false);
            check(&name, &exchange(app.files, &bytes).await, false);
        }
    })
    .await;
}

#[tokio::test]
async fn a_head_that_is_too_large_is_431_with_the_limits_and_an_id_that_the_log_knows() {
    with_app_set(impatient(), async |app: &App| {
        let long = format!("X-Long: {}\r\n", "x".repeat(40_000));
        let many = (0..100).map(|number| format!("X-{number}: x\r\n"));
        for lines in [long, many.collect()] {
            for to in [app.api, app.files] {
                let head = format!("GET /healthz HTTP/1.1\r\nHost: a\r\n{lines}\r\n");
                let answer = exchange(to, head.as_bytes()).await;
                let (head, body) = answer.split_once("\r\n\r\n").unwrap();
                assert!(head.starts_with("HTTP/1.1 431 "), "{answer}");
                let body: serde_json::Value = serde_json::from_str(body).unwrap();
                let error = &body["error"];
                assert_eq!(error["code"], "request_too_large");
                let message = error["message"].as_str().unwrap();
                assert!(message.contains("32768 bytes or 64 fields"), "{message}");
                let id = error["request_id"].as_str().unwrap();
                assert!(head.contains(&format!("x-request-id: {id}")), "{head}");
                let log = String::from_utf8(log().lock().unwrap().clone()).unwrap();
                let line = log.lines().find(|line| line.contains(id)).unwrap();
                assert!(line.contains("431"), "{line}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn what_is_no_http_after_a_sound_request_has_an_id_of_its_own() {
    with_app_set(impatient(), async |app: &App| {
        let mut stream = TcpStream::connect(app.api).await.unwrap();
        let sound = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n";
        stream.write_all(sound).await.unwrap();
        let mut first = [0; 4_096];
        assert!(stream.read(&mut first).await.unwrap() > 0);
        stream.write_all(b"\x00 no HTTP\r\n\r\n").await.unwrap();
        let mut rest = String::new();
        stream.read_to_string(&mut rest).await.unwrap();
        assert_eq!(statuses(&rest), [400], "{rest}");
        check("garbage after a request", &rest, false);
    })
    .await;
}

#[tokio::test]
async fn broken_bodies_end_in_one_4xx_or_a_closed_connection() {
    with_app_set(impatient(), async |app: &App| {
        for (name, bytes) in broken_bodies() {
            check(&name, &exchange(app.api, &bytes).await, false);
        }
    })
    .await;
}

#[tokio::test]
async fn broken_bodies_of_an_authenticated_create_make_no_task() {
    with_app_set(impatient(), async |app: &App| {
        let secret = format!("Host: a\r\nAuthorization: Bearer {}", app.key);
        let secret =
            format!("{secret}\r\nContent-Type: application/json\r\nIdempotency-Key: broken-body-1");
        for (name, bytes) in broken_bodies() {
            let text = String::from_utf8(bytes)
                .unwrap()
                .replacen("Host: a", &secret, 1);
            check(&name, &exchange(app.api, text.as_bytes()).await, false);
        }
        let account = app.account_now().await;
        assert_eq!((account.active_tasks, account.accepted_today), (0, 0));
    })
    .await;
}

#[tokio::test]
async fn two_requests_on_one_connection_are_two_requests() {
    with_app_set(impatient(), async |app: &App| {
        let one = "GET /x HTTP/1.1\r\nHost: a\r\n\r\n";
        let create = format!("{CREATE}Content-Length: 2\r\n\r\n{{}}");
        let answer = exchange(app.api, format!("{one}{create}{one}").as_bytes()).await;
        assert_eq!(statuses(&answer), [404, 401, 404], "{answer}");
        check("pipelined", &answer, true);
    })
    .await;
}

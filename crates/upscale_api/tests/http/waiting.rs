//! `Prefer: wait=N`: answers that are held back until the task is over, on both endpoints, and what they may hold.

use std::time::{Duration, Instant};

use axum::{
    body::Bytes,
    http::{Request, header},
};
use http_body_util::Full;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use upscale_api::{ApiLimits, PermitLimits};
use upscale_core::TaskId;

use crate::{
    client::Answer,
    harness::{App, Asking, Settings, image_body, paid_account, with_app, with_app_set},
};

/// Longer than any answer that comes at once takes, even where the machine is busy.
const WAIT: &str = "wait=30";

fn poll<'a>(app: &'a App, id: &TaskId, prefer: &str) -> Asking<'a> {
    app.request("GET", &format!("/api/v1/upscales/{id}"))
        .header("prefer", prefer)
}

/// Until at least this many requests are held.
async fn until_held(app: &App, count: usize) {
    until(app, |held| held >= count).await;
}

async fn until(app: &App, is_so: impl Fn(usize) -> bool) {
    let began = Instant::now();
    while !is_so(app.state.held()) {
        let held = app.state.held();
        assert!(began.elapsed() < Duration::from_secs(25), "{held} are held");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

fn applied(answer: &Answer) -> Option<&str> {
    answer.header("preference-applied")
}

#[tokio::test]
async fn a_poll_is_held_until_the_task_has_succeeded() {
    with_app(async |app: &App| {
        let id = app.created("held-read-1").await;
        let end = async {
            until_held(app, 1).await;
            app.succeed_next(b"png").await;
        };
        let (held, ()) = tokio::join!(poll(app, &id, WAIT).send(), end);
        held.expect(200, "");
        assert_eq!(held.json()["status"], "succeeded");
        assert_eq!(applied(&held), Some("wait=30"));
        assert_eq!(held.header("retry-after"), None);
        assert_eq!(held.header("x-result-sha256").map(str::len), Some(64));
        let plain = app.read(&id).await;
        assert_eq!(held.header("etag"), plain.header("etag"));
        assert_eq!(applied(&plain), None, "who does not ask sees no change");
    })
    .await;
}

#[tokio::test]
async fn a_failure_ends_a_wait_too_and_a_task_that_is_over_is_told_at_once() {
    with_app(async |app: &App| {
        let id = app.created("held-failure-1").await;
        let end = async {
            until_held(app, 2).await;
            app.fail_next("It is no image").await;
        };
        let asked = || poll(app, &id, WAIT).send();
        let (one, other, ()) = tokio::join!(asked(), asked(), end);
        for answer in [&one, &other, &asked().await] {
            answer.expect(200, "image_processing_failed");
            assert_eq!(applied(answer), Some("wait=30"));
        }
    })
    .await;
}

#[tokio::test]
async fn a_wait_that_ends_first_is_answered_with_the_task_as_it_is() {
    with_app(async |app: &App| {
        let id = app.created("held-in-vain-1").await;
        let began = Instant::now();
        let answer = poll(app, &id, "wait=1").send().await;
        assert!(began.elapsed() >= Duration::from_secs(1));
        answer.expect(200, "");
        assert_eq!(answer.json()["status"], "processing");
        assert_eq!(applied(&answer), Some("wait=1"));
        assert_eq!(answer.number("retry-after"), 3);
        let tag = answer.header("etag").unwrap();
        let asked = poll(app, &id, "wait=1").header("if-none-match", tag);
        let unchanged = asked.send().await;
        assert_eq!((unchanged.status, unchanged.text()), (304, ""));
        assert_eq!(applied(&unchanged), Some("wait=1"));
    })
    .await;
}

#[tokio::test]
async fn a_wish_that_cannot_be_read_is_ignored() {
    with_app(async |app: &App| {
        let id = app.created("wrong-wishes-1").await;
        for wish in [
            "",
            "wait",
            "wait=x",
            "wait=0",
            "wait=-1",
            "await=9",
            "respond-async",
        ] {
            let answer = poll(app, &id, wish).send().await;
            answer.expect(200, "");
            assert_eq!(applied(&answer), None, "{wish}");
        }
        let bytes = app.request("GET", &format!("/api/v1/upscales/{id}"));
        let answer = bytes.headers("prefer", &[b"wait=\xff"]).send().await;
        answer.expect(200, "");
        poll(app, &TaskId::random().unwrap(), WAIT)
            .send()
            .await
            .expect(404, "task_not_found");
    })
    .await;
}

#[tokio::test]
async fn a_create_is_held_until_its_task_is_over_and_stays_202() {
    with_app(async |app: &App| {
        let create = || {
            let asked = app.create("held-create-1", &image_body(""));
            asked.header("prefer", WAIT).send()
        };
        let end = async {
            until_held(app, 2).await;
            app.succeed_next(b"png").await;
        };
        // The second is a replay of the first, and is held like it.
        let (one, other, ()) = tokio::join!(create(), create(), end);
        for answer in [&one, &other, &create().await] {
            answer.expect(202, "");
            assert_eq!(answer.json()["status"], "succeeded");
            assert_eq!(answer.json()["id"], one.json()["id"]);
            assert_eq!(applied(answer), Some("wait=30"));
            assert_eq!(
                answer.header("location"),
                answer.json()["urls"]["get"].as_str()
            );
            assert_eq!(answer.header("retry-after"), None);
            assert!(answer.number("x-ratelimit-remaining") < 60);
        }
        let replays = [&one, &other].map(|answer| answer.header("idempotent-replayed").is_some());
        assert_ne!(replays[0], replays[1]);
    })
    .await;
}

#[tokio::test]
async fn a_create_whose_wait_is_in_vain_is_answered_as_any_other() {
    with_app(async |app: &App| {
        let asked = app.create("held-create-2", &image_body(""));
        let answer = asked.header("prefer", "wait=1").send().await;
        answer.expect(202, "");
        assert_eq!(answer.json()["status"], "processing");
        assert_eq!(applied(&answer), Some("wait=1"));
        assert_eq!(answer.number("retry-after"), 3);
    })
    .await;
}

#[tokio::test]
async fn a_waiting_read_is_one_read() {
    let api = ApiLimits {
        reads_per_second: 1,
        ..ApiLimits::default()
    };
    with_app_set(Settings::limited(api), async |app: &App| {
        let id = app.created("one-read-1").await;
        let end = async {
            until_held(app, 5).await;
            app.succeed_next(b"png").await;
        };
        let asked = || poll(app, &id, WAIT).send();
        let (a, b, c, d, e, ()) = tokio::join!(asked(), asked(), asked(), asked(), asked(), end);
        for answer in [a, b, c, d, e] {
            answer.expect(200, "");
        }
        // Ten at once are allowed: five were used, so at least five more are there.
        for _ in 0..5 {
            app.read(&id).await.expect(200, "");
        }
    })
    .await;
}

#[tokio::test]
async fn who_is_held_leaves_the_permits_of_answers_to_others() {
    let api = ApiLimits {
        permits: PermitLimits {
            keyed: 4,
            ..PermitLimits::default()
        },
        ..ApiLimits::default()
    };
    with_app_set(Settings::limited(api), async |app: &App| {
        let id = app.created("no-place-1").await;
        let end = async {
            for held in 1..4 {
                until_held(app, held).await;
                app.read(&id).await.expect(200, "");
            }
            app.succeed_next(b"png").await;
        };
        // One after the other: a place is taken for the moment in which the task is looked up.
        let asked = async |before: usize| {
            until_held(app, before).await;
            poll(app, &id, WAIT).send().await
        };
        let (a, b, c, ()) = tokio::join!(asked(0), asked(1), asked(2), end);
        for answer in [a, b, c] {
            answer.expect(200, "");
        }
    })
    .await;
}

#[tokio::test]
async fn beyond_its_share_an_account_is_answered_at_once_and_others_are_held() {
    let api = ApiLimits {
        permits: PermitLimits {
            waiting: 20,
            ..PermitLimits::default()
        },
        trusted_proxies: vec!["127.0.0.1/32".parse().unwrap()],
        ..ApiLimits::default()
    };
    with_app_set(Settings::limited(api), async |app: &App| {
        let id = app.created("share-of-one").await;
        let from = |number: usize| {
            let asked = poll(app, &id, WAIT);
            asked.header("x-forwarded-for", &format!("198.51.100.{number}"))
        };
        let crowd = futures_util::future::join_all((0..10).map(|number| from(number).send()));
        let end = async {
            until_held(app, 10).await;
            let eleventh = from(11).send().await;
            eleventh.expect(200, "");
            assert_eq!(eleventh.json()["status"], "processing");
            assert_eq!(applied(&eleventh), None);
            let (_, foreign_caller) = paid_account(&app.store, "1").await;
            let theirs = app
                .create("share-of-another", &image_body(""))
                .key(&foreign_caller);
            let theirs = theirs.header("x-forwarded-for", "198.51.100.200");
            let theirs = theirs.header("prefer", "wait=1").send().await;
            assert_eq!(applied(&theirs), Some("wait=1"));
            app.succeed_next(b"png").await;
        };
        let (crowd, ()) = tokio::join!(crowd, end);
        for answer in crowd {
            assert_eq!(applied(&answer), Some("wait=30"));
        }
    })
    .await;
}

#[tokio::test]
async fn a_client_that_hangs_up_is_held_no_longer() {
    with_app(async |app: &App| {
        let id = app.created("hung-up-1").await;
        let request = Request::get(format!("/api/v1/upscales/{id}"))
            .header(header::HOST, "api.example.org")
            .header(header::AUTHORIZATION, format!("Bearer {}", app.key))
            .header("prefer", WAIT);
        let stream = TcpStream::connect(app.api).await.unwrap();
        let shaken = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = shaken.unwrap();
        let connection = tokio::spawn(connection);
        let request = request.body(Full::new(Bytes::new())).unwrap();
        let asked = tokio::spawn(async move { sender.send_request(request).await });
        until_held(app, 1).await;
        asked.abort();
        connection.abort();
        until(app, |held| held == 0).await;
    })
    .await;
}

#[tokio::test]
async fn a_process_that_drains_holds_no_one() {
    with_app(async |app: &App| {
        let id = app.created("drained-1").await;
        let end = async {
            until_held(app, 1).await;
            app.state.begin_draining();
        };
        let (answer, ()) = tokio::join!(poll(app, &id, WAIT).send(), end);
        answer.expect(200, "");
        assert_eq!(answer.json()["status"], "processing");
        assert_eq!(applied(&answer), None);
        let late = poll(app, &id, WAIT).send().await;
        assert_eq!((late.status, applied(&late)), (200, None));
    })
    .await;
}

#[tokio::test]
async fn holding_takes_no_time_from_the_bound_of_a_request() {
    let api = ApiLimits {
        request_timeout: Duration::from_millis(500),
        ..ApiLimits::default()
    };
    with_app_set(Settings::limited(api), async |app: &App| {
        let id = app.created("long-held-1").await;
        let answer = poll(app, &id, "wait=2").send().await;
        answer.expect(200, "");
        assert_eq!(applied(&answer), Some("wait=2"));
    })
    .await;
}

#[tokio::test]
async fn head_is_held_as_get_is() {
    with_app(async |app: &App| {
        let id = app.created("held-head-1").await;
        let asked = app.request("HEAD", &format!("/api/v1/upscales/{id}"));
        let asked = asked.header("prefer", WAIT).send();
        let end = async {
            until_held(app, 1).await;
            app.succeed_next(b"png").await;
        };
        let (answer, ()) = tokio::join!(asked, end);
        assert_eq!(applied(&answer), Some("wait=30"));
        assert_eq!(answer.header("x-result-sha256").map(str::len), Some(64));
    })
    .await;
}

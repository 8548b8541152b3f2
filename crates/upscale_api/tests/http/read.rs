//! `GET /api/v1/upscales/{id}`: the three shapes, polling, and who may read.

use upscale_api::ApiLimits;
use upscale_core::TaskId;

use crate::harness::{App, Settings, image_body, paid_account, with_app, with_app_set};

#[tokio::test]
async fn each_state_has_its_shape_and_its_headers() {
    with_app(async |app: &App| {
        let id = app.created("three-shapes-1").await;
        let url = format!("http://{}/api/v1/upscales/{id}", app.api);
        let processing = app.read(&id).await;
        processing.expect(200, "");
        assert_eq!(
            processing.text(),
            format!(
                r#"{{"id":"{id}","object":"upscale","status":"processing","urls":{{"get":"{url}"}},"usage":{{"credits_reserved":0.7,"credits_charged":0}}}}"#
            )
        );
        assert_eq!(processing.header("cache-control"), Some("no-store"));

        app.succeed_next(b"png").await;
        let succeeded = app.read(&id).await;
        succeeded.expect(200, "");
        let result = succeeded.json()["result"]["url"].as_str().unwrap().to_owned();
        app.keep_secret(result.split_once('?').unwrap().1);
        assert_eq!(
            succeeded.text(),
            format!(
                r#"{{"id":"{id}","object":"upscale","status":"succeeded","urls":{{"get":"{url}"}},"result":{{"url":"{result}","format":"png"}},"usage":{{"credits_charged":0.7}}}}"#
            )
        );
        assert_eq!(succeeded.header("retry-after"), None);
        assert_eq!(succeeded.header("cache-control"), Some("no-store"));
        assert_eq!(succeeded.header("x-result-sha256").map(str::len), Some(64));
        assert_eq!(succeeded.header("x-result-look"), Some("natural"));
    })
    .await;
}

#[tokio::test]
async fn a_failed_task_says_why_and_that_the_credits_are_back() {
    with_app(async |app: &App| {
        let id = app.created("failed-shape-1").await;
        app.fail_next("The image is 1600 x 1000 = 1.6 MP, more than 1.5 MP for 2x").await;
        let failed = app.read(&id).await;
        failed.expect(200, "image_processing_failed");
        assert_eq!(
            failed.text(),
            format!(
                r#"{{"id":"{id}","object":"upscale","status":"failed","error":{{"code":"image_processing_failed","message":"The image is 1600 x 1000 = 1.6 MP, more than 1.5 MP for 2x. No credits were charged."}},"usage":{{"credits_charged":0,"refund_status":"refunded"}}}}"#
            )
        );
        let account = app.account_now().await;
        assert_eq!(account.available.to_string(), "100");
    })
    .await;
}

#[tokio::test]
async fn polling_is_told_to_begin_at_3_seconds_and_to_slow_down_to_10() {
    with_app(async |app: &App| {
        let id = app.created("polling-1").await;
        let mut waits = Vec::new();
        for seconds in [0, 10, 10, 15, 100] {
            app.clock.advance_seconds(seconds);
            waits.push(app.read(&id).await.number("retry-after"));
        }
        assert_eq!(waits, [3, 5, 7, 10, 10]);
    })
    .await;
}

#[tokio::test]
async fn a_task_past_its_deadline_reads_as_failed_and_refunded() {
    with_app(async |app: &App| {
        let id = app.created("deadline-1").await;
        app.clock.advance_seconds(270);
        assert_eq!(app.store.tasks().reap().await.unwrap(), 1);
        let failed = app.read(&id).await.json();
        assert_eq!(failed["status"], "failed");
        assert_eq!(failed["usage"]["refund_status"], "refunded");
    })
    .await;
}

#[tokio::test]
async fn malformed_unknown_and_foreign_ids_are_the_same_404() {
    with_app(async |app: &App| {
        let (_, foreign_caller) = paid_account(&app.store, "1").await;
        let foreign = app.created("foreign-1").await;
        let unknown = TaskId::random().unwrap();
        let mut bodies = Vec::new();
        for (id, key) in [
            (foreign.as_str(), &foreign_caller),
            (unknown.as_str(), &app.key),
            ("ups_", &app.key),
            ("%FF", &app.key),
            ("%00", &app.key),
            (&foreign.as_str().to_uppercase(), &app.key),
            (&"x".repeat(3_000), &app.key),
        ] {
            let path = format!("/api/v1/upscales/{id}");
            let answer = app.request("GET", &path).key(key).send().await;
            answer.expect(404, "task_not_found");
            let mut body = answer.json();
            body["error"]["request_id"].take();
            bodies.push(body.to_string());
        }
        bodies.dedup();
        assert_eq!(bodies.len(), 1, "{bodies:?}");
        app.read(&foreign).await.expect(200, "");
    })
    .await;
}

#[tokio::test]
async fn an_unchanged_state_is_304_and_a_changed_one_is_not() {
    with_app(async |app: &App| {
        let id = app.created("etag-tag-1").await;
        let path = format!("/api/v1/upscales/{id}");
        let ask = |tag: &str| app.request("GET", &path).header("if-none-match", tag);
        let tag = app.read(&id).await.header("etag").unwrap().to_owned();
        let same = ask(&format!("\"other\", {tag}")).send().await;
        assert_eq!((same.status, same.text()), (304, ""));
        assert_eq!(same.number("retry-after"), 3);
        assert_eq!(same.header("etag"), Some(tag.as_str()));
        assert_eq!(same.header("cache-control"), Some("no-store"));
        app.succeed_next(b"png").await;
        let changed = ask(&tag).send().await;
        changed.expect(200, "");
        assert_ne!(changed.header("etag"), Some(tag.as_str()));
    })
    .await;
}

#[tokio::test]
async fn no_304_leaves_a_client_with_a_result_url_that_is_about_to_expire() {
    with_app(async |app: &App| {
        let id = app.created("etag-urls-1").await;
        app.succeed_next(b"png").await;
        let path = format!("/api/v1/upscales/{id}");
        let mut read = app.read(&id).await;
        let mut age = 0;
        let mut unchanged = 0;
        for _ in 0..200 {
            app.clock.advance_seconds(60);
            age += 60;
            let tag = read.header("etag").unwrap().to_owned();
            let answer = app
                .request("GET", &path)
                .header("if-none-match", &tag)
                .send()
                .await;
            if answer.status == 304 {
                unchanged += 1;
                assert!(age < 900, "the URL has at least 45 of its 60 minutes left");
            } else {
                (read, age) = (answer, 0);
            }
        }
        assert!(unchanged > 150, "{unchanged} of 200 were 304");
    })
    .await;
}

#[tokio::test]
async fn head_answers_as_get_does_without_a_body() {
    with_app(async |app: &App| {
        let id = app.created("head-only-1").await;
        let path = format!("/api/v1/upscales/{id}");
        let get = app.read(&id).await;
        let head = app.request("HEAD", &path).send().await;
        assert_eq!((head.status, head.body.len()), (200, 0));
        for name in [
            "content-type",
            "content-length",
            "etag",
            "retry-after",
            "cache-control",
        ] {
            assert_eq!(head.header(name), get.header(name), "{name}");
        }
        let missing = app.request("HEAD", "/api/v1/upscales/ups_x").send().await;
        assert_eq!(missing.status, 404);
        let length = missing.number("content-length");
        assert!(length > 50, "as long as the body of a GET: {length}");
    })
    .await;
}

#[tokio::test]
async fn reads_beyond_the_guard_are_429_for_this_account_alone() {
    let api = ApiLimits {
        reads_per_second: 1,
        ..ApiLimits::default()
    };
    with_app_set(Settings::limited(api), async |app: &App| {
        let id = app.created("guarded-1").await;
        let mut refused = 0;
        for _ in 0..50 {
            let answer = app.read(&id).await;
            if answer.status == 429 {
                answer.expect(429, "rate_limit_exceeded");
                refused += 1;
            }
        }
        assert!(refused > 0, "10 at once and 1 a second are allowed");
        let (_, foreign_caller) = paid_account(&app.store, "1").await;
        let path = format!("/api/v1/upscales/{id}");
        let answer = app.request("GET", &path).key(&foreign_caller).send().await;
        answer.expect(404, "task_not_found");
        app.create("guarded-2", &image_body(""))
            .send()
            .await
            .expect(202, "");
    })
    .await;
}

//! Result files by signed URL.

use upscale_store::OldLinks;

use crate::{
    client::Answer,
    harness::{App, with_app},
};

/// A task that has succeeded with these bytes: its id and a fresh URL.
async fn succeeded(app: &App, key: &str, bytes: &[u8]) -> (upscale_core::TaskId, String) {
    let id = app.created(key).await;
    app.succeed_next(bytes).await;
    let url = fresh_url(app, &id).await;
    (id, url)
}

async fn fresh_url(app: &App, id: &upscale_core::TaskId) -> String {
    let task = app.read(id).await.json();
    task["result"]["url"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn after_a_rotation_of_the_signing_key_old_links_work_on_or_are_refused_as_ordered() {
    with_app(async |app: &App| {
        let (id, old) = succeeded(app, "rotated-1", b"png").await;
        let rotated = app
            .store
            .rotate_signing_key(OldLinks::Expire)
            .await
            .unwrap();
        app.clock.advance_seconds(11);
        let new = fresh_url(app, &id).await;
        assert!(new.contains(&format!("&key={rotated}&")), "{new}");
        for url in [&old, &new] {
            assert_eq!(app.download("GET", url).send().await.status, 200, "{url}");
        }
        app.clock.advance_seconds(3_588);
        assert_eq!(app.download("GET", &old).send().await.status, 200);
        app.clock.advance_seconds(1);
        let expired = app.download("GET", &old).send().await;
        expired.expect(403, "result_url_expired");

        app.store
            .rotate_signing_key(OldLinks::Refuse)
            .await
            .unwrap();
        app.clock.advance_seconds(11);
        let refused = app.download("GET", &fresh_url(app, &id).await).send().await;
        assert_eq!(refused.status, 200, "a link minted since is good");
        let refused = app.download("GET", &new).send().await;
        refused.expect(404, "not_found");
    })
    .await;
}

/// 100,000 bytes that differ everywhere.
fn picture() -> Vec<u8> {
    (0..100_000u32)
        .map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect()
}

fn check_headers(answer: &Answer, id: &str) {
    for (name, value) in [
        ("content-type", "image/png"),
        ("x-content-type-options", "nosniff"),
        ("content-security-policy", "sandbox; default-src 'none'"),
        ("x-robots-tag", "noindex"),
        ("accept-ranges", "bytes"),
        (
            "content-disposition",
            &format!("attachment; filename=\"{id}.png\""),
        ),
    ] {
        assert_eq!(answer.header(name), Some(value), "{name}");
    }
    let cache = answer.header("cache-control").unwrap();
    assert!(cache.starts_with("private, "), "{cache}");
}

#[tokio::test]
async fn a_result_is_delivered_whole_with_its_hash_and_headers_that_disarm_it() {
    with_app(async |app: &App| {
        let bytes = picture();
        let (id, url) = succeeded(app, "delivered-1", &bytes).await;
        assert!(
            url.starts_with(&format!("http://{}/r/", app.files)),
            "{url}"
        );
        let whole = app.download("GET", &url).send().await;
        assert_eq!((whole.status, whole.body == bytes), (200, true));
        check_headers(&whole, id.as_str());
        let tag = whole.header("etag").unwrap().to_owned();
        assert_eq!(tag.len(), 66, "a SHA-256 in quotes: {tag}");

        let head = app.download("HEAD", &url).send().await;
        assert_eq!(head.status, 200);
        assert_eq!(head.number("content-length"), 100_000);
        check_headers(&head, id.as_str());

        let known = app
            .download("GET", &url)
            .header("if-none-match", &tag)
            .send()
            .await;
        assert_eq!((known.status, known.body.len()), (304, 0));
        assert_eq!(known.header("etag"), Some(tag.as_str()));
    })
    .await;
}

#[tokio::test]
async fn a_range_is_206_and_one_outside_the_file_is_416() {
    with_app(async |app: &App| {
        let bytes = picture();
        let (_, url) = succeeded(app, "ranged-1", &bytes).await;
        let tag = app
            .download("HEAD", &url)
            .send()
            .await
            .header("etag")
            .unwrap()
            .to_owned();
        let ask = |range: &str| app.download("GET", &url).header("range", range);
        for (range, from, to) in [
            ("bytes=0-0", 0, 1),
            ("bytes=70000-", 70_000, 100_000),
            ("bytes=-5", 99_995, 100_000),
            ("bytes=99990-200000", 99_990, 100_000),
        ] {
            let part = ask(range).send().await;
            assert_eq!(
                (part.status, &part.body[..]),
                (206, &bytes[from..to]),
                "{range}"
            );
            let expected = format!("bytes {from}-{}/100000", to - 1);
            assert_eq!(part.header("content-range"), Some(expected.as_str()));
        }
        for range in ["bytes=100000-", "bytes=-0"] {
            let outside = ask(range).send().await;
            outside.expect(416, "invalid_request");
            assert_eq!(outside.header("content-range"), Some("bytes */100000"));
        }
        for range in ["bytes=0-1,5-6", "lines=1-2", "bytes=2-1"] {
            let whole = ask(range).send().await;
            assert_eq!((whole.status, whole.body.len()), (200, 100_000), "{range}");
        }
        let same = ask("bytes=1-2").header("if-range", &tag).send().await;
        assert_eq!(same.status, 206);
        let changed = ask("bytes=1-2")
            .header("if-range", "\"other\"")
            .send()
            .await;
        assert_eq!((changed.status, changed.body.len()), (200, 100_000));
    })
    .await;
}

#[tokio::test]
async fn every_poll_mints_a_new_url_good_for_an_hour() {
    with_app(async |app: &App| {
        let (id, first) = succeeded(app, "minted-1", b"png").await;
        app.clock.advance_seconds(1_800);
        let second = fresh_url(app, &id).await;
        assert_ne!(first, second);
        app.clock.advance_seconds(1_799);
        assert_eq!(app.download("GET", &first).send().await.status, 200);
        app.clock.advance_seconds(1);
        let expired = app.download("GET", &first).send().await;
        expired.expect(403, "result_url_expired");
        assert_eq!(app.download("GET", &second).send().await.status, 200);
    })
    .await;
}

#[tokio::test]
async fn after_retention_every_url_of_the_file_is_410_and_the_record_stays() {
    with_app(async |app: &App| {
        let (id, old) = succeeded(app, "retained-1", b"png").await;
        assert_eq!(app.sweep_after_hours(48).await, 1);
        let fresh = fresh_url(app, &id).await;
        for url in [&fresh, &old] {
            app.download("GET", url)
                .send()
                .await
                .expect(410, "result_expired");
        }
        assert_eq!(app.download("HEAD", &fresh).send().await.status, 410);
    })
    .await;
}

#[tokio::test]
async fn a_url_that_we_did_not_sign_names_nothing() {
    with_app(async |app: &App| {
        let (_, url) = succeeded(app, "tampered-1", b"png").await;
        let (_, other) = succeeded(app, "tampered-2", b"png").await;
        let (path, query) = url.split_once('?').unwrap();
        let other_path = other.split_once('?').unwrap().0;
        let expires = query
            .split('&')
            .find(|pair| pair.starts_with("expires="))
            .unwrap();
        for changed in [
            path.to_owned(),
            format!("{path}?"),
            format!("{other_path}?{query}"),
            format!("{path}?{}", query.replace(expires, "expires=9999999999")),
            format!("{path}?{}", query.replace("key=", "key=x")),
            format!("{path}?{}", query.replace("signature=", "signature=A")),
            format!("{path}?{query}&{expires}"),
            format!("{path}?{query}&download=1"),
            format!(
                "{path}?{}",
                query.replace(expires, "expires=99999999999999999999")
            ),
            url.replace(".png?", ".PNG?"),
            url.replace(".png?", "?"),
            url.replace("/r/", "/r/%2e%2e/"),
            url.replace("/r/", "/r/x"),
        ] {
            app.download("GET", &changed)
                .send()
                .await
                .expect(404, "not_found");
        }
    })
    .await;
}

#[tokio::test]
async fn nothing_is_listed_and_no_other_method_answers() {
    with_app(async |app: &App| {
        let (_, url) = succeeded(app, "unlisted-1", b"png").await;
        for path in [
            "/",
            "/r",
            "/r/",
            "/r/..",
            "/api/v1/upscales",
            "/openapi.json",
        ] {
            app.download("GET", path)
                .send()
                .await
                .expect(404, "not_found");
        }
        for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
            let answer = app.download(method, &url).send().await;
            answer.expect(405, "method_not_allowed");
            assert_eq!(answer.header("allow"), Some("GET,HEAD"));
        }
    })
    .await;
}

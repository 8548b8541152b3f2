//! Who is let in: keys, permissions, paid access, and what failing costs.

use upscale_api::{ApiLimits, parse_trusted_proxy};
use upscale_core::{KeyId, Permission};

use crate::{
    client::Answer,
    harness::{App, Settings, image_body, unknown_key, with_app, with_app_set},
};

async fn key_with(app: &App, permission: Permission) -> (KeyId, String) {
    let made = app
        .store
        .accounts()
        .create_key(&app.account, permission, "")
        .await
        .unwrap();
    let (record, key) = made.made().unwrap();
    (record.id, key.reveal().to_owned())
}

/// The body without its request id.
fn reported(answer: &Answer) -> String {
    let mut body = answer.json();
    body["error"]["request_id"].take();
    body.to_string()
}

#[tokio::test]
async fn malformed_unknown_and_revoked_keys_get_the_same_401_on_both_endpoints() {
    with_app(async |app: &App| {
        let (id, revoked) = key_with(app, Permission::All).await;
        app.store.accounts().revoke_key(&id).await.unwrap();
        let unknown = unknown_key();
        let malformed = &app.key[..app.key.len() - 1];
        for (method, path) in [
            ("POST", "/api/v1/upscales"),
            ("GET", "/api/v1/upscales/ups_x"),
        ] {
            let mut bodies = Vec::new();
            for key in [&revoked, &unknown, malformed, "x"] {
                let answer = app.request(method, path).key(key).send().await;
                answer.expect(401, "invalid_api_key");
                bodies.push(reported(&answer));
            }
            bodies.dedup();
            assert_eq!(bodies.len(), 1, "a guesser learns nothing: {bodies:?}");
            let answer = app.request_without_key(method, path).send().await;
            answer.expect(401, "missing_api_key");
            assert_eq!(answer.json()["error"]["type"], "authentication_error");
        }
    })
    .await;
}

#[tokio::test]
async fn a_revoked_key_is_refused_from_the_next_request_on_and_a_rotated_one_after_its_overlap() {
    with_app(async |app: &App| {
        let (id, key) = key_with(app, Permission::All).await;
        let read = || app.request("GET", "/api/v1/upscales/ups_x").key(&key);
        read().send().await.expect(404, "task_not_found");
        let (_, successor) = app
            .store
            .accounts()
            .rotate_key(&id, 60)
            .await
            .unwrap()
            .made()
            .unwrap();
        read().send().await.expect(404, "task_not_found");
        app.clock.advance_seconds(60);
        read().send().await.expect(401, "invalid_api_key");
        let read = || {
            app.request("GET", "/api/v1/upscales/ups_x")
                .key(successor.reveal())
        };
        read().send().await.expect(404, "task_not_found");
    })
    .await;
}

#[tokio::test]
async fn permissions_part_reading_from_creating() {
    with_app(async |app: &App| {
        let id = app.created("permissions-1").await;
        let path = format!("/api/v1/upscales/{id}");
        let (_, reader) = key_with(app, Permission::Read).await;
        let (_, writer) = key_with(app, Permission::Write).await;
        app.request("GET", &path)
            .key(&reader)
            .send()
            .await
            .expect(200, "");
        let create = app.create("permissions-2", &image_body(""));
        let refused = create.key(&reader).send().await;
        refused.expect(403, "insufficient_permissions");
        assert_eq!(refused.json()["error"]["type"], "permission_error");
        assert_eq!(refused.header("x-ratelimit-limit"), None);
        let create = app.create("permissions-2", &image_body(""));
        create.key(&writer).send().await.expect(202, "");
        let refused = app.request("GET", &path).key(&writer).send().await;
        refused.expect(403, "insufficient_permissions");
    })
    .await;
}

#[tokio::test]
async fn an_account_that_never_paid_is_403_before_anything_else_about_the_request() {
    with_app(async |app: &App| {
        let account = app.store.accounts().create("unpaid").await.unwrap().id;
        let made = app
            .store
            .accounts()
            .create_key(&account, Permission::Read, "")
            .await
            .unwrap();
        let key = made.made().unwrap().1.reveal().to_owned();
        let create = app.create("x", "not json").key(&key).send().await;
        create.expect(403, "api_access_required");
        assert_eq!(create.json()["error"]["type"], "permission_error");
        assert_eq!(create.header("x-ratelimit-limit"), None);
        let read = app.request("GET", "/api/v1/upscales/ups_x").key(&key);
        read.send().await.expect(403, "api_access_required");
    })
    .await;
}

#[tokio::test]
async fn authentication_goes_before_every_fault_of_the_body() {
    with_app(async |app: &App| {
        let create = app.create("", "not json").headers("authorization", &[]);
        let create = create.headers("content-type", &[b"text/plain"]);
        create.send().await.expect(401, "missing_api_key");
    })
    .await;
}

#[tokio::test]
async fn the_last_use_of_a_key_is_recorded_to_the_minute() {
    with_app(async |app: &App| {
        let last_used = async || {
            let keys = app
                .store
                .accounts()
                .list_keys(&app.account, None, 100)
                .await
                .unwrap();
            keys[0].last_used_at.map(|at| at.unix_seconds())
        };
        assert_eq!(last_used().await, None);
        let mut seen = Vec::new();
        for _ in 0..4 {
            let read = app.request("GET", "/api/v1/upscales/ups_x");
            read.send().await.expect(404, "task_not_found");
            seen.push(last_used().await.unwrap() - crate::harness::NOON);
            app.clock.advance_seconds(30);
        }
        assert_eq!(seen, [0, 0, 60, 60]);
    })
    .await;
}

#[tokio::test]
async fn failing_authentication_is_throttled_by_address_and_a_valid_key_there_never_is() {
    let api = ApiLimits {
        failing_auth_per_minute: 3,
        ..ApiLimits::default()
    };
    with_app_set(Settings::limited(api), async |app: &App| {
        let unknown = unknown_key();
        let guess = || app.request("GET", "/api/v1/upscales/ups_x").key(&unknown);
        for _ in 0..3 {
            guess().send().await.expect(401, "invalid_api_key");
        }
        let refused = guess().send().await;
        refused.expect(429, "rate_limit_exceeded");
        assert!((1..=60).contains(&refused.number("retry-after")));
        for _ in 0..5 {
            let honest = app.request("GET", "/api/v1/upscales/ups_x");
            honest.send().await.expect(404, "task_not_found");
        }
        guess().send().await.expect(429, "rate_limit_exceeded");
    })
    .await;
}

#[tokio::test]
async fn behind_a_trusted_proxy_each_client_is_throttled_on_its_own() {
    let api = ApiLimits {
        failing_auth_per_minute: 1,
        trusted_proxies: vec![parse_trusted_proxy("127.0.0.0/8").unwrap()],
        ..ApiLimits::default()
    };
    with_app_set(Settings::limited(api), async |app: &App| {
        let from = |client: &str| {
            let guess = app.request_without_key("GET", "/api/v1/upscales/ups_x");
            guess.header("x-forwarded-for", client)
        };
        from("192.0.2.1")
            .send()
            .await
            .expect(401, "missing_api_key");
        from("192.0.2.1")
            .send()
            .await
            .expect(429, "rate_limit_exceeded");
        from("192.0.2.2")
            .send()
            .await
            .expect(401, "missing_api_key");
    })
    .await;
}

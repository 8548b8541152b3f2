//! Everything that is refused before a task exists: each code of the contract, in the contract's order, with nothing
//! reserved.

use crate::harness::{World, client::Client};

const URL: &str = "https://images.upscale-tests.org/never-fetched.png";

/// Headers of a good create; a test leaves one out or puts another in its place.
const GOOD: [(&str, &str); 2] = [
    ("content-type", "application/json"),
    ("idempotency-key", "a-good-key"),
];

fn good_body() -> String {
    format!(r#"{{"image_url":"{URL}"}}"#)
}

/// After many refusals an account is as it was.
fn assert_untouched(world: &World, customer: &Client, available: i64) {
    assert_eq!(world.operator.money(&customer.account), (available, 0, 0));
}

#[track_caller]
fn assert_refused(customer: &Client, body: &str, code: &str) {
    let answer = customer.create_raw(&GOOD, body.as_bytes());
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (400, code),
        "{body}"
    );
    answer.header("x-ratelimit-remaining");
}

#[test]
fn each_fault_of_a_body_has_its_code() {
    let world = World::start();
    let customer = world.customer("1");
    let with = |field: &str| format!(r#"{{"image_url":"{URL}",{field}}}"#);
    for (body, code) in [
        ("", "invalid_json"),
        ("{", "invalid_json"),
        ("[]", "invalid_json"),
        ("null", "invalid_json"),
        ("\"text\"", "invalid_json"),
        ("{} {}", "invalid_json"),
        ("\u{feff}{}", "invalid_json"),
        (&with(r#""scale":2,"scale":2"#), "invalid_json"),
        (&with(r#""size":2"#), "unknown_parameter"),
        (&with(r#""Scale":2"#), "unknown_parameter"),
        (
            &with(r#""callback_url":"https://a.upscale-tests.org/""#),
            "callback_not_supported",
        ),
        (
            &with(r#""webhook_url":"https://a.upscale-tests.org/""#),
            "callback_not_supported",
        ),
        (&with(r#""webhook":null"#), "callback_not_supported"),
        (&with(r#""callback":1"#), "callback_not_supported"),
        ("{}", "missing_image_url"),
        (&with(r#""scale":3"#), "invalid_scale"),
        (&with(r#""scale":"2""#), "invalid_scale"),
        (&with(r#""scale":2.5"#), "invalid_scale"),
        (&with(r#""scale":-2"#), "invalid_scale"),
        (&with(r#""scale":null"#), "invalid_scale"),
        (&with(r#""face_enhance":"true""#), "invalid_face_enhance"),
        (&with(r#""face_enhance":1"#), "invalid_face_enhance"),
        (&with(r#""face_enhance":null"#), "invalid_face_enhance"),
        (&with(r#""output_format":"jpeg""#), "invalid_output_format"),
        (&with(r#""output_format":"PNG""#), "invalid_output_format"),
        (&with(r#""output_format":null"#), "invalid_output_format"),
    ] {
        assert_refused(&customer, body, code);
    }
    assert_untouched(&world, &customer, 1_000);
}

#[test]
fn a_refusal_says_what_is_wrong() {
    let world = World::start();
    let customer = world.customer("1");
    let message = |body: &str| {
        let answer = customer.create_raw(&GOOD, body.as_bytes());
        answer.json()["error"]["message"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let scale = message(&format!(r#"{{"image_url":"{URL}","scale":3}}"#));
    assert!(scale.contains("2 or 4"), "{scale}");
    let unknown = message(&format!(r#"{{"image_url":"{URL}","sharpen":1}}"#));
    assert!(unknown.contains("sharpen"), "{unknown}");
    let long = format!(r#"{{"image_url":"{URL}{}"}}"#, " ".repeat(16_384));
    let answer = customer
        .create_raw(&GOOD, long.as_bytes())
        .expect(400, "request_too_large");
    let large = answer.json()["error"]["message"].to_string();
    assert!(large.contains("16384"), "{large}");
}

#[test]
fn an_image_url_that_could_lead_inside_is_refused_at_once() {
    let world = World::start();
    let customer = world.customer("1");
    let long = format!("https://a.upscale-tests.org/{}.png", "a".repeat(2_048));
    for url in [
        "",
        "not a url.png",
        "http://images.upscale-tests.org/a.png",
        "ftp://images.upscale-tests.org/a.png",
        "https://images.upscale-tests.org/a.gif",
        "https://images.upscale-tests.org/a",
        "https://images.upscale-tests.org/a?b.png",
        "https://images.upscale-tests.org:8443/a.png",
        "https://user:secret@images.upscale-tests.org/a.png",
        "https://127.0.0.1/a.png",
        "https://2130706433/a.png",
        "https://0x7f.1/a.png",
        "https://[::1]/a.png",
        "https://localhost/a.png",
        "https://printer.local/a.png",
        "https://vault.internal/a.png",
        "https://images.upscale-tests.org./a.png",
        "https://images.upscale-tests.org/a b.png",
        "https://images.upscale-tests.org\\\\@10.0.0.1/a.png",
        "https://\u{fc}ber.upscale-tests.org/a.png",
        &long,
    ] {
        assert_refused(
            &customer,
            &format!(r#"{{"image_url":"{url}"}}"#),
            "invalid_image_url",
        );
    }
    for value in ["null", "7", "[]", r#"{"url":"a"}"#] {
        assert_refused(
            &customer,
            &format!(r#"{{"image_url":{value}}}"#),
            "invalid_image_url",
        );
    }
    assert_untouched(&world, &customer, 1_000);
}

#[test]
fn each_fault_of_a_header_has_its_code() {
    let world = World::start();
    let customer = world.customer("1");
    let body = good_body();
    let (json, key) = (GOOD[0], GOOD[1]);
    let (short, long) = ("1234567", "a".repeat(129));
    for (headers, code) in [
        (vec![key], "invalid_content_type"),
        (
            vec![("content-type", "text/plain"), key],
            "invalid_content_type",
        ),
        (
            vec![("content-type", "application/x-www-form-urlencoded"), key],
            "invalid_content_type",
        ),
        (vec![json], "missing_idempotency_key"),
        (
            vec![json, ("idempotency-key", "")],
            "invalid_idempotency_key",
        ),
        (
            vec![json, ("idempotency-key", short)],
            "invalid_idempotency_key",
        ),
        (
            vec![json, ("idempotency-key", &long)],
            "invalid_idempotency_key",
        ),
        (
            vec![json, ("idempotency-key", "with a space")],
            "invalid_idempotency_key",
        ),
        (
            vec![json, ("idempotency-key", "d\u{e9}j\u{e0}-vu-1")],
            "invalid_idempotency_key",
        ),
        (
            vec![json, key, ("idempotency-key", "a-second-key")],
            "invalid_idempotency_key",
        ),
    ] {
        let answer = customer.create_raw(&headers, body.as_bytes());
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (400, code),
            "{headers:?}"
        );
    }
    assert_untouched(&world, &customer, 1_000);
}

#[test]
fn keys_of_8_and_of_128_characters_are_taken() {
    let world = World::start();
    let customer = world.customer("2");
    let url = world.picture("/small.png", 8, 8);
    let order = crate::harness::client::order(&url, 2);
    customer.create("8-signs!", &order).expect(202, "");
    customer.create(&"~".repeat(128), &order).expect(202, "");
}

#[test]
fn a_caller_who_shows_no_good_key_learns_nothing_but_that() {
    let world = World::start();
    let customer = world.customer("1");
    let revoked = world.operator.create_key(&customer.account, None);
    world.operator.run(&["key", "revoke", &revoked.id]);
    let unknown = upscale_core::ApiKey::random().unwrap();
    let (unknown, revoked) = (
        format!("Bearer {}", unknown.reveal()),
        format!("Bearer {}", revoked.key),
    );
    let basic = format!("Basic {}", customer.key);
    let mut bodies = Vec::new();
    for authorization in [
        unknown.as_str(),
        &revoked,
        &basic,
        "Bearer usk_live_short",
        "nonsense",
    ] {
        for (method, path) in [
            ("POST", "/api/v1/upscales"),
            ("GET", "/api/v1/upscales/ups_x"),
        ] {
            // The body is as bad as can be: no one looks at it.
            let body = (method == "POST").then_some(&b"{"[..]);
            let answer = customer.send(method, path, &[("authorization", authorization)], body);
            let answer = answer.expect(401, "invalid_api_key");
            assert_eq!(answer.header("www-authenticate"), "Bearer");
            assert_eq!(answer.find_header("x-ratelimit-limit"), None);
            let mut error = answer.json()["error"].clone();
            error.as_object_mut().unwrap().remove("request_id");
            bodies.push(error);
        }
    }
    bodies.dedup();
    assert_eq!(bodies.len(), 1, "{bodies:?}");
    let missing = customer.send(
        "POST",
        "/api/v1/upscales",
        &GOOD,
        Some(good_body().as_bytes()),
    );
    let missing = missing.expect(401, "missing_api_key");
    assert_eq!(missing.header("www-authenticate"), "Bearer");
}

#[test]
fn an_account_that_never_paid_is_told_so_before_its_request_is_read() {
    let world = World::start();
    let visitor = world.visitor();
    let answer = visitor
        .create_raw(&[], b"{")
        .expect(403, "api_access_required");
    assert_eq!(answer.find_header("x-ratelimit-limit"), None);
    visitor.read("ups_x").expect(403, "api_access_required");

    world.credit(&visitor.account, "0.7", "the purchase that opens access");
    let url = world.picture("/small.png", 8, 8);
    visitor.upscale("first-key", &crate::harness::client::order(&url, 2));
}

#[test]
fn what_is_not_there_is_404_and_what_is_not_done_is_405() {
    let world = World::start();
    let customer = world.customer("1");
    for path in [
        "/",
        "/api/v1",
        "/api/v2/upscales",
        "/api/v1/upscales/a/b",
        "/r/x.png",
    ] {
        customer
            .send("GET", path, &[], None)
            .expect(404, "not_found");
    }
    for (method, path, allowed) in [
        ("GET", "/api/v1/upscales", "POST"),
        ("DELETE", "/api/v1/upscales", "POST"),
        ("OPTIONS", "/api/v1/upscales", "POST"),
        ("POST", "/api/v1/upscales/ups_x", "GET,HEAD"),
        ("OPTIONS", "/api/v1/upscales/ups_x", "GET,HEAD"),
        ("PUT", "/api/v1/upscales/ups_x", "GET,HEAD"),
    ] {
        let body = matches!(method, "POST" | "PUT").then_some(&b"{}"[..]);
        let answer = customer
            .send(method, path, &[], body)
            .expect(405, "method_not_allowed");
        let mut allow: Vec<_> = answer.header("allow").split(',').map(str::trim).collect();
        allow.sort_unstable();
        assert_eq!(allow.join(","), allowed, "{method} {path}");
    }
}

#[test]
fn a_task_of_another_account_is_not_there_like_one_that_never_was() {
    let world = World::start();
    let (owner, foreign_caller) = (world.customer("1"), world.customer("1"));
    let url = world.picture("/small.png", 8, 8);
    let id = owner
        .upscale("first-key", &crate::harness::client::order(&url, 2))
        .id();
    let never = upscale_core::TaskId::random().unwrap();
    let mut bodies = Vec::new();
    for id in [
        id.as_str(),
        never.as_str(),
        "ups_x",
        "x",
        "%2e%2e",
        "ups_%00",
    ] {
        let answer = foreign_caller.read(id).expect(404, "task_not_found");
        let mut error = answer.json()["error"].clone();
        error.as_object_mut().unwrap().remove("request_id");
        bodies.push(error);
    }
    bodies.dedup();
    assert_eq!(bodies.len(), 1, "{bodies:?}");
    owner.read(&id).expect(200, "");
}

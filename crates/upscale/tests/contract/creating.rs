//! Creating and reading: the three shapes of a task, and the headers around them.

use serde_json::json;
use upscale_core::{Clock, TaskId};

use crate::harness::{World, client::order, image_host::Behaviour, pictures::Picture};

fn held(world: &World, path: &str) -> String {
    let bytes = Picture::render(12, 10, 3).png();
    world.serve_so(path, Behaviour::Held(bytes), (12, 10))
}

#[test]
fn an_accepted_task_is_shown_as_processing_and_then_as_succeeded() {
    let world = World::start();
    let customer = world.customer("10");
    let url = held(&world, "/held.png");

    let created = customer
        .create("first-key", &order(&url, 2))
        .expect(202, "");
    let id = created.id();
    assert!(TaskId::parse(&id).is_some(), "{id}");
    let get = format!("{}/api/v1/upscales/{id}", world.serve().api);
    let processing = json!({
        "id": id, "object": "upscale", "status": "processing", "urls": { "get": get },
        "usage": { "credits_reserved": 0.7, "credits_charged": 0 },
    });
    assert_eq!(created.json(), processing);
    assert_eq!(created.header("location"), get);
    assert_eq!(created.header("content-type"), "application/json");
    assert_eq!(created.find_header("idempotent-replayed"), None);
    assert_eq!(customer.read(&id).expect(200, "").json(), processing);

    world.host.open_gate();
    let ended = customer.wait(&id).expect(200, "");
    let succeeded = json!({
        "id": id, "object": "upscale", "status": "succeeded", "urls": { "get": get },
        "result": { "url": ended.result_url(), "format": "png" },
        "usage": { "credits_charged": 0.7 },
    });
    assert_eq!(ended.json(), succeeded);
    let prefix = format!("{}/r/", world.serve().results);
    assert!(
        ended.result_url().starts_with(&prefix),
        "{}",
        ended.result_url()
    );
}

#[test]
fn a_failed_task_shows_its_error_and_its_refund_and_no_urls() {
    let world = World::start();
    let customer = world.customer("1");
    let url = world.host.set("/gone.png", Behaviour::Status(404));
    let created = customer
        .create("first-key", &order(&url, 4))
        .expect(202, "");
    let ended = customer.wait(&created.id()).expect(200, "").json();
    let message = ended["error"]["message"].as_str().unwrap();
    assert!(message.ends_with("No credits were charged."), "{message}");
    let failed = json!({
        "id": created.id(), "object": "upscale", "status": "failed",
        "error": { "code": "image_processing_failed", "message": message },
        "usage": { "credits_charged": 0, "refund_status": "refunded" },
    });
    assert_eq!(ended, failed);
}

#[test]
fn credits_are_printed_as_exact_decimal_numbers() {
    let world = World::start();
    let customer = world.customer("1");
    let created = customer
        .create("first-key", &order(&held(&world, "/held.png"), 2))
        .expect(202, "");
    let text: String = String::from_utf8(created.body)
        .unwrap()
        .split_whitespace()
        .collect();
    assert!(text.contains("\"credits_reserved\":0.7,"), "{text}");
    assert!(text.contains("\"credits_charged\":0}"), "{text}");
}

#[test]
fn polling_tells_when_to_come_back_and_is_never_stored() {
    let world = World::start();
    let customer = world.customer("1");
    let created = customer
        .create("first-key", &order(&held(&world, "/held.png"), 2))
        .expect(202, "");
    let processing = customer.read(&created.id()).expect(200, "");
    let seconds: u32 = processing.header("retry-after").parse().unwrap();
    assert!((3..=10).contains(&seconds), "{seconds}");
    assert_eq!(processing.header("cache-control"), "no-store");

    world.host.open_gate();
    let ended = customer.wait(&created.id());
    assert_eq!(ended.find_header("retry-after"), None);
    assert_eq!(ended.header("cache-control"), "no-store");
}

#[test]
fn a_state_that_has_not_changed_is_answered_with_304() {
    let world = World::start();
    let customer = world.customer("1");
    let created = customer
        .create("first-key", &order(&held(&world, "/held.png"), 2))
        .expect(202, "");
    let path = format!("/api/v1/upscales/{}", created.id());
    let processing = customer.read(&created.id()).expect(200, "");
    let bearer = format!("Bearer {}", customer.key);
    let asking = [
        ("authorization", bearer.as_str()),
        ("if-none-match", processing.header("etag")),
    ];

    let unchanged = customer.send("GET", &path, &asking, None);
    assert_eq!((unchanged.status, unchanged.body.len()), (304, 0));
    assert_eq!(unchanged.header("etag"), processing.header("etag"));

    world.host.open_gate();
    customer.wait(&created.id());
    let changed = customer.send("GET", &path, &asking, None);
    assert_eq!(changed.status, 200);
    assert_ne!(changed.header("etag"), processing.header("etag"));
}

#[test]
fn every_answer_after_authentication_shows_the_create_window() {
    let world = World::start();
    let customer = world.customer("1");
    let before = Clock::System.now().unix_seconds();
    let accepted = customer
        .create("first-key", &order(&held(&world, "/held.png"), 2))
        .expect(202, "");
    let replayed = customer
        .create("first-key", &order(&held(&world, "/held.png"), 2))
        .expect(202, "");
    let refused = customer
        .create_raw(&[], b"{")
        .expect(400, "invalid_content_type");
    let after = Clock::System.now().unix_seconds();
    let mut left = Vec::new();
    for answer in [&accepted, &replayed, &refused] {
        assert_eq!(answer.header("x-ratelimit-limit"), "60");
        let reset: i64 = answer.header("x-ratelimit-reset").parse().unwrap();
        assert!(
            (before..=after + 60).contains(&reset),
            "{reset} is not within a minute of {after}"
        );
        left.push((
            reset,
            answer
                .header("x-ratelimit-remaining")
                .parse::<i64>()
                .unwrap(),
        ));
    }
    // Three requests of one window count down; a window that ended between them starts at 59.
    for pair in left.windows(2) {
        let expected = if pair[0].0 == pair[1].0 {
            pair[0].1 - 1
        } else {
            59
        };
        assert_eq!(pair[1].1, expected, "{left:?}");
    }
    let read = customer.read(&accepted.id());
    assert_eq!(
        read.find_header("x-ratelimit-limit"),
        None,
        "the window is of creates"
    );
}

#[test]
fn head_answers_like_get_without_the_body() {
    let world = World::start();
    let customer = world.customer("1");
    let url = world.picture("/small.png", 8, 8);
    let ended = customer.upscale("first-key", &order(&url, 2));
    let path = format!("/api/v1/upscales/{}", ended.id());
    let bearer = format!("Bearer {}", customer.key);
    let head = customer.send("HEAD", &path, &[("authorization", &bearer)], None);
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(head.header("content-type"), "application/json");
    assert_eq!(
        head.header("etag"),
        customer.read(&ended.id()).header("etag")
    );
}

#[test]
fn a_clients_own_request_id_is_never_adopted() {
    let world = World::start();
    let customer = world.customer("1");
    let own = "req_00000000000000000000000000";
    let answer = customer.send("GET", "/nothing", &[("x-request-id", own)], None);
    assert_ne!(answer.header("x-request-id"), own);
    let again = customer.send("GET", "/nothing", &[], None);
    assert_ne!(answer.header("x-request-id"), again.header("x-request-id"));
}

//! One key, one task, one charge: replays, conflicts, and what uses a key up.

use std::{collections::HashSet, sync::Barrier, thread};

use serde_json::json;

use crate::harness::{
    World,
    client::{Answer, Client, order},
    image_host::Behaviour,
    serve::upscale,
};

#[track_caller]
fn expect_replay(answer: Answer, id: &str) -> Answer {
    let answer = answer.expect(202, "");
    assert_eq!(answer.id(), id);
    assert_eq!(answer.header("idempotent-replayed"), "true");
    answer.header("location");
    answer
}

fn create_text(customer: &Client, key: &str, body: &str) -> Answer {
    let headers = [
        ("content-type", "application/json; charset=utf-8"),
        ("idempotency-key", key),
    ];
    customer.create_raw(&headers, body.as_bytes())
}

#[test]
fn every_spelling_of_the_same_request_names_the_same_task() {
    let world = World::start();
    let customer = world.customer("10");
    let url = world.picture("/small.png", 10, 6);
    let first = customer
        .create("spelling-key", &json!({ "image_url": url }))
        .expect(202, "");
    assert_eq!(first.find_header("idempotent-replayed"), None);
    for body in [
        format!(r#"{{"image_url":"{url}"}}"#),
        format!(r#"  {{ "scale" : 2 , "image_url" : "{url}" }} "#),
        format!(r#"{{"scale":2.0,"image_url":"{url}"}}"#),
        format!(r#"{{"face_enhance":false,"output_format":"png","image_url":"{url}","scale":2}}"#),
        format!(r#"{{"image_url":"{}"}}"#, url.replace('/', "\\/")),
    ] {
        expect_replay(create_text(&customer, "spelling-key", &body), &first.id());
    }
    customer.wait(&first.id());
    assert_eq!(world.operator.money(&customer.account), (9_300, 0, 700));
    assert_eq!(world.host.hits("/small.png"), 1);
}

#[test]
fn the_same_key_with_other_parameters_is_a_conflict() {
    let world = World::start();
    let customer = world.customer("10");
    let url = world.picture("/small.png", 10, 6);
    let first = customer
        .create("conflict-key", &order(&url, 2))
        .expect(202, "");
    for other in [
        order(&url, 4),
        json!({ "image_url": url, "face_enhance": true }),
        order(&world.picture("/another.png", 8, 8), 2),
        order(&format!("{url}&"), 2),
    ] {
        customer
            .create("conflict-key", &other)
            .expect(409, "idempotency_conflict");
    }
    expect_replay(
        customer.create("conflict-key", &order(&url, 2)),
        &first.id(),
    );
}

#[test]
fn forty_eight_identical_creates_at_once_make_one_task_and_one_reservation() {
    const AT_ONCE: usize = 48;
    let world = World::start();
    let customer = world.customer("40");
    let url = world.picture("/small.png", 10, 6);
    let barrier = Barrier::new(AT_ONCE);
    let answers: Vec<Answer> = thread::scope(|scope| {
        let requests: Vec<_> = (0..AT_ONCE)
            .map(|_| {
                scope.spawn(|| {
                    barrier.wait();
                    customer.create("one-key-for-all", &order(&url, 2))
                })
            })
            .collect();
        requests
            .into_iter()
            .map(|request| request.join().unwrap())
            .collect()
    });
    let ids: HashSet<String> = answers
        .into_iter()
        .map(|answer| answer.expect(202, "").id())
        .collect();
    assert_eq!(ids.len(), 1, "{ids:?}");
    customer.wait(ids.iter().next().unwrap());
    assert_eq!(world.operator.money(&customer.account), (39_300, 0, 700));
}

#[test]
fn a_replay_shows_the_task_as_it_is_now_even_when_it_failed() {
    let world = World::start();
    let customer = world.customer("10");
    let good = order(&world.picture("/small.png", 10, 6), 2);
    let bad = order(&world.host.set("/gone.png", Behaviour::Status(410)), 2);

    let succeeded = customer.upscale("good-key", &good);
    let replayed = expect_replay(customer.create("good-key", &good), &succeeded.id());
    assert_eq!(replayed.json()["status"], "succeeded");
    let file = customer.fetch("GET", &replayed.result_url(), &[]);
    assert_eq!(file.status, 200);

    let failed = customer.create("bad-key-1", &bad).expect(202, "");
    customer.wait(&failed.id());
    let replayed = expect_replay(customer.create("bad-key-1", &bad), &failed.id());
    assert_eq!(replayed.json()["status"], "failed");
    let anew = customer.create("bad-key-2", &bad).expect(202, "");
    assert_ne!(anew.id(), failed.id());
}

#[test]
fn a_key_belongs_to_the_account_whichever_of_its_api_keys_sends_it() {
    let world = World::start();
    let (customer, other) = (world.customer("10"), world.customer("10"));
    let url = world.picture("/small.png", 10, 6);
    let first = customer
        .create("shared-key", &order(&url, 2))
        .expect(202, "");
    let second_key = world.operator.create_key(&customer.account, Some("all"));
    let colleague = customer.with_key(&second_key.key);
    expect_replay(colleague.create("shared-key", &order(&url, 2)), &first.id());
    colleague.read(&first.id()).expect(200, "");

    let elsewhere = other.create("shared-key", &order(&url, 2)).expect(202, "");
    assert_ne!(elsewhere.id(), first.id());
    assert_eq!(elsewhere.find_header("idempotent-replayed"), None);
}

#[test]
fn only_an_accepted_create_uses_its_key_up() {
    let world = World::start();
    let customer = world.customer("0.5");
    let url = world.picture("/small.png", 10, 6);
    customer
        .create("patient-key", &order(&url, 3))
        .expect(400, "invalid_scale");
    customer
        .create("patient-key", &order(&url, 2))
        .expect(402, "insufficient_credits");
    world.credit(&customer.account, "0.9", "second purchase");
    let accepted = customer
        .create("patient-key", &order(&url, 4))
        .expect(202, "");
    assert_eq!(accepted.find_header("idempotent-replayed"), None);
    customer
        .create("patient-key", &order(&url, 2))
        .expect(409, "idempotency_conflict");
}

#[test]
fn a_replay_is_answered_when_no_new_task_would_be() {
    let world = World::start();
    let customer = world.customer("0.7");
    let url = world.picture("/small.png", 10, 6);
    let first = customer.upscale("only-key", &order(&url, 2));
    customer
        .create("next-key", &order(&url, 2))
        .expect(402, "insufficient_credits");
    expect_replay(customer.create("only-key", &order(&url, 2)), &first.id());
}

#[test]
fn identical_creates_at_two_services_of_the_same_data_make_one_task_each_key() {
    const KEYS: usize = 10;
    let mut world = World::start_with(&["--share-data"]);
    let second = world.serve_beside(upscale(), &[]);
    let customer = world.customer("20");
    let url = world.picture("/small.png", 10, 6);
    let neighbour = customer.at(&second.api);
    let barrier = Barrier::new(4);
    let ids: Vec<Vec<String>> = thread::scope(|scope| {
        let askers = [&customer, &neighbour, &customer, &neighbour].map(|asker| {
            scope.spawn(|| {
                barrier.wait();
                let keys = (0..KEYS).map(|number| format!("key-at-both-{number}"));
                let ask = |key: String| asker.create(&key, &order(&url, 2)).expect(202, "").id();
                keys.map(ask).collect::<Vec<String>>()
            })
        });
        askers
            .into_iter()
            .map(|asker| asker.join().unwrap())
            .collect()
    });
    assert!(ids.iter().all(|one| *one == ids[0]), "{ids:?}");
    for id in &ids[0] {
        neighbour.wait(id);
    }
    assert_eq!(second.stop().code(), Some(0));
    assert_eq!(world.operator.money(&customer.account), (13_000, 0, 7_000));
}

//! Sixty creates a minute, twenty tasks at a time, 2,500 a day, no more than can be done in time, and no credits, no
//! task.

use std::collections::HashMap;

use upscale_core::{
    AccountId, Clock, FailureMessage, IdempotencyKey, NewTask, Parameters, RequestId, Scale,
    SourceUrl, limits,
};
use upscale_store::{CreateOutcome, FenceOutcome, Settlement, Store, StoreOptions};

use crate::harness::{
    World,
    client::{Answer, Client, order},
    image_host::Behaviour,
    pictures::Picture,
};

/// Creates, replays and faults in turn, until one is over the rate; with its window's earlier answers.
fn exhaust(customer: &Client, url: &str) -> (Answer, usize) {
    let mut passed: HashMap<String, usize> = HashMap::new();
    // Three windows' worth: a machine too slow to fill one minute would be another test's concern.
    for number in 0..180 {
        let answer = match number % 3 {
            0 | 1 => customer.create("rate-key", &order(url, 2)),
            _ => customer.create_raw(&[], b"no JSON"),
        };
        let reset = answer.header("x-ratelimit-reset").to_owned();
        if answer.status == 429 {
            let count = passed.get(&reset).copied().unwrap_or(0);
            return (answer, count);
        }
        *passed.entry(reset).or_default() += 1;
    }
    panic!("180 requests passed: {passed:?}");
}

#[test]
fn the_sixty_first_create_of_a_minute_is_refused_whatever_the_sixty_were() {
    let world = World::start();
    let customer = world.customer("10");
    let url = world.picture("/small.png", 8, 8);
    let (refused, passed) = exhaust(&customer, &url);
    let now = Clock::System.now().unix_seconds();
    assert_eq!(passed, 60);
    assert_eq!(refused.code(), "rate_limit_exceeded");
    assert_eq!(refused.header("x-ratelimit-remaining"), "0");
    let retry_after: i64 = refused.header("retry-after").parse().unwrap();
    let reset: i64 = refused.header("x-ratelimit-reset").parse().unwrap();
    assert!((1..=60).contains(&retry_after), "{retry_after}");
    // The header counted from a moment before `now`, so it may still say a little more.
    assert!(
        now + retry_after >= reset,
        "coming back after {retry_after} s would be too early"
    );

    // The window is the account's: another of its keys finds it full, another account does not.
    let second = world.operator.create_key(&customer.account, None);
    let colleague = customer.with_key(&second.key);
    let answer = colleague.create("another-key", &order(&url, 2));
    if answer.header("x-ratelimit-reset") == refused.header("x-ratelimit-reset") {
        answer.expect(429, "rate_limit_exceeded");
    }
    world
        .customer("1")
        .create("another-key", &order(&url, 2))
        .expect(202, "");
    let task = world.recorder.accepted()[0].id.clone();
    customer.read(&task).expect(200, "");
}

#[test]
fn the_twenty_first_active_task_is_refused_until_one_is_over() {
    let world = World::start();
    let (customer, other) = (world.customer("21"), world.customer("1"));
    let bytes = Picture::render(8, 8, 2).png();
    let url = world.serve_so("/held.png", Behaviour::Held(bytes), (8, 8));
    let ids: Vec<String> = (0..20)
        .map(|number| {
            customer
                .create(&format!("active-{number}"), &order(&url, 2))
                .expect(202, "")
                .id()
        })
        .collect();
    let refused = customer.create("active-20", &order(&url, 2));
    let refused = refused.expect(429, "active_task_limit_exceeded");
    let retry_after: u32 = refused.header("retry-after").parse().unwrap();
    assert!((1..=30).contains(&retry_after), "{retry_after}");
    assert_eq!(world.operator.money(&customer.account), (7_000, 14_000, 0));

    // A replay is no new task, and others are not concerned.
    assert_eq!(
        customer
            .create("active-7", &order(&url, 2))
            .expect(202, "")
            .id(),
        ids[7]
    );
    other.create("active-20", &order(&url, 2)).expect(202, "");

    world.host.open_gate();
    for id in &ids {
        customer.wait(id);
    }
    customer
        .create("active-20", &order(&url, 2))
        .expect(202, "");
}

#[test]
fn a_task_that_cannot_be_paid_is_refused_with_the_numbers() {
    let world = World::start();
    let customer = world.customer("1");
    let bytes = Picture::render(8, 8, 2).png();
    let url = world.serve_so("/held.png", Behaviour::Held(bytes), (8, 8));
    let first = customer
        .create("first-key", &order(&url, 2))
        .expect(202, "");
    for _ in 0..2 {
        let refused = customer
            .create("second-key", &order(&url, 2))
            .expect(402, "insufficient_credits");
        let message = refused.json()["error"]["message"].to_string();
        assert!(
            message.contains("0.7") && message.contains("0.3"),
            "{message}"
        );
        // Reserved or charged, it is spent either way.
        world.host.open_gate();
        customer.wait(&first.id());
    }
}

#[test]
fn a_refund_can_be_spent_again() {
    let world = World::start();
    let customer = world.customer("0.7");
    let bad = world.host.set("/gone.png", Behaviour::Status(404));
    let good = world.picture("/small.png", 8, 8);
    customer.fail("failing-key-1", &order(&bad, 2));
    customer.fail("failing-key-2", &order(&bad, 2));
    customer.upscale("last-key", &order(&good, 2));
    customer
        .create("one-too-many", &order(&good, 2))
        .expect(402, "insufficient_credits");
}

/// Twenty at a time, and all of them over again: one round of a very busy day.
async fn accept_and_fail(store: &Store, account: &AccountId, round: u32) {
    let mut creates = tokio::task::JoinSet::new();
    for number in 0..limits::ACTIVE_TASKS_MAX {
        let (store, account) = (store.clone(), *account);
        creates.spawn(async move {
            let key = IdempotencyKey::parse(format!("daily-{round}-{number}").as_bytes()).unwrap();
            let task = NewTask {
                source_url: SourceUrl::parse("https://images.upscale-tests.org/a.png").unwrap(),
                parameters: Parameters::at(Scale::X2),
            };
            store
                .tasks()
                .create(&account, &key, &task, &RequestId::random().unwrap())
                .await
                .unwrap()
        });
    }
    while let Some(outcome) = creates.join_next().await {
        assert!(matches!(outcome.unwrap(), CreateOutcome::Created(_)));
    }
    let claims = store
        .tasks()
        .claim("a worker of the tests", limits::ACTIVE_TASKS_MAX, &[])
        .await
        .unwrap();
    let mut settles = tokio::task::JoinSet::new();
    for claim in claims {
        let store = store.clone();
        settles.spawn(async move {
            let failed = Settlement::Failed(FailureMessage::new("It was a test"));
            store
                .tasks()
                .settle(
                    &claim.task_id,
                    claim.attempt,
                    failed,
                    upscale_store::Spent::slot(0.1),
                )
                .await
                .unwrap()
        });
    }
    while let Some(outcome) = settles.join_next().await {
        assert_eq!(outcome.unwrap(), FenceOutcome::Done);
    }
}

#[test]
fn after_2500_tasks_the_day_is_full_until_midnight_utc() {
    let mut world = World::prepare(&[]);
    // Not one of the judged: its tasks are made in the store, behind the clients' backs.
    let account = world.operator.create_account("a busy customer");
    world.operator.credit(&account, "100", "first purchase");
    let key = world.operator.create_key(&account, None);
    let day = Clock::System.now().utc_day();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let id = AccountId::parse(&account).unwrap();
        let options = StoreOptions::default();
        let store = Store::open_sqlite(&world.data(), Clock::System, options)
            .await
            .unwrap();
        for round in 0..limits::DAILY_TASKS_MAX / limits::ACTIVE_TASKS_MAX {
            accept_and_fail(&store, &id, round).await;
        }
    });
    world.serve_again();
    let customer = world.client(&account, &key.key);
    let order = order("https://images.upscale-tests.org/a.png", 2);
    let refused = customer.create("one-too-many", &order);
    if Clock::System.now().utc_day() != day {
        eprintln!("left out: midnight UTC passed during the test, and the day is a new one");
        return;
    }
    let refused = refused.expect(429, "daily_limit_exceeded");
    let left = Clock::System
        .now()
        .next_utc_day()
        .seconds_since(Clock::System.now());
    let retry_after: i64 = refused.header("retry-after").parse().unwrap();
    assert!(
        (left..=left + 60).contains(&retry_after),
        "{retry_after}, {left} s are left"
    );
    // Made behind the recorder's back, and so asked for behind it.
    let bearer = format!("Bearer {}", key.key);
    let headers = [
        ("authorization", bearer.as_str()),
        ("content-type", "application/json"),
        ("idempotency-key", "daily-0-0"),
    ];
    let body = order.to_string();
    let old = customer.send("POST", "/api/v1/upscales", &headers, Some(body.as_bytes()));
    assert_eq!(
        (old.status, old.header("idempotent-replayed")),
        (202, "true")
    );
    assert_eq!(world.operator.money(&account), (100_000, 0, 0));
}

#[test]
fn what_could_not_be_done_in_time_is_refused_before_anything_is_reserved() {
    let world = World::start_with(&["--workers", "1", "--deadline", "5"]);
    let customer = world.customer("2");
    let bytes = Picture::render(8, 8, 2).png();
    let url = world.serve_so("/held.png", Behaviour::Held(bytes), (8, 8));
    customer
        .create("first-key", &order(&url, 2))
        .expect(202, "");
    // One job of 3 s, as long as none was measured, fills the 60 % of the deadline that a prediction may.
    let refused = customer
        .create("second-key", &order(&url, 2))
        .expect(503, "service_unavailable");
    let retry_after: u32 = refused.header("retry-after").parse().unwrap();
    assert!((1..=60).contains(&retry_after), "{retry_after}");
    assert_eq!(world.operator.money(&customer.account), (1_300, 700, 0));
}

#[test]
fn a_task_that_is_not_done_by_its_deadline_fails_and_is_refunded() {
    let world = World::start_with(&["--workers", "1", "--deadline", "5"]);
    let customer = world.customer("1");
    let bytes = Picture::render(8, 8, 2).png();
    let url = world.serve_so("/held.png", Behaviour::Held(bytes), (8, 8));
    customer.fail("late-key", &order(&url, 2));
    assert_eq!(world.operator.money(&customer.account), (1_000, 0, 0));
}

#[test]
fn while_nothing_can_be_written_creates_are_put_off_and_the_same_key_settles_them() {
    let world = World::start();
    let customer = world.customer("1");
    let url = world.picture("/small.png", 8, 8);
    let database = rusqlite::Connection::open(world.data().join("upscale.db")).unwrap();
    database.execute_batch("BEGIN IMMEDIATE").unwrap();
    let put_off = customer.create("patient-key", &order(&url, 2));
    let answer = (put_off.status, put_off.code());
    let expected = [(503, "service_unavailable"), (504, "upstream_timeout")];
    assert!(
        expected
            .iter()
            .any(|(status, code)| (*status, (*code).to_owned()) == answer),
        "{answer:?}"
    );
    put_off.header("retry-after");
    let visitor = customer.send("GET", "/readyz", &[], None);
    assert_eq!(
        (visitor.status, visitor.code().as_str()),
        (503, "service_unavailable")
    );
    database.execute_batch("ROLLBACK").unwrap();

    customer.upscale("patient-key", &order(&url, 2));
    assert_eq!(world.operator.money(&customer.account), (300, 0, 700));
}

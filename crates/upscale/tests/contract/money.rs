//! Credits as the operator sees them: bought once, reserved at acceptance, charged on success, returned on failure.

use std::path::Path;

use serde_json::json;
use tempfile::TempDir;
use upscale_core::{
    AccountId, Clock, Credits, IdempotencyKey, NewTask, Parameters, RequestId, ResultFile, Scale,
    SourceUrl, random_token,
};
use upscale_store::{CreateOutcome, FenceOutcome, Settlement, Spent, Store, StoreOptions};

use crate::harness::{
    World,
    client::order,
    image_host::Behaviour,
    operator::{Operator, thousandths},
    pictures::Picture,
};

#[test]
fn credits_are_reserved_then_charged_and_a_failure_returns_them() {
    let world = World::start();
    let customer = world.customer("10");
    let money = || world.operator.money(&customer.account);
    let bytes = Picture::render(8, 8, 2).png();
    let held = world.serve_so("/held.png", Behaviour::Held(bytes), (8, 8));
    let bad = world.host.set("/gone.png", Behaviour::Status(403));
    assert_eq!(money(), (10_000, 0, 0));

    let task = customer
        .create("first-key", &order(&held, 4))
        .expect(202, "");
    assert_eq!(money(), (9_300, 700, 0));
    world.host.open_gate();
    customer.wait(&task.id());
    assert_eq!(money(), (9_300, 0, 700));

    customer.fail("second-key", &order(&bad, 4));
    assert_eq!(money(), (9_300, 0, 700));
}

#[test]
fn a_payment_is_credited_once_however_often_it_is_reported() {
    let world = World::start();
    let account = world.operator.create_account("Ann");
    let shown = world.operator.show(&account);
    assert_eq!(shown["account"], account);
    assert_eq!(
        (&shown["available"], &shown["activated"]),
        (&json!(0), &json!(false))
    );

    for _ in 0..3 {
        world.operator.credit(&account, "12.5", "invoice 7");
    }
    world.operator.credit(&account, "0.1", "invoice 8");
    let shown = world.operator.show(&account);
    assert_eq!(
        (&shown["available"], &shown["activated"]),
        (&json!(12.6), &json!(true))
    );
    assert_eq!(
        (&shown["reserved"], &shown["charged"]),
        (&json!(0), &json!(0))
    );
}

#[test]
fn a_reference_of_another_payment_an_unknown_account_and_bad_amounts_are_refused() {
    let world = World::start();
    let (ann, bob) = (
        world.operator.create_account("Ann"),
        world.operator.create_account("Bob"),
    );
    world.operator.credit(&ann, "5", "invoice 7");
    let no_one = upscale_core::AccountId::random().unwrap();
    for (account, credits, reference) in [
        (ann.as_str(), "6", "invoice 7"),
        (&bob, "5", "invoice 7"),
        (no_one.as_str(), "5", "invoice 9"),
        (&ann, "0", "invoice 10"),
        (&ann, "-5", "invoice 11"),
        (&ann, "0.0001", "invoice 12"),
        (&ann, "many", "invoice 13"),
    ] {
        let output = world.operator.output(&[
            "account",
            "credit",
            account,
            credits,
            "--reference",
            reference,
        ]);
        assert!(!output.status.success(), "{account} {credits} {reference}");
        assert!(!output.stderr.is_empty(), "a refusal gives its reason");
    }
    assert_eq!(world.operator.money(&ann), (5_000, 0, 0));
    assert_eq!(world.operator.money(&bob), (0, 0, 0));
    let unknown = world.operator.output(&["account", "show", no_one.as_str()]);
    assert!(!unknown.status.success());
}

/// The commands on a data directory where the price changed between two tasks.
#[test]
fn a_task_is_shown_with_the_price_it_was_ordered_at() {
    let folder = TempDir::new().unwrap();
    let operator = Operator::new(folder.path().to_owned(), Vec::new());
    let account = operator.create_account("Ann");
    operator.credit(&account, "10", "invoice 7");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for price in [700, 900] {
        let id = runtime.block_on(done_at(folder.path(), &account, price));
        let shown = operator.run(&["task", "show", &id]);
        assert_eq!(thousandths(&shown["tasks"][0]["price"]), price);
        assert_eq!(shown["tasks"][0]["scale"], 4);
        assert_eq!(shown["tasks"][0]["face_enhance"], true);
    }
    let listed = operator.run(&["task", "list", "--account", &account]);
    let listed = listed["tasks"].as_array().unwrap();
    let prices: Vec<i64> = listed
        .iter()
        .map(|one| thousandths(&one["price"]))
        .collect();
    assert_eq!(prices, [900, 700], "newest first");
    let ledger = operator.run(&["account", "ledger", &account]);
    let charges = ledger["lines"].as_array().unwrap().iter();
    let charges = charges.filter(|line| line["kind"] == "charge");
    let charges: Vec<i64> = charges.map(|line| thousandths(&line["amount"])).collect();
    assert_eq!(charges, [900, 700], "newest first");
    assert_eq!(operator.money(&account), (8_400, 0, 1_600));
}

/// A task that was ordered when one cost this many thousandths, and succeeded.
async fn done_at(data: &Path, account: &str, price: i64) -> String {
    let options = StoreOptions {
        price: Credits::from_thousandths(price),
        ..StoreOptions::default()
    };
    let store = Store::open_sqlite(data, Clock::System, options)
        .await
        .unwrap();
    let account = AccountId::parse(account).unwrap();
    let key = IdempotencyKey::parse(format!("ordered-at-{price}").as_bytes()).unwrap();
    let task = NewTask {
        source_url: SourceUrl::parse("https://images.upscale-tests.org/a.png").unwrap(),
        parameters: Parameters {
            face_enhance: true,
            ..Parameters::at(Scale::X4)
        },
    };
    let request = RequestId::random().unwrap();
    let created = store.tasks().create(&account, &key, &task, &request).await;
    assert!(matches!(created, Ok(CreateOutcome::Created(_))));
    let claim = store
        .tasks()
        .claim("a worker of the tests", 1, &[])
        .await
        .unwrap();
    let [claim] = claim.as_slice() else {
        panic!("one job is due: {claim:?}");
    };
    let done = Settlement::Succeeded(ResultFile {
        name: random_token().unwrap(),
        sha256: "0".repeat(64),
        size_bytes: 5,
        width: 8,
        height: 6,
        preview: None,
        look: None,
    });
    let spent = Spent::slot(0.1);
    let settled = store
        .tasks()
        .settle(&claim.task_id, claim.attempt, done, spent);
    assert_eq!(settled.await.unwrap(), FenceOutcome::Done);
    claim.task_id.to_string()
}

//! The price changes between two tasks: whatever shows one of them shows its own price, not today's.

use upscale_core::{
    AccountId, Credits, IdempotencyKey, NewTask, Parameters, Permission, RequestId, Scale,
    SourceUrl, TaskId,
};
use upscale_store::{CreateOutcome, Store, StoreOptions};

use crate::{
    admin::browser::{Admin, By, with_admin_of},
    console::browser::{Console, Page, with_console},
    harness::{App, IMAGE},
};

/// Orders from a store that asks this much for a task.
async fn ordered(store: &Store, account: &AccountId, key: &str) -> TaskId {
    let task = NewTask {
        source_url: SourceUrl::parse(IMAGE).unwrap(),
        parameters: Parameters::at(Scale::X2),
    };
    let key = IdempotencyKey::parse(key.as_bytes()).unwrap();
    let request = RequestId::random().unwrap();
    match store.tasks().create(account, &key, &task, &request).await {
        Ok(CreateOutcome::Created(task)) => task.id,
        other => panic!("{key:?}: {other:?}"),
    }
}

/// The store of the same rows for whom a task costs 0.9 credits; the application's asks 0.7.
async fn dearer(app: &App) -> Store {
    let options = StoreOptions {
        price: Credits::from_thousandths(900),
        ..StoreOptions::default()
    };
    Store::open_sqlite(&app.path(""), app.clock.clone(), options)
        .await
        .unwrap()
}

/// A success and a failure at each price.
struct Tasks {
    done: [(TaskId, &'static str); 2],
    failed: [(TaskId, &'static str); 2],
}

async fn tasks_at_both_prices(app: &App, account: &AccountId) -> Tasks {
    let dearer = dearer(app).await;
    let mut tasks = Vec::new();
    for (store, price) in [(&app.store, "0.7"), (&dearer, "0.9")] {
        let done = ordered(store, account, &format!("done-at-{price}")).await;
        app.succeed_next(b"a picture").await;
        let failed = ordered(store, account, &format!("failed-at-{price}")).await;
        app.fail_next("It is no image").await;
        tasks.push(((done, price), (failed, price)));
    }
    let [cheap, dear] = tasks.try_into().unwrap();
    Tasks {
        done: [cheap.0, dear.0],
        failed: [cheap.1, dear.1],
    }
}

#[tokio::test]
async fn every_page_and_answer_shows_what_a_task_cost_when_it_was_ordered() {
    with_console(async |console: &Console<'_>| {
        let app = console.app;
        let mut ann = console.signed_up("ann").await;
        let account = console.pay("ann", "10").await;
        let tasks = tasks_at_both_prices(app, &account).await;
        let running = ordered(&dearer(app).await, &account, "is-running").await;

        read_through_the_api(app, &account, &tasks, &running).await;

        for (id, price) in &tasks.done {
            let page = ann.get(&format!("/tasks/{id}")).await;
            page.has(&format!("<dd>{price} charged</dd>"));
        }
        for (id, price) in &tasks.failed {
            let page = ann.get(&format!("/tasks/{id}")).await;
            page.has(&format!("<dd>0 charged, {price} returned</dd>"));
        }
        check_list(&ann.get("/tasks").await);
        let overview = ann.get("/").await;
        overview.has("2 succeeded, 2 failed, 1.6 credits charged");
        overview.has("<td>0.9 reserved</td>");

        let file = ann.get("/credits/ledger.csv").await;
        for ((done, price), (failed, _)) in tasks.done.iter().zip(&tasks.failed) {
            for (kind, change, id) in [
                ("reserve", format!("-{price}"), done),
                ("charge", "0".to_owned(), done),
                ("refund", price.to_string(), failed),
            ] {
                file.has(&format!(",{kind},{price},{change},{id},"));
            }
        }

        with_admin_of(app, async |admin: &Admin<'_>| {
            let mut operator = admin.signed_in(By::Socket).await;
            for (id, price) in tasks.done.iter().chain(&tasks.failed) {
                let page = operator.get(&format!("/tasks/{id}")).await;
                page.has(price);
                page.lacks(if *price == "0.7" { "0.9" } else { "0.7" });
            }
            let page = operator.get(&format!("/accounts/{account}")).await;
            check_list(&page);
        })
        .await;
    })
    .await;
}

/// Each of the four sums stands there once.
fn check_list(page: &Page) {
    for money in ["0.7 charged", "0.9 charged"] {
        page.has(&format!(">{money}<"));
    }
    for price in ["0.7", "0.9"] {
        page.has(&format!(">0 charged, {price} returned<"));
    }
}

async fn read_through_the_api(app: &App, account: &AccountId, tasks: &Tasks, running: &TaskId) {
    let made = app
        .store
        .accounts()
        .create_key(account, Permission::All, "")
        .await;
    let key = made.unwrap().made().unwrap().1;
    let read = async |id: &TaskId| {
        let path = format!("/api/v1/upscales/{id}");
        let answer = app.request("GET", &path).key(key.reveal()).send().await;
        assert_eq!(answer.status, 200);
        answer.json()["usage"].clone()
    };
    for (id, price) in &tasks.done {
        assert_eq!(read(id).await["credits_charged"].to_string(), *price);
    }
    for (id, _) in &tasks.failed {
        assert_eq!(read(id).await["refund_status"], "refunded");
    }
    assert_eq!(read(running).await["credits_reserved"].to_string(), "0.9");
}

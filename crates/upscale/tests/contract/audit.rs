//! An audit that never finds anything is worthless: each kind of damage done by hand, found, and mended.

use std::{fs, path::PathBuf};

use rusqlite::Connection;
use serde_json::Value;

use crate::harness::{World, client::order};

/// What `audit` says when something is wrong: its exit status is 1.
fn breaches(world: &World) -> Vec<Value> {
    let output = world.operator.output(&["audit"]);
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["ok"], false);
    report["breaches"].as_array().unwrap().clone()
}

#[test]
fn an_account_whose_balance_is_not_its_ledger_gets_no_further_task_until_it_is_right() {
    let world = World::start();
    let (customer, other) = (world.customer("5"), world.customer("5"));
    let order = order(&world.picture("/small.png", 8, 8), 2);
    let database = Connection::open(world.data().join("upscale.db")).unwrap();
    let add = |credits: i64| {
        let update = "UPDATE account SET available = available + ?1 WHERE id = ?2";
        assert_eq!(
            database
                .execute(update, (credits, &customer.account))
                .unwrap(),
            1
        );
    };
    add(1);
    let found = breaches(&world);
    assert!(
        found.iter().any(|breach| breach["invariant"] == "I2"),
        "{found:?}"
    );
    // The sum of all accounts is wrong, too, and names none.
    assert!(
        found
            .iter()
            .all(|breach| breach["account"].is_null() || breach["account"] == customer.account),
        "{found:?}"
    );
    customer
        .create("first-key", &order)
        .expect(503, "service_unavailable");
    other.create("first-key", &order).expect(202, "");

    add(-1);
    assert_eq!(world.operator.audit_breaches(), Vec::<String>::new());
    customer.create("first-key", &order).expect(202, "");
}

/// The one result of a world that made one.
fn only_result(world: &World) -> PathBuf {
    let files = fs::read_dir(world.data().join("results")).unwrap();
    let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    files.retain(|file| {
        let name = file.to_string_lossy();
        name.ends_with(".png") && !name.ends_with(".thumb.png")
    });
    assert_eq!(files.len(), 1, "{files:?}");
    files.remove(0)
}

#[test]
fn a_charged_result_that_is_gone_or_cut_is_found() {
    let world = World::start();
    let customer = world.customer("1");
    let url = world.picture("/small.png", 8, 8);
    let ended = customer.upscale("first-key", &order(&url, 2));
    let file = only_result(&world);
    let bytes = fs::read(&file).unwrap();
    let is_found = || {
        let found = breaches(&world);
        assert!(
            found.iter().any(|breach| breach["invariant"] == "I7"),
            "{found:?}"
        );
    };
    fs::remove_file(&file).unwrap();
    is_found();
    assert_eq!(customer.fetch("GET", &ended.result_url(), &[]).status, 410);
    fs::write(&file, &bytes[..bytes.len() - 1]).unwrap();
    is_found();
    fs::write(&file, &bytes).unwrap();
    assert_eq!(world.operator.audit_breaches(), Vec::<String>::new());
}

#[test]
fn a_page_of_the_database_that_was_damaged_on_the_disk_is_found() {
    let mut world = World::start();
    let customer = world.customer("1");
    let url = world.picture("/small.png", 8, 8);
    customer.upscale("first-key", &order(&url, 2));
    world.finish();
    let path = world.data().join("upscale.db");
    // All of it in one file, whose bytes can be looked for.
    let database = Connection::open(&path).unwrap();
    let truncated = "PRAGMA wal_checkpoint(TRUNCATE)";
    database.query_row(truncated, [], |_| Ok(())).unwrap();
    database.close().unwrap();
    let whole = fs::read(&path).unwrap();
    // The columns of a ledger line stand one behind the other: kind, debit, credit.
    let line = b"purchasecash";
    let place = whole.windows(line.len()).position(|bytes| bytes == line);
    let place = place.unwrap();
    // The first byte of a page says what kind it is.
    let page = place - place % 4_096;
    for (place, byte, invariant) in [(place, b'q', "I13"), (page, 0xff, "I14")] {
        let mut bytes = whole.clone();
        bytes[place] = byte;
        fs::write(&path, &bytes).unwrap();
        let found = breaches(&world);
        assert!(
            found.iter().any(|breach| breach["invariant"] == invariant),
            "{invariant}: {found:?}"
        );
    }
    fs::write(&path, &whole).unwrap();
    assert_eq!(world.operator.audit_breaches(), Vec::<String>::new());
}

//! Databases of earlier programs: what they hold is the same after every migration, and the work goes on. While processes are
//! replaced one by one, programs of before and after a migration use one database: neither is refused what it does.

use std::collections::BTreeMap;

use upscale_core::{
    AccountId, Clock, Credits, RefundStatus, Scale, TaskId, TaskState, fingerprint,
};

use super::{
    earlier_rows::EARLIER_ROWS,
    home::{Commits, Home},
    setting::{NOON, Setting, example, on_every_engine, result_file},
};
use crate::{CreateOutcome, FenceOutcome, Settlement, Spent, StoreError};

/// Table and column, with whether a row must bring a value for it.
type Columns = BTreeMap<(String, String), bool>;

/// Every column of every table but the migrations' own.
fn columns(home: &Home) -> Columns {
    let sql = match home.engine() {
        "sqlite" => {
            "SELECT tables.name || ' ' || columns.name || ' ' || (\"notnull\" AND dflt_value IS NULL)
             FROM sqlite_schema AS tables JOIN pragma_table_info(tables.name) AS columns
             WHERE tables.type = 'table' AND tables.name NOT LIKE 'sqlite_%' AND tables.name <> 'refinery_schema_history'"
        }
        _ => {
            "SELECT table_name || ' ' || column_name || ' ' || CASE WHEN is_nullable = 'NO' AND column_default IS NULL
                 AND is_identity = 'NO' THEN 1 ELSE 0 END
             FROM information_schema.columns WHERE table_schema = 'public' AND table_name <> 'refinery_schema_history'"
        }
    };
    let lines = home.list_lines(sql);
    let parse = |line: &String| {
        let [table, column, needed] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        ((table.to_owned(), column.to_owned()), needed == "1")
    };
    lines.iter().map(parse).collect()
}

/// What these columns hold, table by table.
fn rows(home: &Home, columns: &Columns) -> BTreeMap<String, Vec<String>> {
    let mut tables = BTreeMap::<_, Vec<_>>::new();
    for (table, column) in columns.keys() {
        let text = format!("coalesce(CAST(\"{column}\" AS TEXT), 'null')");
        tables.entry(table.clone()).or_default().push(text);
    }
    let read = |(table, texts): (String, Vec<String>)| {
        let sql = format!(
            "SELECT {} AS line FROM {table} ORDER BY 1",
            texts.join(" || '|' || ")
        );
        let lines = home.list_lines(&sql);
        (table, lines)
    };
    tables.into_iter().map(read).collect()
}

/// A database of this schema with all that its program could have written. None has fewer rows than the one before.
fn fill(home: &Home, schema: i32) {
    let fingerprint = fingerprint(&example(Scale::X2));
    for (since, sql) in EARLIER_ROWS {
        if since <= schema {
            let sql = sql.replace("$FINGERPRINT", &fingerprint);
            home.try_sql(&sql)
                .unwrap_or_else(|error| panic!("schema {schema}, rows of {since}: {error}"));
        }
    }
}

fn account() -> AccountId {
    AccountId::parse("acc_00000000000000000000000001").unwrap()
}

fn task(number: u32) -> TaskId {
    TaskId::parse(&format!("ups_{number:026}")).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_every_earlier_schema_keeps_its_rows_and_the_work_goes_on() {
    for (schema, _) in EARLIER_ROWS {
        for home in Home::every_of_schema(schema).await {
            let known = columns(&home);
            fill(&home, schema);
            let before = rows(&home, &known);
            drop(home.open(&Clock::manual(NOON), Commits::Quick).await);
            let after = rows(&home, &known);
            assert_eq!(after, before, "schema {schema} on {}", home.engine());
            let at = Setting::new(home).await;
            at.check_books().await;
            go_on(&at, schema).await;
            at.check_books().await;
        }
    }
}

/// Every task that the earlier program left is found, and ends as it would have.
async fn go_on(at: &Setting, schema: i32) {
    let (account, tasks) = (account(), at.store.tasks());
    let before = at.account(&account).await;
    for number in [4, 5] {
        let state = at.task(&account, &task(number)).await.state;
        let is_right =
            matches!(&state, TaskState::Succeeded(file) if (file.width, file.height) == (8, 6));
        assert!(is_right, "task {number} of schema {schema}: {state:?}");
    }
    for (number, expected) in [(6, RefundStatus::Refunded), (7, RefundStatus::Pending)] {
        let state = at.task(&account, &task(number)).await.state;
        let is_right = matches!(&state, TaskState::Failed { refund, .. } if *refund == expected);
        assert!(is_right, "task {number} of schema {schema}: {state:?}");
    }
    assert_eq!(tasks.finish_refunds().await.unwrap(), 1);

    // A worker of before reports what it had claimed; the next job is claimed by one of now, the last is put off.
    let made = Settlement::Succeeded(result_file());
    let settled = tasks.settle(&task(2), 1, made, Spent::slot(3.0)).await;
    assert_eq!(settled.unwrap(), FenceOutcome::Done);
    let claim = at.claimed().await;
    assert_eq!(claim.task_id, task(1));
    assert_eq!(at.succeed(&claim).await, FenceOutcome::Done);
    at.clock.advance_seconds(30);
    let claim = at.claimed().await;
    assert_eq!((claim.task_id, claim.attempt), (task(3), 2));
    assert_eq!(at.fail(&claim).await, FenceOutcome::Done);

    let price = 700;
    let now = at.account(&account).await;
    assert_eq!((now.reserved, now.active_tasks), (Credits::ZERO, 0));
    let moved = now.available.thousandths() - before.available.thousandths();
    assert_eq!(moved, 2 * price, "two of five are refunded");
    let charged = now.charged.thousandths() - before.charged.thousandths();
    assert_eq!(charged, 2 * price);

    // The same request is the same task, with whatever program it was sent first.
    let again = at.order(&account, "number-1").await;
    assert!(
        matches!(&again, CreateOutcome::Replayed(it) if it.id == task(1)),
        "{again:?}"
    );
    if schema >= 6 {
        let again = at.order(&account, "-used-up-").await;
        assert!(
            matches!(&again, CreateOutcome::Replayed(it) if it.id == task(9)),
            "{again:?}"
        );
    }
    at.accepted(&account, "a new one").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_migration_asks_more_of_a_row_than_the_program_before_it_writes() {
    let newest = i32::try_from(EARLIER_ROWS.len()).unwrap() + 1;
    for schema in 2..=newest {
        let earlier = Home::every_of_schema(schema - 1).await;
        for (before, after) in earlier.iter().zip(Home::every_of_schema(schema).await) {
            let (had, has) = (columns(before), columns(&after));
            let what = |name: &_| format!("schema {schema} on {}: {name:?}", after.engine());
            for (name, needed) in &had {
                let now = has
                    .get(name)
                    .unwrap_or_else(|| panic!("{} is gone", what(name)));
                assert!(*now <= *needed, "{} is needed now", what(name));
            }
            for (name, needed) in &has {
                let is_of_a_new_table = had.keys().all(|(table, _)| *table != name.0);
                let is_known = had.contains_key(name);
                assert!(
                    is_known || is_of_a_new_table || !needed,
                    "{} is needed",
                    what(name)
                );
            }
        }
    }
}

/// Rows of an earlier program, written after the migration: it runs until it is replaced.
#[tokio::test(flavor = "multi_thread")]
async fn what_an_earlier_program_writes_beside_this_one_is_read_and_finished() {
    for (schema, _) in EARLIER_ROWS {
        for home in [Some(Home::sqlite()), Home::postgres()]
            .into_iter()
            .flatten()
        {
            drop(home.open(&Clock::manual(NOON), Commits::Quick).await);
            home.try_sql("DELETE FROM signing_key; DELETE FROM clock")
                .unwrap();
            fill(&home, schema);
            let at = Setting::new(home).await;
            at.check_books().await;
            go_on(&at, schema).await;
            at.check_books().await;
        }
    }
}

/// What a newer program does to the tables that are read whole, and the note that it did.
const NEWER: &str = "ALTER TABLE task ADD COLUMN of_tomorrow BIGINT; ALTER TABLE used_key ADD COLUMN of_tomorrow BIGINT;
    ALTER TABLE account ADD COLUMN of_tomorrow BIGINT; ALTER TABLE api_key ADD COLUMN of_tomorrow BIGINT;
    ALTER TABLE console_user ADD COLUMN of_tomorrow BIGINT; ALTER TABLE ledger ADD COLUMN of_tomorrow BIGINT;
    INSERT INTO refinery_schema_history SELECT version + 1, name, applied_on, checksum
        FROM refinery_schema_history ORDER BY version DESC LIMIT 1";

/// PostgreSQL refuses a statement that returns all columns and was prepared before one was added.
#[tokio::test]
async fn this_program_goes_on_when_a_newer_one_has_added_columns() {
    on_every_engine(async |at: &Setting| {
        at.plenty_of_slots().await;
        let account = at.account_for(20).await;
        // Every connection of the pool has its statements prepared.
        let first = at.accepted(&account, "first").await;
        for _ in 0..10 {
            let reads = (0..8).map(|_| at.task(&account, &first.id));
            futures_util::future::join_all(reads).await;
        }
        at.succeed(&at.claimed().await).await;
        let sql = NEWER.replace(
            "BIGINT",
            if at.home.engine() == "sqlite" {
                "INTEGER"
            } else {
                "BIGINT"
            },
        );
        at.home.try_sql(&sql).unwrap();

        // Customers see nothing of it: no read and no create is refused.
        let reads = (0..8).map(|_| at.task(&account, &first.id));
        let reads = futures_util::future::join_all(reads);
        let creates = async {
            for number in 0..8 {
                at.accepted(&account, &format!("later {number}")).await;
            }
        };
        let (found, ()) = futures_util::join!(reads, creates);
        assert!(
            found
                .iter()
                .all(|task| matches!(task.state, TaskState::Succeeded(_)))
        );
        let replayed = at.order(&account, "first").await;
        assert!(
            matches!(replayed, CreateOutcome::Replayed(_)),
            "{replayed:?}"
        );
        assert_eq!(at.account(&account).await.active_tasks, 8);

        // A worker's claim is put off once at most, and it asks again by itself.
        let claim = at.store.tasks().claim("worker", 1, &[]).await;
        let claim = match claim {
            Err(StoreError::Unavailable(_)) => at.claimed().await,
            other => other.unwrap().remove(0),
        };
        assert_eq!(at.fail(&claim).await, FenceOutcome::Done);
        let state = at.task(&account, &claim.task_id).await.state;
        let TaskState::Failed { refund, .. } = state else {
            panic!("{state:?}")
        };
        assert_eq!(refund, RefundStatus::Refunded);
    })
    .await;
}

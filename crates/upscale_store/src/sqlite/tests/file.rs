//! The file itself: who may read it, what happens when it cannot grow or is locked, what survives a stop.

use std::{os::unix::fs::PermissionsExt, path::Path, time::Duration};

use rusqlite::Connection;
use upscale_core::{Clock, RequestId, Scale, TaskState, limits};

use crate::{
    CreateOutcome, Store, StoreError, StoreOptions,
    conformance::setting::{Setting, example, idempotency_key, sqlite},
    sqlite::{Db, open::BUSY_TIMEOUT},
    tx::Tx,
};

fn file(store: &Store) -> &Db {
    match store {
        Store::Sqlite(db) => db,
        Store::Postgres(_) => panic!("this test is about the file"),
    }
}

fn outsider(at: &Setting) -> Connection {
    Connection::open(at.home.directory.path().join("upscale.db")).unwrap()
}

/// Caps how many pages the writing connection may use, as a full disk does; 0 lifts the cap.
async fn cap_pages(at: &Setting, pages: i64) {
    let db = file(&at.store);
    let pages = if pages == 0 {
        i64::from(u32::MAX - 1)
    } else {
        pages
    };
    db.write(async move |tx: &mut Tx| {
        let sql = format!("PRAGMA max_page_count = {pages}");
        tx.number(&sql, &[]).await
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn no_one_but_the_owner_reads_the_file() {
    let at = sqlite().await;
    at.account_for(1).await;
    for file in ["upscale.db", "upscale.db-wal"] {
        let mode = at
            .home
            .directory
            .path()
            .join(file)
            .metadata()
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
}

#[tokio::test]
async fn a_full_disk_is_unavailable_and_loses_nothing_and_passes() {
    let at = sqlite().await;
    at.plenty_of_slots().await;
    let account = at.account_for(20).await;
    let before = at.accepted(&account, "before").await;
    cap_pages(&at, 1).await;
    let mut refused = 0;
    for n in 0..200 {
        match at.store.accounts().create(&format!("{n:0>100}")).await {
            Ok(_) => {}
            Err(StoreError::Unavailable(_)) => refused += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert!(refused > 0, "the disk never filled");
    assert_eq!(
        at.task(&account, &before.id).await.state,
        TaskState::Processing
    );
    cap_pages(&at, 0).await;
    at.accepted(&account, "after").await;
    at.check_books().await;
}

#[tokio::test]
async fn one_full_write_does_not_take_its_neighbours_down_unheard() {
    let at = sqlite().await;
    cap_pages(&at, 1).await;
    let names: Vec<String> = (0..400).map(|n| format!("{n:0>100}")).collect();
    let made = names.iter().map(|name| at.store.accounts().create(name));
    let made = futures_util::future::join_all(made).await;
    cap_pages(&at, 0).await;
    let listed = at.store.accounts().list().await.unwrap();
    // Anyone who heard yes is there; anyone who is there heard yes.
    assert_eq!(
        listed.len(),
        made.iter().filter(|answer| answer.is_ok()).count()
    );
    assert!(made.iter().any(Result::is_err) && made.len() == 400);
}

#[tokio::test]
async fn a_lock_held_elsewhere_stops_writes_until_it_is_let_go_and_never_stops_reads() {
    let at = sqlite().await;
    let account = at.account_for(1).await;
    let other = outsider(&at);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let refused = at.store.check_writable().await;
    assert!(
        matches!(refused, Err(StoreError::Unavailable(_))),
        "{refused:?}"
    );
    assert_eq!(at.account(&account).await.available, limits::PRICE);
    other.execute_batch("ROLLBACK").unwrap();
    at.store.check_writable().await.unwrap();
}

#[tokio::test]
async fn opening_waits_for_longer_than_a_request_would() {
    let at = sqlite().await;
    let other = outsider(&at);
    // A new process has its keys to look at and its migrations to run.
    other
        .execute_batch("DELETE FROM signing_key; BEGIN IMMEDIATE")
        .unwrap();
    let dying = tokio::task::spawn_blocking(move || {
        std::thread::sleep(BUSY_TIMEOUT + Duration::from_secs(2));
        drop(other);
    });
    let directory = at.home.directory.path();
    Store::open_sqlite(directory, at.clock.clone(), StoreOptions::default())
        .await
        .unwrap();
    dying.await.unwrap();
}

#[tokio::test]
async fn a_store_dropped_in_the_middle_of_everything_opens_again_as_it_was() {
    let mut at = sqlite().await;
    let account = at.account_for(5).await;
    let (done, open) = (
        at.accepted(&account, "done").await,
        at.accepted(&account, "open").await,
    );
    at.succeed(&at.claimed().await).await;
    let claim = at.claimed().await;
    for _ in 0..3 {
        let options = StoreOptions::default();
        at.store = Store::open_sqlite(at.home.directory.path(), at.clock.clone(), options)
            .await
            .unwrap();
        assert!(matches!(
            at.task(&account, &done.id).await.state,
            TaskState::Succeeded(_)
        ));
        assert_eq!(
            at.task(&account, &open.id).await.state,
            TaskState::Processing
        );
        let replayed = at.order(&account, "open").await;
        assert!(
            matches!(replayed, CreateOutcome::Replayed(_)),
            "{replayed:?}"
        );
        at.check_books().await;
    }
    // The claim was the old process's, but its fence is still good.
    at.succeed(&claim).await;
    assert!(matches!(
        at.task(&account, &open.id).await.state,
        TaskState::Succeeded(_)
    ));
}

#[tokio::test]
async fn a_write_waiting_when_its_caller_goes_away_is_still_whole() {
    let at = sqlite().await;
    let account = at.account_for(1).await;
    let other = outsider(&at);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    {
        let mut order = std::pin::pin!(at.order(&account, "the key"));
        assert!(futures_util::poll!(order.as_mut()).is_pending());
    }
    other.execute_batch("ROLLBACK").unwrap();
    at.store.check_writable().await.unwrap();
    let now = at.order(&account, "the key").await;
    assert!(matches!(now, CreateOutcome::Replayed(_)), "{now:?}");
    at.check_books().await;
}

#[tokio::test]
async fn the_writing_connection_syncs_every_commit_and_the_reading_ones_cannot_write() {
    let at = sqlite().await;
    let db = file(&at.store);
    for (pragma, expected) in [("synchronous", 2), ("foreign_keys", 1), ("query_only", 0)] {
        let sql = format!("PRAGMA {pragma}");
        let set = db.write(async move |tx: &mut Tx| tx.number(&sql, &[]).await);
        assert_eq!(set.await.unwrap(), expected, "{pragma}");
    }
    let journal = db.read(async |tx: &mut Tx| {
        tx.find("PRAGMA journal_mode", &[], |row| row.string("journal_mode"))
            .await
    });
    assert_eq!(journal.await.unwrap().as_deref(), Some("wal"));
    let written = db
        .read(async |tx: &mut Tx| tx.execute("DELETE FROM probe", &[]).await)
        .await;
    assert!(
        matches!(written, Err(StoreError::Unavailable(_))),
        "{written:?}"
    );
}

#[tokio::test]
async fn a_file_that_was_moved_away_takes_no_writes_until_it_is_back() {
    let at = sqlite().await;
    let account = at.account_for(2).await;
    let directory = at.home.directory.path();
    let (file, away) = (directory.join("upscale.db"), directory.join("elsewhere.db"));
    std::fs::rename(&file, &away).unwrap();
    let (key, request) = (idempotency_key("the key"), RequestId::random().unwrap());
    let order = example(Scale::X2);
    let create = async || {
        at.store
            .tasks()
            .create(&account, &key, &order, &request)
            .await
    };
    let words = |refused: Result<_, StoreError>| match refused {
        Err(StoreError::Unavailable(words)) => words,
        other => panic!("{other:?}"),
    };
    assert!(words(at.store.check_writable().await).contains("is gone"));
    assert!(create().await.is_err());
    std::fs::copy(&away, &file).unwrap();
    assert!(words(at.store.check_writable().await).contains("another file"));
    std::fs::rename(&away, &file).unwrap();
    at.store.check_writable().await.unwrap();
    let created = create().await.unwrap();
    assert!(matches!(created, CreateOutcome::Created(_)), "{created:?}");
}

/// What opening says.
async fn refusal(directory: &Path) -> String {
    let opened = Store::open_sqlite(directory, Clock::System, StoreOptions::default()).await;
    opened.unwrap_err().to_string()
}

#[tokio::test]
async fn a_database_of_a_newer_program_is_refused_and_left_alone() {
    let at = sqlite().await;
    let newer =
        "INSERT INTO refinery_schema_history SELECT version + 94, name, applied_on, checksum
         FROM refinery_schema_history ORDER BY version DESC LIMIT 1";
    outsider(&at).execute_batch(newer).unwrap();
    let words = refusal(at.home.directory.path()).await;
    assert!(
        words.contains("newer upscale") && words.contains("version 1"),
        "{words}"
    );
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused_with_what_to_do() {
    let directory = tempfile::TempDir::new().unwrap();
    let path = directory.path().join("upscale.db");
    std::fs::write(&path, "x".repeat(8_192)).unwrap();
    let words = refusal(directory.path()).await;
    assert!(
        words.contains("damaged") && words.contains("backup"),
        "{words}"
    );
    let left = std::fs::read(&path).unwrap();
    assert!(left.iter().all(|byte| *byte == b'x'), "it was changed");
}

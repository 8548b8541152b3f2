//! Result files, and how long files and records are kept.

use std::{
    fs::File,
    ops::Range,
    time::{Duration, UNIX_EPOCH},
};

use bytes::Bytes;
use futures_util::TryStreamExt;
use upscale_core::{
    AccountId, ResultFile, Scale, TaskId, TaskState, Timestamp, limits, random_token,
};

use super::setting::{Setting, example, on_every_engine, result_file};
use crate::{CreateOutcome, Settlement};

const HOUR: i64 = 3_600;
const DAY: i64 = 86_400;

pub(super) async fn read(
    at: &Setting,
    name: &str,
    range: Option<Range<u64>>,
) -> Option<(u64, Vec<u8>)> {
    let body = at.results.open(name, range).await.unwrap()?;
    let parts: Vec<Bytes> = body.stream.try_collect().await.unwrap();
    Some((body.size_bytes, parts.concat()))
}

/// Dates a file of the result directory: the setting's clock is not the system's.
fn date(at: &Setting, file: &str, when: Timestamp) {
    let path = at.home.directory.path().join("results").join(file);
    let since = Duration::from_micros(u64::try_from(when.micros()).unwrap());
    File::options()
        .write(true)
        .open(path)
        .unwrap()
        .set_modified(UNIX_EPOCH + since)
        .unwrap();
}

/// A succeeded task whose file is there.
pub(super) async fn succeeded(
    at: &Setting,
    account: &AccountId,
    key: &str,
) -> (TaskId, ResultFile) {
    let task = at.accepted(account, key).await.id;
    let (claim, file) = (at.claimed().await, result_file());
    at.results
        .put(&file.name, Bytes::from_static(b"12345"))
        .await
        .unwrap();
    date(at, &format!("{}.png", file.name), at.store.now());
    let settlement = Settlement::Succeeded(file.clone());
    at.store
        .tasks()
        .settle(&task, claim.attempt, settlement, crate::Spent::slot(1.0))
        .await
        .unwrap();
    (task, file)
}

#[tokio::test]
async fn a_result_is_read_back_whole_or_in_part() {
    on_every_engine(async |at: &Setting| {
        let name = random_token().unwrap();
        assert_eq!(read(at, &name, None).await, None);
        let bytes: Vec<u8> = (0..100_000u32).map(|n| n as u8).collect();
        at.results.put(&name, bytes.clone().into()).await.unwrap();
        assert_eq!(read(at, &name, None).await, Some((100_000, bytes.clone())));
        for range in [0..1, 99_999..100_000, 10_000..60_000] {
            let part = bytes[range.start as usize..range.end as usize].to_vec();
            assert_eq!(read(at, &name, Some(range)).await, Some((100_000, part)));
        }
        at.results.delete(&name).await.unwrap();
        at.results.delete(&name).await.unwrap();
        assert_eq!(read(at, &name, None).await, None);
    })
    .await;
}

#[tokio::test]
async fn only_tokens_name_results() {
    on_every_engine(async |at: &Setting| {
        for name in [
            "",
            "a",
            "../upscale",
            "/etc/passwd",
            &"8".repeat(26),
            &"0".repeat(27),
        ] {
            assert!(
                at.results
                    .put(name, Bytes::from_static(b"x"))
                    .await
                    .is_err(),
                "{name:?}"
            );
            assert!(at.results.open(name, None).await.is_err(), "{name:?}");
            assert!(at.results.delete(name).await.is_err(), "{name:?}");
            assert_eq!(at.store.tasks().find_result(name).await.unwrap(), None);
        }
    })
    .await;
}

async fn is_removed(at: &Setting, file: &ResultFile) -> bool {
    let record = at.store.tasks().find_result(&file.name).await.unwrap();
    record.unwrap().removed
}

#[tokio::test]
async fn a_result_goes_an_hour_after_it_was_found_past_its_48_hours_and_its_record_stays() {
    on_every_engine(async |at: &Setting| {
        let sweep = async || at.store.sweep(&at.results).await.unwrap();
        let account = at.account_for(2).await;
        let (task, old) = succeeded(at, &account, "old").await;
        at.clock.advance_seconds(1);
        let (_, young) = succeeded(at, &account, "young").await;
        at.run(limits::RESULT_RETENTION_HOURS * HOUR - 2).await;
        assert_eq!(sweep().await, 0);
        at.clock.advance_seconds(HOUR);
        assert_eq!(
            sweep().await,
            0,
            "found past its time just now, not an hour ago"
        );
        at.clock.advance_seconds(HOUR - 1);
        assert_eq!(sweep().await, 0);
        assert!(read(at, &old.name, None).await.is_some());
        at.clock.advance_seconds(1);
        assert_eq!(sweep().await, 2);
        assert_eq!(sweep().await, 0);

        for file in [&old, &young] {
            assert_eq!(read(at, &file.name, None).await, None);
            assert!(is_removed(at, file).await);
        }
        let state = at.task(&account, &task).await.state;
        assert_eq!(state, TaskState::Succeeded(old));
        let audit = at.store.audit(Some(&at.results)).await.unwrap();
        assert_eq!(audit.breaches, []);
    })
    .await;
}

#[tokio::test]
async fn of_two_results_a_second_apart_the_younger_stays_a_sweep_longer() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(2).await;
        let (_, old) = succeeded(at, &account, "old").await;
        at.clock.advance_seconds(1);
        let (_, young) = succeeded(at, &account, "young").await;
        at.run(limits::RESULT_RETENTION_HOURS * HOUR - 1).await;
        assert_eq!(at.sweep_twice().await, 1);
        assert!(is_removed(at, &old).await && !is_removed(at, &young).await);
        assert!(read(at, &young.name, None).await.is_some());
        at.keep_looking(HOUR).await;
        assert_eq!(at.store.sweep(&at.results).await.unwrap(), 1);
    })
    .await;
}

#[tokio::test]
async fn a_sweep_cut_off_between_file_and_row_is_finished_by_the_next() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(1).await;
        let (_, file) = succeeded(at, &account, "the key").await;
        at.run(limits::RESULT_RETENTION_HOURS * HOUR).await;
        at.results.delete(&file.name).await.unwrap();
        assert!(!is_removed(at, &file).await);
        let audit = at.store.audit(Some(&at.results)).await.unwrap();
        assert_eq!(
            audit.breaches,
            [],
            "a file past its retention may be gone before its row says so"
        );
        at.sweep_twice().await;
        assert!(is_removed(at, &file).await);
    })
    .await;
}

#[tokio::test]
async fn a_file_that_no_task_names_goes_after_an_hour_and_no_other_file_does() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(1).await;
        let (_, kept) = succeeded(at, &account, "the key").await;
        let (orphan, fresh) = (random_token().unwrap(), random_token().unwrap());
        for name in [&orphan, &fresh] {
            at.results
                .put(name, Bytes::from_static(b"x"))
                .await
                .unwrap();
        }
        // What a write leaves that a crash cut off, and what someone else put there.
        let half = format!("{}.png#1", random_token().unwrap());
        for other in [&half, "notes.png", "notes.txt"] {
            std::fs::write(at.home.directory.path().join("results").join(other), b"x").unwrap();
            date(at, other, at.store.now());
        }
        date(at, &format!("{orphan}.png"), at.store.now());
        date(at, &format!("{fresh}.png"), at.store.now().plus_seconds(2));
        at.keep_looking(limits::ORPHAN_SECONDS + 1).await;
        assert_eq!(
            at.store.sweep(&at.results).await.unwrap(),
            2,
            "the orphan and the half"
        );
        assert_eq!(read(at, &orphan, None).await, None);
        assert!(read(at, &fresh, None).await.is_some());
        assert!(read(at, &kept.name, None).await.is_some());
        let left = std::fs::read_dir(at.home.directory.path().join("results"))
            .unwrap()
            .count();
        assert_eq!(left, 4);
    })
    .await;
}

#[tokio::test]
async fn records_are_forgotten_after_90_days_their_keys_after_180_and_the_ledger_never() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(10).await;
        let (old, file) = succeeded(at, &account, "old").await;
        at.accepted(&account, "old and failed").await;
        at.fail(&at.claimed().await).await;
        at.store
            .accounts()
            .count_create_request(&account)
            .await
            .unwrap();
        at.run(DAY).await;
        let (young, _) = succeeded(at, &account, "young").await;
        at.run((limits::RECORD_RETENTION_DAYS - 1) * DAY - HOUR)
            .await;
        at.sweep_twice().await;
        let find = async |task: &TaskId| at.store.tasks().find(&account, task).await.unwrap();
        assert!(find(&old).await.is_some());
        at.run(DAY).await;
        at.store.sweep(&at.results).await.unwrap();
        assert_eq!(find(&old).await, None);
        assert_eq!(
            at.store.tasks().find_result(&file.name).await.unwrap(),
            None
        );
        assert!(find(&young).await.is_some());
        replays_what_is_left(at, &account, &old, &file).await;

        at.run(limits::RECORD_RETENTION_DAYS * DAY).await;
        at.store.sweep(&at.results).await.unwrap();
        let ledger = at.store.accounts().list_ledger(&account, 100).await;
        assert_eq!(ledger.unwrap().len(), 7);
        let again = at.order(&account, "old").await;
        assert!(
            matches!(again, CreateOutcome::Created(_)),
            "the key is free again: {again:?}"
        );
    })
    .await;
}

/// The key of a forgotten record still names its task and charges nothing; nor does it name another.
async fn replays_what_is_left(at: &Setting, account: &AccountId, task: &TaskId, file: &ResultFile) {
    let before = at.account(account).await;
    let again = match at.order(account, "old").await {
        CreateOutcome::Replayed(again) => again,
        other => panic!("{other:?}"),
    };
    assert_eq!(again.id, *task);
    // A used key knows where the result is, and nothing of how it looks.
    let left = ResultFile {
        look: None,
        ..file.clone()
    };
    assert_eq!(again.state, TaskState::Succeeded(left));
    let failed = match at.order(account, "old and failed").await {
        CreateOutcome::Replayed(failed) => failed.state,
        other => panic!("{other:?}"),
    };
    assert!(matches!(failed, TaskState::Failed { .. }), "{failed:?}");
    let other = example(Scale::X4);
    let conflict = at.order_task(account, "old", &other).await;
    assert!(matches!(conflict, CreateOutcome::Conflict), "{conflict:?}");
    assert_eq!(at.account(account).await, before);
}

#[tokio::test]
async fn a_task_still_owed_is_not_forgotten_however_old() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(1).await;
        let task = at.accepted(&account, "the key").await.id;
        at.run((limits::RECORD_RETENTION_DAYS + 2) * DAY).await;
        at.store.sweep(&at.results).await.unwrap();
        assert_eq!(at.task(&account, &task).await.state, TaskState::Processing);
        assert_eq!(at.store.tasks().reap().await.unwrap(), 1);
        at.store.sweep(&at.results).await.unwrap();
        assert_eq!(at.store.tasks().find(&account, &task).await.unwrap(), None);
    })
    .await;
}

#[tokio::test]
async fn a_thumbnail_lives_and_dies_with_its_result() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(2).await;
        let (_, file) = succeeded(at, &account, "with a thumbnail").await;
        let orphan = random_token().unwrap();
        for name in [&file.name, &orphan] {
            at.results
                .put_thumbnail(name, Bytes::from_static(b"small"))
                .await
                .unwrap();
            date(at, &format!("{name}.thumb.png"), at.store.now());
        }
        let is_there = async |name: &str| {
            let found = at.results.open_thumbnail(name).await.unwrap();
            found.is_some_and(|body| body.size_bytes == 5)
        };
        assert!(is_there(&file.name).await && is_there(&orphan).await);
        assert!(
            at.results
                .put_thumbnail("../x", Bytes::new())
                .await
                .is_err()
        );
        at.keep_looking(limits::ORPHAN_SECONDS + 1).await;
        assert_eq!(
            at.store.sweep(&at.results).await.unwrap(),
            1,
            "the orphan alone"
        );
        assert!(is_there(&file.name).await && !is_there(&orphan).await);
        at.run(limits::RESULT_RETENTION_HOURS * HOUR).await;
        assert_eq!(at.sweep_twice().await, 1);
        assert!(!is_there(&file.name).await, "gone with its result");
    })
    .await;
}

#[tokio::test]
async fn the_audit_finds_a_thumbnail_of_another_size_and_misses_none() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(2).await;
        let mut files = Vec::new();
        for key in ["thumbnail 1", "thumbnail 2"] {
            let task = at.accepted(&account, key).await.id;
            let claim = at.claimed().await;
            let file = ResultFile {
                preview: Some(upscale_core::Preview {
                    thumbnail_bytes: 5,
                    focus_permille: [500; 2],
                }),
                ..result_file()
            };
            let bytes = Bytes::from_static(b"12345");
            at.results.put(&file.name, bytes).await.unwrap();
            let settlement = Settlement::Succeeded(file.clone());
            let settled =
                at.store
                    .tasks()
                    .settle(&task, claim.attempt, settlement, crate::Spent::slot(1.0));
            settled.await.unwrap();
            files.push(file);
        }
        let audit = async || at.store.audit(Some(&at.results)).await.unwrap().breaches;
        assert_eq!(audit().await, [], "a missing one is no breach");
        let short = Bytes::from_static(b"1234");
        at.results
            .put_thumbnail(&files[0].name, short)
            .await
            .unwrap();
        let found = audit().await;
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].detail.contains("4 bytes instead of 5"),
            "{found:?}"
        );
    })
    .await;
}

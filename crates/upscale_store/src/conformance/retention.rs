//! Result files, and how long files and records are kept.

use std::{
    fs::File,
    ops::Range,
    time::{Duration, UNIX_EPOCH},
};

use bytes::Bytes;
use futures_util::TryStreamExt;
use upscale_core::{AccountId, ResultFile, TaskId, TaskState, Timestamp, limits, random_token};

use super::setting::{Setting, on_every_engine, result_file};
use crate::{CreateOutcome, Settlement};

const HOUR: i64 = 3_600;
const DAY: i64 = 86_400;

async fn read(at: &Setting, name: &str, range: Option<Range<u64>>) -> Option<(u64, Vec<u8>)> {
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
async fn succeeded(at: &Setting, account: &AccountId, key: &str) -> (TaskId, ResultFile) {
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

#[tokio::test]
async fn a_result_goes_after_48_hours_and_its_record_stays() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(2).await;
        let (task, old) = succeeded(at, &account, "old").await;
        at.clock.advance_seconds(1);
        let (_, young) = succeeded(at, &account, "young").await;
        at.clock
            .advance_seconds(limits::RESULT_RETENTION_HOURS * HOUR - 2);
        assert_eq!(at.store.sweep(&at.results).await.unwrap(), 0);
        at.clock.advance_seconds(1);
        assert_eq!(at.store.sweep(&at.results).await.unwrap(), 1);
        assert_eq!(at.store.sweep(&at.results).await.unwrap(), 0);

        assert_eq!(read(at, &old.name, None).await, None);
        assert!(read(at, &young.name, None).await.is_some());
        assert!(
            at.store
                .tasks()
                .find_result(&old.name)
                .await
                .unwrap()
                .unwrap()
                .removed
        );
        assert!(
            !at.store
                .tasks()
                .find_result(&young.name)
                .await
                .unwrap()
                .unwrap()
                .removed
        );
        let state = at.task(&account, &task).await.state;
        assert_eq!(state, TaskState::Succeeded(old));
        let audit = at.store.audit(Some(&at.results)).await.unwrap();
        assert_eq!(audit.breaches, []);
    })
    .await;
}

#[tokio::test]
async fn a_sweep_cut_off_between_file_and_row_is_finished_by_the_next() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(1).await;
        let (_, file) = succeeded(at, &account, "the key").await;
        at.clock
            .advance_seconds(limits::RESULT_RETENTION_HOURS * HOUR);
        at.results.delete(&file.name).await.unwrap();
        assert!(
            !at.store
                .tasks()
                .find_result(&file.name)
                .await
                .unwrap()
                .unwrap()
                .removed
        );
        let audit = at.store.audit(Some(&at.results)).await.unwrap();
        assert_eq!(
            audit.breaches,
            [],
            "a file past its retention may be gone before its row says so"
        );
        at.store.sweep(&at.results).await.unwrap();
        assert!(
            at.store
                .tasks()
                .find_result(&file.name)
                .await
                .unwrap()
                .unwrap()
                .removed
        );
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
        // What a write leaves that a crash cut off, and what somebody else put there.
        let half = format!("{}.png#1", random_token().unwrap());
        for other in [&half, "notes.png", "notes.txt"] {
            std::fs::write(at.home.directory.path().join("results").join(other), b"x").unwrap();
            date(at, other, at.store.now());
        }
        date(at, &format!("{orphan}.png"), at.store.now());
        date(at, &format!("{fresh}.png"), at.store.now().plus_seconds(2));
        at.clock.advance_seconds(limits::ORPHAN_SECONDS + 1);
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
async fn records_and_their_keys_are_forgotten_after_90_days_and_the_ledger_stays() {
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
        at.clock.advance_seconds(DAY);
        let (young, _) = succeeded(at, &account, "young").await;
        at.clock
            .advance_seconds((limits::RECORD_RETENTION_DAYS - 1) * DAY);
        at.store.sweep(&at.results).await.unwrap();
        assert!(
            at.store
                .tasks()
                .find(&account, &old)
                .await
                .unwrap()
                .is_some()
        );
        at.clock.advance_seconds(DAY);
        at.store.sweep(&at.results).await.unwrap();
        assert_eq!(at.store.tasks().find(&account, &old).await.unwrap(), None);
        assert_eq!(
            at.store.tasks().find_result(&file.name).await.unwrap(),
            None
        );
        assert!(
            at.store
                .tasks()
                .find(&account, &young)
                .await
                .unwrap()
                .is_some()
        );
        assert_eq!(
            at.store
                .accounts()
                .list_ledger(&account, 100)
                .await
                .unwrap()
                .len(),
            7
        );
        let again = at.order(&account, "old").await;
        assert!(
            matches!(again, CreateOutcome::Created(_)),
            "the key is free again: {again:?}"
        );
    })
    .await;
}

#[tokio::test]
async fn a_task_still_owed_is_not_forgotten_however_old() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(1).await;
        let task = at.accepted(&account, "the key").await.id;
        at.clock
            .advance_seconds((limits::RECORD_RETENTION_DAYS + 2) * DAY);
        at.store.sweep(&at.results).await.unwrap();
        assert_eq!(at.task(&account, &task).await.state, TaskState::Processing);
        assert_eq!(at.store.tasks().reap().await.unwrap(), 1);
        at.store.sweep(&at.results).await.unwrap();
        assert_eq!(at.store.tasks().find(&account, &task).await.unwrap(), None);
    })
    .await;
}

//! A clock that steps far ahead or back while no one looks: nothing is deleted that was not due by the right clock.

use upscale_core::{limits, random_token};

use super::{
    retention::{read, succeeded},
    setting::{Setting, on_every_engine},
};
use crate::CreateOutcome;

const MINUTE: i64 = 60;
const HOUR: i64 = 3_600;
const DAY: i64 = 86_400;

async fn sweep(at: &Setting) -> u32 {
    at.store.sweep(&at.results).await.unwrap()
}

#[tokio::test]
async fn a_clock_that_is_days_ahead_for_less_than_an_hour_deletes_nothing() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(2).await;
        let (task, file) = succeeded(at, &account, "the key").await;
        let upload = random_token().unwrap();
        at.results.put(&upload, "x".into()).await.unwrap();
        for ahead in [3 * DAY, 100 * DAY, 300 * DAY] {
            at.clock.advance_seconds(ahead);
            for _ in 0..59 {
                assert_eq!(sweep(at).await, 0, "{ahead} s ahead");
                at.clock.advance_seconds(MINUTE);
            }
            let again = at.order(&account, "the key").await;
            assert!(matches!(again, CreateOutcome::Replayed(_)), "{again:?}");
            at.clock.advance_seconds(-ahead - 59 * MINUTE);
            assert_eq!(sweep(at).await, 0);
        }
        assert_eq!(
            at.store
                .tasks()
                .find(&account, &task)
                .await
                .unwrap()
                .map(|task| task.id),
            Some(task)
        );
        assert!(read(at, &file.name, None).await.is_some());
        assert!(
            read(at, &upload, None).await.is_some(),
            "nor what is being stored"
        );
    })
    .await;
}

#[tokio::test]
async fn what_a_wrong_clock_found_due_is_due_no_more_once_the_clock_is_right() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(1).await;
        let (_, file) = succeeded(at, &account, "the key").await;
        // Wrong for so long that the pause ends, and the sweep notes the result.
        at.run(3 * DAY).await;
        assert_eq!(sweep(at).await, 0);
        at.run(-3 * DAY).await;
        at.keep_looking(2 * HOUR).await;
        assert_eq!(sweep(at).await, 0);
        // When its time has come by the right clock, it is noted anew.
        at.run(limits::RESULT_RETENTION_HOURS * HOUR).await;
        assert_eq!(sweep(at).await, 0);
        assert!(read(at, &file.name, None).await.is_some());
        at.keep_looking(HOUR).await;
        assert_eq!(sweep(at).await, 1);
    })
    .await;
}

#[tokio::test]
async fn a_key_outlives_a_clock_that_forgot_its_record() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(2).await;
        let (task, _) = succeeded(at, &account, "the key").await;
        at.run(100 * DAY).await;
        at.sweep_twice().await;
        assert_eq!(at.store.tasks().find(&account, &task).await.unwrap(), None);
        let before = at.account(&account).await;
        match at.order(&account, "the key").await {
            CreateOutcome::Replayed(again) => assert_eq!(again.id, task),
            other => panic!("{other:?}"),
        }
        assert_eq!(at.account(&account).await, before);
    })
    .await;
}

#[tokio::test]
async fn a_step_is_told_by_anyone_who_looks_next_and_counts_for_all() {
    on_every_engine(async |at: &Setting| {
        at.clock.advance_seconds(2 * HOUR);
        let look = at.store.look_at_clock().await.unwrap();
        assert_eq!(look.pause_seconds, limits::DELETION_PAUSE_SECONDS);
        let other = at.home.open(&at.clock, super::home::Commits::Quick).await;
        at.clock.advance_seconds(MINUTE);
        let look = other.look_at_clock().await.unwrap();
        assert_eq!(look.pause_seconds, HOUR - MINUTE);
        assert_eq!(
            at.store.deletion_pause_seconds().await.unwrap(),
            HOUR - MINUTE
        );
        at.keep_looking(HOUR - MINUTE).await;
        assert_eq!(at.store.deletion_pause_seconds().await.unwrap(), 0);
    })
    .await;
}

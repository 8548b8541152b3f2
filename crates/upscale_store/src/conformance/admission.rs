//! Capacity: what would not be finished in time is turned away before anything is reserved.

use upscale_core::{Credits, SECONDS_PER_JOB_DEFAULT, limits};

use super::setting::{Setting, failure, on_every_engine};
use crate::CreateOutcome;

/// Fills the queue from as many accounts as it takes; how many tasks were accepted.
async fn fill(at: &Setting) -> u32 {
    for accepted in 0..10_000 {
        let account = at.account_for(1).await;
        match at.order(&account, "the key").await {
            CreateOutcome::Created(_) => {}
            CreateOutcome::Overloaded {
                retry_after_seconds,
            } => {
                assert!((1..=60).contains(&retry_after_seconds));
                assert_eq!(at.account(&account).await.reserved, Credits::ZERO);
                return accepted;
            }
            other => panic!("{other:?}"),
        }
    }
    panic!("10,000 tasks were accepted for one slot");
}

#[tokio::test]
async fn a_backlog_that_would_pass_the_deadline_is_turned_away_before_anything_is_reserved() {
    on_every_engine(async |at: &Setting| {
        let accepted = fill(at).await;
        // With one slot at the assumed pace, all that was accepted fits into the deadline.
        assert!(f64::from(accepted) * SECONDS_PER_JOB_DEFAULT <= limits::DEADLINE_SECONDS as f64);
        assert!(accepted > 20, "{accepted}");
    })
    .await;
}

#[tokio::test]
async fn bursts_of_some_accounts_do_not_turn_newcomers_away() {
    on_every_engine(async |at: &Setting| {
        let mut waiting = 0;
        for _ in 0..4 {
            let bursting = at.account_for(20).await;
            for number in 0..20 {
                let outcome = at.order(&bursting, &format!("the key {number}")).await;
                waiting += u32::from(matches!(outcome, CreateOutcome::Created(_)));
            }
        }
        // They want 80 of the 54 places that one slot has, and are turned away before the last ones.
        assert!((40..54).contains(&waiting), "{waiting}");
        let newcomer = at.account_for(1).await;
        let outcome = at.order(&newcomer, "the key").await;
        assert!(matches!(outcome, CreateOutcome::Created(_)), "{outcome:?}");
    })
    .await;
}

#[tokio::test]
async fn live_slots_widen_what_is_accepted_and_a_silent_worker_counts_no_more() {
    on_every_engine(async |at: &Setting| {
        let one_slot = fill(at).await;
        at.store.tasks().report_worker("two more", 2).await.unwrap();
        assert_eq!(at.store.tasks().queue_glance().await.unwrap().live_slots, 2);
        assert_eq!(fill(at).await, one_slot, "as many again fit into two slots");
        at.clock.advance_seconds(limits::LEASE_SECONDS);
        assert_eq!(at.store.tasks().queue_glance().await.unwrap().live_slots, 0);
        assert_eq!(fill(at).await, 0);
    })
    .await;
}

#[tokio::test]
async fn a_worker_that_stops_is_forgotten() {
    on_every_engine(async |at: &Setting| {
        at.store.tasks().report_worker("a", 2).await.unwrap();
        at.store.tasks().report_worker("b", 3).await.unwrap();
        at.store.tasks().report_worker("b", 4).await.unwrap();
        assert_eq!(at.store.tasks().queue_glance().await.unwrap().live_slots, 6);
        at.store.tasks().remove_worker("b").await.unwrap();
        assert_eq!(at.store.tasks().queue_glance().await.unwrap().live_slots, 2);
    })
    .await;
}

/// Seconds that a job is assumed to take.
async fn pace(at: &Setting) -> f64 {
    at.store
        .tasks()
        .queue_glance()
        .await
        .unwrap()
        .seconds_per_job
}

/// Claims a job and fails it after so many seconds on a slot.
async fn fail_after(at: &Setting, seconds: f64) {
    let claim = at.claimed().await;
    let spent = crate::Spent::slot(seconds);
    let settled = at
        .store
        .tasks()
        .settle(&claim.task_id, claim.attempt, failure(), spent);
    settled.await.unwrap();
}

#[tokio::test]
async fn the_measured_pace_moves_towards_what_jobs_take() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(30).await;
        let mut before = pace(at).await;
        assert_eq!(before, SECONDS_PER_JOB_DEFAULT);
        for n in 0..30 {
            at.accepted(&account, &format!("key {n}")).await;
            fail_after(at, 20.0).await;
            let after = pace(at).await;
            assert!(before < after && after < 20.0, "{before} to {after}");
            before = after;
        }
        assert!(before > 16.0, "after 30 jobs of 20 s it stands at {before}");
    })
    .await;
}

#[tokio::test]
async fn a_pace_that_is_no_number_changes_nothing() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(1).await;
        at.accepted(&account, "the key").await;
        fail_after(at, f64::NAN).await;
        assert_eq!(pace(at).await, SECONDS_PER_JOB_DEFAULT);
    })
    .await;
}

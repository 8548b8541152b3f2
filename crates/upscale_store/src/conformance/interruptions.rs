//! Attempts that end with their process or their lease: taken up again, and never held against the image.

use upscale_core::{AttemptFailure, FailureMessage, TaskState, limits};

use super::setting::{Setting, on_every_engine};
use crate::{FenceOutcome, Spent};

#[tokio::test]
async fn attempts_whose_lease_runs_out_never_fail_a_task_before_its_deadline() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(1).await;
        let task = at.accepted(&account, "the key").await;
        let times = limits::DEADLINE_SECONDS / limits::LEASE_SECONDS;
        for interruptions in 0..=times {
            let claim = at.claimed().await;
            assert_eq!(
                (i64::from(claim.interruptions), claim.crashes),
                (interruptions, 0)
            );
            at.clock.advance_seconds(limits::LEASE_SECONDS);
        }
        assert_eq!(at.store.tasks().reap().await.unwrap(), 1);
        let state = at.task(&account, &task.id).await.state;
        assert_eq!(
            failure_of(state),
            expected(&format!(
                ": its processing was interrupted {} times",
                times + 1
            ))
        );
    })
    .await;
}

#[tokio::test]
async fn a_task_that_never_began_is_told_so_at_its_deadline() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(2).await;
        let given_back = at.accepted(&account, "it is given back").await;
        let claim = at.claimed().await;
        let released = at.store.tasks().release(&claim.task_id, claim.attempt);
        assert_eq!(released.await.unwrap(), FenceOutcome::Done);
        let waits = at.accepted(&account, "it waits").await;
        at.clock.advance_seconds(limits::DEADLINE_SECONDS);
        assert_eq!(at.store.tasks().reap().await.unwrap(), 2);
        let waited = at.task(&account, &waits.id).await.state;
        assert_eq!(
            failure_of(waited),
            expected(": it was still waiting for its first attempt")
        );
        let began = at.task(&account, &given_back.id).await.state;
        assert_eq!(failure_of(began), expected(""));
    })
    .await;
}

fn expected(why: &str) -> String {
    let deadline = limits::DEADLINE_SECONDS;
    let text = format!("The image could not be processed within {deadline} seconds{why}.");
    FailureMessage::new(&text).as_str().to_owned()
}

fn failure_of(state: TaskState) -> String {
    match state {
        TaskState::Failed { message, .. } => message.as_str().to_owned(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_a_dead_worker_had_claimed_is_due_at_once_and_what_others_hold_stays_theirs() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(3).await;
        for key in ["the first", "the second", "the third"] {
            at.accepted(&account, key).await;
        }
        let tasks = at.store.tasks();
        let dead = tasks.claim("dead", 2, &[]).await.unwrap();
        let live = tasks.claim("live", 1, &[]).await.unwrap().remove(0);
        tasks.report_worker("dead", 2).await.unwrap();
        assert_eq!(tasks.end_leases("dead").await.unwrap(), 2);
        assert_eq!(tasks.end_leases("dead").await.unwrap(), 0);
        assert_eq!(tasks.queue_glance().await.unwrap().live_slots, 0);
        let again = tasks.claim("live", 3, &[]).await.unwrap();
        let ids = |claims: &[crate::Claim]| {
            let ids = claims.iter().map(|claim| claim.task_id);
            ids.collect::<std::collections::BTreeSet<_>>()
        };
        assert_eq!(ids(&again), ids(&dead));
        for claim in &again {
            assert_eq!(
                (claim.attempt, claim.interruptions, claim.crashes),
                (2, 1, 0)
            );
        }
        // The dead one speaks after all: the fence keeps it out.
        let stale = tasks.heartbeat(&dead[0].task_id, dead[0].attempt);
        assert_eq!(stale.await.unwrap(), FenceOutcome::Lost);
        let alive = tasks.heartbeat(&live.task_id, live.attempt);
        assert_eq!(alive.await.unwrap(), FenceOutcome::Done);
    })
    .await;
}

#[tokio::test]
async fn a_dead_workers_last_report_before_anyone_took_over_changes_nothing() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(1).await;
        at.accepted(&account, "the key").await;
        let claim = at.claimed().await;
        at.store.tasks().end_leases("worker").await.unwrap();
        assert_eq!(at.succeed(&claim).await, FenceOutcome::Lost);
        let failed = at.store.tasks().settle(
            &claim.task_id,
            claim.attempt,
            super::setting::failure(),
            Spent::slot(1.0),
        );
        assert_eq!(failed.await.unwrap(), FenceOutcome::Lost);
        let next = at.claimed().await;
        assert_eq!(at.succeed(&next).await, FenceOutcome::Done);
    })
    .await;
}

#[tokio::test]
async fn what_dies_with_its_process_again_and_again_waits_longer_each_time() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(1).await;
        at.accepted(&account, "the key").await;
        for delay_seconds in [0, 1, 2, 4] {
            at.claimed().await;
            at.store.tasks().end_leases("worker").await.unwrap();
            if delay_seconds > 0 {
                at.clock.advance_seconds(delay_seconds - 1);
                assert_eq!(at.store.tasks().claim("worker", 1, &[]).await.unwrap(), []);
                at.clock.advance_seconds(1);
            }
        }
        let claim = at.claimed().await;
        assert_eq!((claim.interruptions, claim.crashes), (4, 0));
        // Neither makes the other: its child may still crash once.
        let failures = claim.failures(AttemptFailure::Crash, at.clock.now());
        assert_eq!(failures.crashes, 1);
    })
    .await;
}

//! The queue: order, leases, the fence, and what counts as a crash.

use std::collections::HashSet;

use futures_util::future::join_all;
use upscale_core::{AttemptFailure, TaskState, limits};

use super::setting::{Setting, failure, on_every_engine, result_file};
use crate::{Claim, FenceOutcome, Settlement, StoreError};

#[tokio::test]
async fn jobs_are_claimed_in_order_of_arrival_and_none_twice() {
    on_every_engine(async |at: &Setting| {
        let mut expected = Vec::new();
        for n in 0..5 {
            let account = at.account_for(1).await;
            expected.push(at.accepted(&account, &format!("key {n}")).await.id);
        }
        let first = at.store.tasks().claim("one", 2, &[]).await.unwrap();
        let rest = at.store.tasks().claim("other", 10, &[]).await.unwrap();
        let claimed: Vec<_> = first
            .iter()
            .chain(&rest)
            .map(|claim| claim.task_id)
            .collect();
        assert_eq!(claimed, expected);
        assert_eq!(at.store.tasks().claim("third", 10, &[]).await.unwrap(), []);
        assert_eq!(at.store.tasks().claim("third", 0, &[]).await.unwrap(), []);
    })
    .await;
}

#[tokio::test]
async fn a_burst_of_twenty_interleaves_with_a_newcomer() {
    on_every_engine(async |at: &Setting| {
        let (burst, newcomer) = (at.account_for(20).await, at.account_for(1).await);
        for n in 0..20 {
            at.accepted(&burst, &format!("key {n}")).await;
        }
        at.clock.advance_seconds(3);
        let late = at.accepted(&newcomer, "one").await;
        let order: Vec<_> = at.store.tasks().claim("worker", 21, &[]).await.unwrap();
        let place = order
            .iter()
            .position(|claim| claim.task_id == late.id)
            .unwrap();
        // Two seconds behind for each task already active: the newcomer comes third.
        assert_eq!(place, 2);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_claimers_at_once_never_get_the_same_job() {
    on_every_engine(async |at: &Setting| {
        at.plenty_of_slots().await;
        for _ in 0..3 {
            let account = at.account_for(20).await;
            let keys: Vec<String> = (0..20).map(|n| format!("key {n}")).collect();
            join_all(keys.iter().map(|key| at.accepted(&account, key))).await;
        }
        let claims = join_all((0..40).map(|_| at.store.tasks().claim("worker", 2, &[]))).await;
        let claimed: Vec<_> = claims
            .into_iter()
            .flat_map(|claims| claims.unwrap())
            .map(|claim| claim.task_id)
            .collect();
        assert_eq!(claimed.len(), 60);
        assert_eq!(claimed.into_iter().collect::<HashSet<_>>().len(), 60);
    })
    .await;
}

#[tokio::test]
async fn a_heartbeat_keeps_a_claim_and_silence_loses_it() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(1).await;
        at.accepted(&account, "the key").await;
        let claim = at.claimed().await;
        assert_eq!(
            (claim.attempt, claim.crashes, claim.claimed_at),
            (1, 0, at.store.now())
        );
        for _ in 0..3 {
            at.clock.advance_seconds(limits::LEASE_SECONDS - 1);
            assert_eq!(at.store.tasks().claim("other", 1, &[]).await.unwrap(), []);
            let beat = at
                .store
                .tasks()
                .heartbeat(&claim.task_id, claim.attempt)
                .await
                .unwrap();
            assert_eq!(beat, FenceOutcome::Done);
        }
        at.clock.advance_seconds(limits::LEASE_SECONDS);
        let next = at.claimed().await;
        assert_eq!(
            (next.attempt, next.interruptions, next.crashes, next.task_id),
            (2, 1, 0, claim.task_id)
        );
    })
    .await;
}

/// Says everything a worker can say about a claim that is no longer its own.
async fn assert_lost(at: &Setting, stale: &Claim) {
    let (task, attempt) = (&stale.task_id, stale.attempt);
    let succeeded = Settlement::Succeeded(result_file());
    let transient = AttemptFailure::Transient;
    let answers = [
        at.store.tasks().heartbeat(task, attempt).await.unwrap(),
        at.store.tasks().release(task, attempt).await.unwrap(),
        at.store
            .tasks()
            .retry_later(task, attempt, transient, 0)
            .await
            .unwrap(),
        at.store
            .tasks()
            .settle(task, attempt, succeeded, crate::Spent::slot(1.0))
            .await
            .unwrap(),
        at.store
            .tasks()
            .settle(task, attempt, failure(), crate::Spent::slot(1.0))
            .await
            .unwrap(),
    ];
    assert_eq!(answers, [FenceOutcome::Lost; 5]);
}

#[tokio::test]
async fn no_report_of_a_lost_claim_takes_effect() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(2).await;
        let task = at.accepted(&account, "the key").await;
        let stale = at.claimed().await;
        at.clock.advance_seconds(limits::LEASE_SECONDS);
        let live = at.claimed().await;
        assert_lost(at, &stale).await;
        assert_eq!(
            at.task(&account, &task.id).await.state,
            TaskState::Processing
        );
        at.store
            .tasks()
            .release(&live.task_id, live.attempt)
            .await
            .unwrap();
        assert_lost(at, &stale).await;
        assert_lost(at, &live).await;
        let last = at.claimed().await;
        assert_eq!(at.succeed(&last).await, FenceOutcome::Done);
        assert_lost(at, &last).await;
        assert_eq!(at.account(&account).await.charged, limits::PRICE);
    })
    .await;
}

#[tokio::test]
async fn an_expired_lease_that_no_one_took_over_is_still_acknowledged() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(1).await;
        at.accepted(&account, "the key").await;
        let claim = at.claimed().await;
        at.clock.advance_seconds(limits::LEASE_SECONDS + 1);
        assert_eq!(at.succeed(&claim).await, FenceOutcome::Done);
    })
    .await;
}

#[tokio::test]
async fn a_release_counts_nothing_and_is_due_at_once() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(1).await;
        at.accepted(&account, "the key").await;
        for attempt in 1..=5 {
            let claim = at.claimed().await;
            assert_eq!(
                (
                    claim.attempt,
                    claim.crashes + claim.interruptions,
                    claim.transient_failures
                ),
                (attempt, 0, 0)
            );
            let released = at
                .store
                .tasks()
                .release(&claim.task_id, claim.attempt)
                .await
                .unwrap();
            assert_eq!(released, FenceOutcome::Done);
        }
    })
    .await;
}

#[tokio::test]
async fn a_retry_waits_for_its_delay_and_counts_its_kind() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(1).await;
        at.accepted(&account, "the key").await;
        let first = at.claimed().await;
        let (task, transient) = (&first.task_id, AttemptFailure::Transient);
        at.store
            .tasks()
            .retry_later(task, first.attempt, transient, 5_000)
            .await
            .unwrap();
        at.clock.advance_seconds(4);
        assert_eq!(at.store.tasks().claim("worker", 1, &[]).await.unwrap(), []);
        at.clock.advance_seconds(1);
        let second = at.claimed().await;
        assert_eq!((second.transient_failures, second.crashes), (1, 0));
        at.store
            .tasks()
            .retry_later(task, second.attempt, AttemptFailure::Crash, 0)
            .await
            .unwrap();
        let third = at.claimed().await;
        assert_eq!((third.transient_failures, third.crashes), (1, 1));
        let permanent = AttemptFailure::Permanent;
        let refused = at
            .store
            .tasks()
            .retry_later(task, third.attempt, permanent, 0)
            .await;
        assert!(
            matches!(refused, Err(StoreError::Refused(_))),
            "{refused:?}"
        );
    })
    .await;
}

#[tokio::test]
async fn the_glance_counts_waiting_and_claimed_jobs_and_the_age_of_the_oldest() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(3).await;
        assert_eq!(
            at.store
                .tasks()
                .queue_glance()
                .await
                .unwrap()
                .oldest_seconds,
            0
        );
        for n in 0..3 {
            at.accepted(&account, &format!("key {n}")).await;
        }
        at.claimed().await;
        at.clock.advance_seconds(7);
        let glance = at.store.tasks().queue_glance().await.unwrap();
        assert_eq!(
            (glance.waiting, glance.claimed, glance.oldest_seconds),
            (2, 1, 7)
        );
        at.clock.advance_seconds(limits::LEASE_SECONDS);
        let glance = at.store.tasks().queue_glance().await.unwrap();
        assert_eq!(
            (glance.waiting, glance.claimed),
            (3, 0),
            "an expired lease waits"
        );
    })
    .await;
}

#[tokio::test]
async fn a_job_added_before_anyone_waits_still_wakes_the_claimer() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(1).await;
        at.accepted(&account, "the key").await;
        at.store.job_added().await;
        let claim = at.claimed().await;
        at.store
            .tasks()
            .release(&claim.task_id, claim.attempt)
            .await
            .unwrap();
        at.store.job_added().await;
    })
    .await;
}

#[tokio::test]
async fn a_source_that_todays_rules_refuse_fails_and_refunds_and_holds_no_one_up() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(2).await;
        let refused = at.accepted(&account, "refused").await;
        at.home
            .tamper("UPDATE task SET source_url = 'https://localhost/a.png'");
        let behind = at.accepted(&account, "behind it").await;
        assert_eq!(at.claimed().await.task_id, behind.id);
        let state = at.task(&account, &refused.id).await.state;
        assert!(matches!(state, TaskState::Failed { .. }), "{state:?}");
        assert_eq!(at.account(&account).await.available, limits::PRICE);
    })
    .await;
}

#[tokio::test]
async fn a_claim_passes_over_accounts_that_may_not_start() {
    on_every_engine(async |at: &Setting| {
        let [full, other] = [at.account_for(2).await, at.account_for(1).await];
        for key in ["the first key", "the second key"] {
            at.accepted(&full, key).await;
        }
        let behind = at.accepted(&other, "another key").await;
        let claims = at.store.tasks().claim("worker", 2, &[full]).await.unwrap();
        let tasks: Vec<_> = claims.iter().map(|claim| claim.task_id).collect();
        assert_eq!(tasks, [behind.id]);
        let both = [full, other];
        assert_eq!(
            at.store.tasks().claim("worker", 2, &both).await.unwrap(),
            []
        );
        let left = at.store.tasks().claim("worker", 9, &[other]).await.unwrap();
        assert_eq!(left.len(), 2);
        assert!(left.iter().all(|claim| claim.account_id == full));
    })
    .await;
}

#[tokio::test]
async fn giving_way_counts_nothing_and_the_first_transient_failure_starts_the_clock() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(1).await;
        at.accepted(&account, "the key").await;
        let mut claim = at.claimed().await;
        let mut seen = Vec::new();
        for failure in [
            AttemptFailure::Busy,
            AttemptFailure::Transient,
            AttemptFailure::Busy,
            AttemptFailure::Transient,
        ] {
            let (task, attempt) = (&claim.task_id, claim.attempt);
            let given_back = at.store.tasks().retry_later(task, attempt, failure, 2_000);
            assert_eq!(given_back.await.unwrap(), FenceOutcome::Done);
            at.clock.advance_seconds(10);
            claim = at.claimed().await;
            let since = claim.failures(AttemptFailure::Busy, at.clock.now());
            seen.push((since.transient, since.crashes, since.failing_for_seconds));
        }
        assert_eq!(seen, [(0, 0, 0), (1, 0, 10), (1, 0, 20), (2, 0, 30)]);
    })
    .await;
}

//! How tasks end: charged once, refunded once, at their deadline at the latest, whatever is cut off between.

use upscale_core::{Credits, RefundStatus, TaskState, limits};

use super::setting::{Setting, failure, on_every_engine, result_file};
use crate::{FenceOutcome, Settlement, StoreError};

#[tokio::test]
async fn a_success_charges_once_and_shows_its_file() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(1).await;
        let task = at.accepted(&account, "the key").await;
        let (claim, file) = (at.claimed().await, result_file());
        let settlement = Settlement::Succeeded(file.clone());
        let settled = at
            .store
            .tasks()
            .settle(&task.id, claim.attempt, settlement, crate::Spent::slot(2.0))
            .await
            .unwrap();
        assert_eq!(settled, FenceOutcome::Done);
        assert_eq!(
            at.task(&account, &task.id).await.state,
            TaskState::Succeeded(file.clone())
        );
        let standing = at.account(&account).await;
        assert_eq!(
            (standing.charged, standing.reserved),
            (limits::PRICE, Credits::ZERO)
        );
        assert_eq!(
            (standing.available, standing.active_tasks),
            (Credits::ZERO, 0)
        );
        let found = at
            .store
            .tasks()
            .find_result(&file.name)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(
            (found.task_id, found.file, found.removed),
            (task.id, file, false)
        );
        assert_eq!(found.finished_at, at.store.now());
        assert_eq!(at.succeed(&claim).await, FenceOutcome::Lost);
    })
    .await;
}

#[tokio::test]
async fn a_failure_returns_the_credits_and_they_buy_the_next_task() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(1).await;
        let task = at.accepted(&account, "the key").await;
        assert_eq!(at.fail(&at.claimed().await).await, FenceOutcome::Done);
        let TaskState::Failed { message, refund } = at.task(&account, &task.id).await.state else {
            panic!("not failed");
        };
        assert_eq!(
            message.as_str(),
            "The source answered 404. No credits were charged."
        );
        assert_eq!(refund, RefundStatus::Refunded);
        at.accepted(&account, "another key").await;
    })
    .await;
}

/// Fails one task and cuts off there, as a crash would.
async fn fail_without_refund(at: &Setting) -> (upscale_core::AccountId, upscale_core::Task) {
    let account = at.account_for(1).await;
    let task = at.accepted(&account, "the key").await;
    let claim = at.claimed().await;
    let first_step = at
        .store
        .tasks()
        .settle_first_step(&task.id, claim.attempt, failure(), crate::Spent::slot(1.0))
        .await
        .unwrap();
    assert_eq!(first_step, FenceOutcome::Done);
    (account, task)
}

#[tokio::test]
async fn between_failing_and_refunding_the_task_says_pending_and_the_credits_are_held() {
    on_every_engine(async |at: &Setting| {
        let (account, task) = fail_without_refund(at).await;
        let state = at.task(&account, &task.id).await.state;
        let TaskState::Failed { refund, .. } = state else {
            panic!("{state:?}")
        };
        assert_eq!(refund, RefundStatus::Pending);
        let standing = at.account(&account).await;
        assert_eq!(
            (standing.reserved, standing.active_tasks),
            (limits::PRICE, 0)
        );
        at.check_books().await;
    })
    .await;
}

#[tokio::test]
async fn a_refund_that_a_crash_left_pending_is_finished_once_by_anyone_who_comes_next() {
    on_every_engine(async |at: &Setting| {
        let (account, task) = fail_without_refund(at).await;
        assert_eq!(at.store.tasks().finish_refunds().await.unwrap(), 1);
        assert_eq!(at.store.tasks().finish_refunds().await.unwrap(), 0);
        let state = at.task(&account, &task.id).await.state;
        assert!(matches!(
            state,
            TaskState::Failed {
                refund: RefundStatus::Refunded,
                ..
            }
        ));
        assert_eq!(at.account(&account).await.available, limits::PRICE);
    })
    .await;
}

#[tokio::test]
async fn nothing_past_its_deadline_is_handed_out_and_the_reaper_fails_and_refunds_it() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(2).await;
        let waiting = at.accepted(&account, "waiting").await;
        at.clock.advance_seconds(1);
        let later = at.accepted(&account, "a second later").await;
        assert_eq!(at.store.tasks().reap().await.unwrap(), 0);
        at.clock.advance_seconds(limits::DEADLINE_SECONDS - 1);
        assert_eq!(at.claimed().await.task_id, later.id);
        assert_eq!(at.store.tasks().reap().await.unwrap(), 1);
        let state = at.task(&account, &waiting.id).await.state;
        let TaskState::Failed { message, refund } = state else {
            panic!("{state:?}")
        };
        assert!(message.as_str().contains("270 seconds"), "{message:?}");
        assert_eq!(refund, RefundStatus::Refunded);
        // A task in the middle of an attempt ends too, and the attempt is told when it next speaks.
        at.clock.advance_seconds(1);
        assert_eq!(at.store.tasks().reap().await.unwrap(), 1);
        assert_eq!(
            at.store.tasks().heartbeat(&later.id, 1).await.unwrap(),
            FenceOutcome::Lost
        );
        assert_eq!(at.account(&account).await.available.thousandths(), 1_400);
    })
    .await;
}

#[tokio::test]
async fn a_result_that_arrives_before_the_reaper_is_a_success() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(1).await;
        at.accepted(&account, "the key").await;
        let claim = at.claimed().await;
        at.clock.advance_seconds(limits::DEADLINE_SECONDS + 1);
        assert_eq!(at.succeed(&claim).await, FenceOutcome::Done);
        assert_eq!(at.store.tasks().reap().await.unwrap(), 0);
    })
    .await;
}

#[tokio::test]
async fn the_reaper_ends_more_than_a_page_in_several_calls() {
    on_every_engine(async |at: &Setting| {
        at.plenty_of_slots().await;
        for _ in 0..6 {
            let account = at.account_for(20).await;
            for n in 0..20 {
                at.accepted(&account, &format!("key {n}")).await;
            }
        }
        at.clock.advance_seconds(limits::DEADLINE_SECONDS);
        let reaped = [
            at.store.tasks().reap().await.unwrap(),
            at.store.tasks().reap().await.unwrap(),
        ];
        assert_eq!(reaped, [100, 20]);
    })
    .await;
}

#[tokio::test]
async fn a_clock_that_steps_back_an_hour_delays_no_recovery_and_no_deadline() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(2).await;
        let (claimed, waiting) = (
            at.accepted(&account, "claimed").await,
            at.accepted(&account, "waiting").await,
        );
        at.claimed().await;
        at.clock.advance_seconds(-3_600);
        assert_eq!(at.store.tasks().reap().await.unwrap(), 0);
        at.clock.advance_seconds(limits::LEASE_SECONDS);
        let due = at.store.tasks().claim("worker", 2, &[]).await.unwrap();
        let due: Vec<_> = due
            .into_iter()
            .map(|claim| (claim.task_id, claim.interruptions))
            .collect();
        assert_eq!(due, [(claimed.id, 1), (waiting.id, 0)]);
        at.clock
            .advance_seconds(limits::DEADLINE_SECONDS - limits::LEASE_SECONDS);
        assert_eq!(at.store.tasks().reap().await.unwrap(), 2);
    })
    .await;
}

#[tokio::test]
async fn a_task_that_ends_after_the_clock_stepped_back_did_not_end_before_it_began() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(1).await;
        let task = at.accepted(&account, "the key").await;
        let (claim, file) = (at.claimed().await, result_file());
        at.clock.advance_seconds(-100);
        let settlement = Settlement::Succeeded(file.clone());
        at.store
            .tasks()
            .settle(&task.id, claim.attempt, settlement, crate::Spent::slot(1.0))
            .await
            .unwrap();
        let found = at
            .store
            .tasks()
            .find_result(&file.name)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(found.finished_at, task.created_at);
    })
    .await;
}

#[tokio::test]
async fn a_result_whose_name_is_no_token_settles_nothing() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(1).await;
        let task = at.accepted(&account, "the key").await;
        let claim = at.claimed().await;
        let file = upscale_core::ResultFile {
            name: "../upscale.db".to_owned(),
            ..result_file()
        };
        let settlement = Settlement::Succeeded(file);
        let answer = at
            .store
            .tasks()
            .settle(&task.id, claim.attempt, settlement, crate::Spent::slot(1.0))
            .await;
        assert!(matches!(answer, Err(StoreError::Refused(_))), "{answer:?}");
        assert_eq!(
            at.task(&account, &task.id).await.state,
            TaskState::Processing
        );
        assert_eq!(at.succeed(&claim).await, FenceOutcome::Done);
    })
    .await;
}

#[tokio::test]
async fn a_refund_that_another_process_finished_is_not_given_again() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(1).await;
        let task = at.accepted(&account, "the key").await.id;
        let claim = at.claimed().await;
        at.store
            .tasks()
            .settle_first_step(&task, claim.attempt, failure(), crate::Spent::slot(1.0))
            .await
            .unwrap();
        assert_eq!(at.store.tasks().finish_refunds().await.unwrap(), 1);
        at.store.tasks().refund_now(vec![task]).await;
        assert_eq!(at.account(&account).await.available, limits::PRICE);
    })
    .await;
}

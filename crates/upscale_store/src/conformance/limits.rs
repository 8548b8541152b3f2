//! The contract's limits, exact under concurrency and across their turns.

use futures_util::future::join_all;
use upscale_core::{Credits, limits};

use super::setting::{NOON, Setting, on_every_engine, on_every_engine_quickly};
use crate::{CreateOutcome, FenceOutcome};

#[tokio::test(flavor = "multi_thread")]
async fn sixty_requests_a_minute_are_allowed_and_the_next_minute_begins_anew() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(1).await;
        at.clock.advance_seconds(15);
        let windows =
            join_all((0..100).map(|_| at.store.accounts().count_create_request(&account))).await;
        let windows: Vec<_> = windows.into_iter().map(Result::unwrap).collect();
        let mut left: Vec<u32> = windows
            .iter()
            .filter(|window| window.allowed)
            .map(|window| window.remaining)
            .collect();
        left.sort_unstable();
        assert_eq!(
            left,
            (0..limits::CREATE_REQUESTS_PER_MINUTE).collect::<Vec<_>>()
        );
        for window in &windows {
            assert_eq!(window.limit, limits::CREATE_REQUESTS_PER_MINUTE);
            assert_eq!(
                window.reset_at,
                NOON.plus_seconds(limits::CREATE_WINDOW_SECONDS)
            );
            assert_eq!(window.now, NOON.plus_seconds(15));
            assert!(window.allowed || window.remaining == 0);
        }
        at.clock.advance_seconds(44);
        assert!(
            !at.store
                .accounts()
                .count_create_request(&account)
                .await
                .unwrap()
                .allowed
        );
        at.clock.advance_seconds(1);
        let fresh = at
            .store
            .accounts()
            .count_create_request(&account)
            .await
            .unwrap();
        assert_eq!(
            (fresh.allowed, fresh.remaining),
            (true, limits::CREATE_REQUESTS_PER_MINUTE - 1)
        );
    })
    .await;
}

#[tokio::test]
async fn the_window_of_one_account_is_not_anothers() {
    on_every_engine(async |at: &Setting| {
        let (one, other) = (at.account_for(1).await, at.account_for(1).await);
        for _ in 0..limits::CREATE_REQUESTS_PER_MINUTE {
            assert!(
                at.store
                    .accounts()
                    .count_create_request(&one)
                    .await
                    .unwrap()
                    .allowed
            );
        }
        assert!(
            !at.store
                .accounts()
                .count_create_request(&one)
                .await
                .unwrap()
                .allowed
        );
        assert!(
            at.store
                .accounts()
                .count_create_request(&other)
                .await
                .unwrap()
                .allowed
        );
    })
    .await;
}

#[tokio::test]
async fn a_clock_that_steps_back_finds_its_old_window_as_full_as_it_was() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(1).await;
        for _ in 0..limits::CREATE_REQUESTS_PER_MINUTE {
            at.store
                .accounts()
                .count_create_request(&account)
                .await
                .unwrap();
        }
        at.clock.advance_seconds(60);
        assert!(
            at.store
                .accounts()
                .count_create_request(&account)
                .await
                .unwrap()
                .allowed
        );
        at.clock.advance_seconds(-60);
        assert!(
            !at.store
                .accounts()
                .count_create_request(&account)
                .await
                .unwrap()
                .allowed
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_forty_creates_at_once_twenty_are_accepted() {
    on_every_engine(async |at: &Setting| {
        at.plenty_of_slots().await;
        let account = at.account_for(40).await;
        let keys: Vec<String> = (0..40).map(|n| format!("key {n}")).collect();
        let outcomes = join_all(keys.iter().map(|key| at.order(&account, key))).await;
        let accepted = |outcome: &&CreateOutcome| matches!(outcome, CreateOutcome::Created(_));
        assert_eq!(
            outcomes.iter().filter(accepted).count(),
            limits::ACTIVE_TASKS_MAX as usize
        );
        for refused in outcomes.iter().filter(|outcome| !accepted(outcome)) {
            let CreateOutcome::ActiveLimit {
                limit: limits::ACTIVE_TASKS_MAX,
                retry_after_seconds,
            } = refused
            else {
                panic!("{refused:?}");
            };
            assert!((1..=30).contains(retry_after_seconds));
        }
        // One that ends, however it ends, makes room for one.
        at.fail(&at.claimed().await).await;
        at.accepted(&account, "after one failed").await;
        at.succeed(&at.claimed().await).await;
        at.accepted(&account, "after one succeeded").await;
        let full = at.order(&account, "one too many").await;
        assert!(
            matches!(full, CreateOutcome::ActiveLimit { .. }),
            "{full:?}"
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_thousand_five_hundred_a_day_are_accepted_and_the_next_day_begins_anew() {
    on_every_engine_quickly(async |at: &Setting| {
        at.plenty_of_slots().await;
        let account = at.account_for(3_000).await;
        for round in 0..limits::DAILY_TASKS_MAX / 20 {
            accept_and_end_twenty(at, &account, round).await;
        }
        assert_eq!(
            at.account(&account).await.accepted_today,
            limits::DAILY_TASKS_MAX
        );
        let refused = at.order(&account, "one too many").await;
        let half_a_day = CreateOutcome::DailyLimit {
            limit: limits::DAILY_TASKS_MAX,
            retry_after_seconds: 43_200,
        };
        assert_eq!(refused, half_a_day);
        // Back over midnight and forth again is no second allowance.
        at.clock.advance_seconds(-86_400);
        at.accepted(&account, "yesterday").await;
        at.clock.advance_seconds(86_400);
        assert_eq!(at.order(&account, "one too many").await, half_a_day);
        at.clock.advance_seconds(43_200);
        at.plenty_of_slots().await;
        at.accepted(&account, "one too many").await;
        assert_eq!(at.account(&account).await.accepted_today, 1);
    })
    .await;
}

async fn accept_and_end_twenty(at: &Setting, account: &upscale_core::AccountId, round: u32) {
    let keys: Vec<String> = (0..20).map(|n| format!("round {round} key {n}")).collect();
    join_all(keys.iter().map(|key| at.accepted(account, key))).await;
    let claims = at.store.tasks().claim("worker", 20, &[]).await.unwrap();
    let ended = join_all(claims.iter().map(|claim| at.succeed(claim))).await;
    assert_eq!(ended, [FenceOutcome::Done; 20]);
}

#[tokio::test]
async fn credits_for_three_tasks_buy_three_tasks() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(3).await;
        let rest = Credits::from_thousandths(limits::PRICE.thousandths() - 1);
        at.store
            .accounts()
            .credit(&account, rest, "almost a fourth")
            .await
            .unwrap();
        for n in 0..3 {
            at.accepted(&account, &format!("key {n}")).await;
        }
        let refused = at.order(&account, "a fourth").await;
        assert_eq!(
            refused,
            CreateOutcome::InsufficientCredits {
                available: rest,
                price: limits::PRICE
            }
        );
    })
    .await;
}

//! What operators do: limits of an account's own, exact as the contract's; adjustments once a reference and never
//! below zero; hanging refunds returned once. Each leaves who and why.

use futures_util::future::join_all;
use upscale_core::{AccountId, Credits, OwnLimits, RequestId, TaskId, limits};

use super::setting::{NOON, Setting, failure, on_every_engine};
use crate::{
    AdjustOutcome, CreateOutcome, OnBehalf, OperatorTask, OperatorTaskFilter, RefundOutcome,
    StoreError,
};

const FIVE: Credits = Credits::from_thousandths(5_000);
const MINUS_FIVE: Credits = Credits::from_thousandths(-5_000);

fn ann() -> OnBehalf {
    OnBehalf {
        operator: "Ann".to_owned(),
        reason: "a good customer".to_owned(),
    }
}

fn own(requests: u32, active: u32, daily: u32) -> OwnLimits {
    OwnLimits {
        create_requests_per_minute: Some(requests),
        active_tasks: Some(active),
        daily_tasks: Some(daily),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_of_an_accounts_own_are_exact_and_no_one_elses() {
    on_every_engine(async |at: &Setting| {
        at.plenty_of_slots().await;
        let (account, other) = (at.account_for(60).await, at.account_for(60).await);
        let set = at
            .store
            .operator()
            .set_limits(&account, own(7, 3, 5), &ann())
            .await;
        assert_eq!(set.unwrap().unwrap().own_limits, own(7, 3, 5));
        let windows =
            join_all((0..20).map(|_| at.store.accounts().count_create_request(&account))).await;
        let windows: Vec<_> = windows.into_iter().map(Result::unwrap).collect();
        assert_eq!(windows.iter().filter(|window| window.allowed).count(), 7);
        assert!(windows.iter().all(|window| window.limit == 7));
        let keys: Vec<String> = (0..10).map(|n| format!("key {n}")).collect();
        let outcomes = join_all(keys.iter().map(|key| at.order(&account, key))).await;
        let accepted = |outcome: &&CreateOutcome| matches!(outcome, CreateOutcome::Created(_));
        assert_eq!(outcomes.iter().filter(accepted).count(), 3);
        for refused in outcomes.iter().filter(|outcome| !accepted(outcome)) {
            assert!(
                matches!(refused, CreateOutcome::ActiveLimit { limit: 3, .. }),
                "{refused:?}"
            );
        }
        for n in 0..2 {
            at.succeed(&at.claimed().await).await;
            at.accepted(&account, &format!("one more {n}")).await;
        }
        at.succeed(&at.claimed().await).await;
        let refused = at.order(&account, "a sixth").await;
        assert!(
            matches!(refused, CreateOutcome::DailyLimit { limit: 5, .. }),
            "{refused:?}"
        );
        assert_eq!(
            at.store
                .accounts()
                .count_create_request(&other)
                .await
                .unwrap()
                .limit,
            60
        );
        at.accepted(&other, "another's").await;
    })
    .await;
}

#[tokio::test]
async fn a_limit_above_the_contracts_lets_more_in_and_one_taken_away_is_the_contracts_again() {
    on_every_engine(async |at: &Setting| {
        at.plenty_of_slots().await;
        let account = at.account_for(30).await;
        let more = OwnLimits {
            active_tasks: Some(22),
            ..OwnLimits::default()
        };
        at.store
            .operator()
            .set_limits(&account, more, &ann())
            .await
            .unwrap();
        for n in 0..22 {
            at.accepted(&account, &format!("key {n}")).await;
        }
        let refused = at.order(&account, "a 23rd").await;
        assert!(
            matches!(refused, CreateOutcome::ActiveLimit { limit: 22, .. }),
            "{refused:?}"
        );
        let contract = OwnLimits::default();
        at.store
            .operator()
            .set_limits(&account, contract, &ann())
            .await
            .unwrap();
        for _ in 0..2 {
            at.succeed(&at.claimed().await).await;
        }
        let refused = at.order(&account, "a 21st").await;
        assert!(
            matches!(refused, CreateOutcome::ActiveLimit { limit: 20, .. }),
            "{refused:?}"
        );
        let actions = at
            .store
            .operator()
            .list_actions(Some(&account), i64::MAX, 10)
            .await
            .unwrap();
        assert_eq!(actions.len(), 2);
        assert_eq!(
            actions[0].detail,
            "requests a minute contract, active contract, a day contract; \
             before: requests a minute contract, active 22, a day contract"
        );
        assert_eq!(
            (actions[1].operator.as_str(), actions[1].reason.as_str()),
            ("Ann", "a good customer")
        );
    })
    .await;
}

#[tokio::test]
async fn limits_that_are_none_are_refused() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(1).await;
        for wrong in [
            own(0, 1, 1),
            own(1, 0, 1),
            own(1, 1, 0),
            own(1, 1, 1_000_001),
        ] {
            let refused = at
                .store
                .operator()
                .set_limits(&account, wrong, &ann())
                .await;
            assert!(matches!(refused, Err(StoreError::Refused(_))), "{wrong:?}");
        }
        let no_one = AccountId::random().unwrap();
        assert_eq!(
            at.store
                .operator()
                .set_limits(&no_one, own(1, 1, 1), &ann())
                .await
                .unwrap(),
            None
        );
        assert_eq!(
            at.store
                .operator()
                .list_actions(None, i64::MAX, 10)
                .await
                .unwrap(),
            []
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_adjustment_counts_once_a_reference_however_often_it_is_asked_for() {
    on_every_engine(async |at: &Setting| {
        let account = at.store.accounts().create("A customer").await.unwrap().id;
        let by = ann();
        let asked =
            join_all((0..10).map(|_| at.store.operator().adjust(&account, FIVE, "a gift", &by)))
                .await;
        let made = |wanted| {
            asked
                .iter()
                .filter(|outcome| *outcome.as_ref().unwrap() == wanted)
                .count()
        };
        assert_eq!(
            (
                made(AdjustOutcome::Adjusted),
                made(AdjustOutcome::AlreadyAdjusted)
            ),
            (1, 9)
        );
        let other = at.account_for(20).await;
        for (account, credits) in [(&other, FIVE), (&account, MINUS_FIVE)] {
            let taken = at
                .store
                .operator()
                .adjust(account, credits, "a gift", &by)
                .await
                .unwrap();
            assert_eq!(taken, AdjustOutcome::ReferenceTaken);
        }
        let standing = at.account(&account).await;
        assert_eq!(standing.available, FIVE);
        // A gift is no purchase: access stays closed.
        assert_eq!(standing.activated_at, None);
        assert_eq!(
            at.store
                .operator()
                .list_actions(Some(&account), i64::MAX, 10)
                .await
                .unwrap()
                .len(),
            1
        );
        let line = &at.store.accounts().list_ledger(&account, 1).await.unwrap()[0];
        assert_eq!(
            (line.kind.as_str(), line.amount, line.comes_in),
            ("adjustment", FIVE, true)
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_adjustment_takes_what_is_not_there() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(20).await;
        let by = ann();
        let references: Vec<String> = (0..6).map(|n| format!("taken {n}")).collect();
        let asked = join_all(references.iter().map(|reference| {
            at.store
                .operator()
                .adjust(&account, MINUS_FIVE, reference, &by)
        }))
        .await;
        let made = asked
            .iter()
            .filter(|outcome| *outcome.as_ref().unwrap() == AdjustOutcome::Adjusted);
        assert_eq!(made.count(), 2);
        let left = Credits::from_thousandths(4_000);
        assert_eq!(at.account(&account).await.available, left);
        let refused = at
            .store
            .operator()
            .adjust(&account, MINUS_FIVE, "one more", &by)
            .await
            .unwrap();
        assert_eq!(refused, AdjustOutcome::TooLittle { available: left });
        assert_eq!(
            at.store
                .operator()
                .list_actions(Some(&account), i64::MAX, 10)
                .await
                .unwrap()
                .len(),
            2
        );
    })
    .await;
}

#[tokio::test]
async fn what_is_no_adjustment_or_has_no_reason_is_refused() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(1).await;
        let without = |operator: &str, reason: &str| OnBehalf {
            operator: operator.to_owned(),
            reason: reason.to_owned(),
        };
        for (credits, reference, by) in [
            (Credits::ZERO, "a", ann()),
            (FIVE, "", ann()),
            (FIVE, &"r".repeat(201), ann()),
            (FIVE, "a", without("Ann", " ")),
            (FIVE, "a", without("", "a reason")),
            (FIVE, "a", without("Ann", &"r".repeat(501))),
        ] {
            let refused = at
                .store
                .operator()
                .adjust(&account, credits, reference, &by)
                .await;
            assert!(
                matches!(refused, Err(StoreError::Refused(_))),
                "{refused:?}"
            );
        }
        let no_one = AccountId::random().unwrap();
        let outcome = at
            .store
            .operator()
            .adjust(&no_one, FIVE, "a", &ann())
            .await
            .unwrap();
        assert_eq!(outcome, AdjustOutcome::NoSuchAccount);
    })
    .await;
}

/// A failed task whose process died before the refund.
async fn hanging(at: &Setting) -> TaskId {
    let account = at.account_for(1).await;
    let task = at.accepted(&account, "fails").await.id;
    let claim = at.claimed().await;
    let settled = at
        .store
        .tasks()
        .settle_first_step(&task, claim.attempt, failure(), crate::Spent::slot(1.0))
        .await;
    settled.unwrap();
    task
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hanging_refund_is_returned_once_and_says_by_whom() {
    on_every_engine(async |at: &Setting| {
        let task = hanging(at).await;
        let hangs = at
            .store
            .operator()
            .list_tasks(&OperatorTaskFilter::RefundPending, 10)
            .await
            .unwrap();
        assert_eq!(ids(&hangs), [&task]);
        let by = ann();
        let asked = join_all((0..5).map(|_| at.store.operator().retry_refund(&task, &by))).await;
        let returned = asked
            .iter()
            .filter(|outcome| *outcome.as_ref().unwrap() == RefundOutcome::Refunded);
        assert_eq!(returned.count(), 1);
        let account = &hangs[0].task.account_id;
        assert_eq!(at.account(account).await.available, limits::PRICE);
        let actions = at
            .store
            .operator()
            .list_actions(None, i64::MAX, 10)
            .await
            .unwrap();
        assert_eq!(actions.len(), 1);
        assert_eq!(
            (&actions[0].account_id, actions[0].action.as_str()),
            (account, "refund")
        );
        let again = at.store.operator().retry_refund(&task, &by).await.unwrap();
        assert_eq!(again, RefundOutcome::AlreadyRefunded);
        let nothing = at
            .store
            .operator()
            .retry_refund(&TaskId::random().unwrap(), &by)
            .await
            .unwrap();
        assert_eq!(nothing, RefundOutcome::NoSuchTask);
        let processing = at.accepted(account, "goes on").await.id;
        let not_failed = at
            .store
            .operator()
            .retry_refund(&processing, &by)
            .await
            .unwrap();
        assert_eq!(not_failed, RefundOutcome::NotFailed);
    })
    .await;
}

fn ids(records: &[OperatorTask]) -> Vec<&TaskId> {
    records.iter().map(|record| &record.task.id).collect()
}

#[tokio::test]
async fn tasks_of_anyone_are_found_by_id_request_account_and_state() {
    on_every_engine(async |at: &Setting| {
        let (account, other) = (at.account_for(3).await, at.account_for(1).await);
        let first = at.accepted(&account, "first").await.id;
        at.clock.advance_seconds(1);
        let second = at.accepted(&account, "second").await.id;
        at.clock.advance_seconds(1);
        let third = at.accepted(&other, "third").await.id;
        let claim = at.claimed().await;
        let found = at
            .store
            .operator()
            .find_task(&first)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(found.request_id, claim.request_id);
        assert_eq!(found.source_url, claim.source_url.as_str());
        let job = found.job.unwrap();
        assert_eq!(
            (job.attempt, job.crashes, job.worker.as_deref()),
            (1, 0, Some("worker"))
        );
        let listed = async |filter| at.store.operator().list_tasks(&filter, 10).await.unwrap();
        let of_request = listed(OperatorTaskFilter::OfRequest(claim.request_id)).await;
        assert_eq!(ids(&of_request), [&first]);
        assert_eq!(
            ids(&listed(OperatorTaskFilter::OfAccount(account)).await),
            [&second, &first]
        );
        assert_eq!(ids(&listed(OperatorTaskFilter::Processing).await).len(), 3);
        at.succeed(&claim).await;
        let processing = listed(OperatorTaskFilter::Processing).await;
        // The account with another task stands two seconds further back.
        assert_eq!(ids(&processing), [&third, &second]);
        let ended = at
            .store
            .operator()
            .find_task(&first)
            .await
            .unwrap()
            .unwrap();
        assert_eq!((ended.job, ended.finished_at), (None, Some(at.store.now())));
        let unknown = at
            .store
            .operator()
            .find_task(&TaskId::random().unwrap())
            .await
            .unwrap();
        assert_eq!(unknown, None);
        let no_ones = listed(OperatorTaskFilter::OfRequest(RequestId::random().unwrap())).await;
        assert_eq!(ids(&no_ones), [] as [&TaskId; 0]);
    })
    .await;
}

#[tokio::test]
async fn workers_are_listed_with_what_they_take_and_whether_they_live() {
    on_every_engine(async |at: &Setting| {
        at.store.tasks().report_worker("silent", 2).await.unwrap();
        at.clock.advance_seconds(limits::LEASE_SECONDS);
        at.store.tasks().report_worker("lively", 3).await.unwrap();
        let workers = at.store.operator().list_workers().await.unwrap();
        let seen: Vec<_> = workers
            .iter()
            .map(|one| (one.id.as_str(), one.slots, one.alive))
            .collect();
        assert_eq!(seen, [("lively", 3, true), ("silent", 2, false)]);
        assert_eq!(workers[1].seen_at, NOON);
    })
    .await;
}

#[tokio::test]
async fn the_ledger_adds_up_kind_by_kind() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(3).await;
        at.accepted(&account, "succeeds").await;
        at.succeed(&at.claimed().await).await;
        at.accepted(&account, "stays").await;
        let sums = at.store.operator().sum_ledger().await.unwrap();
        let shown: Vec<_> = sums
            .iter()
            .map(|sum| {
                (
                    sum.kind.as_str(),
                    sum.debit.as_str(),
                    sum.transfers,
                    sum.amount.thousandths(),
                )
            })
            .collect();
        let expected = [
            ("purchase", "cash", 1, 2_100),
            ("reserve", "available", 2, 1_400),
            ("charge", "held", 1, 700),
        ];
        assert_eq!(shown, expected);
    })
    .await;
}

#[tokio::test]
async fn actions_of_operators_are_neither_changed_nor_deleted() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(1).await;
        at.store
            .operator()
            .set_limits(&account, own(1, 1, 1), &ann())
            .await
            .unwrap();
        for sql in [
            "UPDATE operator_action SET reason = 'none'",
            "DELETE FROM operator_action",
        ] {
            let refused = at.home.try_sql(sql).unwrap_err();
            assert!(refused.contains("append-only"), "{refused}");
        }
    })
    .await;
}

//! Several handles on one home stand for several processes: nothing is shared between them but the database.

use futures_util::future::join_all;
use upscale_core::{AccountId, Clock, Credits, Permission, Scale, limits};

use super::{
    home::{Commits, Home},
    setting::{NOON, create_patiently, example, result_file},
};
use crate::{CreateOutcome, FenceOutcome, PurchaseOutcome, Settlement, Store};

const PROCESSES: usize = 4;

async fn processes(home: &Home, commits: Commits) -> Vec<Store> {
    let clock = Clock::manual(NOON);
    join_all((0..PROCESSES).map(|_| home.open(&clock, commits))).await
}

async fn rich_account(store: &Store) -> AccountId {
    let account = store.accounts().create("A customer").await.unwrap().id;
    let credits = Credits::from_thousandths(10_000_000);
    store
        .accounts()
        .credit(&account, credits, "a payment")
        .await
        .unwrap();
    store.tasks().report_worker("plenty", 1_000).await.unwrap();
    account
}

async fn order(store: &Store, account: &AccountId, key: &str) -> CreateOutcome {
    create_patiently(store, account, key, &example(Scale::X2)).await
}

/// Orders under `count` keys at once, in turn from each process; the outcomes.
async fn order_many(
    stores: &[Store],
    account: &AccountId,
    name: &str,
    count: usize,
) -> Vec<CreateOutcome> {
    let orders = (0..count)
        .map(async |n| order(&stores[n % stores.len()], account, &format!("{name} {n}")).await);
    join_all(orders).await
}

fn accepted(outcomes: &[CreateOutcome]) -> usize {
    outcomes
        .iter()
        .filter(|outcome| matches!(outcome, CreateOutcome::Created(_)))
        .count()
}

async fn end_all(stores: &[Store]) {
    for store in stores.iter().cycle() {
        let claims = store.tasks().claim("worker", 20, &[]).await.unwrap();
        if claims.is_empty() {
            return;
        }
        let settled = join_all(claims.iter().map(|claim| {
            let settlement = Settlement::Succeeded(result_file());
            store.tasks().settle(
                &claim.task_id,
                claim.attempt,
                settlement,
                crate::Spent::slot(1.0),
            )
        }))
        .await;
        assert!(
            settled
                .into_iter()
                .all(|outcome| outcome.unwrap() == FenceOutcome::Done)
        );
    }
}

async fn check_books(store: &Store) {
    assert_eq!(store.audit(None).await.unwrap().breaches, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_file_opened_by_many_at_once_is_made_once() {
    for home in Home::every() {
        let stores = processes(&home, Commits::Durable).await;
        let account = rich_account(&stores[0]).await;
        for store in &stores {
            assert!(store.accounts().find(&account).await.unwrap().is_some());
            assert_eq!(store.signing_keys().await.unwrap().len(), 1);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_requests_a_minute_hold_across_processes() {
    for home in Home::every() {
        let stores = processes(&home, Commits::Durable).await;
        let account = rich_account(&stores[0]).await;
        let counts = (0..200).map(|n| {
            stores[n % PROCESSES]
                .accounts()
                .count_create_request(&account)
        });
        let windows = join_all(counts).await;
        let allowed = windows
            .into_iter()
            .filter(|window| window.as_ref().unwrap().allowed)
            .count();
        assert_eq!(allowed, limits::CREATE_REQUESTS_PER_MINUTE as usize);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_active_and_two_thousand_five_hundred_a_day_hold_across_processes() {
    // On the file alone: 5,000 transactions of one account, one after the other. Four processes on one server
    // are held to the same numbers by the whole-service tests.
    for home in [Home::sqlite()] {
        let stores = processes(&home, Commits::Quick).await;
        let account = rich_account(&stores[0]).await;
        let outcomes = order_many(&stores, &account, "first", 80).await;
        assert_eq!(accepted(&outcomes), limits::ACTIVE_TASKS_MAX as usize);
        end_all(&stores).await;
        for round in 1..124 {
            let outcomes = order_many(&stores, &account, &format!("round {round}"), 20).await;
            assert_eq!(accepted(&outcomes), 20);
            end_all(&stores).await;
        }
        let ten = order_many(&stores, &account, "ten more", 10).await;
        assert_eq!(accepted(&ten), 10);
        end_all(&stores).await;
        // 2,490 of the day are used: of forty at once ten are accepted.
        let outcomes = order_many(&stores, &account, "last", 40).await;
        assert_eq!(accepted(&outcomes), 10);
        let daily = |outcome: &&CreateOutcome| matches!(outcome, CreateOutcome::DailyLimit { .. });
        assert_eq!(outcomes.iter().filter(daily).count(), 30);
        check_books(&stores[1]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn identical_creates_of_all_processes_make_one_task_a_key() {
    for home in Home::every() {
        let stores = processes(&home, Commits::Durable).await;
        let account = rich_account(&stores[0]).await;
        for key in 0..15 {
            let key = format!("key {key}");
            let orders = (0..64).map(|n| order(&stores[n % PROCESSES], &account, &key));
            let outcomes = join_all(orders).await;
            assert_eq!(accepted(&outcomes), 1);
            let replayed = outcomes
                .iter()
                .filter(|outcome| matches!(outcome, CreateOutcome::Replayed(_)))
                .count();
            assert_eq!(replayed, 63);
        }
        let standing = stores[0].accounts().find(&account).await.unwrap().unwrap();
        assert_eq!(
            standing.reserved.thousandths(),
            15 * limits::PRICE.thousandths()
        );
        check_books(&stores[3]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_revoked_by_one_process_is_refused_by_the_next_request_to_another() {
    for home in Home::every() {
        let stores = processes(&home, Commits::Durable).await;
        let account = rich_account(&stores[0]).await;
        let (record, key) = stores[0]
            .accounts()
            .create_key(&account, Permission::All, "")
            .await
            .unwrap()
            .made()
            .unwrap();
        for store in &stores {
            assert!(
                store
                    .accounts()
                    .find_caller(&key.hash())
                    .await
                    .unwrap()
                    .is_some()
            );
        }
        stores[3].accounts().revoke_key(&record.id).await.unwrap();
        for store in &stores {
            assert_eq!(
                store.accounts().find_caller(&key.hash()).await.unwrap(),
                None
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_are_handed_out_once_across_processes() {
    for home in Home::every() {
        let stores = processes(&home, Commits::Durable).await;
        let account = rich_account(&stores[0]).await;
        order_many(&stores, &account, "task", 20).await;
        let claims =
            join_all((0..40).map(|n| stores[n % PROCESSES].tasks().claim("worker", 1, &[]))).await;
        let mut tasks: Vec<_> = claims
            .into_iter()
            .flat_map(|claims| claims.unwrap())
            .map(|claim| claim.task_id)
            .collect();
        assert_eq!(tasks.len(), 20);
        tasks.sort();
        tasks.dedup();
        assert_eq!(tasks.len(), 20);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_payment_reported_for_two_accounts_at_once_is_credited_to_one() {
    for home in Home::every() {
        let stores = processes(&home, Commits::Durable).await;
        let first = stores[0].accounts().create("One").await.unwrap().id;
        let second = stores[0].accounts().create("Other").await.unwrap().id;
        for payment in 0..10 {
            let reference = format!("payment {payment}");
            let reports = (0..PROCESSES).map(|n| {
                let account = if n % 2 == 0 { &first } else { &second };
                stores[n]
                    .accounts()
                    .credit(account, limits::PRICE, &reference)
            });
            let outcomes: Vec<_> = join_all(reports)
                .await
                .into_iter()
                .map(Result::unwrap)
                .collect();
            let count = |wanted| {
                outcomes
                    .iter()
                    .filter(|&&outcome| outcome == wanted)
                    .count()
            };
            assert_eq!(count(PurchaseOutcome::Credited), 1, "{outcomes:?}");
            assert_eq!(count(PurchaseOutcome::ReferenceTaken), 2, "{outcomes:?}");
        }
        check_books(&stores[2]).await;
    }
}

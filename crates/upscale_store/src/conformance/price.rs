//! A task costs what it cost when it was ordered, whatever a task costs by the time it is settled or looked at.

use upscale_core::{AccountId, Credits, Scale, Task, limits};

use super::{
    home::Commits,
    setting::{Setting, create_patiently, example, on_every_engine},
};
use crate::{CreateOutcome, OperatorTaskFilter, Store, StoreOptions, TaskFilter};

const DEARER: Credits = Credits::from_thousandths(900);

/// The same rows, opened by a process that asks for more.
async fn dearer(at: &Setting) -> Store {
    let options = StoreOptions {
        price: DEARER,
        ..StoreOptions::default()
    };
    at.home
        .open_with(&at.clock, Commits::Durable, options)
        .await
}

async fn ordered(store: &Store, account: &AccountId, key: &str) -> Task {
    match create_patiently(store, account, key, &example(Scale::X2)).await {
        CreateOutcome::Created(task) | CreateOutcome::Replayed(task) => task,
        other => panic!("{key}: {other:?}"),
    }
}

#[tokio::test]
async fn a_task_keeps_its_price_when_the_price_changes() {
    on_every_engine(async |at: &Setting| {
        at.plenty_of_slots().await;
        let account = at.account_for(10).await;
        let dearer = dearer(at).await;
        let before = ordered(&at.store, &account, "before").await;
        let after = ordered(&dearer, &account, "after").await;
        let failing = ordered(&dearer, &account, "failing").await;
        assert_eq!(
            [before.price, after.price, failing.price],
            [limits::PRICE, DEARER, DEARER]
        );
        let again = ordered(&dearer, &account, "before").await;
        assert_eq!((again.id, again.price), (before.id, limits::PRICE));
        let reserved: Credits = [limits::PRICE, DEARER, DEARER].into_iter().sum();
        assert_eq!(at.account(&account).await.reserved, reserved);

        // Settled by a process that knows only one of the two prices.
        at.succeed(&at.claimed().await).await;
        at.succeed(&at.claimed().await).await;
        at.fail(&at.claimed().await).await;
        let charged: Credits = [limits::PRICE, DEARER].into_iter().sum();
        let standing = at.account(&account).await;
        assert_eq!(
            (standing.charged, standing.reserved),
            (charged, Credits::ZERO)
        );

        let days = at.store.tasks().list_days(&account, 0).await.unwrap();
        assert_eq!((days.len(), days[0].charged), (1, charged));
        let priced = [
            (&before, limits::PRICE),
            (&after, DEARER),
            (&failing, DEARER),
        ];
        let listed = at.store.tasks().list(&account, TaskFilter::All, None, 9);
        let listed = listed.await.unwrap();
        let of_anyone = OperatorTaskFilter::OfAccount(account);
        let of_anyone = at.store.operator().list_tasks(&of_anyone, 9).await.unwrap();
        for (task, price) in priced {
            assert_eq!(at.task(&account, &task.id).await.price, price);
            let record = listed.iter().find(|record| record.task.id == task.id);
            assert_eq!(record.unwrap().task.price, price);
            let seen = of_anyone.iter().find(|seen| seen.task.id == task.id);
            assert_eq!(seen.unwrap().task.price, price);
        }
    })
    .await;
}

#[tokio::test]
async fn a_new_task_must_be_paid_at_the_price_of_its_moment() {
    on_every_engine(async |at: &Setting| {
        at.plenty_of_slots().await;
        let account = at.account_for(1).await;
        let refused =
            create_patiently(&dearer(at).await, &account, "a key", &example(Scale::X2)).await;
        assert_eq!(
            refused,
            CreateOutcome::InsufficientCredits {
                available: limits::PRICE,
                price: DEARER
            }
        );
        at.accepted(&account, "a key").await;
    })
    .await;
}

//! Everyone at once, on several handles: customers, workers that stall, the reaper, the refunds, the audit, while
//! time runs. Whatever they lock, none may wait for the other in a circle, and the books are right afterwards.

use futures_util::future::{join_all, try_join_all};
use upscale_core::{AccountId, AttemptFailure, Clock, Credits, RequestId, Scale};

use super::{
    home::{Commits, Home},
    setting::{NOON, example, failure, idempotency_key, result_file},
};
use crate::{Claim, Settlement, Store, StoreError};

const PROCESSES: usize = 3;
/// Few, so that they meet.
const ACCOUNTS: usize = 3;
const ROUNDS: usize = 30;
const RICH: Credits = Credits::from_thousandths(1_000_000);

async fn customer(store: &Store, account: &AccountId, name: usize) -> Result<(), StoreError> {
    for round in 0..ROUNDS {
        store.accounts().count_create_request(account).await?;
        let key = idempotency_key(&format!("key {} of {name}", round / 2));
        let request = RequestId::random()?;
        store
            .tasks()
            .create(account, &key, &example(Scale::X2), &request)
            .await?;
    }
    Ok(())
}

/// One in three claims is forgotten, one in six is told twice.
async fn worker(store: &Store, clock: &Clock) -> Result<(), StoreError> {
    store.tasks().report_worker("crowd", 1_000).await?;
    for round in 0..ROUNDS {
        clock.advance_seconds(7);
        for (n, claim) in store
            .tasks()
            .claim("crowd", 4, &[])
            .await?
            .iter()
            .enumerate()
        {
            tell(store, claim, (round + n) % 6).await?;
        }
    }
    Ok(())
}

async fn tell(store: &Store, claim: &Claim, what: usize) -> Result<(), StoreError> {
    let (task, attempt) = (&claim.task_id, claim.attempt);
    let settlement = match what {
        0 | 1 => return Ok(()),
        2 => {
            let transient = AttemptFailure::Transient;
            let later = store
                .tasks()
                .retry_later(task, attempt, transient, 1_000)
                .await;
            return later.map(drop);
        }
        3 => failure(),
        _ => Settlement::Succeeded(result_file()),
    };
    store.tasks().heartbeat(task, attempt).await?;
    let twice = join_all((0..=what % 2).map(|_| {
        store
            .tasks()
            .settle(task, attempt, settlement.clone(), crate::Spent::slot(1.0))
    }));
    twice
        .await
        .into_iter()
        .try_for_each(|reported| reported.map(drop))
}

async fn maintainer(store: &Store) -> Result<(), StoreError> {
    for _ in 0..ROUNDS {
        store.tasks().reap().await?;
        store.tasks().finish_refunds().await?;
        assert_eq!(store.audit(None).await?.breaches, []);
    }
    Ok(())
}

async fn crowd(home: &Home) -> Result<(), StoreError> {
    let clock = Clock::manual(NOON);
    let stores = join_all((0..PROCESSES).map(|_| home.open(&clock, Commits::Quick))).await;
    let mut accounts = Vec::new();
    for n in 0..ACCOUNTS {
        let account = stores[0].accounts().create("In the crowd").await?.id;
        stores[0]
            .accounts()
            .credit(&account, RICH, &format!("payment {n}"))
            .await?;
        accounts.push(account);
    }
    let customers = stores.iter().enumerate().flat_map(|(name, store)| {
        accounts
            .iter()
            .map(move |account| customer(store, account, name))
    });
    futures_util::try_join!(
        try_join_all(customers),
        try_join_all(stores.iter().map(|store| worker(store, &clock))),
        try_join_all(stores.iter().map(maintainer)),
    )?;
    clock.advance_seconds(600);
    while stores[0].tasks().reap().await? + stores[0].tasks().finish_refunds().await? > 0 {}
    assert_eq!(stores[0].audit(None).await?.breaches, []);
    for account in &accounts {
        let standing = stores[0].accounts().find(account).await?.unwrap();
        assert_eq!(
            (standing.reserved, standing.active_tasks),
            (Credits::ZERO, 0)
        );
        assert_eq!(
            standing.available.thousandths() + standing.charged.thousandths(),
            RICH.thousandths()
        );
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_on_few_accounts_never_waits_in_a_circle_and_leaves_the_books_right() {
    for home in Home::every() {
        if let Err(error) = crowd(&home).await {
            panic!("{}: {error}", home.engine());
        }
    }
}

//! Purchases: once per reference, and the first one opens access.

use futures_util::future::join_all;
use upscale_core::{AccountId, Credits, limits};

use super::setting::{Setting, on_every_engine};
use crate::{PurchaseOutcome, StoreError};

const TEN: Credits = Credits::from_thousandths(10_000);

#[tokio::test]
async fn the_first_purchase_opens_access_and_later_ones_do_not_move_the_date() {
    on_every_engine(async |at: &Setting| {
        let account = at.store.accounts().create("A customer").await.unwrap();
        assert_eq!(
            (account.activated_at, account.available),
            (None, Credits::ZERO)
        );
        let first = at
            .store
            .accounts()
            .credit(&account.id, TEN, "payment 1")
            .await
            .unwrap();
        assert_eq!(first, PurchaseOutcome::Credited);
        let opened = at.store.now();
        at.clock.advance_seconds(100);
        at.store
            .accounts()
            .credit(&account.id, TEN, "payment 2")
            .await
            .unwrap();
        let standing = at.account(&account.id).await;
        assert_eq!(standing.activated_at, Some(opened));
        assert_eq!(standing.available, Credits::from_thousandths(20_000));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_reported_many_times_at_once_is_credited_once() {
    on_every_engine(async |at: &Setting| {
        let account = at.store.accounts().create("A customer").await.unwrap().id;
        let reports =
            join_all((0..20).map(|_| at.store.accounts().credit(&account, TEN, "p"))).await;
        let credited = reports
            .iter()
            .filter(|answer| matches!(answer, Ok(PurchaseOutcome::Credited)))
            .count();
        let already = reports
            .iter()
            .filter(|answer| matches!(answer, Ok(PurchaseOutcome::AlreadyCredited)))
            .count();
        assert_eq!((credited, already), (1, 19));
        assert_eq!(at.account(&account).await.available, TEN);
    })
    .await;
}

#[tokio::test]
async fn a_reference_of_another_account_or_amount_is_taken() {
    on_every_engine(async |at: &Setting| {
        let one = at.store.accounts().create("One").await.unwrap().id;
        let other = at.store.accounts().create("Other").await.unwrap().id;
        at.store
            .accounts()
            .credit(&one, TEN, "payment 1")
            .await
            .unwrap();
        let elsewhere = at
            .store
            .accounts()
            .credit(&other, TEN, "payment 1")
            .await
            .unwrap();
        let more = Credits::from_thousandths(10_001);
        let otherwise = at
            .store
            .accounts()
            .credit(&one, more, "payment 1")
            .await
            .unwrap();
        assert_eq!([elsewhere, otherwise], [PurchaseOutcome::ReferenceTaken; 2]);
        assert_eq!(at.account(&one).await.available, TEN);
        assert_eq!(at.account(&other).await.activated_at, None);
    })
    .await;
}

#[tokio::test]
async fn what_is_no_purchase_is_refused() {
    on_every_engine(async |at: &Setting| {
        let no_one = AccountId::random().unwrap();
        let answer = at
            .store
            .accounts()
            .credit(&no_one, TEN, "payment 1")
            .await
            .unwrap();
        assert_eq!(answer, PurchaseOutcome::NoSuchAccount);
        let account = at.store.accounts().create("A customer").await.unwrap().id;
        let minus = Credits::from_thousandths(-1);
        let (long, most) = ("r".repeat(201), Credits::from_thousandths(i64::MAX));
        for (credits, reference) in [(Credits::ZERO, "a"), (minus, "a"), (TEN, ""), (TEN, &long)] {
            let answer = at
                .store
                .accounts()
                .credit(&account, credits, reference)
                .await;
            assert!(
                matches!(answer, Err(StoreError::Refused(_))),
                "{credits} {reference}"
            );
        }
        // Two purchases that no 64 bits hold: the second is refused whole.
        assert!(
            at.store
                .accounts()
                .credit(&account, most, "b")
                .await
                .is_ok()
        );
        assert!(
            at.store
                .accounts()
                .credit(&account, most, "c")
                .await
                .is_err()
        );
        assert_eq!(at.account(&account).await.available, most);
    })
    .await;
}

#[tokio::test]
async fn the_ledger_tells_an_accounts_story_newest_first() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(2).await;
        let failed = at.accepted(&account, "fails").await.id;
        at.fail(&at.claimed().await).await;
        let succeeded = at.accepted(&account, "succeeds").await.id;
        at.succeed(&at.claimed().await).await;
        let lines = at.store.accounts().list_ledger(&account, 10).await.unwrap();
        let story: Vec<_> = lines
            .iter()
            .rev()
            .map(|line| (line.kind.as_str(), line.task_id.as_ref()))
            .collect();
        let (failed, succeeded) = (Some(&failed), Some(&succeeded));
        let expected = [
            ("purchase", None),
            ("reserve", failed),
            ("refund", failed),
            ("reserve", succeeded),
            ("charge", succeeded),
        ];
        assert_eq!(story, expected);
        assert_eq!(lines[0].amount, limits::PRICE);
        assert!(
            lines[4]
                .external_reference
                .as_deref()
                .unwrap()
                .starts_with("payment of")
        );
        assert_eq!(
            at.store.accounts().list_ledger(&account, 2).await.unwrap(),
            lines[..2]
        );
    })
    .await;
}

#[tokio::test]
async fn accounts_are_listed_oldest_first_and_names_have_1_to_100_characters() {
    on_every_engine(async |at: &Setting| {
        let mut made = Vec::new();
        for name in ["One", &"é".repeat(limits::NAME_CHARS_MAX)] {
            made.push(at.store.accounts().create(name).await.unwrap());
            at.clock.advance_seconds(1);
        }
        assert_eq!(at.store.accounts().list().await.unwrap(), made);
        for name in ["", &"a".repeat(limits::NAME_CHARS_MAX + 1)] {
            assert!(at.store.accounts().create(name).await.is_err());
        }
        let no_one = AccountId::random().unwrap();
        assert_eq!(at.store.accounts().find(&no_one).await.unwrap(), None);
    })
    .await;
}

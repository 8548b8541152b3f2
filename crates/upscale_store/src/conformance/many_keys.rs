//! Many keys of one account: those that work are never out of sight, no more than the limit work at a time, and the
//! revoked are forgotten after their time.

use futures_util::future::join_all;
use upscale_core::{
    AccountId, Permission,
    limits::{LIVE_KEYS_MAX, REVOKED_KEY_DAYS},
};

use super::setting::{Setting, on_every_engine, on_every_engine_quickly};
use crate::{KeyOutcome, KeyRecord, OnBehalf, StoreError};

/// As a customer does: who is put off by a busy machine asks again.
async fn create(at: &Setting, account: &AccountId) -> KeyOutcome {
    for _ in 0..20 {
        let made = at.store.accounts();
        match made.create_key(account, Permission::All, "").await {
            Err(StoreError::Unavailable(why)) if why.contains("lock timeout") => {}
            outcome => return outcome.unwrap(),
        }
    }
    panic!("put off twenty times");
}

async fn rotate(at: &Setting, key: &KeyRecord, overlap_seconds: i64) -> KeyOutcome {
    let rotated = at.store.accounts().rotate_key(&key.id, overlap_seconds);
    rotated.await.unwrap()
}

/// All keys of the account as someone sees them who leafs through pages of this size.
async fn leaf(at: &Setting, account: &AccountId, size: u32) -> Vec<KeyRecord> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let page = at.store.accounts().list_keys(account, after.as_ref(), size);
        let page = page.await.unwrap();
        let Some(last) = page.last() else { return all };
        after = Some(last.cursor());
        all.extend(page);
    }
}

#[tokio::test]
async fn after_1012_rotations_the_one_key_that_works_is_listed_first_and_pages_hold_every_other_once()
 {
    on_every_engine_quickly(async |at: &Setting| {
        let account = at.account_for(1).await;
        let (mut record, mut secret) = create(at, &account).await.made().unwrap();
        for _ in 0..1_012 {
            at.clock.advance_seconds(1);
            (record, secret) = rotate(at, &record, 0).await.made().unwrap();
        }
        let first = at.store.accounts().list_keys(&account, None, 1);
        assert_eq!(first.await.unwrap(), std::slice::from_ref(&record));
        let caller = at.store.accounts().find_caller(&secret.hash()).await;
        assert_eq!(caller.unwrap().unwrap().key_id, record.id);
        let all = leaf(at, &account, 100).await;
        assert_eq!(all.len(), 1_013);
        assert!(all[0].is_live && !all[1..].iter().any(|key| key.is_live));
        assert!(all.is_sorted_by(|a, b| a.created_at > b.created_at));
    })
    .await;
}

#[tokio::test]
async fn a_key_that_dies_between_two_pages_is_not_passed_over() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(1).await;
        let mut made = Vec::new();
        for _ in 0..4 {
            at.clock.advance_seconds(1);
            made.push(create(at, &account).await.made().unwrap().0);
        }
        let first = at
            .store
            .accounts()
            .list_keys(&account, None, 2)
            .await
            .unwrap();
        assert_eq!([&first[0].id, &first[1].id], [&made[3].id, &made[2].id]);
        at.store.accounts().revoke_key(&made[1].id).await.unwrap();
        let after = first[1].cursor();
        let rest = at.store.accounts().list_keys(&account, Some(&after), 9);
        let rest = rest.await.unwrap();
        assert_eq!([&rest[0].id, &rest[1].id], [&made[0].id, &made[1].id]);
        assert_eq!((rest[0].is_live, rest[1].is_live), (true, false));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_sixty_creates_at_once_exactly_the_limit_are_made() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(1).await;
        let made = join_all((0..60).map(|_| create(at, &account))).await;
        let keys = made.into_iter().filter_map(KeyOutcome::made).count();
        assert_eq!(keys, LIVE_KEYS_MAX as usize);
        assert_eq!(leaf(at, &account, 100).await.len(), keys);
        // Another account has a limit of its own, and a revoked key makes room.
        let other = at.account_for(1).await;
        assert!(create(at, &other).await.made().is_some());
        let one = leaf(at, &account, 1).await.remove(0);
        at.store.accounts().revoke_key(&one.id).await.unwrap();
        assert!(create(at, &account).await.made().is_some());
        assert_eq!(create(at, &account).await, KeyOutcome::TooMany);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rotations_at_once_pass_the_limit_no_more_than_creates_do_and_what_is_refused_revokes_nothing()
 {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(1).await;
        let mut keys = Vec::new();
        for _ in 0..LIVE_KEYS_MAX - 4 {
            keys.push(create(at, &account).await.made().unwrap().0);
        }
        let rotations = keys.iter().take(12).map(|key| rotate(at, key, 60));
        let rotated = join_all(rotations).await;
        let made = rotated.into_iter().filter_map(KeyOutcome::made);
        assert_eq!(made.count(), 4, "each keeps its old key for a minute");
        let live = leaf(at, &account, 100).await;
        assert!(live.iter().all(|key| key.is_live) && live.len() == LIVE_KEYS_MAX as usize);
        let ending = live.iter().filter(|key| key.revoked_at.is_some()).count();
        assert_eq!(ending, 4);
        // Without an overlap one goes as one comes.
        let last = keys.last().unwrap();
        assert!(rotate(at, last, 0).await.made().is_some());
        // And when the overlaps are over there is room again.
        at.clock.advance_seconds(60);
        assert!(rotate(at, &keys[20], 60).await.made().is_some());
    })
    .await;
}

#[tokio::test]
async fn a_revoked_key_is_forgotten_after_90_days_and_what_the_operator_did_is_not() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(1).await;
        let by = OnBehalf {
            operator: "bob".to_owned(),
            reason: "leaked".to_owned(),
        };
        let (revoked, secret) = create(at, &account).await.made().unwrap();
        let (rotated, _) = create(at, &account).await.made().unwrap();
        let (kept, _) = create(at, &account).await.made().unwrap();
        at.store
            .operator()
            .revoke_key(&revoked.id, &by)
            .await
            .unwrap();
        rotate(at, &rotated, 3_600).await;
        at.run(REVOKED_KEY_DAYS * 86_400 - 1).await;
        at.store.sweep(&at.results).await.unwrap();
        assert_eq!(leaf(at, &account, 100).await.len(), 4);
        at.keep_looking(1).await;
        at.store.sweep(&at.results).await.unwrap();
        let left = leaf(at, &account, 100).await;
        assert!(left.len() == 3 && left.iter().all(|key| key.id != revoked.id));
        at.keep_looking(3_600).await;
        at.store.sweep(&at.results).await.unwrap();
        let left = leaf(at, &account, 100).await;
        assert!(left.len() == 2 && left.iter().all(|key| key.is_live));
        assert!(left.iter().any(|key| key.id == kept.id));
        let caller = at.store.accounts().find_caller(&secret.hash()).await;
        assert_eq!(caller.unwrap(), None);
        let actions = at
            .store
            .operator()
            .list_actions(Some(&account), i64::MAX, 9);
        let actions = actions.await.unwrap();
        assert!(
            actions[0].detail.contains(revoked.id.as_str()),
            "{actions:?}"
        );
    })
    .await;
}

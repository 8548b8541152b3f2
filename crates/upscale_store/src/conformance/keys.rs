//! API keys: known by their hash, dead from the next request on, secrets that sign results.

use upscale_core::{AccountId, ApiKey, KeyId, Permission, limits::SIGNING_KEY_OVERLAP_SECONDS};

use super::setting::{Setting, on_every_engine};
use crate::{Caller, OldLinks};

async fn caller(at: &Setting, key: &ApiKey) -> Option<Caller> {
    at.store.accounts().find_caller(&key.hash()).await.unwrap()
}

#[tokio::test]
async fn a_key_finds_its_account_with_its_permission_and_whether_it_ever_paid() {
    on_every_engine(async |at: &Setting| {
        let account = at.store.accounts().create("A customer").await.unwrap().id;
        for permission in [Permission::Read, Permission::Write, Permission::All] {
            let (record, key) = at
                .store
                .accounts()
                .create_key(&account, permission, "")
                .await
                .unwrap()
                .made()
                .unwrap();
            assert!(key.reveal().ends_with(&record.hint) && record.hint.len() == 4);
            let found = caller(at, &key).await.unwrap();
            assert_eq!((&found.account_id, &found.key_id), (&account, &record.id));
            assert_eq!((found.permission, found.activated), (permission, false));
        }
        assert_eq!(
            at.store
                .accounts()
                .list_keys(&account, None, 100)
                .await
                .unwrap()
                .len(),
            3
        );
        let paid = at.account_for(1).await;
        let (_, key) = at
            .store
            .accounts()
            .create_key(&paid, Permission::All, "")
            .await
            .unwrap()
            .made()
            .unwrap();
        assert!(caller(at, &key).await.unwrap().activated);
    })
    .await;
}

#[tokio::test]
async fn no_account_no_key_and_no_key_no_caller() {
    on_every_engine(async |at: &Setting| {
        let no_one = AccountId::random().unwrap();
        assert!(
            at.store
                .accounts()
                .create_key(&no_one, Permission::All, "")
                .await
                .unwrap()
                .made()
                .is_none()
        );
        assert_eq!(caller(at, &ApiKey::random().unwrap()).await, None);
        let unknown = KeyId::random().unwrap();
        assert_eq!(
            at.store.accounts().revoke_key(&unknown).await.unwrap(),
            None
        );
        assert!(
            at.store
                .accounts()
                .rotate_key(&unknown, 0)
                .await
                .unwrap()
                .made()
                .is_none()
        );
    })
    .await;
}

#[tokio::test]
async fn a_revoked_key_is_refused_at_once_and_for_ever_even_when_the_clock_steps_back() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(1).await;
        let (record, key) = at
            .store
            .accounts()
            .create_key(&account, Permission::All, "")
            .await
            .unwrap()
            .made()
            .unwrap();
        let revoked = at
            .store
            .accounts()
            .revoke_key(&record.id)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(revoked.revoked_at, Some(at.store.now()));
        assert_eq!(caller(at, &key).await, None);
        at.clock.advance_seconds(-3_600);
        assert_eq!(caller(at, &key).await, None);
        assert_eq!(
            at.store.accounts().revoke_key(&record.id).await.unwrap(),
            Some(revoked)
        );
        assert!(
            at.store
                .accounts()
                .rotate_key(&record.id, 60)
                .await
                .unwrap()
                .made()
                .is_none()
        );
    })
    .await;
}

#[tokio::test]
async fn a_rotated_key_lives_for_its_overlap_and_its_successor_may_do_the_same() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(1).await;
        let (old, key) = at
            .store
            .accounts()
            .create_key(&account, Permission::Read, "")
            .await
            .unwrap()
            .made()
            .unwrap();
        let (new, successor) = at
            .store
            .accounts()
            .rotate_key(&old.id, 60)
            .await
            .unwrap()
            .made()
            .unwrap();
        assert_eq!((new.permission, new.revoked_at), (Permission::Read, None));
        assert!(caller(at, &key).await.is_some() && caller(at, &successor).await.is_some());
        at.clock.advance_seconds(60);
        assert!(caller(at, &key).await.is_none() && caller(at, &successor).await.is_some());
        // A second rotation does not lengthen the first one's overlap, and none means now.
        let (_, last) = at
            .store
            .accounts()
            .rotate_key(&new.id, 0)
            .await
            .unwrap()
            .made()
            .unwrap();
        assert!(caller(at, &successor).await.is_none() && caller(at, &last).await.is_some());
    })
    .await;
}

#[tokio::test]
async fn revoking_a_rotated_key_ends_its_overlap() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(1).await;
        let (old, key) = at
            .store
            .accounts()
            .create_key(&account, Permission::All, "")
            .await
            .unwrap()
            .made()
            .unwrap();
        at.store
            .accounts()
            .rotate_key(&old.id, 3_600)
            .await
            .unwrap();
        at.store
            .accounts()
            .rotate_key(&old.id, 7_200)
            .await
            .unwrap();
        let keys = at
            .store
            .accounts()
            .list_keys(&account, None, 100)
            .await
            .unwrap();
        let ends = keys.iter().find(|key| key.id == old.id).unwrap().revoked_at;
        assert_eq!(ends, Some(at.store.now().plus_seconds(3_600)));
        at.store.accounts().revoke_key(&old.id).await.unwrap();
        assert_eq!(caller(at, &key).await, None);
    })
    .await;
}

#[tokio::test]
async fn a_use_is_recorded_to_the_minute() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(1).await;
        let (record, key) = at
            .store
            .accounts()
            .create_key(&account, Permission::All, "")
            .await
            .unwrap()
            .made()
            .unwrap();
        assert_eq!(caller(at, &key).await.unwrap().last_used_at, None);
        let first = at.store.now();
        for seconds in [0, 59] {
            at.clock.advance_seconds(seconds);
            at.store
                .accounts()
                .record_key_use(&record.id)
                .await
                .unwrap();
            assert_eq!(caller(at, &key).await.unwrap().last_used_at, Some(first));
        }
        at.clock.advance_seconds(1);
        at.store
            .accounts()
            .record_key_use(&record.id)
            .await
            .unwrap();
        let used = caller(at, &key).await.unwrap().last_used_at;
        assert_eq!(used, Some(first.plus_seconds(60)));
    })
    .await;
}

#[tokio::test]
async fn there_is_a_key_to_sign_results_with_and_it_stays() {
    on_every_engine(async |at: &Setting| {
        let keys = at.store.signing_keys().await.unwrap();
        assert_eq!(keys.len(), 1);
        assert_ne!(keys[0].secret, [0; 32]);
        assert!(!keys[0].id.is_empty());
        let again = at.store.signing_keys().await.unwrap();
        assert_eq!(
            (&again[0].id, again[0].secret),
            (&keys[0].id, keys[0].secret)
        );
    })
    .await;
}

async fn signing_ids(at: &Setting) -> Vec<String> {
    let keys = at.store.signing_keys().await.unwrap();
    keys.into_iter().map(|key| key.id).collect()
}

#[tokio::test]
async fn a_new_signing_key_comes_first_and_the_old_one_stays_until_its_urls_have_expired() {
    on_every_engine(async |at: &Setting| {
        let first = signing_ids(at).await.remove(0);
        let second = at.store.rotate_signing_key(OldLinks::Expire).await.unwrap();
        // Twice within one moment: the last still signs.
        let third = at.store.rotate_signing_key(OldLinks::Expire).await.unwrap();
        assert_eq!(
            signing_ids(at).await,
            [&third, &second, &first].map(String::clone)
        );
        at.clock.advance_seconds(SIGNING_KEY_OVERLAP_SECONDS - 1);
        assert_eq!(signing_ids(at).await.len(), 3);
        at.clock.advance_seconds(2);
        assert_eq!(signing_ids(at).await, std::slice::from_ref(&third));
        let fourth = at.store.rotate_signing_key(OldLinks::Expire).await.unwrap();
        assert_eq!(signing_ids(at).await, [fourth, third]);
    })
    .await;
}

#[tokio::test]
async fn a_signing_key_that_leaked_is_refused_at_once() {
    on_every_engine(async |at: &Setting| {
        at.store.rotate_signing_key(OldLinks::Expire).await.unwrap();
        let only = at.store.rotate_signing_key(OldLinks::Refuse).await.unwrap();
        assert_eq!(signing_ids(at).await, [only]);
    })
    .await;
}

#[tokio::test]
async fn a_store_that_takes_writes_says_so() {
    on_every_engine(async |at: &Setting| {
        at.store.check_writable().await.unwrap();
        at.store.check_writable().await.unwrap();
    })
    .await;
}

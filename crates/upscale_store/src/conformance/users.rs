//! Users: one address, one user; passwords and the links that set them; second factors.

use futures_util::future::join_all;
use upscale_core::{AccountId, Email, SecretToken};

use super::setting::{Setting, on_every_engine};
use crate::{User, UserOutcome};

pub(super) fn email(name: &str) -> Email {
    Email::parse(&format!("{name}@example.org")).unwrap()
}

/// Someone who signed up.
pub(super) async fn signed_up(at: &Setting, name: &str) -> User {
    let made = at
        .store
        .users()
        .create(None, &email(name), Some("hash"))
        .await;
    match made.unwrap() {
        UserOutcome::Created(user) => user,
        other => panic!("{name}: {other:?}"),
    }
}

#[tokio::test]
async fn who_signs_up_has_an_account_that_has_not_paid() {
    on_every_engine(async |at: &Setting| {
        let user = signed_up(at, "ann").await;
        let account = at.account(&user.account_id).await;
        assert_eq!(account.name, "ann@example.org");
        assert_eq!(account.activated_at, None);
        assert_eq!(
            at.store
                .accounts()
                .list_keys(&account.id, None, 100)
                .await
                .unwrap(),
            []
        );
        let found = at.store.users().find(&email("ann")).await.unwrap();
        assert_eq!(found.as_ref(), Some(&user));
        assert_eq!(user.password_hash.as_deref(), Some("hash"));
        assert_eq!(at.store.users().find(&email("bob")).await.unwrap(), None);
        assert_eq!(at.store.users().list().await.unwrap(), [user]);
    })
    .await;
}

#[tokio::test]
async fn an_account_may_have_several_users_and_no_one_joins_one_that_is_not_there() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(1).await;
        for name in ["ann", "bob"] {
            let address = email(name);
            let made = at.store.users().create(Some(&account), &address, None);
            let UserOutcome::Created(user) = made.await.unwrap() else {
                panic!("{name} was not made");
            };
            assert_eq!((&user.account_id, &user.password_hash), (&account, &None));
        }
        let no_one = AccountId::random().unwrap();
        let address = email("eve");
        let made = at.store.users().create(Some(&no_one), &address, None);
        assert_eq!(made.await.unwrap(), UserOutcome::NoSuchAccount);
        assert_eq!(at.store.users().find(&email("eve")).await.unwrap(), None);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_who_take_one_address_at_once_one_gets_it_and_no_account_is_left_over() {
    on_every_engine(async |at: &Setting| {
        let address = email("ann");
        let tries = join_all((0..8).map(|_| at.store.users().create(None, &address, None))).await;
        let made = tries
            .iter()
            .filter(|made| matches!(made, Ok(UserOutcome::Created(_))));
        assert_eq!(made.count(), 1, "{tries:?}");
        let again = at.store.users().create(None, &address, None).await.unwrap();
        assert_eq!(again, UserOutcome::EmailTaken);
        assert_eq!(at.store.accounts().list().await.unwrap().len(), 1);
    })
    .await;
}

#[tokio::test]
async fn a_new_password_ends_every_session_and_every_reset_link_of_its_user_alone() {
    on_every_engine(async |at: &Setting| {
        let (ann, bob) = (signed_up(at, "ann").await, signed_up(at, "bob").await);
        let [a, b, link] = [(); 3].map(|()| SecretToken::random().unwrap().hash());
        at.store
            .users()
            .create_session(&ann.id, &a, None, 60)
            .await
            .unwrap();
        at.store
            .users()
            .create_session(&bob.id, &b, None, 60)
            .await
            .unwrap();
        at.store
            .users()
            .create_reset(&ann.id, &link, 60)
            .await
            .unwrap();
        at.store
            .users()
            .set_password(&ann.id, "another")
            .await
            .unwrap();
        assert_eq!(at.store.users().find_session(&a).await.unwrap(), None);
        assert!(at.store.users().find_session(&b).await.unwrap().is_some());
        assert_eq!(at.store.users().find_reset(&link).await.unwrap(), None);
        let ann = at.store.users().find(&email("ann")).await.unwrap().unwrap();
        assert_eq!(ann.password_hash.as_deref(), Some("another"));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_link_works_once_and_only_in_its_time() {
    on_every_engine(async |at: &Setting| {
        let ann = signed_up(at, "ann").await;
        let [old, link, late] = [(); 3].map(|()| SecretToken::random().unwrap().hash());
        at.store
            .users()
            .create_reset(&ann.id, &old, 60)
            .await
            .unwrap();
        at.store
            .users()
            .create_reset(&ann.id, &link, 60)
            .await
            .unwrap();
        assert_eq!(at.store.users().find_reset(&old).await.unwrap(), None);
        assert!(at.store.users().find_reset(&link).await.unwrap().is_some());
        let uses = join_all((0..4).map(|_| at.store.users().use_reset(&link, "new"))).await;
        let used = uses.into_iter().filter(|used| *used.as_ref().unwrap());
        assert_eq!(used.count(), 1);
        at.store
            .users()
            .create_reset(&ann.id, &late, 60)
            .await
            .unwrap();
        at.clock.advance_seconds(60);
        assert_eq!(at.store.users().find_reset(&late).await.unwrap(), None);
        assert!(!at.store.users().use_reset(&late, "newer").await.unwrap());
        let ann = at.store.users().find(&email("ann")).await.unwrap().unwrap();
        assert_eq!(ann.password_hash.as_deref(), Some("new"));
    })
    .await;
}

#[tokio::test]
async fn a_code_of_the_second_factor_is_taken_once() {
    on_every_engine(async |at: &Setting| {
        let ann = signed_up(at, "ann").await;
        at.store
            .users()
            .set_totp(&ann.id, Some("SECRET"))
            .await
            .unwrap();
        let found = at.store.users().find(&email("ann")).await.unwrap().unwrap();
        let opened = at.store.users().open_totp(&found).unwrap();
        assert_eq!(opened.as_deref(), Some("SECRET"));
        let take = async |step| {
            at.store
                .users()
                .take_totp_step(&ann.id, step)
                .await
                .unwrap()
        };
        assert!(take(100).await);
        assert!(!take(100).await);
        assert!(!take(99).await);
        assert!(take(101).await);
        at.store.users().set_totp(&ann.id, None).await.unwrap();
        let found = at.store.users().find(&email("ann")).await.unwrap().unwrap();
        assert_eq!(found.totp_secret, None);
    })
    .await;
}

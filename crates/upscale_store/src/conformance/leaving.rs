//! A user's life after signing up: another address, and the end of user and account.

use futures_util::future::join_all;
use upscale_core::{Permission, SecretToken, TokenHash};

use super::{
    setting::{Setting, on_every_engine},
    users::{email, signed_up},
};
use crate::{DeletionOutcome, EmailChangeOutcome, UserOutcome};

fn token() -> TokenHash {
    SecretToken::random().unwrap().hash()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_changes_its_own_users_address_once_and_in_its_time() {
    on_every_engine(async |at: &Setting| {
        let (ann, bob) = (signed_up(at, "ann").await, signed_up(at, "bob").await);
        let users = at.store.users();
        let (new, [old, link, late]) = (email("anna"), [(); 3].map(|()| token()));
        let ask = async |user: &_, link: &_| {
            users
                .create_email_change(user, &new, link, 60)
                .await
                .unwrap();
        };
        ask(&ann.id, &old).await;
        ask(&ann.id, &link).await;
        assert_eq!(users.find_email_change(&old).await.unwrap(), None);
        let found = users.find_email_change(&link).await.unwrap();
        assert_eq!(found, Some((ann.clone(), new.clone())));
        let gone = EmailChangeOutcome::Gone;
        assert_eq!(users.change_email(&bob.id, &link).await.unwrap(), gone);
        let [reset, session] = [token(), token()];
        users.create_reset(&ann.id, &reset, 60).await.unwrap();
        users
            .create_session(&ann.id, &session, None, 600)
            .await
            .unwrap();
        let uses = join_all((0..4).map(|_| users.change_email(&ann.id, &link))).await;
        let changed = EmailChangeOutcome::Changed {
            from: email("ann"),
            to: new.clone(),
        };
        let used = uses.into_iter().map(Result::unwrap);
        assert_eq!(used.filter(|used| *used == changed).count(), 1);
        // What was mailed to the old address opens nothing; who is signed in stays so; the account follows.
        assert_eq!(users.find_reset(&reset).await.unwrap(), None);
        assert!(users.find_session(&session).await.unwrap().is_some());
        assert_eq!(at.account(&ann.account_id).await.name, "anna@example.org");
        let found = users.find(&new).await.unwrap().unwrap();
        assert_eq!(
            (found.id, found.verified_at),
            (ann.id, Some(at.store.now()))
        );
        assert_eq!(users.find(&email("ann")).await.unwrap(), None);

        ask(&bob.id, &late).await;
        at.clock.advance_seconds(60);
        assert_eq!(users.find_email_change(&late).await.unwrap(), None);
        assert_eq!(users.change_email(&bob.id, &late).await.unwrap(), gone);
        at.store.sweep(&at.results).await.unwrap();
        assert_eq!(at.home.count_rows("email_change"), 0);
    })
    .await;
}

#[tokio::test]
async fn an_address_that_was_taken_meanwhile_stays_whose_it_is_and_a_new_password_cancels() {
    on_every_engine(async |at: &Setting| {
        let ann = signed_up(at, "ann").await;
        let (users, link) = (at.store.users(), token());
        let ask = async || {
            let wanted = email("bob");
            let asked = users.create_email_change(&ann.id, &wanted, &link, 60);
            asked.await.unwrap();
        };
        ask().await;
        users.set_password(&ann.id, "another").await.unwrap();
        let changed = users.change_email(&ann.id, &link).await.unwrap();
        assert_eq!(changed, EmailChangeOutcome::Gone);
        ask().await;
        let bob = signed_up(at, "bob").await;
        let changed = users.change_email(&ann.id, &link).await.unwrap();
        assert_eq!(changed, EmailChangeOutcome::Taken);
        assert_eq!(users.find(&email("bob")).await.unwrap(), Some(bob));
        assert!(users.find(&email("ann")).await.unwrap().is_some());
    })
    .await;
}

/// No row of any user.
fn no_one_is_left(at: &Setting) {
    for table in [
        "console_user",
        "console_session",
        "password_reset",
        "email_verification",
        "email_change",
        "known_browser",
        "recovery_code",
    ] {
        assert_eq!(at.home.count_rows(table), 0, "{table}");
    }
}

#[tokio::test]
async fn the_last_user_takes_keys_and_names_along_and_leaves_the_books() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(10).await;
        let (users, accounts) = (at.store.users(), at.store.accounts());
        let join = async |name: &str| match users.create(Some(&account), &email(name), None).await {
            Ok(UserOutcome::Created(user)) => user,
            other => panic!("{other:?}"),
        };
        let (ann, bob) = (join("ann").await, join("bob").await);
        let key = accounts
            .create_key(&account, Permission::All, "Ann's laptop")
            .await;
        let (_, secret) = key.unwrap().made().unwrap();
        let (session, ledger) = (token(), accounts.list_ledger(&account, 100).await.unwrap());
        for user in [&ann, &bob] {
            users.know_browser(&user.id, &token(), 600).await.unwrap();
            users.create_reset(&user.id, &token(), 600).await.unwrap();
            users
                .create_verification(&user.id, &token(), 600)
                .await
                .unwrap();
            users
                .set_recovery_codes(&user.id, &[token()])
                .await
                .unwrap();
            let (wanted, link) = (email("new"), token());
            let changed = users.create_email_change(&user.id, &wanted, &link, 600);
            changed.await.unwrap();
        }
        users
            .create_session(&bob.id, &session, None, 600)
            .await
            .unwrap();

        assert_eq!(users.delete(&ann.id).await.unwrap(), DeletionOutcome::User);
        assert_eq!(users.delete(&ann.id).await.unwrap(), DeletionOutcome::Gone);
        assert!(
            accounts
                .find_caller(&secret.hash())
                .await
                .unwrap()
                .is_some()
        );
        assert_eq!(
            users.delete(&bob.id).await.unwrap(),
            DeletionOutcome::Account
        );

        assert_eq!(accounts.find_caller(&secret.hash()).await.unwrap(), None);
        assert_eq!(users.find_session(&session).await.unwrap(), None);
        no_one_is_left(at);
        let left = at.account(&account).await;
        assert_eq!(
            (left.name.as_str(), left.available.thousandths()),
            ("Deleted account", 7_000)
        );
        assert_eq!(accounts.list_ledger(&account, 100).await.unwrap(), ledger);
        let keys = accounts.list_keys(&account, None, 10).await.unwrap();
        assert!(
            keys.iter().all(|key| !key.is_live && key.name.is_empty()),
            "{keys:?}"
        );
        // The address is free again, and who takes it gets an account of their own.
        assert_ne!(signed_up(at, "ann").await.account_id, account);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_last_users_who_go_at_once_one_ends_the_account() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(1).await;
        let users = at.store.users();
        let mut both = Vec::new();
        for name in ["ann", "bob"] {
            let made = users.create(Some(&account), &email(name), None).await;
            let UserOutcome::Created(user) = made.unwrap() else {
                panic!("{name} was not made");
            };
            both.push(user.id);
        }
        let ended = join_all(both.iter().map(|user| users.delete(user))).await;
        let mut ended: Vec<_> = ended.into_iter().map(Result::unwrap).collect();
        ended.sort_by_key(|ended| *ended == DeletionOutcome::Account);
        assert_eq!(ended, [DeletionOutcome::User, DeletionOutcome::Account]);
        assert_eq!(at.account(&account).await.name, "Deleted account");
    })
    .await;
}

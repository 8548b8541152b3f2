//! Whose address it is: links that prove it, what a reset takes from anyone who had not, and the browsers a user is known by.

use futures_util::future::join_all;
use upscale_core::{Permission, SecretToken, TokenHash};

use super::{
    setting::{Setting, on_every_engine},
    users::{email, signed_up},
};
use crate::{User, UserOutcome};

fn token() -> TokenHash {
    SecretToken::random().unwrap().hash()
}

async fn find(at: &Setting, name: &str) -> User {
    let found = at.store.users().find(&email(name)).await;
    found.unwrap().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_proves_its_own_users_address_once_and_in_its_time() {
    on_every_engine(async |at: &Setting| {
        let (ann, bob) = (signed_up(at, "ann").await, signed_up(at, "bob").await);
        assert_eq!(ann.verified_at, None);
        let users = at.store.users();
        let [old, link, late] = [token(), token(), token()];
        users.create_verification(&ann.id, &old, 60).await.unwrap();
        users.create_verification(&ann.id, &link, 60).await.unwrap();
        assert_eq!(users.find_verification(&old).await.unwrap(), None);
        assert!(!users.verify(&ann.id, &old).await.unwrap());
        assert_eq!(
            users.find_verification(&link).await.unwrap(),
            Some(ann.clone())
        );
        assert!(!users.verify(&bob.id, &link).await.unwrap());
        let uses = join_all((0..4).map(|_| users.verify(&ann.id, &link))).await;
        assert_eq!(
            uses.into_iter()
                .filter(|used| *used.as_ref().unwrap())
                .count(),
            1
        );
        assert_eq!(find(at, "ann").await.verified_at, Some(at.store.now()));
        assert_eq!(find(at, "bob").await.verified_at, None);
        users.create_verification(&bob.id, &late, 60).await.unwrap();
        at.clock.advance_seconds(60);
        assert_eq!(users.find_verification(&late).await.unwrap(), None);
        assert!(!users.verify(&bob.id, &late).await.unwrap());
        at.store.sweep(&at.results).await.unwrap();
        assert_eq!(at.home.count_rows("email_verification"), 0);
    })
    .await;
}

#[tokio::test]
async fn a_reset_takes_everything_from_anyone_who_had_not_proved_the_address_and_nothing_from_who_had()
 {
    on_every_engine(async |at: &Setting| {
        let ann = signed_up(at, "ann").await;
        let (users, accounts) = (at.store.users(), at.store.accounts());
        let key = async || {
            let made = accounts.create_key(&ann.account_id, Permission::All, "");
            made.await.unwrap().made().unwrap().1.hash()
        };
        let [session, browser, proof] = [token(), token(), token()];
        let theirs = key().await;
        let others = at.account_for(1).await;
        let made = accounts.create_key(&others, Permission::All, "").await;
        let others = made.unwrap().made().unwrap().1.hash();
        users.set_totp(&ann.id, Some("SECRET")).await.unwrap();
        users
            .create_session(&ann.id, &session, None, 60)
            .await
            .unwrap();
        users.know_browser(&ann.id, &browser, 60).await.unwrap();
        users
            .create_verification(&ann.id, &proof, 60)
            .await
            .unwrap();
        let link = token();
        users.create_reset(&ann.id, &link, 60).await.unwrap();
        assert!(users.use_reset(&link, "new").await.unwrap());
        let found = find(at, "ann").await;
        assert_eq!(
            (found.totp_secret, found.verified_at),
            (None, Some(at.store.now()))
        );
        assert_eq!(accounts.find_caller(&theirs).await.unwrap(), None);
        assert!(accounts.find_caller(&others).await.unwrap().is_some());
        assert_eq!(users.find_session(&session).await.unwrap(), None);
        assert!(!users.knows_browser(&email("ann"), &browser).await.unwrap());
        assert!(!users.verify(&ann.id, &proof).await.unwrap());

        let own = key().await;
        users.set_totp(&ann.id, Some("SECRET")).await.unwrap();
        let link = token();
        users.create_reset(&ann.id, &link, 60).await.unwrap();
        assert!(users.use_reset(&link, "newer").await.unwrap());
        assert!(accounts.find_caller(&own).await.unwrap().is_some());
        assert!(find(at, "ann").await.totp_secret.is_some());
    })
    .await;
}

#[tokio::test]
async fn who_is_made_by_an_operator_is_believed_and_their_first_password_revokes_nothing() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(1).await;
        let made = at
            .store
            .accounts()
            .create_key(&account, Permission::All, "");
        let key = made.await.unwrap().made().unwrap().1.hash();
        let address = email("ann");
        let made = at.store.users().create(Some(&account), &address, None);
        let UserOutcome::Created(user) = made.await.unwrap() else {
            panic!("ann was not made");
        };
        assert!(user.verified_at.is_some());
        let link = token();
        at.store
            .users()
            .create_reset(&user.id, &link, 60)
            .await
            .unwrap();
        assert!(at.store.users().use_reset(&link, "first").await.unwrap());
        let caller = at.store.accounts().find_caller(&key).await.unwrap();
        assert!(caller.is_some());
    })
    .await;
}

#[tokio::test]
async fn a_user_is_known_by_twenty_browsers_each_for_its_time_and_no_other_users() {
    on_every_engine(async |at: &Setting| {
        let (ann, bob) = (signed_up(at, "ann").await, signed_up(at, "bob").await);
        let users = at.store.users();
        let browsers: Vec<TokenHash> = (0..21).map(|_| token()).collect();
        for browser in &browsers {
            at.clock.advance_seconds(1);
            users.know_browser(&ann.id, browser, 600).await.unwrap();
        }
        let knows = async |browser| users.knows_browser(&email("ann"), browser).await.unwrap();
        assert!(!knows(&browsers[0]).await && knows(&browsers[1]).await);
        let no_ones = token();
        assert!(knows(&browsers[20]).await && !knows(&no_ones).await);
        assert!(
            !users
                .knows_browser(&email("bob"), &browsers[20])
                .await
                .unwrap()
        );
        // Another user's sign-in with the same cookie does not make it theirs.
        users
            .know_browser(&bob.id, &browsers[20], 600)
            .await
            .unwrap();
        assert!(knows(&browsers[20]).await);
        assert!(
            !users
                .knows_browser(&email("bob"), &browsers[20])
                .await
                .unwrap()
        );
        at.clock.advance_seconds(300);
        users
            .know_browser(&ann.id, &browsers[5], 600)
            .await
            .unwrap();
        at.clock.advance_seconds(300);
        assert!(knows(&browsers[5]).await && !knows(&browsers[20]).await);
        at.store.sweep(&at.results).await.unwrap();
        assert_eq!(at.home.count_rows("known_browser"), 1);
    })
    .await;
}

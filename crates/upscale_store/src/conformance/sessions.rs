//! Sessions of the console, counted tries, and that both are forgotten when their time is over.

use futures_util::future::join_all;
use upscale_core::SecretToken;

use super::{
    setting::{Setting, on_every_engine},
    users::signed_up,
};
use crate::AttemptOutcome;

#[tokio::test]
async fn a_session_lives_until_its_time_is_over_or_it_is_ended() {
    on_every_engine(async |at: &Setting| {
        let ann = signed_up(at, "ann").await;
        let [one, two] = [(); 2].map(|()| SecretToken::random().unwrap().hash());
        let opened = at.store.now();
        at.store
            .users()
            .create_session(&ann.id, &one, None, 60)
            .await
            .unwrap();
        at.store
            .users()
            .create_session(&ann.id, &two, None, 90)
            .await
            .unwrap();
        let session = at.store.users().find_session(&one).await.unwrap().unwrap();
        assert_eq!((&session.user, session.created_at), (&ann, opened));
        assert_eq!(session.expires_at, opened.plus_seconds(60));
        at.clock.advance_seconds(60);
        assert_eq!(at.store.users().find_session(&one).await.unwrap(), None);
        assert!(at.store.users().find_session(&two).await.unwrap().is_some());
        at.store.users().end_session(&two).await.unwrap();
        at.store.users().end_session(&two).await.unwrap();
        assert_eq!(at.store.users().find_session(&two).await.unwrap(), None);
    })
    .await;
}

#[tokio::test]
async fn a_session_that_takes_anothers_place_ends_it() {
    on_every_engine(async |at: &Setting| {
        let ann = signed_up(at, "ann").await;
        let [one, two] = [(); 2].map(|()| SecretToken::random().unwrap().hash());
        at.store
            .users()
            .create_session(&ann.id, &one, None, 60)
            .await
            .unwrap();
        at.store
            .users()
            .create_session(&ann.id, &two, Some(&one), 60)
            .await
            .unwrap();
        assert_eq!(at.store.users().find_session(&one).await.unwrap(), None);
        assert!(at.store.users().find_session(&two).await.unwrap().is_some());
    })
    .await;
}

#[tokio::test]
async fn signing_out_everywhere_ends_all_sessions_of_this_user_alone() {
    on_every_engine(async |at: &Setting| {
        let (ann, bob) = (signed_up(at, "ann").await, signed_up(at, "bob").await);
        let tokens = [(); 3].map(|()| SecretToken::random().unwrap().hash());
        for (user, token) in [&ann, &ann, &bob].into_iter().zip(&tokens) {
            at.store
                .users()
                .create_session(&user.id, token, None, 60)
                .await
                .unwrap();
        }
        assert_eq!(at.store.users().end_sessions(&ann.id).await.unwrap(), 2);
        let mut live = Vec::new();
        for token in &tokens {
            live.push(
                at.store
                    .users()
                    .find_session(token)
                    .await
                    .unwrap()
                    .is_some(),
            );
        }
        assert_eq!(live, [false, false, true]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tries_are_counted_up_to_their_limit_however_many_come_at_once() {
    on_every_engine(async |at: &Setting| {
        let tries =
            join_all((0..12).map(|_| at.store.users().count_attempt("address 1", 5, 900))).await;
        let allowed = tries
            .iter()
            .filter(|answer| matches!(answer, Ok(AttemptOutcome::Allowed)));
        assert_eq!(allowed.count(), 5, "{tries:?}");
        at.clock.advance_seconds(100);
        let refused = AttemptOutcome::TooMany {
            retry_after_seconds: 800,
        };
        let again = at.store.users().count_attempt("address 1", 5, 900).await;
        assert_eq!(again.unwrap(), refused);
        let other = at.store.users().count_attempt("address 2", 5, 900).await;
        assert_eq!(other.unwrap(), AttemptOutcome::Allowed);
        at.clock.advance_seconds(800);
        let later = at.store.users().count_attempt("address 1", 5, 900).await;
        assert_eq!(later.unwrap(), AttemptOutcome::Allowed);
    })
    .await;
}

#[tokio::test]
async fn a_sweep_forgets_sessions_links_and_tries_whose_time_is_over() {
    on_every_engine(async |at: &Setting| {
        let ann = signed_up(at, "ann").await;
        for (number, seconds) in [60, 600].into_iter().enumerate() {
            let token = SecretToken::random().unwrap().hash();
            at.store
                .users()
                .create_session(&ann.id, &token, None, seconds)
                .await
                .unwrap();
            let subject = format!("address {number}");
            at.store
                .users()
                .count_attempt(&subject, 5, seconds)
                .await
                .unwrap();
        }
        let link = SecretToken::random().unwrap().hash();
        at.store
            .users()
            .create_reset(&ann.id, &link, 60)
            .await
            .unwrap();
        at.clock.advance_seconds(60);
        at.store.sweep(&at.results).await.unwrap();
        for (table, left) in [
            ("console_session", 1),
            ("sign_in_attempt", 1),
            ("password_reset", 0),
        ] {
            assert_eq!(at.home.count_rows(table), left, "{table}");
        }
    })
    .await;
}

#[tokio::test]
async fn sessions_are_listed_and_ended_one_by_one_and_no_one_elses() {
    on_every_engine(async |at: &Setting| {
        let (ann, bob) = (
            signed_up(at, "list-ann").await,
            signed_up(at, "list-bob").await,
        );
        let [first, second, others] = [(); 3].map(|()| SecretToken::random().unwrap().hash());
        let users = at.store.users();
        for (who, token, agent) in [
            (&ann, &first, "Firefox/140"),
            (&ann, &second, ""),
            (&bob, &others, "Chrome/140"),
        ] {
            let made = users.create_session_of(&who.id, token, None, 60, agent);
            made.await.unwrap();
            at.clock.advance_seconds(1);
        }
        let listed = users.list_sessions(&ann.id, 9).await.unwrap();
        let names: Vec<&str> = listed.iter().map(|one| one.name.as_str()).collect();
        let name = crate::SessionRecord::name_of;
        assert_eq!(names, [name(&second), name(&first)]);
        assert_eq!(listed[1].agent, "Firefox/140");
        assert!(
            !users
                .end_session_named(&ann.id, &name(&others))
                .await
                .unwrap()
        );
        assert!(
            users
                .end_session_named(&ann.id, &name(&first))
                .await
                .unwrap()
        );
        assert!(users.find_session(&first).await.unwrap().is_none());
        assert!(users.find_session(&others).await.unwrap().is_some());
        at.clock.advance_seconds(60);
        assert_eq!(users.list_sessions(&ann.id, 9).await.unwrap(), []);
    })
    .await;
}

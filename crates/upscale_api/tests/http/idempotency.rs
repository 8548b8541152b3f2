//! One key, one task: replays, conflicts and races.

use futures_util::future::join_all;
use upscale_core::Permission;

use crate::harness::{App, IMAGE, image_body, paid_account, with_app};

#[tokio::test]
async fn a_replay_returns_the_task_as_it_is_now() {
    with_app(async |app: &App| {
        let id = app.created("replayed-key-1").await;
        let replay = app.create("replayed-key-1", &image_body("")).send().await;
        replay.expect(202, "");
        assert_eq!(replay.header("idempotent-replayed"), Some("true"));
        assert_eq!(replay.json()["id"], id.as_str());
        assert_eq!(replay.json()["status"], "processing");

        app.succeed_next(b"png").await;
        let replay = app.create("replayed-key-1", &image_body("")).send().await;
        replay.expect(202, "");
        assert_eq!(replay.json()["id"], id.as_str());
        assert_eq!(replay.json()["status"], "succeeded");
        assert_eq!(replay.header("retry-after"), None);

        let id = app.created("replayed-key-2").await;
        app.fail_next("It is no image").await;
        let replay = app.create("replayed-key-2", &image_body("")).send().await;
        replay.expect(202, "image_processing_failed");
        assert_eq!(
            replay.json()["id"],
            id.as_str(),
            "a failed task keeps its key"
        );
        assert_eq!(replay.json()["status"], "failed");
        let location = format!("http://{}/api/v1/upscales/{id}", app.api);
        assert_eq!(replay.header("location"), Some(location.as_str()));
    })
    .await;
}

#[tokio::test]
async fn parameters_are_compared_after_defaults_and_in_any_order() {
    with_app(async |app: &App| {
        let id = app.created("compared-key-1").await;
        for body in [
            image_body(r#","scale":2"#),
            image_body(r#","scale":2.0,"output_format":"png""#),
            format!(r#" {{ "face_enhance" : false, "scale": 2, "image_url": "{IMAGE}" }}"#),
        ] {
            let replay = app.create("compared-key-1", &body).send().await;
            replay.expect(202, "");
            assert_eq!(replay.json()["id"], id.as_str(), "{body}");
        }
        for body in [
            image_body(r#","scale":4"#),
            image_body(r#","face_enhance":true"#),
            format!(r#"{{"image_url":"{IMAGE}?"}}"#),
        ] {
            let conflict = app.create("compared-key-1", &body).send().await;
            conflict.expect(409, "idempotency_conflict");
            assert!(conflict.header("x-ratelimit-remaining").is_some());
        }
    })
    .await;
}

#[tokio::test]
async fn a_key_belongs_to_the_account_whichever_of_its_api_keys_sends_it() {
    with_app(async |app: &App| {
        let id = app.created("scoped-key-1").await;
        let made = app
            .store
            .accounts()
            .create_key(&app.account, Permission::Write, "")
            .await
            .unwrap();
        let (_, sister) = made.made().unwrap();
        let asking = app
            .create("scoped-key-1", &image_body(""))
            .key(sister.reveal());
        assert_eq!(asking.send().await.json()["id"], id.as_str());
        let (_, foreign_caller) = paid_account(&app.store, "1").await;
        let other = app
            .create("scoped-key-1", &image_body(""))
            .key(&foreign_caller)
            .send()
            .await;
        other.expect(202, "");
        assert_ne!(other.json()["id"], id.as_str());
    })
    .await;
}

#[tokio::test]
async fn forty_eight_identical_creates_at_once_give_one_task_and_no_error() {
    with_app(async |app: &App| {
        let body = image_body("");
        let creates = (0..48).map(|_| app.create("raced-by-48", &body).send());
        let answers = join_all(creates).await;
        let first = answers[0].json()["id"].clone();
        for answer in &answers {
            answer.expect(202, "");
            assert_eq!(answer.json()["id"], first);
        }
        let fresh = answers
            .iter()
            .filter(|answer| answer.header("idempotent-replayed").is_none());
        assert_eq!(fresh.count(), 1);
        let account = app.account_now().await;
        assert_eq!(
            (account.active_tasks, account.reserved.to_string().as_str()),
            (1, "0.7")
        );
    })
    .await;
}

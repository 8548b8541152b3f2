//! The window, the active and daily limits, credits and capacity, with what each answer carries.

use upscale_core::{Credits, IdempotencyKey, NewTask, Parameters, RequestId, Scale, SourceUrl};

use crate::client::Answer;
use crate::harness::{App, IMAGE, NOON, image_body, paid_account, with_app};

#[tokio::test]
async fn every_authenticated_create_counts_and_the_61st_of_a_minute_is_refused() {
    with_app(async |app: &App| {
        app.clock.advance_seconds(14);
        let accepted = app.create("window-key-1", &image_body("")).send().await;
        accepted.expect(202, "");
        assert_eq!(accepted.number("x-ratelimit-limit"), 60);
        assert_eq!(accepted.number("x-ratelimit-remaining"), 59);
        assert_eq!(accepted.number("x-ratelimit-reset"), NOON + 60);
        let replay = app.create("window-key-1", &image_body("")).send().await;
        assert_eq!(replay.number("x-ratelimit-remaining"), 58);
        for left in (0..58).rev() {
            let bad = app.create("window-key-2", "{").send().await;
            bad.expect(400, "invalid_json");
            assert_eq!(bad.number("x-ratelimit-remaining"), left);
        }
        for body in ["{", &image_body("")] {
            let refused = app.create("window-key-1", body).send().await;
            refused.expect(429, "rate_limit_exceeded");
            assert_eq!(refused.json()["error"]["type"], "rate_limit_error");
            assert_eq!(refused.number("x-ratelimit-remaining"), 0);
            assert_eq!(refused.number("retry-after"), 46);
        }
        app.clock.advance_seconds(46);
        let again = app.create("window-key-1", &image_body("")).send().await;
        again.expect(202, "");
        assert_eq!(again.number("x-ratelimit-remaining"), 59);
        assert_eq!(again.number("x-ratelimit-reset"), NOON + 120);
    })
    .await;
}

#[tokio::test]
async fn refused_authentication_reads_and_other_accounts_count_nothing() {
    with_app(async |app: &App| {
        let id = app.created("counts-nothing").await;
        let unauthenticated = app
            .create("counts-nothing", "{}")
            .headers("authorization", &[]);
        let answer = unauthenticated.send().await;
        answer.expect(401, "missing_api_key");
        assert_eq!(answer.header("x-ratelimit-limit"), None);
        assert_eq!(app.read(&id).await.header("x-ratelimit-limit"), None);
        let (_, other) = paid_account(&app.store, "1").await;
        let answer = app.create("counts-nothing", "{}").key(&other).send().await;
        assert_eq!(answer.number("x-ratelimit-remaining"), 59);
        let answer = app.create("counts-nothing", "{}").send().await;
        assert_eq!(answer.number("x-ratelimit-remaining"), 58);
    })
    .await;
}

#[tokio::test]
async fn twenty_tasks_may_be_active_and_a_replay_still_answers() {
    with_app(async |app: &App| {
        for number in 0..20 {
            app.created(&format!("active-key-{number}")).await;
        }
        let refused = app.create("active-key-20", &image_body("")).send().await;
        refused.expect(429, "active_task_limit_exceeded");
        assert!((1..=30).contains(&refused.number("retry-after")));
        assert_eq!(refused.number("x-ratelimit-remaining"), 39);
        let replay = app.create("active-key-7", &image_body("")).send().await;
        replay.expect(202, "");
        assert_eq!(replay.header("idempotent-replayed"), Some("true"));
        app.fail_next("It is no image").await;
        app.created("active-key-20").await;
    })
    .await;
}

#[tokio::test]
async fn two_thousand_five_hundred_tasks_are_accepted_in_one_utc_day() {
    with_app(async |app: &App| {
        let more = Credits::parse("2000").unwrap();
        app.store
            .accounts()
            .credit(&app.account, more, "for the day")
            .await
            .unwrap();
        for round in 0..125 {
            create_and_fail_twenty(app, round).await;
        }
        let refused = app.create("one-too-many", &image_body("")).send().await;
        refused.expect(429, "daily_limit_exceeded");
        assert_eq!(refused.number("retry-after"), 43_200);
        app.clock.advance_seconds(43_200);
        app.created("one-too-many").await;
    })
    .await;
}

/// Past the HTTP window, which would take 42 minutes of clock: the day is what is looked at here.
async fn create_and_fail_twenty(app: &App, round: u32) {
    let order = NewTask {
        source_url: SourceUrl::parse(IMAGE).unwrap(),
        parameters: Parameters::at(Scale::X2),
    };
    let keys: Vec<IdempotencyKey> = (0..20)
        .map(|number| IdempotencyKey::parse(format!("day-{round}-{number:04}").as_bytes()).unwrap())
        .collect();
    let request = RequestId::random().unwrap();
    let creates = keys.iter().map(|key| {
        app.store
            .tasks()
            .create(&app.account, key, &order, &request)
    });
    futures_util::future::try_join_all(creates).await.unwrap();
    let claims = app.store.tasks().claim("test", 20, &[]).await.unwrap();
    assert_eq!(claims.len(), 20);
    let failed = upscale_core::FailureMessage::new("It is no image");
    let settles = claims.iter().map(|claim| {
        let settlement = upscale_store::Settlement::Failed(failed.clone());
        app.store.tasks().settle(
            &claim.task_id,
            claim.attempt,
            settlement,
            upscale_store::Spent::slot(0.01),
        )
    });
    futures_util::future::try_join_all(settles).await.unwrap();
}

#[tokio::test]
async fn without_credits_a_create_is_402_and_does_not_use_up_its_key() {
    with_app(async |app: &App| {
        let (account, key) = paid_account(&app.store, "1.3").await;
        app.create("spends-it-all", &image_body(""))
            .key(&key)
            .send()
            .await
            .expect(202, "");
        let refused = app
            .create("comes-too-late", &image_body(""))
            .key(&key)
            .send()
            .await;
        refused.expect(402, "insufficient_credits");
        assert_eq!(refused.json()["error"]["type"], "billing_error");
        let message = refused.json()["error"]["message"]
            .as_str()
            .unwrap()
            .to_owned();
        assert!(
            message.contains("0.7") && message.contains("0.6"),
            "{message}"
        );
        let more = Credits::parse("0.1").unwrap();
        app.store
            .accounts()
            .credit(&account, more, "a dime")
            .await
            .unwrap();
        app.create("comes-too-late", &image_body(""))
            .key(&key)
            .send()
            .await
            .expect(202, "");
    })
    .await;
}

/// Three bursts of 20 at 3 s a job on one slot: 180 s, more than 60 % of the 270 s. A burst's later tasks stand
/// behind the earlier ones of the others, so the third account gets some in and not all.
#[tokio::test]
async fn a_backlog_beyond_the_deadline_is_503_before_anything_is_reserved() {
    with_app(async |app: &App| {
        for customer in 0..2 {
            let (_, key) = paid_account(&app.store, "20").await;
            assert_eq!(burst(app, customer, &key).await.len(), 0);
        }
        let (account, key) = paid_account(&app.store, "20").await;
        let refused = burst(app, 2, &key).await;
        assert!(!refused.is_empty());
        for answer in &refused {
            answer.expect(503, "service_unavailable");
            assert!((1..=60).contains(&answer.number("retry-after")));
            assert!(answer.header("x-ratelimit-remaining").is_some());
        }
        let accepted = 20 - u32::try_from(refused.len()).unwrap();
        let account = app.store.accounts().find(&account).await.unwrap().unwrap();
        let reserved = Credits::from_thousandths(700 * i64::from(accepted));
        assert_eq!(
            (account.reserved, account.active_tasks),
            (reserved, accepted)
        );
        let (_, newcomer) = paid_account(&app.store, "1").await;
        let asking = app
            .create("not-behind-bursts", &image_body(""))
            .key(&newcomer);
        asking.send().await.expect(202, "");
    })
    .await;
}

/// Creates 20 tasks and returns the answers that were not 202.
async fn burst(app: &App, customer: u32, key: &str) -> Vec<Answer> {
    let mut refused = Vec::new();
    for number in 0..20 {
        let idempotency_key = format!("backlog-{customer}-{number}");
        let asking = app.create(&idempotency_key, &image_body("")).key(key);
        let answer = asking.send().await;
        if answer.status != 202 {
            refused.push(answer);
        }
    }
    refused
}

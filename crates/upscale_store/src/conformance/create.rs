//! Creating: what replays, what conflicts, what uses up a key, and what an accepted task leaves behind.

use futures_util::future::join_all;
use upscale_core::{NewTask, Parameters, Scale, SourceUrl, TaskState, limits};

use super::setting::{Setting, example, failure, on_every_engine};
use crate::{CreateOutcome, StoreError};

#[tokio::test]
async fn an_accepted_create_reserves_the_price_and_owes_a_job() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(3).await;
        let task = at.accepted(&account, "first").await;
        assert_eq!(task.state, TaskState::Processing);
        assert_eq!(task.created_at, at.store.now());
        assert_eq!(
            task.deadline_at,
            task.created_at.plus_seconds(limits::DEADLINE_SECONDS)
        );
        assert_eq!(at.task(&account, &task.id).await, task);

        let standing = at.account(&account).await;
        assert_eq!(standing.reserved, limits::PRICE);
        assert_eq!(
            standing.available.thousandths(),
            2 * limits::PRICE.thousandths()
        );
        assert_eq!((standing.active_tasks, standing.accepted_today), (1, 1));
        assert_eq!(at.store.tasks().queue_glance().await.unwrap().waiting, 1);
        let claim = at.claimed().await;
        assert_eq!((claim.task_id, claim.account_id), (task.id, account));
        assert_eq!(claim.source_url, example(Scale::X2).source_url);
        assert_eq!(claim.parameters, Parameters::at(Scale::X2));
    })
    .await;
}

#[tokio::test]
async fn a_replay_answers_the_first_task_as_it_is_now_and_takes_nothing() {
    on_every_engine(async |at: &Setting| {
        // Credits for one: the replay must answer where a new task would be refused.
        let account = at.account_for(1).await;
        let task = at.accepted(&account, "the key").await;
        assert_eq!(
            at.order(&account, "the key").await,
            CreateOutcome::Replayed(task.clone())
        );
        at.succeed(&at.claimed().await).await;
        let CreateOutcome::Replayed(now) = at.order(&account, "the key").await else {
            panic!("not replayed");
        };
        assert_eq!(now.id, task.id);
        assert!(matches!(now.state, TaskState::Succeeded(_)));
        assert_eq!(at.account(&account).await.accepted_today, 1);
        assert_eq!(
            at.store
                .accounts()
                .list_ledger(&account, 10)
                .await
                .unwrap()
                .len(),
            3
        );
    })
    .await;
}

#[tokio::test]
async fn the_key_of_a_failed_task_still_answers_the_failed_task() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(2).await;
        let task = at.accepted(&account, "the key").await;
        let claim = at.claimed().await;
        at.store
            .tasks()
            .settle(&task.id, claim.attempt, failure(), crate::Spent::slot(1.0))
            .await
            .unwrap();
        let CreateOutcome::Replayed(now) = at.order(&account, "the key").await else {
            panic!("not replayed");
        };
        assert_eq!(now.id, task.id);
        assert!(matches!(now.state, TaskState::Failed { .. }));
    })
    .await;
}

#[tokio::test]
async fn any_other_parameter_under_the_same_key_is_a_conflict() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(3).await;
        at.accepted(&account, "the key").await;
        let other_url = NewTask {
            source_url: SourceUrl::parse("https://pictures.example.org/a.png?").unwrap(),
            ..example(Scale::X2)
        };
        let faces = NewTask {
            parameters: Parameters {
                face_enhance: true,
                ..Parameters::at(Scale::X2)
            },
            ..example(Scale::X2)
        };
        for other in [example(Scale::X4), other_url, faces] {
            let outcome = at.order_task(&account, "the key", &other).await;
            assert_eq!(outcome, CreateOutcome::Conflict);
        }
        assert_eq!(at.account(&account).await.reserved, limits::PRICE);
    })
    .await;
}

#[tokio::test]
async fn a_refused_create_does_not_use_up_its_key() {
    on_every_engine(async |at: &Setting| {
        let account = at
            .store
            .accounts()
            .create("Without credits")
            .await
            .unwrap()
            .id;
        let refused = at.order(&account, "the key").await;
        assert!(
            matches!(refused, CreateOutcome::InsufficientCredits { .. }),
            "{refused:?}"
        );
        at.store
            .accounts()
            .credit(&account, limits::PRICE, "payment 1")
            .await
            .unwrap();
        let outcome = at
            .order_task(&account, "the key", &example(Scale::X4))
            .await;
        assert!(matches!(outcome, CreateOutcome::Created(_)), "{outcome:?}");
    })
    .await;
}

#[tokio::test]
async fn the_same_key_of_two_accounts_names_two_tasks() {
    on_every_engine(async |at: &Setting| {
        let (one, other) = (at.account_for(1).await, at.account_for(1).await);
        let first = at.accepted(&one, "the key").await;
        assert_ne!(at.accepted(&other, "the key").await.id, first.id);
    })
    .await;
}

#[tokio::test]
async fn only_the_owner_finds_a_task() {
    on_every_engine(async |at: &Setting| {
        let (owner, foreign_caller) = (at.account_for(1).await, at.account_for(1).await);
        let task = at.accepted(&owner, "the key").await;
        assert_eq!(
            at.store
                .tasks()
                .find(&foreign_caller, &task.id)
                .await
                .unwrap(),
            None
        );
        assert!(
            at.store
                .tasks()
                .find(&owner, &task.id)
                .await
                .unwrap()
                .is_some()
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forty_eight_identical_creates_at_once_make_one_task_and_one_reserve() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(48).await;
        let outcomes = join_all((0..48).map(|_| at.order(&account, "the key"))).await;
        let mut created = 0;
        let mut ids: Vec<_> = outcomes
            .into_iter()
            .map(|outcome| match outcome {
                CreateOutcome::Created(task) => {
                    created += 1;
                    task.id
                }
                CreateOutcome::Replayed(task) => task.id,
                other => panic!("{other:?}"),
            })
            .collect();
        ids.dedup();
        assert_eq!((created, ids.len()), (1, 1));
        let standing = at.account(&account).await;
        assert_eq!(
            (standing.reserved, standing.active_tasks),
            (limits::PRICE, 1)
        );
    })
    .await;
}

#[tokio::test]
async fn an_account_that_does_not_exist_creates_nothing() {
    on_every_engine(async |at: &Setting| {
        let no_one = upscale_core::AccountId::random().unwrap();
        let request = upscale_core::RequestId::random().unwrap();
        let key = super::setting::idempotency_key("the key");
        let answer = at
            .store
            .tasks()
            .create(&no_one, &key, &example(Scale::X2), &request)
            .await;
        assert!(matches!(answer, Err(StoreError::Corrupt(_))), "{answer:?}");
    })
    .await;
}

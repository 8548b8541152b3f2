//! What an account looks back on: its tasks, days and transfers, page by page, and no one else's.

use upscale_core::{AccountId, KeyId, Parameters, Permission, Scale, TaskId, TaskState, limits};

use super::setting::{Setting, example, on_every_engine, result_file};
use crate::{
    CreateOutcome, DayOfUse, Settlement, Spent, Stages, TaskCursor, TaskFilter, TaskRecord,
    TaskSearch,
};

/// Pages of two until an empty one.
async fn pages(at: &Setting, account: &AccountId, filter: TaskFilter) -> Vec<String> {
    let (mut found, mut after) = (Vec::new(), None::<TaskCursor>);
    loop {
        let page = at.store.tasks().list(account, filter, after.as_ref(), 2);
        let page: Vec<TaskRecord> = page.await.unwrap();
        let Some(last) = page.last() else {
            return found;
        };
        after = Some(TaskCursor {
            created_at: last.task.created_at,
            id: last.task.id,
        });
        found.extend(page.iter().map(|record| record.task.id.to_string()));
    }
}

#[tokio::test]
async fn every_task_stands_on_one_page_newest_first_over_days_and_moments() {
    on_every_engine(async |at: &Setting| {
        at.plenty_of_slots().await;
        let account = at.account_for(9).await;
        let other = at.account_for(1).await;
        at.accepted(&other, "not ours").await;
        let mut made = Vec::new();
        for number in 0..7 {
            // Two of a moment, and a midnight after the fifth.
            if number % 2 == 0 {
                at.clock
                    .advance_seconds(if number == 4 { 86_400 } else { 1 });
            }
            made.push(at.accepted(&account, &format!("task {number}")).await);
        }
        made.sort_by(|a, b| (b.created_at, &b.id).cmp(&(a.created_at, &a.id)));
        let made: Vec<String> = made.iter().map(|task| task.id.to_string()).collect();
        assert_eq!(pages(at, &account, TaskFilter::All).await, made);
        assert_eq!(pages(at, &account, TaskFilter::Processing).await, made);
        let failed = pages(at, &account, TaskFilter::Failed).await;
        assert!(failed.is_empty(), "{failed:?}");
    })
    .await;
}

#[tokio::test]
async fn a_record_says_what_was_ordered_how_it_went_and_where_the_time_was_spent() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(2).await;
        let order = upscale_core::NewTask {
            parameters: Parameters {
                face_enhance: true,
                ..Parameters::at(Scale::X4)
            },
            ..example(Scale::X4)
        };
        at.order_task(&account, "a success", &order).await;
        let claim = at.claimed().await;
        at.clock.advance_seconds(3);
        let (file, stages) = (
            result_file(),
            Stages {
                download_micros: 1,
                picture_micros: 20,
                storing_micros: 300,
            },
        );
        let spent = Spent {
            slot_seconds: 1.0,
            stages: Some(stages),
        };
        let settlement = Settlement::Succeeded(file.clone());
        at.store
            .tasks()
            .settle(&claim.task_id, claim.attempt, settlement, spent)
            .await
            .unwrap();
        let found = at.store.tasks().find_record(&account, &claim.task_id).await;
        let record = found.unwrap().unwrap();
        assert_eq!(record.task.state, TaskState::Succeeded(file));
        assert_eq!(record.source_url.as_str(), order.source_url.as_str());
        assert_eq!(record.task.parameters, order.parameters);
        assert_eq!(record.finished_at, Some(at.store.now()));
        assert_eq!(
            (record.stages, record.result_removed),
            (Some(stages), false)
        );
        assert!(record.request_id.starts_with("req_"));
        let listed = at
            .store
            .tasks()
            .list(&account, TaskFilter::Succeeded, None, 9);
        assert_eq!(listed.await.unwrap(), [record]);
        let other = at.account_for(1).await;
        let theirs = at.store.tasks().find_record(&other, &claim.task_id).await;
        assert_eq!(theirs.unwrap(), None);
    })
    .await;
}

#[tokio::test]
async fn days_count_what_became_of_the_tasks_accepted_on_them() {
    on_every_engine(async |at: &Setting| {
        at.plenty_of_slots().await;
        let account = at.account_for(4).await;
        let today = at.store.now().utc_day();
        at.accepted(&account, "succeeds").await;
        at.succeed(&at.claimed().await).await;
        at.accepted(&account, "fails").await;
        at.fail(&at.claimed().await).await;
        at.clock.advance_seconds(2 * 86_400);
        at.accepted(&account, "is under way").await;
        let day = |day, succeeded, failed, processing| DayOfUse {
            day,
            succeeded,
            failed,
            processing,
            charged: std::iter::repeat_n(limits::PRICE, succeeded as usize).sum(),
        };
        let both = [day(today, 1, 1, 0), day(today + 2, 0, 0, 1)];
        assert_eq!(
            at.store.tasks().list_days(&account, today).await.unwrap(),
            both
        );
        let later = at
            .store
            .tasks()
            .list_days(&account, today + 1)
            .await
            .unwrap();
        assert_eq!(later, both[1..]);
    })
    .await;
}

#[tokio::test]
async fn the_ledger_is_read_page_by_page_and_a_key_by_its_owner_alone() {
    on_every_engine(async |at: &Setting| {
        let (account, other) = (at.account_for(2).await, at.account_for(1).await);
        at.accepted(&account, "one").await;
        at.accepted(&account, "two").await;
        let whole = at.store.accounts().list_ledger(&account, 10).await.unwrap();
        assert_eq!(whole.len(), 3);
        let before = whole[0].sequence;
        let rest = at
            .store
            .accounts()
            .list_ledger_before(&account, before, 10)
            .await;
        assert_eq!(rest.unwrap(), whole[1..]);

        let made = at
            .store
            .accounts()
            .create_key(&account, Permission::Read, "ci");
        let (record, _) = made.await.unwrap().made().unwrap();
        assert_eq!(record.name, "ci");
        let ours = at
            .store
            .accounts()
            .find_key(&account, &record.id)
            .await
            .unwrap();
        assert_eq!(ours.as_ref(), Some(&record));
        assert_eq!(
            at.store
                .accounts()
                .find_key(&other, &record.id)
                .await
                .unwrap(),
            None
        );
        let unknown = KeyId::random().unwrap();
        assert_eq!(
            at.store
                .accounts()
                .find_key(&account, &unknown)
                .await
                .unwrap(),
            None
        );
        let (next, _) = at
            .store
            .accounts()
            .rotate_key(&record.id, 60)
            .await
            .unwrap()
            .made()
            .unwrap();
        assert_eq!(next.name, "ci");
        let long = "n".repeat(upscale_core::limits::NAME_CHARS_MAX + 1);
        let made = at
            .store
            .accounts()
            .create_key(&account, Permission::Read, &long);
        assert!(made.await.is_err());
    })
    .await;
}

/// The task of a source of this name, accepted.
async fn ordered(at: &Setting, account: &AccountId, name: &str, scale: Scale) -> TaskId {
    let url = format!("https://a.example.org/{name}");
    let order = upscale_core::NewTask {
        source_url: upscale_core::SourceUrl::parse(&url).unwrap(),
        ..example(scale)
    };
    let key = format!("key-of-{name}");
    match at.order_task(account, &key, &order).await {
        CreateOutcome::Created(task) => task.id,
        other => panic!("{other:?}"),
    }
}

/// An account with a task of yesterday and two of today, and another account with one.
async fn three_to_search(at: &Setting) -> (AccountId, [TaskId; 3]) {
    at.plenty_of_slots().await;
    let (account, other) = (at.account_for(9).await, at.account_for(1).await);
    let first = ordered(at, &account, "Harbour_1.png", Scale::X2).await;
    at.clock.advance_seconds(86_400);
    let second = ordered(at, &account, "harbour-2.png", Scale::X4).await;
    at.clock.advance_seconds(1);
    let third = ordered(at, &account, "50%25.png", Scale::X4).await;
    at.accepted(&other, "not ours").await;
    (account, [first, second, third])
}

async fn found(at: &Setting, account: &AccountId, search: TaskSearch) -> Vec<TaskId> {
    let found = at.store.tasks().search(account, &search, None, 9);
    let found = found.await.unwrap();
    found.iter().map(|one| one.task.id).collect()
}

fn text(text: &str) -> TaskSearch {
    TaskSearch {
        text: text.to_owned(),
        ..TaskSearch::default()
    }
}

#[tokio::test]
async fn a_search_finds_by_text_page_by_page_and_no_one_elses() {
    on_every_engine(async |at: &Setting| {
        let (account, [first, second, third]) = three_to_search(at).await;
        let all = [third, second, first];
        for (looked_for, expected) in [
            ("", &all[..]),
            ("HARBOUR", &all[1..]),
            ("harbour_", &all[2..]),
            ("50%", &all[..1]),
            (r"\", &[]),
            (first.as_str(), &all[2..]),
        ] {
            let ids = found(at, &account, text(looked_for)).await;
            assert_eq!(ids, expected, "{looked_for:?}: a sign means itself");
        }
        let harbour = text("harbour");
        let page = at.store.tasks().search(&account, &harbour, None, 1);
        let page = page.await.unwrap();
        let after = TaskCursor {
            created_at: page[0].task.created_at,
            id: page[0].task.id,
        };
        let next = at.store.tasks().search(&account, &harbour, Some(&after), 1);
        assert_eq!(next.await.unwrap()[0].task.id, first);
    })
    .await;
}

#[tokio::test]
async fn a_search_finds_by_scale_state_and_day() {
    on_every_engine(async |at: &Setting| {
        let (account, [first, second, third]) = three_to_search(at).await;
        let today = at.store.now().utc_day();
        let all = TaskSearch::default();
        let of_scale = TaskSearch {
            scale: Some(Scale::X4),
            ..text("harbour")
        };
        assert_eq!(found(at, &account, of_scale).await, [second]);
        let of_day = TaskSearch {
            days: (today, today),
            ..all.clone()
        };
        assert_eq!(found(at, &account, of_day).await, [third, second]);
        let before = TaskSearch {
            days: (0, today - 1),
            ..all.clone()
        };
        assert_eq!(found(at, &account, before).await, [first]);
        let failed = TaskSearch {
            filter: TaskFilter::Failed,
            ..all
        };
        assert_eq!(found(at, &account, failed).await, []);
    })
    .await;
}

#[tokio::test]
async fn latencies_are_those_of_the_newest_successes() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(3).await;
        let today = at.store.now().utc_day();
        for seconds in [2, 5, 9] {
            at.accepted(&account, &format!("latency {seconds}")).await;
            let claim = at.claimed().await;
            at.clock.advance_seconds(seconds);
            let settlement = Settlement::Succeeded(result_file());
            let settled = at.store.tasks().settle(
                &claim.task_id,
                claim.attempt,
                settlement,
                Spent::slot(1.0),
            );
            settled.await.unwrap();
        }
        let newest = at.store.tasks().list_latencies(&account, today, 2);
        assert_eq!(newest.await.unwrap(), [9_000_000, 5_000_000]);
        let none = at.store.tasks().list_latencies(&account, today + 2, 2);
        assert_eq!(none.await.unwrap(), [0_i64; 0]);
    })
    .await;
}

#[tokio::test]
async fn a_preview_is_read_back_and_a_result_of_before_has_none() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(2).await;
        for preview in [
            None,
            Some(upscale_core::Preview {
                thumbnail_bytes: 0,
                focus_permille: [1_000, 0],
            }),
        ] {
            let file = upscale_core::ResultFile {
                preview,
                ..result_file()
            };
            let id = at.accepted(&account, &file.name).await.id;
            let claim = at.claimed().await;
            let settlement = Settlement::Succeeded(file.clone());
            let settled = at
                .store
                .tasks()
                .settle(&id, claim.attempt, settlement, Spent::slot(1.0));
            settled.await.unwrap();
            let task = at.store.tasks().find(&account, &id).await.unwrap().unwrap();
            assert_eq!(task.state, TaskState::Succeeded(file));
        }
    })
    .await;
}

//! What the operators' console asks and does beside the commands: accounts found by whatever is known of them, purchases,
//! keys and links recorded once however often a form is sent, one task's money, and today's.

use futures_util::future::join_all;
use upscale_core::{AccountId, Credits, Email, OwnLimits, Permission, SecretToken, UserId, limits};

use super::setting::{Setting, example, failure, on_every_engine, result_file};
use crate::{
    AccountCursor, CreateOutcome, HourOfWork, OnBehalf, PurchaseOutcome, Settlement, Spent, User,
    UserOutcome,
};

const TEN: Credits = Credits::from_thousandths(10_000);

fn bob() -> OnBehalf {
    OnBehalf {
        operator: "Bob".to_owned(),
        reason: "he called".to_owned(),
    }
}

async fn user(at: &Setting, account: &AccountId, email: &str) -> User {
    let email = Email::parse(email).unwrap();
    match at.store.users().create(Some(account), &email, None).await {
        Ok(UserOutcome::Created(user)) => user,
        other => panic!("{other:?}"),
    }
}

/// What was done to this account, newest first.
async fn actions(at: &Setting, account: &AccountId) -> Vec<(String, String)> {
    let listed = at
        .store
        .operator()
        .list_actions(Some(account), i64::MAX, 100)
        .await;
    let listed = listed.unwrap().into_iter();
    listed
        .map(|one| (one.action.as_str().to_owned(), one.detail))
        .collect()
}

#[tokio::test]
async fn accounts_are_found_by_id_name_and_address_page_by_page() {
    on_every_engine(async |at: &Setting| {
        let mut made = Vec::new();
        for name in ["50% off", "500 of them", "Shop_A", "shop b", "shopXa"] {
            at.clock.advance_seconds(1);
            made.push(at.store.accounts().create(name).await.unwrap());
        }
        user(at, &made[1].id, "ann@flowers.example.org").await;
        user(at, &made[1].id, "bob@flowers.example.org").await;
        let found = async |text: &str, after: Option<&AccountCursor>| -> Vec<String> {
            let page = at.store.accounts().search(text, after, 2).await.unwrap();
            page.into_iter().map(|account| account.name).collect()
        };
        assert_eq!(found("50%", None).await, ["50% off"]);
        assert_eq!(found("sHoP_a", None).await, ["Shop_A"]);
        assert_eq!(found("\\", None).await, [] as [&str; 0]);
        assert_eq!(found("Flowers", None).await, ["500 of them"]);
        assert_eq!(found(made[3].id.as_str(), None).await, ["shop b"]);
        assert_eq!(found(" shop ", None).await, ["shopXa", "shop b"]);
        let after = AccountCursor {
            created_at: made[3].created_at,
            id: made[3].id,
        };
        assert_eq!(found("shop", Some(&after)).await, ["Shop_A"]);
        assert_eq!(found("", Some(&after)).await, ["Shop_A", "500 of them"]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purchase_by_hand_is_booked_and_recorded_once() {
    on_every_engine(async |at: &Setting| {
        let account = at
            .store
            .accounts()
            .create("pays by transfer")
            .await
            .unwrap()
            .id;
        let by = bob();
        let asked = join_all((0..4).map(|_| {
            at.store
                .operator()
                .book_purchase(&account, TEN, "bank 7", &by)
        }));
        let outcomes: Vec<_> = asked.await.into_iter().map(Result::unwrap).collect();
        let credited = |outcome: &&PurchaseOutcome| **outcome == PurchaseOutcome::Credited;
        assert_eq!(outcomes.iter().filter(credited).count(), 1, "{outcomes:?}");
        let standing = at.account(&account).await;
        assert_eq!(standing.available, TEN);
        assert!(standing.activated_at.is_some());
        let expected = (
            "credit".to_owned(),
            "10 credits, reference bank 7".to_owned(),
        );
        assert_eq!(actions(at, &account).await, [expected]);
        let no_one = AccountId::random().unwrap();
        let outcome = at
            .store
            .operator()
            .book_purchase(&no_one, TEN, "bank 8", &by)
            .await;
        assert_eq!(outcome.unwrap(), PurchaseOutcome::NoSuchAccount);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_revoked_and_recorded_once() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(1).await;
        let made = at
            .store
            .accounts()
            .create_key(&account, Permission::All, "")
            .await;
        let (key, secret) = made.unwrap().made().unwrap();
        let by = bob();
        let asked = (0..4).map(|_| at.store.operator().revoke_key(&key.id, &by));
        for revoked in join_all(asked).await {
            assert_eq!(revoked.unwrap().unwrap().revoked_at, Some(at.store.now()));
        }
        assert_eq!(
            at.store
                .accounts()
                .find_caller(&secret.hash())
                .await
                .unwrap(),
            None
        );
        let recorded = actions(at, &account).await;
        assert_eq!(recorded.len(), 1, "{recorded:?}");
        assert_eq!(
            recorded[0].1,
            format!("{}, which ends in {}", key.id, key.hint)
        );
        let unknown = upscale_core::KeyId::random().unwrap();
        assert_eq!(
            at.store.operator().revoke_key(&unknown, &by).await.unwrap(),
            None
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_asked_for_twice_is_one_link_and_one_line() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(1).await;
        let ann = user(at, &account, "ann@example.org").await;
        assert_eq!(
            at.store.users().list_of(&account).await.unwrap(),
            std::slice::from_ref(&ann)
        );
        let (link, by) = (SecretToken::random().unwrap(), bob());
        let hash = link.hash();
        let asked = (0..4).map(|_| at.store.operator().reset_password(&ann.id, &hash, 60, &by));
        for made in join_all(asked).await {
            assert_eq!(made.unwrap().as_ref(), Some(&ann));
        }
        assert_eq!(
            at.store.users().find_reset(&hash).await.unwrap(),
            Some(ann.clone())
        );
        let expected = ("reset".to_owned(), "a link for ann@example.org".to_owned());
        assert_eq!(actions(at, &account).await, [expected]);
        let later = SecretToken::random().unwrap().hash();
        at.store
            .operator()
            .reset_password(&ann.id, &later, 60, &by)
            .await
            .unwrap();
        assert_eq!(at.store.users().find_reset(&hash).await.unwrap(), None);
        assert_eq!(actions(at, &account).await.len(), 2);
        let no_one = UserId::random().unwrap();
        let none = at
            .store
            .operator()
            .reset_password(&no_one, &later, 60, &by)
            .await;
        assert_eq!(none.unwrap(), None);
    })
    .await;
}

#[tokio::test]
async fn limits_that_change_nothing_leave_no_line_and_lines_come_page_by_page() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(1).await;
        for tasks in [1, 1, 2, 2, 3] {
            let own = OwnLimits {
                daily_tasks: Some(tasks),
                ..OwnLimits::default()
            };
            let set = at
                .store
                .operator()
                .set_limits(&account, own, &bob())
                .await
                .unwrap();
            assert_eq!(set.unwrap().own_limits, own);
        }
        let newest = at
            .store
            .operator()
            .list_actions(None, i64::MAX, 2)
            .await
            .unwrap();
        assert_eq!(newest.len(), 2);
        let older = at
            .store
            .operator()
            .list_actions(None, newest[1].sequence, 2)
            .await;
        let older = older.unwrap();
        assert_eq!(older.len(), 1);
        assert!(older[0].detail.contains("a day 1; before"), "{older:?}");
    })
    .await;
}

#[tokio::test]
async fn a_tasks_money_and_todays_are_told() {
    on_every_engine(async |at: &Setting| {
        let account = at.account_for(4).await;
        let yesterday = at.accepted(&account, "yesterday").await.id;
        at.succeed(&at.claimed().await).await;
        at.clock.advance_seconds(86_400);
        let today = at.accepted(&account, "today").await.id;
        at.fail(&at.claimed().await).await;
        at.accepted(&account, "goes on").await;
        let kinds = async |task| -> Vec<String> {
            let lines = at.store.accounts().list_ledger_of_task(task).await.unwrap();
            lines
                .into_iter()
                .map(|line| line.kind.to_string())
                .collect()
        };
        assert_eq!(kinds(&yesterday).await, ["reserve", "charge"]);
        assert_eq!(kinds(&today).await, ["reserve", "refund"]);
        let midnight = at.store.now().next_utc_day().plus_seconds(-86_400);
        let sums = at
            .store
            .operator()
            .sum_ledger_since(midnight)
            .await
            .unwrap();
        let sums: Vec<_> = sums
            .iter()
            .map(|sum| (sum.kind.as_str(), sum.transfers, sum.amount))
            .collect();
        let twice = Credits::from_thousandths(2 * limits::PRICE.thousandths());
        assert_eq!(sums, [("reserve", 2, twice), ("refund", 1, limits::PRICE)]);
        assert_eq!(at.store.accounts().list_stopped().await.unwrap(), []);
    })
    .await;
}

#[tokio::test]
async fn the_last_hours_are_counted_with_their_times_their_failures_and_the_newest_tasks() {
    on_every_engine(async |at: &Setting| {
        at.plenty_of_slots().await;
        let (one, other) = (at.account_for(9).await, at.account_for(9).await);
        let end = async |account: &AccountId, key: &str, seconds: i64, fails: bool| {
            let id = at.accepted(account, key).await.id;
            let claim = at.claimed().await;
            at.clock.advance_seconds(seconds);
            let settlement = match fails {
                true => failure(),
                false => Settlement::Succeeded(result_file()),
            };
            let tasks = at.store.tasks();
            let settled = tasks.settle(&claim.task_id, claim.attempt, settlement, Spent::slot(1.0));
            settled.await.unwrap();
            id
        };
        end(&one, "long ago", 1, true).await;
        at.clock.advance_seconds(2 * 86_400);
        let start = at.store.now().next_utc_day();
        at.clock
            .advance_seconds(start.seconds_since(at.store.now()));
        end(&one, "hour 0, a", 2, false).await;
        end(&other, "hour 0, b", 4, false).await;
        end(&other, "hour 0, c", 9, false).await;
        end(&one, "hour 0, d", 1, true).await;
        at.clock.advance_seconds(3_600);
        let last = end(&one, "hour 1", 1, true).await;
        let since = start.plus_seconds(-3_600);
        let operator = at.store.operator();
        let hours = operator.list_hours(since).await.unwrap();
        let hour = start.unix_seconds() / 3_600;
        let of = |hour, succeeded, failed, took| HourOfWork {
            hour,
            succeeded,
            failed,
            took,
        };
        let took = Some((4_000_000, 9_000_000));
        assert_eq!(hours, [of(hour, 3, 1, took), of(hour + 1, 0, 1, None)]);
        let failures = operator.list_failures(since, 5).await.unwrap();
        assert_eq!(failures.len(), 1);
        assert_eq!(failures[0].1, 2, "the one of long ago is not counted");
        let newest = operator.list_newest(since, 2).await.unwrap();
        assert_eq!((newest.len(), newest[0].task.id), (2, last));
    })
    .await;
}

#[tokio::test]
async fn tasks_are_counted_by_the_key_that_ordered_them() {
    on_every_engine(async |at: &Setting| {
        at.plenty_of_slots().await;
        let account = at.account_for(9).await;
        let key = upscale_core::KeyId::random().unwrap();
        for (name, by) in [
            ("by-key-1", Some(key)),
            ("by-key-2", Some(key)),
            ("by-a-form", None),
        ] {
            let name = upscale_core::IdempotencyKey::parse(name.as_bytes()).unwrap();
            let request = upscale_core::RequestId::random().unwrap();
            let order = example(upscale_core::Scale::X2);
            let made = at
                .store
                .tasks()
                .create_by(by, &account, &name, &order, &request);
            assert!(matches!(made.await, Ok(CreateOutcome::Created(_))));
        }
        let today = at.store.now().utc_day();
        let counted = at
            .store
            .tasks()
            .count_by_key(&account, today)
            .await
            .unwrap();
        assert_eq!(counted, [(key.to_string(), 2)]);
        let none = at
            .store
            .tasks()
            .count_by_key(&account, today + 1)
            .await
            .unwrap();
        assert_eq!(none, []);
    })
    .await;
}

//! Rows that others have locked: who waits, who passes by, who is put off.

use tokio_postgres::Client;
use upscale_core::{AccountId, RequestId, Scale, TaskState, limits};

use super::{assert_unavailable, outsider, postgres};
use crate::conformance::setting::{Setting, example, idempotency_key};

/// Someone else's session that holds this account's row.
async fn holding(at: &Setting, account: &AccountId) -> Client {
    let other = outsider(at).await;
    let lock = format!("BEGIN; SELECT 1 FROM account WHERE id = '{account}' FOR UPDATE");
    other.batch_execute(&lock).await.unwrap();
    other
}

#[tokio::test]
async fn an_account_locked_elsewhere_is_unavailable_and_the_others_go_on() {
    let Some(at) = postgres().await else { return };
    let (locked, free) = (at.account_for(1).await, at.account_for(1).await);
    let other = holding(&at, &locked).await;
    let (key, request) = (idempotency_key("the key"), RequestId::random().unwrap());
    let order = example(Scale::X2);
    let waits = at.store.tasks().create(&locked, &key, &order, &request);
    let goes_on = at.accepted(&free, "the key");
    let (waited, _) = futures_util::join!(waits, goes_on);
    assert_unavailable(waited);
    assert_eq!(
        at.account(&locked).await.available,
        limits::PRICE,
        "reads never wait"
    );
    other.batch_execute("ROLLBACK").await.unwrap();
    at.accepted(&locked, "the key").await;
    at.check_books().await;
}

#[tokio::test]
async fn an_order_that_ends_at_its_claim_is_left_to_the_next_one_while_its_account_is_busy() {
    let Some(at) = postgres().await else { return };
    let account = at.account_for(1).await;
    let task = at.accepted(&account, "refused").await.id;
    at.home
        .tamper("UPDATE task SET source_url = 'https://localhost/a.png'");
    let other = holding(&at, &account).await;
    assert_eq!(at.store.tasks().claim("worker", 1, &[]).await.unwrap(), []);
    assert_eq!(at.task(&account, &task).await.state, TaskState::Processing);
    other.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(at.store.tasks().claim("worker", 1, &[]).await.unwrap(), []);
    let state = at.task(&account, &task).await.state;
    assert!(matches!(state, TaskState::Failed { .. }), "{state:?}");
    at.check_books().await;
}

#[tokio::test]
async fn a_caller_that_goes_away_leaves_nothing_behind_and_no_connection_unusable() {
    let Some(at) = postgres().await else { return };
    let account = at.account_for(1).await;
    let other = holding(&at, &account).await;
    // More of them than there are connections.
    for n in 0..20 {
        let key = format!("key {n}");
        let order = at.order(&account, &key);
        let waited = tokio::time::timeout(std::time::Duration::from_millis(30), order).await;
        assert!(waited.is_err(), "the account is locked");
    }
    other.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(at.account(&account).await.active_tasks, 0);
    at.accepted(&account, "key 0").await;
    at.check_books().await;
}

/// A settlement locks the account before the job. A reaper that held jobs while it waited for their account was half of
/// a circle, which the server broke by failing one of the two.
#[tokio::test]
async fn a_reaper_that_waits_for_an_account_holds_no_job() {
    let Some(at) = postgres().await else { return };
    let account = at.account_for(2).await;
    at.accepted(&account, "overdue").await;
    at.clock.advance_seconds(limits::DEADLINE_SECONDS);
    let ahead = at
        .accepted(&account, "of a process whose clock was read later")
        .await
        .id;
    at.home.tamper(&format!(
        "UPDATE job SET deadline_at = deadline_at + 1 WHERE task_id = '{ahead}'"
    ));
    let other = holding(&at, &account).await;
    let third = outsider(&at).await;
    let waiting = async {
        let waits = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
        while third.query(waits, &[]).await.unwrap().is_empty() {}
        let jobs = third
            .query("SELECT 1 FROM job FOR UPDATE NOWAIT", &[])
            .await;
        assert_eq!(jobs.unwrap().len(), 2);
        other.batch_execute("ROLLBACK").await.unwrap();
    };
    let (reaped, ()) = futures_util::join!(at.store.tasks().reap(), waiting);
    assert_eq!(reaped.unwrap(), 1);
    at.check_books().await;
}

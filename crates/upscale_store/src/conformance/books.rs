//! The audit: every invariant, broken on purpose behind the store's back, is named; and the account whose
//! books are wrong gets no further task until they are right.

use bytes::Bytes;
use upscale_core::{AccountId, ResultFile};

use super::setting::{Setting, every_engine, result_file};
use crate::{CreateOutcome, Settlement};

/// An account with one task of each end: succeeded, failed, processing; and credits for more.
async fn eventful(at: &Setting) -> AccountId {
    let account = at.account_for(10).await;
    at.accepted(&account, "succeeds").await;
    at.succeed(&at.claimed().await).await;
    at.accepted(&account, "fails").await;
    at.fail(&at.claimed().await).await;
    at.accepted(&account, "stays").await;
    account
}

/// What is done to the rows, and the invariant that must notice.
const TAMPERINGS: [(&str, &str); 26] = [
    ("UPDATE account SET available = available + 1", "I1"),
    ("UPDATE account SET available = available + 1, charged = charged - 1", "I2"),
    ("UPDATE account SET available = -1", "I3"),
    ("UPDATE account SET held = held + 700, available = available - 700", "I4"),
    ("DROP TRIGGER ledger_is_not_deleted; DELETE FROM ledger WHERE kind = 'reserve'", "I5"),
    ("UPDATE task SET price = 600 WHERE state = 'processing'", "I5"),
    ("DROP TRIGGER ledger_is_not_deleted; DELETE FROM ledger WHERE kind = 'charge'", "I6"),
    ("DROP TRIGGER ledger_is_not_deleted; DELETE FROM ledger WHERE kind = 'refund'", "I6"),
    ("UPDATE task SET refund = 'pending' WHERE state = 'failed'", "I6"),
    ("UPDATE task SET state = 'succeeded' WHERE state = 'processing'", "I6"),
    (
        "DROP INDEX ledger_one_settlement; INSERT INTO ledger (at, account_id, kind, debit, credit, amount, task_id)
         SELECT at, account_id, 'refund', 'held', 'available', amount, task_id FROM ledger WHERE kind = 'charge'",
        "I6",
    ),
    ("DELETE FROM job", "I8"),
    (
        "INSERT INTO job (task_id, account_id, created_at, prio_at, visible_at, deadline_at)
         SELECT id, account_id, 0, 0, 0, 0 FROM task WHERE state = 'succeeded'",
        "I8",
    ),
    (
        "INSERT INTO job (task_id, account_id, created_at, prio_at, visible_at, deadline_at)
         SELECT 'ups_0', id, 0, 0, 0, 0 FROM account",
        "I8",
    ),
    (
        "DROP INDEX ledger_reference_once; INSERT INTO ledger (at, account_id, kind, debit, credit, amount, external_reference)
         SELECT at, account_id, kind, debit, credit, amount, external_reference FROM ledger WHERE kind = 'purchase'",
        "I9",
    ),
    ("UPDATE account SET taken_back = taken_back + 1", "I2"),
    (
        "INSERT INTO payment (id, state, first_at, account_id, price, credits)
         SELECT 'pi_1', 'credited', 0, id, 1, 1 FROM account",
        "I9",
    ),
    (
        "INSERT INTO payment (id, state, first_at, account_id, price, credits, taken_back)
         SELECT external_reference, 'credited', 0, account_id, 1, amount, 1 FROM ledger WHERE kind = 'purchase'",
        "I9",
    ),
    ("UPDATE account SET activated_at = NULL", "I10"),
    ("UPDATE account_day SET accepted = accepted - 1", "I11"),
    ("DELETE FROM account_day", "I11"),
    ("UPDATE account SET active_tasks = 0", "I12"),
    ("UPDATE account SET active_tasks = active_tasks + 1", "I12"),
    (
        "INSERT INTO ledger (at, account_id, kind, debit, credit, amount, external_reference)
         SELECT 0, id, 'qurchase', 'nowhere', 'nothing', 1, 'x' FROM account",
        "I13",
    ),
    ("UPDATE task SET refund = 'perhaps' WHERE state = 'failed'", "I13"),
    (
        "INSERT INTO payment (id, state, first_at, account_id) SELECT 'pi_1', 'paid?', 0, id FROM account",
        "I13",
    ),
];

#[tokio::test]
async fn every_broken_invariant_is_named_with_its_account() {
    for (tampering, invariant) in TAMPERINGS {
        for at in every_engine().await {
            notices(&at, tampering, invariant).await;
        }
    }
}

async fn notices(at: &Setting, tampering: &str, invariant: &str) {
    let account = eventful(at).await;
    at.check_books().await;
    at.home.tamper(tampering);
    let report = at.store.audit(None).await.unwrap();
    let named = report
        .breaches
        .iter()
        .find(|breach| breach.invariant == invariant);
    let breach =
        named.unwrap_or_else(|| panic!("{invariant} unnoticed after {tampering}: {report:?}"));
    assert!(!breach.detail.is_empty());
    if invariant != "I1" {
        assert_eq!(breach.account_id.as_ref(), Some(&account), "{breach:?}");
    }
}

#[tokio::test]
async fn an_audit_says_what_it_checked() {
    for at in every_engine().await {
        let report = at.store.audit(Some(&at.results)).await.unwrap();
        let mut names = vec![
            "I1", "I2", "I3", "I4", "I5", "I6", "I8", "I9", "I10", "I11", "I12", "I13", "I14", "I7",
        ];
        names.retain(|name| *name != "I14" || at.home.engine() == "sqlite");
        assert_eq!(report.checked, names);
    }
}

#[tokio::test]
async fn an_account_with_wrong_books_gets_no_task_until_a_clean_audit_and_others_go_on() {
    for at in every_engine().await {
        let (account, other) = (eventful(&at).await, at.account_for(2).await);
        at.home.tamper(&format!(
            "UPDATE account SET charged = charged + 1 WHERE id = '{account}'"
        ));
        assert!(!at.store.audit(None).await.unwrap().breaches.is_empty());
        let refused = at.order(&account, "a new key").await;
        assert_eq!(
            refused,
            CreateOutcome::Overloaded {
                retry_after_seconds: 60
            }
        );
        let replayed = at.order(&account, "stays").await;
        assert!(
            matches!(replayed, CreateOutcome::Replayed(_)),
            "{replayed:?}"
        );
        at.accepted(&other, "a new key").await;

        at.home.tamper(&format!(
            "UPDATE account SET charged = charged - 1 WHERE id = '{account}'"
        ));
        at.check_books().await;
        at.accepted(&account, "a new key").await;
    }
}

/// A task that succeeded with these bytes' length recorded.
async fn succeed_with(at: &Setting, size_bytes: u64) -> ResultFile {
    let account = at.account_for(1).await;
    let task = at.accepted(&account, "the key").await;
    let claim = at.claimed().await;
    let file = ResultFile {
        size_bytes,
        ..result_file()
    };
    let settlement = Settlement::Succeeded(file.clone());
    at.store
        .tasks()
        .settle(&task.id, claim.attempt, settlement, crate::Spent::slot(1.0))
        .await
        .unwrap();
    file
}

#[tokio::test]
async fn a_result_that_is_not_there_or_not_whole_breaks_i7() {
    for at in every_engine().await {
        let (whole, short) = (succeed_with(&at, 5).await, succeed_with(&at, 5).await);
        at.results
            .put(&whole.name, Bytes::from_static(b"12345"))
            .await
            .unwrap();
        at.results
            .put(&short.name, Bytes::from_static(b"1234"))
            .await
            .unwrap();
        let report = at.store.audit(Some(&at.results)).await.unwrap();
        assert_eq!(report.breaches.len(), 1, "{report:?}");
        assert!(report.breaches[0].detail.contains("4 bytes instead of 5"));
        at.results.delete(&short.name).await.unwrap();
        let report = at.store.audit(Some(&at.results)).await.unwrap();
        assert_eq!(report.breaches.len(), 1, "{report:?}");
        assert_eq!(report.breaches[0].invariant, "I7");
        assert!(report.breaches[0].detail.contains("not there"));
    }
}

#[tokio::test]
async fn the_ledger_refuses_changes_and_deletions() {
    for at in every_engine().await {
        at.account_for(1).await;
        for sql in ["UPDATE ledger SET amount = 1", "DELETE FROM ledger"] {
            let refused = at.home.try_sql(sql).unwrap_err();
            assert!(refused.contains("append-only"), "{refused}");
        }
    }
}

#[tokio::test]
async fn a_row_that_breaks_a_check_is_refused_by_the_database_itself() {
    for at in every_engine().await {
        let account = at.account_for(1).await;
        at.accepted(&account, "the key").await;
        for sql in [
            "UPDATE account SET available = -1",
            "UPDATE account SET held = -1",
            "UPDATE task SET state = 'succeeded'",
            "UPDATE task SET state = 'failed', finished_at = created_at",
            "UPDATE task SET state = 'done'",
            "UPDATE task SET price = 0",
            "INSERT INTO ledger (at, account_id, kind, debit, credit, amount, task_id)
             SELECT 0, account_id, 'charge', 'available', 'revenue', 1, 'ups_1' FROM task",
            "INSERT INTO ledger (at, account_id, kind, debit, credit, amount, task_id)
             SELECT 0, account_id, 'reserve', 'available', 'held', 700, id FROM task",
        ] {
            assert!(at.home.try_sql(sql).is_err(), "{sql}");
        }
    }
}

//! The invariants that rows can show (I1–I6, I8–I12), each one query over one snapshot that returns what
//! breaks it: nothing, when all is well.

use std::collections::BTreeSet;

use rusqlite::{Row, params};
use upscale_core::AccountId;

use super::{Db, Tx, rows::account_id};
use crate::{AuditReport, Breach, StoreError};

/// Breaches named per invariant; more of the same kind help nobody.
const NAMED_MAX: u32 = 100;

/// Each account's balances as the ledger has them.
const BALANCES: &str = "WITH balance AS (SELECT account.id AS account_id, account.available, account.held,
     account.charged,
     coalesce(sum(CASE WHEN credit = 'available' THEN amount WHEN debit = 'available' THEN -amount END), 0) AS in_available,
     coalesce(sum(CASE WHEN credit = 'held' THEN amount WHEN debit = 'held' THEN -amount END), 0) AS in_held,
     coalesce(sum(CASE WHEN credit = 'revenue' THEN amount END), 0) AS in_revenue
     FROM account LEFT JOIN ledger ON ledger.account_id = account.id GROUP BY account.id) ";

/// Invariant, and the query that returns (account or null, detail) for every breach. Correlated counts, not
/// joins: they read the tasks in the order they lie, in half the time.
const CHECKS: [(&str, &str); 14] = [
    (
        "I1",
        "SELECT NULL, 'cash in ' || cash || ', balances ' || balances FROM (
             SELECT (SELECT coalesce(sum(CASE WHEN debit = 'cash' THEN amount WHEN credit = 'cash' THEN -amount END), 0)
                 FROM ledger) AS cash,
             (SELECT coalesce(sum(available + held + charged), 0) FROM account) AS balances)
         WHERE cash <> balances",
    ),
    (
        "I2",
        "SELECT account_id, 'available ' || available || ', held ' || held || ', charged ' || charged ||
             '; the ledger has ' || in_available || ', ' || in_held || ', ' || in_revenue
         FROM balance WHERE available <> in_available OR held <> in_held OR charged <> in_revenue",
    ),
    (
        "I3",
        "SELECT account_id, 'below zero: available ' || min(available, in_available) || ', held ' ||
             min(held, in_held) || ', charged ' || min(charged, in_revenue)
         FROM balance WHERE min(available, held, charged, in_available, in_held, in_revenue) < 0",
    ),
    (
        "I4",
        "SELECT account.id, 'held ' || held || ', open reservations ' || open FROM account JOIN
             (SELECT account.id AS account_id, coalesce(sum(reserve.amount), 0) AS open FROM account
              LEFT JOIN ledger AS reserve ON reserve.account_id = account.id AND reserve.kind = 'reserve'
                  AND NOT EXISTS (SELECT 1 FROM ledger AS settled WHERE settled.task_id = reserve.task_id
                      AND settled.kind IN ('charge', 'refund'))
              GROUP BY account.id) ON account_id = account.id
         WHERE held <> open",
    ),
    (
        "I5",
        "SELECT account_id, 'task ' || id || ' has ' || reserves || ' reserves of its price' FROM (
             SELECT account_id, id, (SELECT count(*) FROM ledger WHERE ledger.task_id = task.id AND kind = 'reserve'
                 AND amount = price AND ledger.account_id = task.account_id) AS reserves FROM task)
         WHERE reserves <> 1",
    ),
    (
        "I6",
        "SELECT account_id, 'task ' || id || ' is ' || state || coalesce(' ' || refund, '') ||
             ' and the ledger has ' || coalesce(settled, 'no settlement') FROM (
             SELECT account_id, id, state, refund, (SELECT group_concat(kind) FROM ledger
                 WHERE ledger.task_id = task.id AND kind IN ('charge', 'refund')) AS settled FROM task)
         WHERE coalesce(settled, '') <> CASE WHEN state = 'succeeded' THEN 'charge'
             WHEN refund = 'refunded' THEN 'refund' ELSE '' END",
    ),
    (
        "I6",
        "SELECT account_id, 'task ' || task_id || ': settled ' || sum(kind <> 'reserve') || ' times for ' ||
             sum(CASE WHEN kind = 'reserve' THEN -amount ELSE amount END) || ' more than reserved'
         FROM ledger WHERE task_id IS NOT NULL GROUP BY task_id
         HAVING sum(kind <> 'reserve') > 1 OR (sum(kind <> 'reserve') = 1
             AND sum(CASE WHEN kind = 'reserve' THEN -amount ELSE amount END) <> 0)",
    ),
    (
        "I8",
        "SELECT account_id, 'task ' || id || ' is ' || state || ' and has ' || jobs || ' jobs' FROM (
             SELECT account_id, id, state, (SELECT count(*) FROM job WHERE job.task_id = task.id) AS jobs FROM task)
         WHERE (state = 'processing') <> jobs",
    ),
    (
        "I8",
        "SELECT account_id, 'a job for ' || task_id || ', which is no task of this account' FROM job
         WHERE NOT EXISTS (SELECT 1 FROM task WHERE id = job.task_id AND task.account_id = job.account_id)",
    ),
    (
        "I9",
        "SELECT min(account_id), kind || ' ' || coalesce(external_reference, 'without reference') || ' stands ' ||
             count(*) || ' times'
         FROM ledger WHERE kind IN ('purchase', 'reversal')
         GROUP BY kind, external_reference HAVING count(*) > 1 OR external_reference IS NULL",
    ),
    (
        "I10",
        "SELECT id, CASE WHEN activated_at IS NULL THEN 'not activated, with' ELSE 'activated, without' END ||
             ' a purchase'
         FROM account WHERE (activated_at IS NOT NULL) <>
             EXISTS (SELECT 1 FROM ledger WHERE ledger.account_id = account.id AND kind = 'purchase')",
    ),
    (
        "I11",
        "SELECT account_day.account_id, 'day ' || account_day.day || ' counts ' || accepted || ', tasks ' || count(id)
         FROM account_day LEFT JOIN task ON task.account_id = account_day.account_id AND task.day = account_day.day
         GROUP BY account_day.account_id, account_day.day HAVING accepted <> count(id)",
    ),
    (
        "I11",
        "SELECT account_id, 'day ' || day || ' is not counted, tasks ' || count(*) FROM task
         WHERE NOT EXISTS (SELECT 1 FROM account_day
             WHERE account_day.account_id = task.account_id AND account_day.day = task.day)
         GROUP BY account_id, day",
    ),
    (
        "I12",
        "SELECT account.id, 'counts ' || active_tasks || ' active, processing ' || count(task.id)
         FROM account LEFT JOIN task ON task.account_id = account.id AND state = 'processing'
         GROUP BY account.id HAVING active_tasks <> count(task.id)",
    ),
];

impl Db {
    pub(crate) async fn audit(&self) -> Result<AuditReport, StoreError> {
        self.read(audit).await
    }

    /// Accounts that an earlier audit stopped.
    pub(crate) async fn list_stopped(&self) -> Result<BTreeSet<AccountId>, StoreError> {
        self.read(list_stopped).await
    }

    /// Stops creates of these accounts and lets every other go on.
    pub(crate) async fn set_stopped(
        &self,
        accounts: BTreeSet<AccountId>,
    ) -> Result<(), StoreError> {
        self.write(move |tx| {
            let stopped = list_stopped(tx)?;
            for freed in stopped.difference(&accounts) {
                tx.execute_one(
                    "UPDATE account SET stopped = 0 WHERE id = ?1",
                    [freed.as_str()],
                )?;
            }
            for breached in accounts.difference(&stopped) {
                // A tampered row may name an account that is not there.
                tx.execute(
                    "UPDATE account SET stopped = 1 WHERE id = ?1",
                    [breached.as_str()],
                )?;
            }
            Ok(())
        })
        .await
    }
}

fn list_stopped(tx: &Tx<'_>) -> Result<BTreeSet<AccountId>, StoreError> {
    let sql = "SELECT id AS account_id FROM account WHERE stopped = 1";
    Ok(tx.list(sql, [], account_id)?.into_iter().collect())
}

fn audit(tx: &Tx<'_>) -> Result<AuditReport, StoreError> {
    let mut report = AuditReport::default();
    for (invariant, query) in CHECKS {
        if report.checked.last().is_none_or(|last| last != invariant) {
            report.checked.push(invariant.to_owned());
        }
        let balances = if query.contains("FROM balance") {
            BALANCES
        } else {
            ""
        };
        let sql = format!("{balances}{query} LIMIT ?1");
        report
            .breaches
            .extend(tx.list(&sql, params![NAMED_MAX], |row| breach(invariant, row))?);
    }
    Ok(report)
}

fn breach(invariant: &str, row: &Row<'_>) -> Result<Breach, StoreError> {
    let account: Option<String> = row.get(0)?;
    Ok(Breach {
        invariant: invariant.to_owned(),
        account_id: account.as_deref().and_then(AccountId::parse),
        detail: row.get(1)?,
    })
}

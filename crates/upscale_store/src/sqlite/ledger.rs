//! Every movement of credits: one balanced row in the ledger and the account's cached balances and count, together.
//! Purchase, payment, adjustment, create and settle call this; nothing else moves money.

use rusqlite::{Row, params};
use upscale_core::{AccountId, Credits, TaskId};

use super::{
    Db, Tx,
    rows::{self, parsed, time},
};
use crate::{LedgerKind, LedgerLine, Purse, StoreError, transfer::Transfer};

/// Moves the amount, which is above zero. The unique indexes refuse a second reserve, a second settlement
/// and a second use of a reference; the account's checks refuse a balance below zero that no reversal explains.
pub(super) fn transfer(
    tx: &Tx<'_>,
    account: &AccountId,
    transfer: &Transfer<'_>,
    amount: Credits,
) -> Result<(), StoreError> {
    let (kind, debit, credit) = transfer.legs();
    let (task, reference) = transfer.about();
    tx.execute_one(
        "INSERT INTO ledger (at, account_id, kind, debit, credit, amount, task_id, external_reference)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        params![
            tx.now.micros(),
            account.as_str(),
            kind.as_str(),
            debit.as_str(),
            credit.as_str(),
            amount.thousandths(),
            task,
            reference
        ],
    )?;
    let [available, held, charged, taken_back] = transfer.changes(amount);
    tx.execute_one(
        "UPDATE account SET available = available + ?2, held = held + ?3, charged = charged + ?4,
             taken_back = taken_back + ?5, active_tasks = active_tasks + ?6 WHERE id = ?1",
        params![
            account.as_str(),
            available,
            held,
            charged,
            taken_back,
            transfer.active_change()
        ],
    )
}

impl Db {
    pub(crate) async fn list_ledger_before(
        &self,
        account: &AccountId,
        before: i64,
        limit: u32,
    ) -> Result<Vec<LedgerLine>, StoreError> {
        let account = *account;
        self.read(move |tx| {
            tx.list(
                "SELECT sequence, at, kind, credit, amount, task_id, external_reference FROM ledger
                 WHERE account_id = ?1 AND sequence < ?2 ORDER BY sequence DESC LIMIT ?3",
                params![account.as_str(), before, limit],
                ledger_line,
            )
        })
        .await
    }

    pub(crate) async fn list_ledger_of_task(
        &self,
        task: &TaskId,
    ) -> Result<Vec<LedgerLine>, StoreError> {
        let task = *task;
        self.read(move |tx| {
            // The kinds as the two indexes by task have them.
            tx.list(
                "SELECT sequence, at, kind, credit, amount, task_id, external_reference FROM (
                     SELECT * FROM ledger WHERE task_id = ?1 AND kind = 'reserve'
                     UNION ALL SELECT * FROM ledger WHERE task_id = ?1 AND kind IN ('charge', 'refund')
                 ) ORDER BY sequence",
                [task.as_str()],
                ledger_line,
            )
        })
        .await
    }
}

fn ledger_line(row: &Row<'_>) -> Result<LedgerLine, StoreError> {
    let has_task = row.get::<_, Option<String>>("task_id")?.is_some();
    Ok(LedgerLine {
        sequence: row.get("sequence")?,
        at: time(row, "at")?,
        kind: parsed(row, "kind", LedgerKind::parse)?,
        amount: Credits::from_thousandths(row.get("amount")?),
        comes_in: parsed(row, "credit", Purse::parse)? == Purse::Available,
        task_id: has_task
            .then(|| rows::task_id(row, "task_id"))
            .transpose()?,
        external_reference: row.get("external_reference")?,
    })
}

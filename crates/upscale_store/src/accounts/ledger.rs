//! Every movement of credits: one balanced row in the ledger and the account's cached balances and count, together.
//! Purchase, payment, adjustment, create and settle call this, with the account's row locked; nothing else moves money.

use std::fmt;

use futures_util::future::try_join;
use upscale_core::{AccountId, Credits, TaskId};

use super::Accounts;
use crate::{LedgerLine, StoreError, row::Row, tx::Tx};

/// What a line of the ledger is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LedgerKind {
    /// Credits bought: from the outside to `available`.
    Purchase,
    /// A task was accepted.
    Reserve,
    /// The task succeeded: from `reserved` to revenue.
    Charge,
    /// The task failed: from `reserved` back to `available`.
    Refund,
    /// The payer has money back.
    Reversal,
    /// A dispute was won.
    Reinstatement,
    /// An operator gave or took.
    Adjustment,
}

impl LedgerKind {
    const ALL: [Self; 7] = [
        Self::Purchase,
        Self::Reserve,
        Self::Charge,
        Self::Refund,
        Self::Reversal,
        Self::Reinstatement,
        Self::Adjustment,
    ];

    /// As rows, CSV and commands have it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Purchase => "purchase",
            Self::Reserve => "reserve",
            Self::Charge => "charge",
            Self::Refund => "refund",
            Self::Reversal => "reversal",
            Self::Reinstatement => "reinstatement",
            Self::Adjustment => "adjustment",
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

impl fmt::Display for LedgerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Where credits come from and go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purse {
    /// Outside: what was paid for and what went back.
    Cash,
    /// What an account can reserve.
    Available,
    /// What its tasks have reserved.
    Held,
    /// Credits charged for successful tasks.
    Revenue,
    /// The operator's own purse, from which adjustments come.
    House,
}

impl Purse {
    const ALL: [Self; 5] = [
        Self::Cash,
        Self::Available,
        Self::Held,
        Self::Revenue,
        Self::House,
    ];

    /// As rows and commands have it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cash => "cash",
            Self::Available => "available",
            Self::Held => "held",
            Self::Revenue => "revenue",
            Self::House => "house",
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|purse| purse.as_str() == text)
    }
}

impl fmt::Display for Purse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a transfer is for.
pub(crate) enum Transfer<'a> {
    /// Money came in, under the payment's reference: cash → available.
    Purchase(&'a str),
    /// A task was accepted: available → held.
    Reserve(&'a TaskId),
    /// It succeeded: held → revenue.
    Charge(&'a TaskId),
    /// It failed: held → available.
    Refund(&'a TaskId),
    /// The payer has money back, refunded or disputed: available → cash, below zero if need be.
    Reversal(&'a str),
    /// The dispute was won: cash → available.
    Reinstatement(&'a str),
    /// An operator gives: the house's → available.
    AdjustmentUp(&'a str),
    /// An operator takes: available → the house's.
    AdjustmentDown(&'a str),
}

impl Transfer<'_> {
    /// Kind, the purse the amount leaves, the purse it enters.
    pub(crate) fn legs(&self) -> (LedgerKind, Purse, Purse) {
        use Purse::{Available, Cash, Held, House, Revenue};
        match self {
            Self::Purchase(_) => (LedgerKind::Purchase, Cash, Available),
            Self::Reserve(_) => (LedgerKind::Reserve, Available, Held),
            Self::Charge(_) => (LedgerKind::Charge, Held, Revenue),
            Self::Refund(_) => (LedgerKind::Refund, Held, Available),
            Self::Reversal(_) => (LedgerKind::Reversal, Available, Cash),
            Self::Reinstatement(_) => (LedgerKind::Reinstatement, Cash, Available),
            Self::AdjustmentUp(_) => (LedgerKind::Adjustment, House, Available),
            Self::AdjustmentDown(_) => (LedgerKind::Adjustment, Available, House),
        }
    }

    /// The task it is about, or the reference of the payment or adjustment: one of the two.
    pub(crate) fn about(&self) -> (Option<&str>, Option<&str>) {
        match self {
            Self::Purchase(reference)
            | Self::Reversal(reference)
            | Self::Reinstatement(reference)
            | Self::AdjustmentUp(reference)
            | Self::AdjustmentDown(reference) => (None, Some(reference)),
            Self::Reserve(task) | Self::Charge(task) | Self::Refund(task) => {
                (Some(task.as_str()), None)
            }
        }
    }

    /// What the account's active tasks change by: one is there with its reserve and gone with its charge. A task that
    /// failed is not active from its failure on, before its refund.
    pub(crate) fn active_change(&self) -> i64 {
        match self {
            Self::Reserve(_) => 1,
            Self::Charge(_) => -1,
            Self::Purchase(_)
            | Self::Refund(_)
            | Self::Reversal(_)
            | Self::Reinstatement(_)
            | Self::AdjustmentUp(_)
            | Self::AdjustmentDown(_) => 0,
        }
    }

    /// What the account's available, held and charged balances change by, and what was taken back of it in all, in
    /// thousandths.
    pub(crate) fn changes(&self, amount: Credits) -> [i64; 4] {
        let (_, debit, credit) = self.legs();
        let [available, held, revenue, cash] =
            [Purse::Available, Purse::Held, Purse::Revenue, Purse::Cash].map(|purse| {
                (i64::from(credit == purse) - i64::from(debit == purse)) * amount.thousandths()
            });
        [available, held, revenue, cash.max(0)]
    }
}

/// Moves the amount, which is above zero. The unique indexes refuse a second reserve, a second settlement
/// and a second use of a reference; the account's checks refuse a balance below zero that no reversal explains.
pub(crate) async fn transfer(
    tx: &Tx,
    account: &AccountId,
    transfer: &Transfer<'_>,
    amount: Credits,
) -> Result<(), StoreError> {
    let (kind, debit, credit) = transfer.legs();
    let (task, reference) = transfer.about();
    let line = "INSERT INTO ledger (at, account_id, kind, debit, credit, amount, task_id, external_reference)
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
    let balances =
        "UPDATE account SET available = available + $2, held = held + $3, charged = charged + $4,
                        taken_back = taken_back + $5, active_tasks = active_tasks + $6 WHERE id = $1";
    let [available, held, charged, taken_back] = transfer.changes(amount);
    let (kind, debit, credit) = (kind.as_str(), debit.as_str(), credit.as_str());
    try_join(
        tx.execute_one(
            line,
            &[
                &tx.now, account, &kind, &debit, &credit, &amount, &task, &reference,
            ],
        ),
        tx.execute_one(
            balances,
            &[
                account,
                &available,
                &held,
                &charged,
                &taken_back,
                &transfer.active_change(),
            ],
        ),
    )
    .await?;
    Ok(())
}

impl Accounts<'_> {
    /// The account's transfers, newest first.
    pub async fn list_ledger(
        self,
        account: &AccountId,
        limit: u32,
    ) -> Result<Vec<LedgerLine>, StoreError> {
        self.list_ledger_before(account, i64::MAX, limit).await
    }

    /// What was available when the line of this number had been written: today's balance without what came after. One
    /// statement, so that a line written meanwhile counts on both sides or on neither.
    pub async fn find_available_after(
        self,
        account: &AccountId,
        sequence: i64,
    ) -> Result<Option<Credits>, StoreError> {
        let account = *account;
        self.store
            .read(async move |tx: &mut Tx| {
                tx.find(
                    "SELECT CAST(available - coalesce((SELECT sum(CASE WHEN credit = 'available' THEN amount
                         WHEN debit = 'available' THEN -amount ELSE 0 END)
                         FROM ledger WHERE account_id = $1 AND sequence > $2), 0) AS BIGINT) AS stood
                     FROM account WHERE id = $1",
                    &[&account, &sequence],
                    |row| row.credits("stood"),
                )
                .await
            })
            .await
    }

    /// The account's transfers whose number is below this one, newest first.
    pub async fn list_ledger_before(
        self,
        account: &AccountId,
        before: i64,
        limit: u32,
    ) -> Result<Vec<LedgerLine>, StoreError> {
        let account = *account;
        self.store
            .read(async move |tx: &mut Tx| {
                let sql = format!(
                    "SELECT {LINE} FROM ledger WHERE account_id = $1 AND sequence < $2 ORDER BY sequence DESC LIMIT $3"
                );
                tx.list(&sql, &[&account, &before, &limit], ledger_line).await
            })
            .await
    }

    /// The transfers of one task, oldest first; they outlive its record.
    pub async fn list_ledger_of_task(self, task: &TaskId) -> Result<Vec<LedgerLine>, StoreError> {
        let task = *task;
        self.store.read(async move |tx: &mut Tx| {
            // The kinds as the two indexes by task have them.
            let sql = format!(
                "SELECT {LINE} FROM (
                     SELECT {LINE} FROM ledger WHERE task_id = $1 AND kind = 'reserve'
                     UNION ALL SELECT {LINE} FROM ledger WHERE task_id = $1 AND kind IN ('charge', 'refund')
                 ) AS lines ORDER BY sequence"
            );
            tx.list(&sql, &[&task], ledger_line).await
        })
        .await
    }
}

/// The columns of a line, as [`ledger_line`] reads it.
const LINE: &str = "sequence, at, kind, credit, amount, task_id, external_reference";

fn ledger_line(row: &dyn Row) -> Result<LedgerLine, StoreError> {
    let has_task = row.text_if_any("task_id")?.is_some();
    Ok(LedgerLine {
        sequence: row.number("sequence")?,
        at: row.time("at")?,
        kind: row.parsed("kind", LedgerKind::parse)?,
        amount: row.credits("amount")?,
        comes_in: row.parsed("credit", Purse::parse)? == Purse::Available,
        task_id: has_task.then(|| row.task_id("task_id")).transpose()?,
        external_reference: row.string_if_any("external_reference")?,
    })
}

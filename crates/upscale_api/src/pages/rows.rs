//! Rows that both consoles show: a transfer of an account, and one of its keys. Tasks and payments are told to customers
//! and to operators differently, so each console has its own rows of those.

use upscale_core::{Credits, Permission, Timestamp};
use upscale_store::{KeyRecord, LedgerKind, LedgerLine};

use super::shown::{Moment, ago};

/// A transfer as its account sees it.
pub(crate) struct LedgerRow {
    pub(crate) sequence: i64,
    pub(crate) at: Moment,
    pub(crate) kind: LedgerKind,
    /// The kind, as the account's owner reads it.
    pub(crate) what: &'static str,
    /// What was available afterwards, where that is known.
    pub(crate) balance: Option<String>,
    /// What became available (+) or went from it (−); a charge takes what was reserved.
    pub(crate) amount: String,
    pub(crate) is_gain: bool,
    pub(crate) task: Option<String>,
    pub(crate) reference: Option<String>,
}

impl LedgerRow {
    pub(crate) fn of(line: &LedgerLine) -> Self {
        let sign = match change_of_available(line) {
            0 => "",
            1.. => "+",
            _ => "−",
        };
        Self {
            sequence: line.sequence,
            at: Moment::of(line.at),
            kind: line.kind,
            what: in_words(line),
            balance: None,
            amount: format!("{sign}{}", line.amount),
            is_gain: sign == "+",
            task: line.task_id.as_ref().map(ToString::to_string),
            reference: line.external_reference.clone(),
        }
    }
}

/// Lines, newest first, each with what was available after it: `available` is that of the first.
pub(crate) fn with_balances(lines: &[LedgerLine], available: Option<Credits>) -> Vec<LedgerRow> {
    let mut stood = available.map(Credits::thousandths);
    let row = |line: &LedgerLine| {
        let row = LedgerRow {
            balance: stood.map(|stood| Credits::from_thousandths(stood).to_string()),
            ..LedgerRow::of(line)
        };
        stood = stood.map(|stood| stood - change_of_available(line));
        row
    };
    lines.iter().map(row).collect()
}

fn in_words(line: &LedgerLine) -> &'static str {
    match line.kind {
        LedgerKind::Purchase => "Purchase",
        LedgerKind::Reserve => "Reserved for a task",
        LedgerKind::Charge => "Charged: the task succeeded",
        LedgerKind::Refund => "Refunded: the task failed",
        LedgerKind::Reversal => "Reversed: the payment was refunded or disputed",
        LedgerKind::Reinstatement => "Reinstated: the dispute was won or the refund failed",
        LedgerKind::Adjustment if line.comes_in => "Added by the operator",
        LedgerKind::Adjustment => "Removed by the operator",
    }
}

/// In thousandths; 0 for a charge, which takes what was reserved before.
pub(crate) fn change_of_available(line: &LedgerLine) -> i64 {
    let amount = line.amount.thousandths();
    match line.kind {
        LedgerKind::Charge => 0,
        _ if line.comes_in => amount,
        _ => -amount,
    }
}

/// A key, but for its secret.
pub(crate) struct KeyRow {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) hint: String,
    pub(crate) permission: Permission,
    pub(crate) created: Moment,
    pub(crate) created_ago: String,
    pub(crate) last_used: Option<Moment>,
    pub(crate) last_used_ago: String,
    /// Until when a rotated key still works, or since when it does not.
    pub(crate) revoked: Option<Moment>,
    pub(crate) is_live: bool,
}

impl KeyRow {
    pub(crate) fn of(key: &KeyRecord, now: Timestamp) -> Self {
        Self {
            id: key.id.to_string(),
            name: key.name.clone(),
            hint: key.hint.clone(),
            permission: key.permission,
            created: Moment::of(key.created_at),
            created_ago: ago(key.created_at, now),
            last_used: key.last_used_at.map(Moment::of),
            last_used_ago: key.last_used_at.map_or_else(String::new, |at| ago(at, now)),
            revoked: key.revoked_at.map(Moment::of),
            is_live: key.is_live,
        }
    }

    /// What the key is for, as the account's owner reads it.
    pub(crate) fn may(&self) -> &'static str {
        match self.permission {
            Permission::Read => "read tasks",
            Permission::Write => "create tasks",
            Permission::All => "read and create",
        }
    }
}

//! Rows that both consoles show: a transfer of an account, and one of its keys. Tasks and payments are told to customers
//! and to operators differently, so each console has its own rows of those.

use upscale_core::{Permission, Timestamp};
use upscale_store::{KeyRecord, LedgerKind, LedgerLine};

use super::shown::Moment;

/// A transfer as its account sees it.
pub(crate) struct LedgerRow {
    pub(crate) sequence: i64,
    pub(crate) at: Moment,
    pub(crate) kind: LedgerKind,
    /// The kind, as the account's owner reads it.
    pub(crate) what: &'static str,
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
            amount: format!("{sign}{}", line.amount),
            is_gain: sign == "+",
            task: line.task_id.as_ref().map(ToString::to_string),
            reference: line.external_reference.clone(),
        }
    }
}

fn in_words(line: &LedgerLine) -> &'static str {
    match line.kind {
        LedgerKind::Purchase => "Purchase",
        LedgerKind::Reserve => "Reserved for a task",
        LedgerKind::Charge => "Charged: the task succeeded",
        LedgerKind::Refund => "Returned: the task failed",
        LedgerKind::Reversal => "Taken back: the payment was refunded or disputed",
        LedgerKind::Reinstatement => "Given again: the payment is with us again",
        LedgerKind::Adjustment if line.comes_in => "Given by the operator",
        LedgerKind::Adjustment => "Taken by the operator",
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
    pub(crate) last_used: Option<Moment>,
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
            last_used: key.last_used_at.map(Moment::of),
            revoked: key.revoked_at.map(Moment::of),
            is_live: key.revoked_at.is_none_or(|at| at > now),
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

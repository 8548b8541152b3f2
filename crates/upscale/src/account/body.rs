//! An account as the commands print it: its balances, what it has under way, which limits hold for it.

use serde::Serialize;
use upscale_core::OwnLimits;
use upscale_store::Account;

use crate::{
    output,
    shown::{Amount, time, time_if_any},
};

/// An account for scripts.
#[derive(Serialize)]
pub(super) struct AccountBody {
    account: String,
    name: String,
    available: Amount,
    reserved: Amount,
    charged: Amount,
    activated: bool,
    activated_at: Option<String>,
    created_at: String,
    active_tasks: u32,
    accepted_today: u32,
    limits: LimitsBody,
    stopped: bool,
}

/// What holds for the account, its own where an operator set one.
#[derive(Serialize)]
struct LimitsBody {
    requests_per_minute: u32,
    active_tasks: u32,
    daily_tasks: u32,
    own: Vec<&'static str>,
}

impl From<OwnLimits> for LimitsBody {
    fn from(own: OwnLimits) -> Self {
        let limits = own.effective();
        let set = [
            ("requests_per_minute", own.create_requests_per_minute),
            ("active_tasks", own.active_tasks),
            ("daily_tasks", own.daily_tasks),
        ];
        Self {
            requests_per_minute: limits.create_requests_per_minute,
            active_tasks: limits.active_tasks,
            daily_tasks: limits.daily_tasks,
            own: set
                .into_iter()
                .filter_map(|(name, limit)| limit.map(|_| name))
                .collect(),
        }
    }
}

impl From<&Account> for AccountBody {
    fn from(account: &Account) -> Self {
        Self {
            account: account.id.to_string(),
            name: account.name.clone(),
            available: Amount(account.available),
            reserved: Amount(account.reserved),
            charged: Amount(account.charged),
            activated: account.activated_at.is_some(),
            activated_at: time_if_any(account.activated_at),
            created_at: time(account.created_at),
            active_tasks: account.active_tasks,
            accepted_today: account.accepted_today,
            limits: LimitsBody::from(account.own_limits),
            stopped: account.stopped,
        }
    }
}

/// The account on standard output, as JSON or as a table of one row.
pub(super) fn print(account: &Account, as_json: bool) -> anyhow::Result<()> {
    if as_json {
        return output::json(&AccountBody::from(account));
    }
    print_table(std::slice::from_ref(account))
}

/// Accounts in rows.
pub(super) fn print_table(accounts: &[Account]) -> anyhow::Result<()> {
    let row = |account: &Account| {
        vec![
            account.id.to_string(),
            account.available.to_string(),
            account.reserved.to_string(),
            account.charged.to_string(),
            account.active_tasks.to_string(),
            account.accepted_today.to_string(),
            time_if_any(account.activated_at).unwrap_or_else(|| "never".to_owned()),
            account.name.clone(),
        ]
    };
    let names = [
        "ACCOUNT",
        "AVAILABLE",
        "RESERVED",
        "CHARGED",
        "ACTIVE",
        "TODAY",
        "ACTIVATED",
        "NAME",
    ];
    output::table(&names, &accounts.iter().map(row).collect::<Vec<_>>())
}

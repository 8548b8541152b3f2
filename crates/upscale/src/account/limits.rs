//! `upscale account limits`: an account's own limits in place of the contract's.

use anyhow::Context;
use upscale_core::OwnLimits;

use super::body;
use crate::{
    args::{DataArgs, LimitArgs, OneLimit},
    data::{account_id, find_account, no_account, open_existing_store},
    on_behalf::on_behalf,
    output,
};

/// Shows or sets.
pub(super) async fn limits(
    account: &str,
    set: &LimitArgs,
    reason: Option<&str>,
    operator: Option<&str>,
    data: &DataArgs,
) -> anyhow::Result<()> {
    let store = open_existing_store(&data.location).await?;
    let mut account = find_account(&store, &account_id(account)?).await?;
    let before = account.own_limits;
    let choose = |set: Option<OneLimit>, before| set.map_or(before, |set| set.0);
    let own = OwnLimits {
        create_requests_per_minute: choose(
            set.requests_per_minute,
            before.create_requests_per_minute,
        ),
        active_tasks: choose(set.active_tasks, before.active_tasks),
        daily_tasks: choose(set.daily_tasks, before.daily_tasks),
    };
    if own != before {
        let reason = reason.context("--reason is required: it is stored with the change")?;
        let changed = store
            .operator()
            .set_limits(&account.id, own, &on_behalf(reason, operator))
            .await?;
        account = changed.with_context(|| no_account(account.id.as_str()))?;
    }
    if data.json {
        return body::print(&account, true);
    }
    let limits = account.own_limits.effective();
    let row = |name: &str, limit: u32, own: Option<u32>| {
        let whose = if own.is_some() {
            "its own"
        } else {
            "the contract's"
        };
        vec![name.to_owned(), limit.to_string(), whose.to_owned()]
    };
    let own = account.own_limits;
    let rows = [
        row(
            "requests a minute",
            limits.create_requests_per_minute,
            own.create_requests_per_minute,
        ),
        row("active tasks", limits.active_tasks, own.active_tasks),
        row("tasks a day", limits.daily_tasks, own.daily_tasks),
    ];
    output::table(&["LIMIT", "VALUE", "SOURCE"], &rows)
}

//! `upscale account …`: the operator's view of accounts and money.

use anyhow::{Context, bail};
use serde::Serialize;
use upscale_core::{AccountId, Credits, OwnLimits};
use upscale_store::{Account, PurchaseOutcome, Store, StoreOptions};

use crate::{
    account_limits,
    args::{AccountCommand, DataArgs},
    data::{account_id, block_on, no_account, open_existing_store, open_store},
    ledger, output,
    shown::{Amount, time, time_if_any},
};

/// Runs one of the account commands.
pub(crate) fn account(command: &AccountCommand) -> anyhow::Result<()> {
    block_on(async {
        match command {
            AccountCommand::Create { name, data } => create(name, data).await,
            AccountCommand::Credit {
                account,
                credits,
                reference,
                data,
            } => credit(account, *credits, reference, data).await,
            AccountCommand::Show { account, data } => show(account, data).await,
            AccountCommand::List { search, data } => list(search.as_deref(), data).await,
            AccountCommand::Ledger {
                account,
                limit,
                data,
            } => ledger::list(account, *limit, data).await,
            AccountCommand::Limits {
                account,
                limits,
                reason,
                operator,
                data,
            } => {
                account_limits::limits(
                    account,
                    limits,
                    reason.as_deref(),
                    operator.as_deref(),
                    data,
                )
                .await
            }
            AccountCommand::Adjust {
                account,
                credits,
                reference,
                action,
                data,
            } => {
                account_limits::adjust(account, *credits, reference.as_deref(), action, data).await
            }
            AccountCommand::Actions {
                account,
                limit,
                data,
            } => account_limits::actions(account.as_deref(), *limit, data).await,
            AccountCommand::Payments {
                account,
                refused,
                limit,
                data,
            } => account_limits::payments(account.as_deref(), *refused, *limit, data).await,
        }
    })
}

#[derive(Serialize)]
pub(crate) struct AccountBody {
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

async fn create(name: &str, data: &DataArgs) -> anyhow::Result<()> {
    let store = open_store(&data.place, StoreOptions::default()).await?;
    let account = store.create_account(name).await?;
    print_account(&account, data.json)
}

#[derive(Serialize)]
struct CreditBody {
    reference: String,
    credits: Amount,
    already_credited: bool,
    #[serde(flatten)]
    account: AccountBody,
}

async fn credit(
    account: &str,
    credits: Credits,
    reference: &str,
    data: &DataArgs,
) -> anyhow::Result<()> {
    if credits == Credits::ZERO {
        bail!("a purchase is of more than 0 credits");
    }
    let store = open_existing_store(&data.place).await?;
    let id = account_id(account)?;
    let already_credited = match store.credit_account(&id, credits, reference).await? {
        PurchaseOutcome::Credited => false,
        PurchaseOutcome::AlreadyCredited => true,
        PurchaseOutcome::NoSuchAccount => bail!(no_account(account)),
        PurchaseOutcome::ReferenceTaken => bail!(
            "the reference {reference:?} was credited before, to another account or with another amount; nothing changed"
        ),
    };
    let account = find(&store, &id).await?;
    if data.json {
        return output::json(&CreditBody {
            reference: reference.to_owned(),
            credits: Amount(credits),
            already_credited,
            account: AccountBody::from(&account),
        });
    }
    if already_credited {
        output::line("This reference was credited before; nothing changed.")?;
    }
    print_account(&account, false)
}

async fn show(account: &str, data: &DataArgs) -> anyhow::Result<()> {
    let store = open_existing_store(&data.place).await?;
    print_account(&find(&store, &account_id(account)?).await?, data.json)
}

pub(crate) async fn find(store: &Store, id: &AccountId) -> anyhow::Result<Account> {
    store
        .find_account(id)
        .await?
        .with_context(|| no_account(id.as_str()))
}

async fn list(search: Option<&str>, data: &DataArgs) -> anyhow::Result<()> {
    let store = open_existing_store(&data.place).await?;
    let mut accounts = store.list_accounts().await?;
    if let Some(text) = search {
        let text = text.to_lowercase();
        accounts.retain(|account| {
            account.id.as_str().contains(&text) || account.name.to_lowercase().contains(&text)
        });
    }
    if data.json {
        let accounts: Vec<AccountBody> = accounts.iter().map(AccountBody::from).collect();
        return output::json(&serde_json::json!({ "accounts": accounts }));
    }
    print_table(&accounts)
}

pub(crate) fn print_account(account: &Account, as_json: bool) -> anyhow::Result<()> {
    if as_json {
        return output::json(&AccountBody::from(account));
    }
    print_table(std::slice::from_ref(account))
}

fn print_table(accounts: &[Account]) -> anyhow::Result<()> {
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

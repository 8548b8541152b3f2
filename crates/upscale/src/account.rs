//! `upscale account …`: makes and shows accounts; what moves money, sets limits or looks back stands in files of its own.

mod actions;
mod adjust;
mod body;
mod limits;
mod payments;
mod purchase;
mod quick;

pub(crate) use self::quick::quickstart;
use self::{body::AccountBody, quick::Gifts};
use crate::{
    args::{AccountCommand, DataArgs},
    data::{account_id, block_on, find_account, open_existing_store},
    ledger, output,
};

/// Runs one of the account commands.
pub(crate) fn account(command: &AccountCommand) -> anyhow::Result<()> {
    block_on(async {
        match command {
            AccountCommand::Create {
                name,
                credit,
                key,
                data,
            } => {
                let gifts = Gifts {
                    credit: *credit,
                    with_key: *key,
                };
                quick::create(name, &gifts, data).await
            }
            AccountCommand::Credit {
                account,
                credits,
                reference,
                data,
            } => purchase::credit(account, *credits, reference, data).await,
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
                limits::limits(
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
            } => adjust::adjust(account, *credits, reference.as_deref(), action, data).await,
            AccountCommand::Actions {
                account,
                limit,
                data,
            } => actions::actions(account.as_deref(), *limit, data).await,
            AccountCommand::Payments {
                account,
                refused,
                limit,
                data,
            } => payments::payments(account.as_deref(), *refused, *limit, data).await,
        }
    })
}

async fn show(account: &str, data: &DataArgs) -> anyhow::Result<()> {
    let store = open_existing_store(&data.location).await?;
    body::print(
        &find_account(&store, &account_id(account)?).await?,
        data.json,
    )
}

async fn list(search: Option<&str>, data: &DataArgs) -> anyhow::Result<()> {
    let store = open_existing_store(&data.location).await?;
    let mut accounts = store.accounts().list().await?;
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
    body::print_table(&accounts)
}

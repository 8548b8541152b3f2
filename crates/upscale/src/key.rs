//! `upscale key …`: the operator's view of API keys, and of the secret that signs result URLs. An API key's secret is printed once, by the command that made it.

use anyhow::{Context, bail};
use serde::Serialize;
use upscale_core::{Permission, limits::LIVE_KEYS_MAX};
use upscale_store::{KeyOutcome, KeyRecord, OldLinks};

use crate::{
    args::{DataArgs, KeyCommand},
    data::{account_id, block_on, key_id, no_account, open_existing_store},
    output,
    shown::{time, time_if_any},
};

/// Runs one of the key commands.
pub(crate) fn key(command: &KeyCommand) -> anyhow::Result<()> {
    block_on(async {
        match command {
            KeyCommand::Create {
                account,
                permission,
                name,
                data,
            } => {
                let name = name.as_deref().unwrap_or_default();
                create(account, *permission, name, data).await
            }
            KeyCommand::List {
                account,
                limit,
                data,
            } => list(account, *limit, data).await,
            KeyCommand::Rotate { key, overlap, data } => rotate(key, *overlap, data).await,
            KeyCommand::RotateSigning {
                refuse_old_links,
                data,
            } => rotate_signing(*refuse_old_links, data).await,
            KeyCommand::Revoke { key, data } => revoke(key, data).await,
        }
    })
}

#[derive(Serialize)]
struct KeyBody {
    id: String,
    account: String,
    name: String,
    permission: &'static str,
    hint: String,
    created_at: String,
    last_used_at: Option<String>,
    revoked_at: Option<String>,
}

#[derive(Serialize)]
struct NewKeyBody {
    key: String,
    #[serde(flatten)]
    record: KeyBody,
}

impl From<&KeyRecord> for KeyBody {
    fn from(record: &KeyRecord) -> Self {
        Self {
            id: record.id.as_str().to_owned(),
            account: record.account_id.to_string(),
            name: record.name.clone(),
            permission: record.permission.as_str(),
            hint: record.hint.clone(),
            created_at: time(record.created_at),
            last_used_at: time_if_any(record.last_used_at),
            revoked_at: time_if_any(record.revoked_at),
        }
    }
}

async fn create(
    account: &str,
    permission: Permission,
    name: &str,
    data: &DataArgs,
) -> anyhow::Result<()> {
    let store = open_existing_store(&data.location).await?;
    let made = store
        .accounts()
        .create_key(&account_id(account)?, permission, name)
        .await?;
    print_new(made, || no_account(account), data.json)
}

async fn rotate(key: &str, overlap_seconds: i64, data: &DataArgs) -> anyhow::Result<()> {
    let store = open_existing_store(&data.location).await?;
    let made = store
        .accounts()
        .rotate_key(&key_id(key)?, overlap_seconds)
        .await?;
    print_new(made, || format!("no live key {key}"), data.json)
}

async fn rotate_signing(refuse_old_links: bool, data: &DataArgs) -> anyhow::Result<()> {
    let store = open_existing_store(&data.location).await?;
    let (old_links, fate) = if refuse_old_links {
        (OldLinks::Refuse, "refused within 10 seconds")
    } else {
        (OldLinks::Expire, "good until they expire")
    };
    let id = store.rotate_signing_key(old_links).await?;
    if data.json {
        return output::json(&serde_json::json!({ "signing_key": id, "old_links": fate }));
    }
    output::line(&format!("signing key  {id}\nold links    {fate}"))
}

fn print_new(
    outcome: KeyOutcome,
    unknown: impl FnOnce() -> String,
    as_json: bool,
) -> anyhow::Result<()> {
    let (record, secret) = match outcome {
        KeyOutcome::Made(record, secret) => (record, secret),
        KeyOutcome::TooMany => bail!(
            "the account has {LIVE_KEYS_MAX} working keys already: revoke one first, or rotate without an overlap"
        ),
        KeyOutcome::Unknown => bail!(unknown()),
    };
    let key = secret.reveal().to_owned();
    if as_json {
        let record = KeyBody::from(&record);
        return output::json(&NewKeyBody { key, record });
    }
    output::line(&format!("id    {}\nkey   {key}", record.id.as_str()))?;
    output::line("Copy this key now. You won't see it again.")
}

async fn list(account: &str, limit: u32, data: &DataArgs) -> anyhow::Result<()> {
    let store = open_existing_store(&data.location).await?;
    let id = account_id(account)?;
    store
        .accounts()
        .find(&id)
        .await?
        .with_context(|| no_account(account))?;
    let keys: Vec<KeyBody> = store
        .accounts()
        .list_keys(&id, None, limit)
        .await?
        .iter()
        .map(KeyBody::from)
        .collect();
    if data.json {
        return output::json(&serde_json::json!({ "account": id.as_str(), "keys": keys }));
    }
    print_table(&keys)
}

async fn revoke(key: &str, data: &DataArgs) -> anyhow::Result<()> {
    let store = open_existing_store(&data.location).await?;
    let revoked = store.accounts().revoke_key(&key_id(key)?).await?;
    let body = KeyBody::from(&revoked.with_context(|| format!("key {key} does not exist"))?);
    if data.json {
        return output::json(&body);
    }
    print_table(&[body])
}

fn print_table(keys: &[KeyBody]) -> anyhow::Result<()> {
    let row = |key: &KeyBody| {
        let never = || "never".to_owned();
        vec![
            key.id.clone(),
            key.permission.to_owned(),
            format!("…{}", key.hint),
            key.created_at.clone(),
            key.last_used_at.clone().unwrap_or_else(never),
            key.revoked_at.clone().unwrap_or_else(never),
            key.name.clone(),
        ]
    };
    let names = [
        "KEY",
        "MAY",
        "ENDS",
        "CREATED",
        "LAST USED",
        "REVOKED",
        "NAME",
    ];
    output::table(&names, &keys.iter().map(row).collect::<Vec<_>>())
}

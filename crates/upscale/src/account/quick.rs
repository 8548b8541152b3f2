//! An account that can order at once: made, credited and given a key by one command, for a first try and for scripts.

use anyhow::{Context, bail};
use serde::Serialize;
use upscale_core::{Credits, Permission, SAMPLES};
use upscale_store::{PurchaseOutcome, StoreOptions};

use super::body::{self, AccountBody};
use crate::{
    args::{DataArgs, QuickstartArgs},
    data::{block_on, find_account, open_store},
    output,
};

#[derive(Serialize)]
struct MadeBody {
    #[serde(flatten)]
    account: AccountBody,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
}

/// What a new account gets besides.
pub(super) struct Gifts {
    pub(super) credit: Option<Credits>,
    pub(super) with_key: bool,
}

/// `upscale account create`: prints the account, and the key's secret this once.
pub(super) async fn create(name: &str, gifts: &Gifts, data: &DataArgs) -> anyhow::Result<()> {
    let made = make(name, gifts, data).await?;
    if data.json {
        return output::json(&made.body());
    }
    body::print(&made.account, false)?;
    match made.key {
        Some(key) => output::line(&format!("\nkey  {key}    (shown this once)")),
        None => Ok(()),
    }
}

/// `upscale quickstart`: the same with all of it, and the lines to go on with.
pub(crate) fn quickstart(args: &QuickstartArgs) -> anyhow::Result<()> {
    let gifts = Gifts {
        credit: Some(args.credit),
        with_key: true,
    };
    let made = block_on(make(&args.name, &gifts, &args.data))?;
    if args.data.json {
        return output::json(&made.body());
    }
    let key = made.key.context("the key does not exist")?;
    let [sample, ..] = SAMPLES;
    output::line(&format!(
        "account {} has {} credits and a key, shown this once. With `upscale serve` running on the same data:\n\n\
         export UPSCALE_API=http://127.0.0.1:8080 UPSCALE_API_KEY={key}\n\
         upscale submit {}    # a sample that comes with the service",
        made.account.id,
        made.account.available,
        sample.url()
    ))
}

struct Made {
    account: upscale_store::Account,
    key: Option<String>,
}

impl Made {
    fn body(&self) -> MadeBody {
        MadeBody {
            account: AccountBody::from(&self.account),
            key: self.key.clone(),
        }
    }
}

async fn make(name: &str, gifts: &Gifts, data: &DataArgs) -> anyhow::Result<Made> {
    if gifts.credit == Some(Credits::ZERO) {
        bail!("a purchase must be of more than 0 credits");
    }
    let store = open_store(&data.location, StoreOptions::default()).await?;
    let id = store.accounts().create(name).await?.id;
    if let Some(credits) = gifts.credit {
        // The account's own id: no other account has this reference.
        let reference = format!("first credits of {id}");
        let outcome = store.accounts().credit(&id, credits, &reference).await?;
        if outcome != PurchaseOutcome::Credited {
            bail!("account {id} was created but not credited: {outcome:?}");
        }
    }
    let key = match gifts.with_key {
        true => {
            let made = store
                .accounts()
                .create_key(&id, Permission::All, "")
                .await?;
            let (_, secret) = made.made().context("the account does not exist")?;
            Some(secret.reveal().to_owned())
        }
        false => None,
    };
    let account = find_account(&store, &id).await?;
    Ok(Made { account, key })
}

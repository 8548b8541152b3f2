//! `upscale account adjust`: credits that an operator gives or takes, with a reason that is kept.

use anyhow::bail;
use serde::Serialize;
use upscale_core::{Credits, random_token};
use upscale_store::AdjustOutcome;

use super::body::{self, AccountBody};
use crate::{
    args::{ActionArgs, DataArgs},
    data::{account_id, find_account, no_account, open_existing_store},
    on_behalf::on_behalf,
    output,
    shown::Amount,
};

#[derive(Serialize)]
struct AdjustBody {
    reference: String,
    credits: Amount,
    already_adjusted: bool,
    #[serde(flatten)]
    account: AccountBody,
}

/// Gives or takes credits.
pub(super) async fn adjust(
    account: &str,
    credits: Credits,
    reference: Option<&str>,
    action: &ActionArgs,
    data: &DataArgs,
) -> anyhow::Result<()> {
    let store = open_existing_store(&data.location).await?;
    let id = account_id(account)?;
    let reference = match reference {
        Some(reference) => reference.to_owned(),
        None => format!("adj_{}", random_token()?),
    };
    let by = on_behalf(&action.reason, action.operator.as_deref());
    let already_adjusted = match store
        .operator()
        .adjust(&id, credits, &reference, &by)
        .await?
    {
        AdjustOutcome::Adjusted => false,
        AdjustOutcome::AlreadyAdjusted => true,
        AdjustOutcome::NoSuchAccount => bail!(no_account(account)),
        AdjustOutcome::TooLittle { available } => {
            bail!("{available} credits are available: {credits} cannot be taken; nothing changed")
        }
        AdjustOutcome::ReferenceTaken => bail!(
            "the reference {reference:?} was used before, for another account or amount; nothing changed"
        ),
    };
    let account = find_account(&store, &id).await?;
    if data.json {
        return output::json(&AdjustBody {
            reference,
            credits: Amount(credits),
            already_adjusted,
            account: AccountBody::from(&account),
        });
    }
    if already_adjusted {
        output::line("This reference was used before; nothing changed.")?;
    }
    body::print(&account, false)
}

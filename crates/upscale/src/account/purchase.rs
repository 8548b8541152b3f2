//! `upscale account credit`: a purchase that was paid outside the service.

use anyhow::bail;
use serde::Serialize;
use upscale_core::Credits;
use upscale_store::PurchaseOutcome;

use super::body::{self, AccountBody};
use crate::{
    args::DataArgs,
    data::{account_id, find_account, no_account, open_existing_store},
    output,
    shown::Amount,
};

#[derive(Serialize)]
struct CreditBody {
    reference: String,
    credits: Amount,
    already_credited: bool,
    #[serde(flatten)]
    account: AccountBody,
}

/// Books a purchase, once for each reference.
pub(super) async fn credit(
    account: &str,
    credits: Credits,
    reference: &str,
    data: &DataArgs,
) -> anyhow::Result<()> {
    if credits == Credits::ZERO {
        bail!("a purchase must be of more than 0 credits");
    }
    let store = open_existing_store(&data.location).await?;
    let id = account_id(account)?;
    let already_credited = match store.accounts().credit(&id, credits, reference).await? {
        PurchaseOutcome::Credited => false,
        PurchaseOutcome::AlreadyCredited => true,
        PurchaseOutcome::NoSuchAccount => bail!(no_account(account)),
        PurchaseOutcome::ReferenceTaken => bail!(
            "the reference {reference:?} was credited before, to another account or with another amount; nothing changed"
        ),
    };
    let account = find_account(&store, &id).await?;
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
    body::print(&account, false)
}

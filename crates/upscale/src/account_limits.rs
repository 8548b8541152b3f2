//! `upscale account limits|adjust|actions|payments`: what an operator changes on an account, with a reason that is kept.

use anyhow::{Context, bail};
use serde::Serialize;
use upscale_core::{Credits, OwnLimits, limits::NAME_CHARS_MAX, random_token};
use upscale_store::{
    AdjustOutcome, OnBehalf, OperatorAction, PaymentFilter, PaymentRecord, PaymentState,
};

use crate::{
    account::{AccountBody, find, print_account},
    args::{ActionArgs, DataArgs, LimitArgs, OneLimit},
    data::{account_id, no_account, open_existing_store},
    output,
    shown::{Amount, time},
};

/// Who and why; without a name, this machine's user.
pub(crate) fn on_behalf(reason: &str, operator: Option<&str>) -> OnBehalf {
    let user = || {
        std::env::var("USER")
            .ok()
            .filter(|user| !user.trim().is_empty())
    };
    let operator = operator.map(str::to_owned).or_else(user);
    let operator = operator.unwrap_or_else(|| "the command line".to_owned());
    OnBehalf {
        operator: operator.chars().take(NAME_CHARS_MAX).collect(),
        reason: reason.to_owned(),
    }
}

/// Shows or sets.
pub(crate) async fn limits(
    account: &str,
    set: &LimitArgs,
    reason: Option<&str>,
    operator: Option<&str>,
    data: &DataArgs,
) -> anyhow::Result<()> {
    let store = open_existing_store(&data.place).await?;
    let mut account = find(&store, &account_id(account)?).await?;
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
        let reason = reason.context("--reason must say why: it is kept with the change")?;
        let changed = store
            .set_limits(&account.id, own, &on_behalf(reason, operator))
            .await?;
        account = changed.with_context(|| no_account(account.id.as_str()))?;
    }
    if data.json {
        return print_account(&account, true);
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
    output::table(&["LIMIT", "IS", "WHICH IS"], &rows)
}

#[derive(Serialize)]
struct AdjustBody {
    reference: String,
    credits: Amount,
    already_adjusted: bool,
    #[serde(flatten)]
    account: AccountBody,
}

/// Gives or takes credits.
pub(crate) async fn adjust(
    account: &str,
    credits: Credits,
    reference: Option<&str>,
    action: &ActionArgs,
    data: &DataArgs,
) -> anyhow::Result<()> {
    let store = open_existing_store(&data.place).await?;
    let id = account_id(account)?;
    let reference = match reference {
        Some(reference) => reference.to_owned(),
        None => format!("adj_{}", random_token()?),
    };
    let by = on_behalf(&action.reason, action.operator.as_deref());
    let already_adjusted = match store.adjust_account(&id, credits, &reference, &by).await? {
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
    let account = find(&store, &id).await?;
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
    print_account(&account, false)
}

#[derive(Serialize)]
struct ActionBody {
    sequence: i64,
    at: String,
    account: String,
    operator: String,
    action: &'static str,
    detail: String,
    reason: String,
}

impl From<&OperatorAction> for ActionBody {
    fn from(action: &OperatorAction) -> Self {
        Self {
            sequence: action.sequence,
            at: time(action.at),
            account: action.account_id.to_string(),
            operator: action.operator.clone(),
            action: action.action.as_str(),
            detail: action.detail.clone(),
            reason: action.reason.clone(),
        }
    }
}

/// What operators did.
pub(crate) async fn actions(
    account: Option<&str>,
    limit: u32,
    data: &DataArgs,
) -> anyhow::Result<()> {
    let store = open_existing_store(&data.place).await?;
    let account = account.map(account_id).transpose()?;
    let found = store
        .list_actions(account.as_ref(), i64::MAX, limit)
        .await?;
    let actions: Vec<ActionBody> = found.iter().map(ActionBody::from).collect();
    if data.json {
        return output::json(&serde_json::json!({ "actions": actions }));
    }
    let row = |one: &ActionBody| {
        vec![
            one.at.clone(),
            one.account.clone(),
            one.operator.clone(),
            one.action.to_owned(),
            one.detail.clone(),
            one.reason.clone(),
        ]
    };
    let rows: Vec<Vec<String>> = actions.iter().map(row).collect();
    output::table(&["AT", "ACCOUNT", "OPERATOR", "DID", "WHAT", "WHY"], &rows)
}

#[derive(Serialize)]
struct PaymentBody {
    payment: String,
    state: &'static str,
    refusal: Option<String>,
    at: String,
    account: Option<String>,
    package: Option<String>,
    price: Option<i64>,
    currency: Option<String>,
    credits: Option<Amount>,
    taken_back: Amount,
    invoice: Option<String>,
}

impl From<&PaymentRecord> for PaymentBody {
    fn from(payment: &PaymentRecord) -> Self {
        let (state, refusal) = match &payment.state {
            PaymentState::Unknown => ("unknown", None),
            PaymentState::Credited => ("credited", None),
            PaymentState::Refused(reason) => ("refused", Some(reason.clone())),
        };
        Self {
            payment: payment.id.clone(),
            state,
            refusal,
            at: time(payment.first_at),
            account: payment.account_id.as_ref().map(ToString::to_string),
            package: payment.package.clone(),
            price: payment.price.as_ref().map(|(price, _)| *price),
            currency: payment
                .price
                .as_ref()
                .map(|(_, currency)| currency.to_string()),
            credits: payment.credits.map(Amount),
            taken_back: Amount(payment.taken_back),
            invoice: payment.invoice.clone(),
        }
    }
}

/// What was paid.
pub(crate) async fn payments(
    account: Option<&str>,
    refused: bool,
    limit: u32,
    data: &DataArgs,
) -> anyhow::Result<()> {
    let store = open_existing_store(&data.place).await?;
    let filter = match account {
        Some(account) => PaymentFilter::OfAccount(account_id(account)?),
        None if refused => PaymentFilter::Refused,
        None => PaymentFilter::All,
    };
    let found = store.list_payments(&filter, limit).await?;
    if data.json {
        let payments: Vec<PaymentBody> = found.iter().map(PaymentBody::from).collect();
        return output::json(&serde_json::json!({ "payments": payments }));
    }
    let row = |payment: &PaymentRecord| {
        let body = PaymentBody::from(payment);
        let price = payment.price.as_ref();
        vec![
            body.payment,
            body.state.to_owned(),
            body.at,
            body.account.unwrap_or_default(),
            price
                .map(|(price, currency)| currency.show(*price))
                .unwrap_or_default(),
            payment
                .credits
                .map(|credits| credits.to_string())
                .unwrap_or_default(),
            payment.taken_back.to_string(),
            body.invoice.unwrap_or_default(),
            body.refusal.or(body.package).unwrap_or_default(),
        ]
    };
    let names = [
        "PAYMENT",
        "STATE",
        "AT",
        "ACCOUNT",
        "PRICE",
        "CREDITS",
        "TAKEN BACK",
        "INVOICE",
        "PACKAGE OR REFUSAL",
    ];
    output::table(&names, &found.iter().map(row).collect::<Vec<_>>())
}

//! `upscale audit`: every invariant of money, tasks and result files, and an exit status that says the outcome.

use std::process::ExitCode;

use serde::Serialize;
use upscale_store::{AuditReport, Breach};

use crate::{
    args::DataArgs,
    data::{Data, block_on, open_existing_store},
    output,
};

#[derive(Serialize)]
struct AuditBody {
    ok: bool,
    checked: Vec<String>,
    breaches: Vec<BreachBody>,
}

#[derive(Serialize)]
struct BreachBody {
    invariant: String,
    account: Option<String>,
    detail: String,
}

impl From<&Breach> for BreachBody {
    fn from(breach: &Breach) -> Self {
        Self {
            invariant: breach.invariant.clone(),
            account: breach.account_id.as_ref().map(ToString::to_string),
            detail: breach.detail.clone(),
        }
    }
}

/// Audits; success only when nothing is wrong.
pub(crate) fn audit(args: &DataArgs) -> anyhow::Result<ExitCode> {
    let report = block_on(async {
        let data = Data::open_existing(&args.location).await?;
        Ok(data.store.audit(Some(&data.results)).await?)
    })?;
    conclude(&report, args.json)
}

/// As [`audit`], without a look at the result files.
pub(crate) fn check_rows(args: &DataArgs) -> anyhow::Result<ExitCode> {
    let report = block_on(async {
        let store = open_existing_store(&args.location).await?;
        Ok(store.audit(None).await?)
    })?;
    conclude(&report, args.json)
}

fn conclude(report: &AuditReport, as_json: bool) -> anyhow::Result<ExitCode> {
    let ok = report.breaches.is_empty();
    print(report, ok, as_json)?;
    Ok(if ok {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn print(report: &AuditReport, ok: bool, as_json: bool) -> anyhow::Result<()> {
    let breaches: Vec<BreachBody> = report.breaches.iter().map(BreachBody::from).collect();
    let checked = report.checked.clone();
    if as_json {
        return output::json(&AuditBody {
            ok,
            checked,
            breaches,
        });
    }
    let found = if ok {
        "all hold".to_owned()
    } else {
        format!("{} breaches:", breaches.len())
    };
    output::line(&format!(
        "{} invariants checked ({}): {found}",
        checked.len(),
        checked.join(" ")
    ))?;
    if ok {
        return Ok(());
    }
    let row = |breach: &BreachBody| {
        let account = breach.account.clone().unwrap_or_default();
        vec![breach.invariant.clone(), account, breach.detail.clone()]
    };
    output::table(
        &["RULE", "ACCOUNT", "DETAIL"],
        &breaches.iter().map(row).collect::<Vec<_>>(),
    )
}

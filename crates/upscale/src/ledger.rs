//! `upscale ledger …`: the transfers of an account, the sums of all, and whether the books balance.

use std::process::ExitCode;

use serde::Serialize;
use upscale_store::{LedgerKind, LedgerLine};

use crate::{
    args::{DataArgs, LedgerCommand},
    audit,
    data::{account_id, block_on, find_account, open_existing_store},
    output,
    shown::{Amount, time},
};

/// Runs one of the ledger commands.
pub(crate) fn ledger(command: &LedgerCommand) -> anyhow::Result<ExitCode> {
    match command {
        LedgerCommand::Check { data } => return audit::check_rows(data),
        LedgerCommand::List {
            account,
            limit,
            data,
        } => block_on(list(account, *limit, data))?,
        LedgerCommand::Sums { data } => block_on(sums(data))?,
    }
    Ok(ExitCode::SUCCESS)
}

#[derive(Serialize)]
struct LineBody {
    sequence: i64,
    at: String,
    kind: &'static str,
    amount: Amount,
    comes_in: bool,
    task: Option<String>,
    reference: Option<String>,
}

impl From<&LedgerLine> for LineBody {
    fn from(line: &LedgerLine) -> Self {
        Self {
            sequence: line.sequence,
            at: time(line.at),
            kind: line.kind.as_str(),
            amount: Amount(line.amount),
            comes_in: line.comes_in,
            task: line.task_id.as_ref().map(ToString::to_string),
            reference: line.external_reference.clone(),
        }
    }
}

/// An account's lines.
pub(crate) async fn list(account: &str, limit: u32, data: &DataArgs) -> anyhow::Result<()> {
    let store = open_existing_store(&data.location).await?;
    let id = find_account(&store, &account_id(account)?).await?.id;
    let lines: Vec<LineBody> = store
        .accounts()
        .list_ledger(&id, limit)
        .await?
        .iter()
        .map(LineBody::from)
        .collect();
    if data.json {
        return output::json(&serde_json::json!({ "account": id.as_str(), "lines": lines }));
    }
    let row = |line: &LineBody| {
        let about = line.task.clone().or_else(|| line.reference.clone());
        let direction = match (line.kind == LedgerKind::Adjustment.as_str(), line.comes_in) {
            (true, true) => "+",
            (true, false) => "-",
            (false, _) => "",
        };
        vec![
            line.sequence.to_string(),
            line.at.clone(),
            line.kind.to_owned(),
            format!("{direction}{}", line.amount.0),
            about.unwrap_or_default(),
        ]
    };
    let rows: Vec<Vec<String>> = lines.iter().map(row).collect();
    output::table(
        &["LINE", "AT", "KIND", "CREDITS", "TASK OR REFERENCE"],
        &rows,
    )
}

#[derive(Serialize)]
struct SumBody {
    kind: &'static str,
    from: &'static str,
    to: &'static str,
    transfers: u64,
    credits: Amount,
}

async fn sums(data: &DataArgs) -> anyhow::Result<()> {
    let store = open_existing_store(&data.location).await?;
    let sums: Vec<SumBody> = store
        .operator()
        .sum_ledger()
        .await?
        .into_iter()
        .map(|sum| SumBody {
            kind: sum.kind.as_str(),
            from: sum.debit.as_str(),
            to: sum.credit.as_str(),
            transfers: sum.transfers,
            credits: Amount(sum.amount),
        })
        .collect();
    if data.json {
        return output::json(&serde_json::json!({ "sums": sums }));
    }
    let row = |sum: &SumBody| {
        vec![
            sum.kind.to_owned(),
            sum.from.to_owned(),
            sum.to.to_owned(),
            sum.transfers.to_string(),
            sum.credits.0.to_string(),
        ]
    };
    let rows: Vec<Vec<String>> = sums.iter().map(row).collect();
    output::table(&["KIND", "FROM", "TO", "TRANSFERS", "CREDITS"], &rows)
}

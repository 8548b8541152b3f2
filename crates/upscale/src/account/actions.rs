//! `upscale account actions`: what operators did, and why.

use serde::Serialize;
use upscale_store::OperatorAction;

use crate::{
    args::DataArgs,
    data::{account_id, open_existing_store},
    output,
    shown::time,
};

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
pub(super) async fn actions(
    account: Option<&str>,
    limit: u32,
    data: &DataArgs,
) -> anyhow::Result<()> {
    let store = open_existing_store(&data.location).await?;
    let account = account.map(account_id).transpose()?;
    let found = store
        .operator()
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
    output::table(
        &["AT", "ACCOUNT", "OPERATOR", "ACTION", "DETAIL", "REASON"],
        &rows,
    )
}

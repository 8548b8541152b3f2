//! The audit trail: what operators did, from the console and by command, who and why.

use askama::Template;
use axum::{extract::State, http::StatusCode, response::Response};
use serde::Deserialize;
use upscale_core::AccountId;

use super::{rows::ActionRow, state::AdminState, visitor::Operator};
use crate::pages::{
    error::ConsoleError,
    listing::{Page, asked_for},
    page::{Layout, show},
    query::{Before, PageQuery, read},
};

/// Lines of one page.
const LINES_A_PAGE: usize = 50;

/// Whose account.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Wanted {
    #[serde(deserialize_with = "read")]
    account: Option<AccountId>,
}

#[derive(Template)]
#[template(path = "admin/actions.html")]
struct ActionsPage {
    layout: Layout,
    account: Option<String>,
    actions: Vec<ActionRow>,
    older: Option<i64>,
}

/// `GET /actions`.
pub(crate) async fn list(
    State(state): State<AdminState>,
    Operator(visitor): Operator,
    PageQuery(Wanted { account }): PageQuery<Wanted>,
    PageQuery(before): PageQuery<Before>,
) -> Result<Response, ConsoleError> {
    let found = state
        .api
        .store
        .operator()
        .list_actions(account.as_ref(), before.line(), asked_for(LINES_A_PAGE))
        .await?;
    let found = Page::of(found, LINES_A_PAGE);
    let page = ActionsPage {
        layout: visitor.layout("/actions", "Audit trail"),
        account: account.map(|account| account.to_string()),
        older: found.older(|action| action.sequence),
        actions: found.items.iter().map(ActionRow::of).collect(),
    };
    Ok(show(StatusCode::OK, &page))
}

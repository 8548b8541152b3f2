//! The audit trail: what operators did, from the console and by command, who and why.

use askama::Template;
use axum::{
    extract::{RawQuery, State},
    http::StatusCode,
    response::Response,
};
use upscale_core::AccountId;

use super::{rows::ActionRow, state::AdminState, visitor::Operator};
use crate::pages::{
    error::ConsoleError,
    form::Fields,
    listing::{Page, asked_for},
    page::{Layout, show},
};

/// Lines of one page.
const LINES_A_PAGE: usize = 50;

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
    RawQuery(query): RawQuery,
) -> Result<Response, ConsoleError> {
    let query = Fields::parse(query.unwrap_or_default().as_bytes());
    let account = AccountId::parse(query.get("account"));
    let before = query.get("before").parse().unwrap_or(i64::MAX);
    let found = state
        .api
        .store
        .list_actions(account.as_ref(), before, asked_for(LINES_A_PAGE))
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

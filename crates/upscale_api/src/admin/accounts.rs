//! Accounts, newest first, found by what is known of them.

use askama::Template;
use axum::{extract::State, http::StatusCode, response::Response};
use serde::Deserialize;
use upscale_core::Credits;
use upscale_store::{Account, AccountCursor};

use super::{state::AdminState, visitor::Operator};
use crate::pages::{
    error::ConsoleError,
    listing::{Page, asked_for, cursor},
    page::{Layout, show},
    query::{PageQuery, read},
    shown::Moment,
};

/// Accounts of one page.
const ACCOUNTS_A_PAGE: usize = 50;

/// What is known of them, and from which on.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Wanted {
    q: String,
    #[serde(deserialize_with = "read")]
    after: Option<AccountCursor>,
}

#[derive(Template)]
#[template(path = "admin/accounts.html")]
struct AccountsPage {
    layout: Layout,
    searched: String,
    /// For the next page's address.
    searched_encoded: String,
    accounts: Vec<Row>,
    older: Option<String>,
}

struct Row {
    id: String,
    name: String,
    created: Moment,
    available: Credits,
    reserved: Credits,
    charged: Credits,
    active: u32,
    is_open: bool,
    is_stopped: bool,
    has_own_limits: bool,
}

impl Row {
    fn of(account: &Account) -> Self {
        Self {
            id: account.id.to_string(),
            name: account.name.clone(),
            created: Moment::of(account.created_at),
            available: account.available,
            reserved: account.reserved,
            charged: account.charged,
            active: account.active_tasks,
            is_open: account.activated_at.is_some(),
            is_stopped: account.stopped,
            has_own_limits: account.own_limits != upscale_core::OwnLimits::default(),
        }
    }
}

/// `GET /accounts`.
pub(crate) async fn list(
    State(state): State<AdminState>,
    Operator(visitor): Operator,
    PageQuery(Wanted { q, after }): PageQuery<Wanted>,
) -> Result<Response, ConsoleError> {
    let found = state
        .api
        .store
        .accounts()
        .search(&q, after.as_ref(), asked_for(ACCOUNTS_A_PAGE))
        .await?;
    let found = Page::of(found, ACCOUNTS_A_PAGE);
    let page = AccountsPage {
        layout: visitor.layout("/accounts", "Accounts"),
        searched_encoded: url::form_urlencoded::byte_serialize(q.as_bytes()).collect(),
        searched: q,
        accounts: found.items.iter().map(Row::of).collect(),
        older: found.older(|account| cursor(account.created_at, account.id)),
    };
    Ok(show(StatusCode::OK, &page))
}

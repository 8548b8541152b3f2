//! The keys of one account, page by page.

use askama::Template;
use axum::{
    extract::{Path, State},
    http::StatusCode,
    response::Response,
};
use upscale_core::{AccountId, KeyId};
use upscale_store::{Account, KeyRecord};

use super::{
    account::{LINES_A_PAGE, find},
    state::AdminState,
    visitor::Operator,
};
use crate::pages::{
    error::ConsoleError,
    listing::{Page, asked_for, key_cursor},
    page::{Layout, show},
    query::{KeysAfter, PageQuery},
    rows::KeyRow,
};

#[derive(Template)]
#[template(path = "admin/keys.html")]
struct KeysPage {
    layout: Layout,
    account: Account,
    keys: Vec<KeyRow>,
    older: Option<String>,
}

/// `GET /accounts/{id}/keys`: those that work first, then the revoked, each the newest first.
pub(crate) async fn list(
    State(state): State<AdminState>,
    Operator(visitor): Operator,
    Path(id): Path<String>,
    PageQuery(wanted): PageQuery<KeysAfter>,
) -> Result<Response, ConsoleError> {
    let account = find(&state, &id).await?;
    let accounts = state.api.store.accounts();
    let found = accounts.list_keys(&account.id, wanted.after.as_ref(), asked_for(LINES_A_PAGE));
    let found = Page::of(found.await?, LINES_A_PAGE);
    let now = state.api.store.now();
    let page = KeysPage {
        layout: visitor.layout("/accounts", "Keys of an account"),
        older: found.older(|key| key_cursor(&key.cursor())),
        keys: found.items.iter().map(|key| KeyRow::of(key, now)).collect(),
        account,
    };
    Ok(show(StatusCode::OK, &page))
}

/// One key of this account.
pub(crate) async fn find_key(
    state: &AdminState,
    account: &AccountId,
    key: &str,
) -> Result<KeyRecord, ConsoleError> {
    let key = KeyId::parse(key).ok_or(ConsoleError::NotFound)?;
    let found = state.api.store.accounts().find_key(account, &key).await?;
    found.ok_or(ConsoleError::NotFound)
}

//! Who gets in: a key of an account that is revoked, a user of it who needs a new password.

use askama::Template;
use axum::{
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse, Redirect, Response},
};
use upscale_core::SecretToken;
use upscale_store::{Account, KeyRecord, User};

use super::{
    account::find,
    change::{Change, Form},
    keys::find_key,
    state::AdminState,
    visitor::{Operator, Visitor},
};
use crate::pages::{
    error::ConsoleError,
    page::{Layout, show},
};

/// A link works this long, as the command's.
const LINK_SECONDS: i64 = 86_400;

#[derive(Template)]
#[template(path = "admin/key.html")]
struct KeyPage {
    layout: Layout,
    may_change: bool,
    account: Account,
    key: KeyRecord,
    form: Form,
}

#[derive(Template)]
#[template(path = "admin/user.html")]
struct UserPage {
    layout: Layout,
    may_change: bool,
    has_console: bool,
    account: Account,
    user: User,
    /// The secret of the link that this form would make: the same form makes the same link.
    secret: String,
    form: Form,
    link: Option<String>,
}

/// `GET /accounts/{id}/keys/{key}`.
pub(crate) async fn key_page(
    State(state): State<AdminState>,
    Operator(visitor): Operator,
    Path((id, key)): Path<(String, String)>,
) -> Result<Response, ConsoleError> {
    let account = find(&state, &id).await?;
    let key = find_key(&state, &account.id, &key).await?;
    let page = page_of_key(&visitor, account, key, Form::empty()?);
    Ok(show(StatusCode::OK, &page))
}

/// `POST /accounts/{id}/keys/{key}`: revokes it.
pub(crate) async fn revoke(
    State(state): State<AdminState>,
    Path((id, key)): Path<(String, String)>,
    change: Change,
) -> Result<Response, ConsoleError> {
    let account = find(&state, &id).await?;
    let key = find_key(&state, &account.id, &key).await?;
    let mut form = Form::of(&change.fields)?;
    let Some(by) = change.on_behalf(&mut form) else {
        let page = page_of_key(&change.visitor, account, key, form);
        return Ok(show(StatusCode::UNPROCESSABLE_ENTITY, &page));
    };
    state.api.store.operator().revoke_key(&key.id, &by).await?;
    Ok(Redirect::to(&format!("/accounts/{}?done=revoked", account.id)).into_response())
}

fn page_of_key(visitor: &Visitor, account: Account, key: KeyRecord, form: Form) -> KeyPage {
    KeyPage {
        layout: visitor.layout("/accounts", "A key"),
        may_change: visitor.operator().is_some(),
        account,
        key,
        form,
    }
}

/// `GET /accounts/{id}/users/{user}`.
pub(crate) async fn user_page(
    State(state): State<AdminState>,
    Operator(visitor): Operator,
    Path((id, user)): Path<(String, String)>,
) -> Result<Response, ConsoleError> {
    let (account, user) = find_user(&state, &id, &user).await?;
    let secret = SecretToken::random()?;
    let page = page_of_user(&state, &visitor, account, user, secret, Form::empty()?);
    Ok(show(StatusCode::OK, &page))
}

/// `POST /accounts/{id}/users/{user}`: a link that sets a new password, shown this once.
pub(crate) async fn reset(
    State(state): State<AdminState>,
    Path((id, user)): Path<(String, String)>,
    change: Change,
) -> Result<Response, ConsoleError> {
    let (account, user) = find_user(&state, &id, &user).await?;
    let mut form = Form::of(&change.fields)?;
    let secret = SecretToken::parse(change.fields.get("secret"));
    let secret = secret.map_or_else(SecretToken::random, Ok)?;
    let (Some(by), Some(console)) = (change.on_behalf(&mut form), &state.console_url) else {
        let page = page_of_user(&state, &change.visitor, account, user, secret, form);
        return Ok(show(StatusCode::UNPROCESSABLE_ENTITY, &page));
    };
    let link = format!("{console}/reset/{}", secret.reveal());
    let (store, hash) = (&state.api.store, secret.hash());
    let made = store
        .operator()
        .reset_password(&user.id, &hash, LINK_SECONDS, &by);
    made.await?.ok_or(ConsoleError::NotFound)?;
    let new = SecretToken::random()?;
    let mut page = page_of_user(&state, &change.visitor, account, user, new, Form::empty()?);
    page.link = Some(link);
    Ok(show(StatusCode::OK, &page))
}

async fn find_user(
    state: &AdminState,
    account: &str,
    user: &str,
) -> Result<(Account, User), ConsoleError> {
    let account = find(state, account).await?;
    let users = state.api.store.users().list_of(&account.id).await?;
    let found = users.into_iter().find(|found| found.id.as_str() == user);
    Ok((account, found.ok_or(ConsoleError::NotFound)?))
}

fn page_of_user(
    state: &AdminState,
    visitor: &Visitor,
    account: Account,
    user: User,
    secret: SecretToken,
    form: Form,
) -> UserPage {
    UserPage {
        layout: visitor.layout("/accounts", "A user"),
        may_change: visitor.operator().is_some(),
        has_console: state.console_url.is_some(),
        account,
        user,
        secret: secret.reveal().to_owned(),
        form,
        link: None,
    }
}

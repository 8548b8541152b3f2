//! API keys of the account. A secret is shown by the very answer that made it, and never again.

use askama::Template;
use axum::{
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse, Redirect, Response},
};
use upscale_core::{ApiKey, KeyId, Permission, limits::NAME_CHARS_MAX};
use upscale_store::KeyRecord;

use super::{
    error::ConsoleError,
    form::SignedForm,
    page::{Layout, show},
    session::SignedIn,
    state::ConsoleState,
};
use crate::pages::{
    query::{Done, PageQuery},
    rows::KeyRow,
};

/// Keys that an account may have at a time through these pages; revoked ones do not count.
const LIVE_KEYS_MAX: usize = 50;
/// How long a rotated key may still work: now, an hour, a day, a week.
const OVERLAPS: [(i64, &str); 4] = [
    (0, "stops at once"),
    (3_600, "works for another hour"),
    (86_400, "works for another day"),
    (604_800, "works for another week"),
];

#[derive(Template)]
#[template(path = "console/keys.html")]
struct KeysPage {
    layout: Layout,
    keys: Vec<KeyRow>,
    overlaps: [(i64, &'static str); 4],
    is_open: bool,
    name: String,
    permission: String,
    name_problem: Option<String>,
    permission_problem: Option<String>,
    secret: Option<String>,
}

#[derive(Template)]
#[template(path = "console/key_revoke.html")]
struct RevokePage {
    layout: Layout,
    key: KeyRow,
}

/// `GET /keys`.
pub(crate) async fn list(
    State(state): State<ConsoleState>,
    who: SignedIn,
    PageQuery(done): PageQuery<Done>,
) -> Result<Response, ConsoleError> {
    let mut page = page(&state, &who).await?;
    page.layout = page.layout.with_notice(&done);
    Ok(show(StatusCode::OK, &page))
}

/// `POST /keys`.
pub(crate) async fn create(
    State(state): State<ConsoleState>,
    form: SignedForm,
) -> Result<Response, ConsoleError> {
    let mut page = page(&state, &form.who).await?;
    page.name = form.fields.get("name").trim().to_owned();
    page.permission = form.fields.get("permission").to_owned();
    page.name_problem = name_problem(&page);
    let permission = Permission::parse(&page.permission);
    let (None, Some(permission)) = (&page.name_problem, permission) else {
        if permission.is_none() {
            page.permission_problem = Some("Choose what the key may do.".to_owned());
        }
        return Ok(show(StatusCode::UNPROCESSABLE_ENTITY, &page));
    };
    let account = &form.who.session.user.account_id;
    let made = state
        .api
        .store
        .accounts()
        .create_key(account, permission, &page.name);
    let (_, secret) = made.await?.ok_or(ConsoleError::NotFound)?;
    show_secret(&state, &form.who, &secret).await
}

fn name_problem(page: &KeysPage) -> Option<String> {
    let chars = page.name.chars().count();
    if chars > NAME_CHARS_MAX || page.name.chars().any(char::is_control) {
        return Some(format!(
            "A name is one line of up to {NAME_CHARS_MAX} characters; this one has {chars}."
        ));
    }
    let live = page.keys.iter().filter(|key| key.is_live).count();
    (live >= LIVE_KEYS_MAX)
        .then(|| format!("There are {live} keys that work already: revoke one first."))
}

/// `POST /keys/{id}/rotate`.
pub(crate) async fn rotate(
    State(state): State<ConsoleState>,
    Path(id): Path<String>,
    form: SignedForm,
) -> Result<Response, ConsoleError> {
    let key = find(&state, &form.who, &id).await?;
    let seconds = form.fields.get("overlap").parse().ok();
    let offered = OVERLAPS
        .into_iter()
        .find(|(offered, _)| Some(*offered) == seconds);
    let (seconds, _) = offered.ok_or(ConsoleError::BadForm)?;
    let made = state
        .api
        .store
        .accounts()
        .rotate_key(&key.id, seconds)
        .await?;
    let (_, secret) = made.ok_or(ConsoleError::NotFound)?;
    show_secret(&state, &form.who, &secret).await
}

/// `GET /keys/{id}/revoke`: what it means, before it is done.
pub(crate) async fn confirm(
    State(state): State<ConsoleState>,
    who: SignedIn,
    Path(id): Path<String>,
) -> Result<Response, ConsoleError> {
    let key = find(&state, &who, &id).await?;
    let page = RevokePage {
        layout: Layout::new(&who.visitor, "/keys", "Revoke a key"),
        key: KeyRow::of(&key, state.api.store.now()),
    };
    Ok(show(StatusCode::OK, &page))
}

/// `POST /keys/{id}/revoke`.
pub(crate) async fn revoke(
    State(state): State<ConsoleState>,
    Path(id): Path<String>,
    form: SignedForm,
) -> Result<Response, ConsoleError> {
    let key = find(&state, &form.who, &id).await?;
    state.api.store.accounts().revoke_key(&key.id).await?;
    Ok(Redirect::to("/keys?done=revoked").into_response())
}

/// Only a key of this account; another's does not exist.
async fn find(state: &ConsoleState, who: &SignedIn, id: &str) -> Result<KeyRecord, ConsoleError> {
    let id = KeyId::parse(id).ok_or(ConsoleError::NotFound)?;
    let account = &who.session.user.account_id;
    let key = state.api.store.accounts().find_key(account, &id).await?;
    key.ok_or(ConsoleError::NotFound)
}

async fn show_secret(
    state: &ConsoleState,
    who: &SignedIn,
    secret: &ApiKey,
) -> Result<Response, ConsoleError> {
    let mut page = page(state, who).await?;
    page.secret = Some(secret.reveal().to_owned());
    Ok(show(StatusCode::CREATED, &page))
}

async fn page(state: &ConsoleState, who: &SignedIn) -> Result<KeysPage, ConsoleError> {
    let (store, account) = (&state.api.store, &who.session.user.account_id);
    let keys = store.accounts().list_keys(account).await?;
    let standing = store.accounts().find(account).await?;
    let now = store.now();
    let (mut live, revoked): (Vec<KeyRow>, Vec<KeyRow>) = keys
        .iter()
        .rev()
        .map(|key| KeyRow::of(key, now))
        .partition(|row| row.is_live);
    live.extend(revoked);
    Ok(KeysPage {
        layout: Layout::new(&who.visitor, "/keys", "Keys"),
        keys: live,
        overlaps: OVERLAPS,
        is_open: standing.is_some_and(|account| account.activated_at.is_some()),
        name: String::new(),
        permission: "all".to_owned(),
        name_problem: None,
        permission_problem: None,
        secret: None,
    })
}

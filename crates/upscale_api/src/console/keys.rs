//! API keys of the account. A secret is shown by the very answer that made it, and never again.

use askama::Template;
use axum::{
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse, Redirect, Response},
};
use upscale_core::{
    ApiKey, KeyId, Permission,
    limits::{LIVE_KEYS_MAX, NAME_CHARS_MAX},
};
use upscale_store::{KeyCursor, KeyOutcome, KeyRecord};

use super::{
    error::ConsoleError,
    form::SignedForm,
    page::{Layout, show},
    session::SignedIn,
    state::ConsoleState,
};
use crate::pages::{
    listing::{Page, asked_for, key_cursor},
    query::{Done, KeysAfter, PageQuery},
    rows::KeyRow,
};

/// Keys of one page.
const KEYS_A_PAGE: usize = 50;
/// Days that the use of a key is counted over.
const USE_DAYS: i64 = 30;
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
    /// Each with the tasks it ordered of late.
    keys: Vec<(KeyRow, u32)>,
    /// Where the next page begins.
    older: Option<String>,
    is_open: bool,
    name: String,
    permission: String,
    name_problem: Option<String>,
    permission_problem: Option<String>,
    secret: Option<String>,
}

#[derive(Template)]
#[template(path = "console/key_rotate.html")]
struct RotatePage {
    layout: Layout,
    key: KeyRow,
    overlaps: [(i64, &'static str); 4],
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
    PageQuery(wanted): PageQuery<KeysAfter>,
) -> Result<Response, ConsoleError> {
    let mut page = page(&state, &who, wanted.after.as_ref()).await?;
    page.layout = page.layout.with_notice(&done);
    Ok(show(StatusCode::OK, &page))
}

/// `POST /keys`.
pub(crate) async fn create(
    State(state): State<ConsoleState>,
    form: SignedForm,
) -> Result<Response, ConsoleError> {
    form.check_verified()?;
    let mut page = page(&state, &form.who, None).await?;
    page.name = form.fields.get("name").trim().to_owned();
    page.permission = form.fields.get("permission").to_owned();
    page.name_problem = name_problem(&page.name);
    let permission = Permission::parse(&page.permission);
    let (None, Some(permission)) = (&page.name_problem, permission) else {
        if permission.is_none() {
            page.permission_problem = Some("Choose permissions.".to_owned());
        }
        return Ok(show(StatusCode::UNPROCESSABLE_ENTITY, &page));
    };
    let account = &form.who.session.user.account_id;
    let made = state
        .api
        .store
        .accounts()
        .create_key(account, permission, &page.name)
        .await?;
    show_outcome(&state, page, &form.who, made).await
}

/// The new key with its secret, or why there is none.
async fn show_outcome(
    state: &ConsoleState,
    mut page: KeysPage,
    who: &SignedIn,
    outcome: KeyOutcome,
) -> Result<Response, ConsoleError> {
    match outcome {
        KeyOutcome::Made(key, secret) => {
            // A new password that came in between ended the session, and must have ended every key with it.
            if !who.is_still_signed_in(state).await? {
                state.api.store.accounts().revoke_key(&key.id).await?;
                return Err(ConsoleError::SignedOut);
            }
            show_secret(state, who, &secret).await
        }
        KeyOutcome::Unknown => Err(ConsoleError::NotFound),
        KeyOutcome::TooMany => {
            page.name_problem = Some(format!(
                "You already have {LIVE_KEYS_MAX} working keys. Revoke one first."
            ));
            Ok(show(StatusCode::UNPROCESSABLE_ENTITY, &page))
        }
    }
}

fn name_problem(name: &str) -> Option<String> {
    let chars = name.chars().count();
    let is_wrong = chars > NAME_CHARS_MAX || name.chars().any(char::is_control);
    is_wrong.then(|| {
        format!("A name is one line of up to {NAME_CHARS_MAX} characters; this one has {chars}.")
    })
}

/// `POST /keys/{id}/rotate`.
pub(crate) async fn rotate(
    State(state): State<ConsoleState>,
    Path(id): Path<String>,
    form: SignedForm,
) -> Result<Response, ConsoleError> {
    form.check_verified()?;
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
    let page = page(&state, &form.who, None).await?;
    show_outcome(&state, page, &form.who, made).await
}

/// `GET /keys/{id}/rotate`: how long the old one shall still work.
pub(crate) async fn rotate_page(
    State(state): State<ConsoleState>,
    who: SignedIn,
    Path(id): Path<String>,
) -> Result<Response, ConsoleError> {
    let key = find(&state, &who, &id).await?;
    let page = RotatePage {
        layout: Layout::new(&who.visitor, "/keys", "Rotate key"),
        key: KeyRow::of(&key, state.api.store.now()),
        overlaps: OVERLAPS,
    };
    Ok(show(StatusCode::OK, &page))
}

/// `GET /keys/{id}/revoke`: what it means, before it is done.
pub(crate) async fn confirm(
    State(state): State<ConsoleState>,
    who: SignedIn,
    Path(id): Path<String>,
) -> Result<Response, ConsoleError> {
    let key = find(&state, &who, &id).await?;
    let page = RevokePage {
        layout: Layout::new(&who.visitor, "/keys", "Revoke key"),
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
    let mut page = page(state, who, None).await?;
    page.secret = Some(secret.reveal().to_owned());
    Ok(show(StatusCode::CREATED, &page))
}

async fn page(
    state: &ConsoleState,
    who: &SignedIn,
    after: Option<&KeyCursor>,
) -> Result<KeysPage, ConsoleError> {
    let (accounts, account) = (state.api.store.accounts(), &who.session.user.account_id);
    let keys = accounts.list_keys(account, after, asked_for(KEYS_A_PAGE));
    let keys = Page::of(keys.await?, KEYS_A_PAGE);
    let standing = accounts.find(account).await?;
    let now = state.api.store.now();
    let counted = state.api.store.tasks();
    let counted = counted.count_by_key(account, now.utc_day() - USE_DAYS + 1);
    let counted = counted.await?;
    let uses = |key: &KeyRecord| {
        let found = counted.iter().find(|(id, _)| id == key.id.as_str());
        found.map_or(0, |(_, tasks)| *tasks)
    };
    Ok(KeysPage {
        layout: Layout::new(&who.visitor, "/keys", "Keys"),
        older: keys.older(|key| key_cursor(&key.cursor())),
        keys: keys
            .items
            .iter()
            .map(|key| (KeyRow::of(key, now), uses(key)))
            .collect(),
        is_open: standing.is_some_and(|account| account.activated_at.is_some()),
        name: String::new(),
        permission: "all".to_owned(),
        name_problem: None,
        permission_problem: None,
        secret: None,
    })
}

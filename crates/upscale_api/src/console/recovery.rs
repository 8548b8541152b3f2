//! Recovery codes: made with the second factor and whenever its user asks with the password, shown once, each good for one
//! sign-in without the authenticator.

use askama::Template;
use axum::{extract::State, http::StatusCode, response::Response};
use upscale_core::RecoveryCode;

use super::{
    error::ConsoleError,
    form::SignedForm,
    page::{Layout, show},
    password_again::ask_password,
    session::SignedIn,
    settings::SettingsPage,
    state::ConsoleState,
};

/// Codes of one user.
const CODES: usize = 8;

#[derive(Template)]
#[template(path = "console/recovery.html")]
struct RecoveryPage {
    layout: Layout,
    codes: Vec<String>,
}

/// New codes in place of the old, on the only page that ever shows them.
pub(super) async fn show_new_codes(
    state: &ConsoleState,
    who: &SignedIn,
) -> Result<Response, ConsoleError> {
    let codes = (0..CODES).map(|_| RecoveryCode::random());
    let codes = codes.collect::<Result<Vec<_>, _>>()?;
    let hashes: Vec<_> = codes.iter().map(RecoveryCode::hash).collect();
    let users = state.api.store.users();
    users
        .set_recovery_codes(&who.session.user.id, &hashes)
        .await?;
    let page = RecoveryPage {
        layout: Layout::new(&who.visitor, "/settings", "Recovery codes"),
        codes: codes.iter().map(RecoveryCode::reveal).collect(),
    };
    Ok(show(StatusCode::CREATED, &page))
}

/// `POST /settings/recovery-codes`: with the password, so that a borrowed browser cannot.
pub(crate) async fn renew(
    State(state): State<ConsoleState>,
    form: SignedForm,
) -> Result<Response, ConsoleError> {
    let user = &form.who.session.user;
    if user.totp_secret.is_none() {
        return Err(ConsoleError::NotFound);
    }
    let mut page = SettingsPage::new(&state, &form.who).await?;
    if let Some(refused) = ask_password(&state, &form).await? {
        page.codes_problem = Some(refused.sentence.clone());
        return Ok(refused.answer(&page));
    }
    show_new_codes(&state, &form.who).await
}

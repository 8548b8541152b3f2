//! The user's own affairs: another password, a second factor, signing out everywhere.

use askama::Template;
use axum::{
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Redirect, Response},
};

use super::{
    error::ConsoleError,
    form::SignedForm,
    mail::{Change, tell_change},
    page::{Layout, show},
    password::check_password,
    session::SignedIn,
    state::ConsoleState,
    tries::{count_tries, refuse_for, too_many},
};
use crate::pages::query::{Done, PageQuery};

#[derive(Template)]
#[template(path = "console/settings.html")]
pub(crate) struct SettingsPage {
    layout: Layout,
    email: String,
    account: String,
    current_problem: Option<String>,
    new_problem: Option<String>,
    has_second_factor: bool,
    pub(crate) off_problem: Option<String>,
}

impl SettingsPage {
    pub(crate) fn new(who: &SignedIn) -> Self {
        let user = &who.session.user;
        Self {
            layout: Layout::new(&who.visitor, "/settings", "Settings"),
            email: user.email.to_string(),
            account: user.account_id.to_string(),
            current_problem: None,
            new_problem: None,
            has_second_factor: user.totp_secret.is_some(),
            off_problem: None,
        }
    }
}

/// `GET /settings`.
pub(crate) async fn settings(who: SignedIn, PageQuery(done): PageQuery<Done>) -> Response {
    let mut page = SettingsPage::new(&who);
    page.layout = page.layout.with_notice(&done);
    show(StatusCode::OK, &page)
}

/// `POST /settings/password`: every other session ends, and this one goes on under a new cookie.
pub(crate) async fn change_password(
    State(state): State<ConsoleState>,
    form: SignedForm,
) -> Result<Response, ConsoleError> {
    let (user, visitor) = (&form.who.session.user, &form.who.visitor);
    let mut page = SettingsPage::new(&form.who);
    if let Some(seconds) = count_tries(&state, visitor, user.email.as_str()).await? {
        page.current_problem = Some(too_many(seconds));
        return Ok(refuse_for(seconds, &page));
    }
    let (current, new) = (form.fields.get("current"), form.fields.get("new"));
    page.new_problem = check_password(new).err().map(|error| error.to_string());
    if !state
        .passwords
        .is_right(current, user.password_hash.as_deref())
        .await?
    {
        page.current_problem = Some("This is not the present password.".to_owned());
    }
    if page.current_problem.is_some() || page.new_problem.is_some() {
        return Ok(show(StatusCode::UNPROCESSABLE_ENTITY, &page));
    }
    let hash = state.passwords.hash(new).await?;
    state
        .api
        .store
        .users()
        .set_password(&user.id, &hash)
        .await?;
    tell_change(&state, &user.email, Change::Password);
    let cookies = visitor.sign_in(&state, &user.id).await?;
    Ok((cookies, Redirect::to("/settings?done=password")).into_response())
}

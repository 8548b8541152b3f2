//! The user's own affairs: another password or address, a second factor and its codes, the browsers that are signed in, all
//! that is kept of them, the end.

use askama::Template;
use axum::{
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse, Redirect, Response},
};
use upscale_core::Credits;
use upscale_store::{SessionRecord, User};

use super::{
    error::ConsoleError,
    form::SignedForm,
    mail::{Change, tell_change},
    page::{Layout, show},
    password::check_password,
    session::SignedIn,
    shown::{Moment, ago, grouped},
    state::ConsoleState,
    tries::{count_signed_in, refuse_for, too_many},
};
use crate::pages::query::{Done, PageQuery};

/// Newest sessions that the page lists.
const SESSIONS_SHOWN: u32 = 50;

#[derive(Template)]
#[template(path = "console/settings.html")]
pub(crate) struct SettingsPage {
    layout: Layout,
    email: String,
    account: String,
    current_problem: Option<String>,
    new_problem: Option<String>,
    has_second_factor: bool,
    sessions: Vec<SessionRow>,
    pub(crate) off_problem: Option<String>,
    /// Recovery codes that are left.
    codes: u32,
    pub(crate) codes_problem: Option<String>,
    /// Whether links can be mailed, without which no address is proved.
    has_mail: bool,
    pub(crate) change: EmailForm,
    pub(crate) leave: LeaveForm,
}

/// The form of another address, as it was sent.
#[derive(Default)]
pub(crate) struct EmailForm {
    pub(crate) email: String,
    pub(crate) email_problem: Option<String>,
    pub(crate) password_problem: Option<String>,
}

/// The form that deletes the account, and what its user should know before.
pub(crate) struct LeaveForm {
    /// Credits that would be lost, reserved ones included; none where others sign in for the account.
    credits: Option<String>,
    /// Whether others sign in for the account, which stays then.
    has_others: bool,
    result_hours: i64,
    record_days: i64,
    pub(crate) confirm_problem: Option<String>,
    pub(crate) password_problem: Option<String>,
}

impl LeaveForm {
    async fn new(state: &ConsoleState, user: &User) -> Result<Self, ConsoleError> {
        let store = &state.api.store;
        let has_others = store.users().list_of(&user.account_id).await?.len() > 1;
        let account = store.accounts().find(&user.account_id).await?;
        let left = account.map_or(0, |account| {
            account.available.thousandths() + account.reserved.thousandths()
        });
        let is_lost = left > 0 && !has_others;
        let options = store.options();
        Ok(Self {
            credits: is_lost.then(|| grouped(Credits::from_thousandths(left))),
            has_others,
            result_hours: options.result_retention_hours,
            record_days: options.record_retention_days,
            confirm_problem: None,
            password_problem: None,
        })
    }
}

/// One browser that is signed in.
struct SessionRow {
    name: String,
    browser: String,
    began: Moment,
    ago: String,
    ends: Moment,
    is_this: bool,
}

impl SettingsPage {
    pub(crate) async fn new(state: &ConsoleState, who: &SignedIn) -> Result<Self, ConsoleError> {
        let user = &who.session.user;
        let (users, now) = (state.api.store.users(), state.api.store.now());
        let sessions = users.list_sessions(&user.id, SESSIONS_SHOWN).await?;
        let this = who.visitor.session_name();
        let row = |session: &SessionRecord| SessionRow {
            name: session.name.clone(),
            browser: browser(&session.agent),
            began: Moment::of(session.created_at),
            ago: ago(session.created_at, now),
            ends: Moment::of(session.expires_at),
            is_this: session.name == this,
        };
        Ok(Self {
            sessions: sessions.iter().map(row).collect(),
            layout: Layout::new(&who.visitor, "/settings", "Settings"),
            email: user.email.to_string(),
            account: user.account_id.to_string(),
            current_problem: None,
            new_problem: None,
            has_second_factor: user.totp_secret.is_some(),
            off_problem: None,
            codes: users.count_recovery_codes(&user.id).await?,
            codes_problem: None,
            has_mail: state.link_mailer().is_some(),
            change: EmailForm::default(),
            leave: LeaveForm::new(state, user).await?,
        })
    }
}

/// `Firefox on Linux`: enough to know one's own by; what a browser calls itself proves nothing.
fn browser(agent: &str) -> String {
    let first = |known: &[(&str, &'static str)]| {
        let found = known.iter().find(|(sign, _)| agent.contains(sign));
        found.map(|(_, name)| *name)
    };
    // Every other one calls itself Safari, and Edge and Opera Chrome as well.
    let name = first(&[
        ("Edg/", "Edge"),
        ("OPR/", "Opera"),
        ("Firefox/", "Firefox"),
        ("Chrome/", "Chrome"),
        ("Safari/", "Safari"),
    ]);
    let system = first(&[
        ("Android", "Android"),
        ("iPhone", "iPhone"),
        ("iPad", "iPad"),
        ("Windows", "Windows"),
        ("Mac OS X", "macOS"),
        ("Linux", "Linux"),
    ]);
    match (name, system) {
        (Some(name), Some(system)) => format!("{name} on {system}"),
        (Some(name), None) => name.to_owned(),
        _ => "Unknown browser".to_owned(),
    }
}

/// `POST /settings/sessions/{name}/end`: one browser of this user, wherever it is.
pub(crate) async fn end_session(
    State(state): State<ConsoleState>,
    Path(name): Path<String>,
    form: SignedForm,
) -> Result<Response, ConsoleError> {
    let user = &form.who.session.user.id;
    let ended = state.api.store.users().end_session_named(user, &name);
    if !ended.await? {
        return Err(ConsoleError::NotFound);
    }
    Ok(Redirect::to("/settings?done=session-ended").into_response())
}

/// `GET /settings`.
pub(crate) async fn settings(
    State(state): State<ConsoleState>,
    who: SignedIn,
    PageQuery(done): PageQuery<Done>,
) -> Result<Response, ConsoleError> {
    let mut page = SettingsPage::new(&state, &who).await?;
    page.layout = page.layout.with_notice(&done);
    Ok(show(StatusCode::OK, &page))
}

/// `POST /settings/password`: every other session ends, and this one goes on under a new cookie.
pub(crate) async fn change_password(
    State(state): State<ConsoleState>,
    form: SignedForm,
) -> Result<Response, ConsoleError> {
    let (user, visitor) = (&form.who.session.user, &form.who.visitor);
    let mut page = SettingsPage::new(&state, &form.who).await?;
    if let Some(seconds) = count_signed_in(&state, &form.who).await? {
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
        page.current_problem = Some("Incorrect password.".to_owned());
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
    let cookies = visitor.sign_in(&state, user).await?;
    Ok((cookies, Redirect::to("/settings?done=password")).into_response())
}

#[cfg(test)]
mod tests {
    use super::browser;

    #[test]
    fn browsers_are_told_apart_by_what_they_call_themselves() {
        for (agent, expected) in [
            (
                "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
                "Firefox on Linux",
            ),
            (
                "Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/140.0 Safari/537.36 Edg/140.0",
                "Edge on Windows",
            ),
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Version/18.0 Safari/604.1",
                "Safari on iPhone",
            ),
            ("curl/8.0", "Unknown browser"),
            ("", "Unknown browser"),
        ] {
            assert_eq!(browser(agent), expected);
        }
    }
}

//! Links that set a new password: mailed to who asks, or made by the operator's command; used once, within their time.

use askama::Template;
use axum::{
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse, Redirect, Response},
};
use upscale_core::{Email, SecretToken};
use upscale_store::User;

use super::{
    error::ConsoleError,
    form::Form,
    mail::{Change, send_reset, tell_change},
    page::{Layout, show},
    password::check_password,
    session::Visitor,
    sign_in::Problem,
    state::ConsoleState,
    tries::{count_address, refuse_for, too_many},
    verify::may_mail,
};

#[derive(Template)]
#[template(path = "console/reset_ask.html")]
struct AskPage {
    layout: Layout,
    /// Whether links are mailed; else the operator makes them.
    by_mail: bool,
    email: String,
    /// The form was sent, and whatever follows from it follows.
    is_asked: bool,
    problem: Problem,
}

#[derive(Template)]
#[template(path = "console/reset.html")]
struct ResetPage {
    layout: Layout,
    token: String,
    email: String,
    /// No one has proved the address before: the account may have been another's.
    is_unproved: bool,
    problem: Problem,
}

/// `GET /reset`: how to get a link.
pub(crate) async fn ask_page(State(state): State<ConsoleState>, visitor: Visitor) -> Response {
    show(StatusCode::OK, &AskPage::new(&state, &visitor, ""))
}

/// `POST /reset`: the same answer whether anyone signs in with the address or not.
pub(crate) async fn ask(
    State(state): State<ConsoleState>,
    form: Form,
) -> Result<Response, ConsoleError> {
    let (mailer, url) = state.link_mailer().ok_or(ConsoleError::NotFound)?;
    let typed = form.fields.get("email");
    let mut page = AskPage::new(&state, &form.visitor, typed);
    if let Some(seconds) = count_address(&state, &form.visitor).await? {
        page.problem = Problem::form(too_many(seconds));
        return Ok(refuse_for(seconds, &page));
    }
    let email = match Email::parse(typed) {
        Ok(email) => email,
        Err(error) => {
            page.problem.email = Some(error.to_string());
            return Ok(show(StatusCode::UNPROCESSABLE_ENTITY, &page));
        }
    };
    // Counted for every address alike. Past the limit nothing is sent and nothing else is said: the box that is
    // flooded may be of another person.
    if may_mail(&state, "reset", &email).await?.is_none() {
        send_reset(&state, mailer, url, email);
    }
    page.is_asked = true;
    Ok(show(StatusCode::OK, &page))
}

impl AskPage {
    fn new(state: &ConsoleState, visitor: &Visitor, email: &str) -> Self {
        Self {
            layout: Layout::new(visitor, "/reset", "Forgotten password"),
            by_mail: state.link_mailer().is_some(),
            email: email.to_owned(),
            is_asked: false,
            problem: Problem::default(),
        }
    }
}

/// `GET /reset/{token}`.
pub(crate) async fn reset_page(
    State(state): State<ConsoleState>,
    visitor: Visitor,
    Path(token): Path<String>,
) -> Result<Response, ConsoleError> {
    let (token, user) = find(&state, &token).await?;
    let page = page(&visitor, &token, &user, Problem::default());
    Ok(show(StatusCode::OK, &page))
}

/// `POST /reset/{token}`: sets the password and ends every session of the user.
pub(crate) async fn reset(
    State(state): State<ConsoleState>,
    Path(token): Path<String>,
    form: Form,
) -> Result<Response, ConsoleError> {
    let (token, user) = find(&state, &token).await?;
    let again = |problem| page(&form.visitor, &token, &user, problem);
    if let Some(seconds) = count_address(&state, &form.visitor).await? {
        return Ok(refuse_for(
            seconds,
            &again(Problem::form(too_many(seconds))),
        ));
    }
    let password = form.fields.get("password");
    if let Err(error) = check_password(password) {
        let problem = Problem {
            password: Some(error.to_string()),
            ..Problem::default()
        };
        return Ok(show(StatusCode::UNPROCESSABLE_ENTITY, &again(problem)));
    }
    let hash = state.passwords.hash(password).await?;
    if !state
        .api
        .store
        .users()
        .use_reset(&token.hash(), &hash)
        .await?
    {
        return Err(ConsoleError::NotFound);
    }
    tell_change(&state, &user.email, Change::Password);
    // Who has the link is the owner: their first try in this browser is not counted among other people's tries.
    let cookies = form.visitor.be_known(&state, &user).await?;
    Ok((cookies, Redirect::to("/sign-in")).into_response())
}

async fn find(state: &ConsoleState, token: &str) -> Result<(SecretToken, User), ConsoleError> {
    let token = SecretToken::parse(token).ok_or(ConsoleError::NotFound)?;
    let user = state.api.store.users().find_reset(&token.hash()).await?;
    Ok((token, user.ok_or(ConsoleError::NotFound)?))
}

fn page(visitor: &Visitor, token: &SecretToken, user: &User, problem: Problem) -> ResetPage {
    ResetPage {
        layout: Layout::new(visitor, "/reset", "New password"),
        token: token.reveal().to_owned(),
        email: user.email.to_string(),
        is_unproved: user.verified_at.is_none(),
        problem,
    }
}

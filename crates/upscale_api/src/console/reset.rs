//! Links that set a new password: made by the operator's command, used once, within their time.

use askama::Template;
use axum::{
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse, Redirect, Response},
};
use upscale_core::SecretToken;
use upscale_store::User;

use super::{
    error::ConsoleError,
    form::Form,
    page::{Layout, show},
    password::check_password,
    session::Visitor,
    sign_in::{Problem, count_tries, refuse_for, too_many},
    state::ConsoleState,
};

#[derive(Template)]
#[template(path = "console/reset_ask.html")]
struct AskPage {
    layout: Layout,
}

#[derive(Template)]
#[template(path = "console/reset.html")]
struct ResetPage {
    layout: Layout,
    token: String,
    email: String,
    problem: Problem,
}

/// `GET /reset`: how to get a link.
pub(crate) async fn ask_page(visitor: Visitor) -> Response {
    let page = AskPage {
        layout: Layout::new(&visitor, "/reset", "Forgotten password"),
    };
    show(StatusCode::OK, &page)
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
    if let Some(seconds) = count_tries(&state, &form.visitor, user.email.as_str()).await? {
        return Ok(refuse_for(seconds, &again(too_many(seconds))));
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
    if !state.api.store.use_reset(&token.hash(), &hash).await? {
        return Err(ConsoleError::NotFound);
    }
    Ok(Redirect::to("/sign-in").into_response())
}

async fn find(state: &ConsoleState, token: &str) -> Result<(SecretToken, User), ConsoleError> {
    let token = SecretToken::parse(token).ok_or(ConsoleError::NotFound)?;
    let user = state.api.store.find_reset(&token.hash()).await?;
    Ok((token, user.ok_or(ConsoleError::NotFound)?))
}

fn page(visitor: &Visitor, token: &SecretToken, user: &User, problem: Problem) -> ResetPage {
    ResetPage {
        layout: Layout::new(visitor, "/reset", "New password"),
        token: token.reveal().to_owned(),
        email: user.email.to_string(),
        problem,
    }
}

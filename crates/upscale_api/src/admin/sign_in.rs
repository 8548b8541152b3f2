//! The sign-in page: who they are, and the token where one is asked for.

use askama::Template;
use axum::{
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Redirect, Response},
};

use super::{
    change::{Form, Sent},
    sessions::Try,
    state::AdminState,
    visitor::{Visitor, Who},
};
use crate::pages::{
    error::ConsoleError,
    page::{Layout, show},
};

#[derive(Template)]
#[template(path = "admin/sign_in.html")]
struct SignInPage {
    layout: Layout,
    asks_for_token: bool,
    form: Form,
}

/// `GET /sign-in`.
pub(crate) async fn sign_in_page(
    State(state): State<AdminState>,
    visitor: Visitor,
) -> Result<Response, ConsoleError> {
    if matches!(visitor.who, Who::Named(_)) {
        return Ok(Redirect::to("/").into_response());
    }
    let page = page(&state, &visitor, Form::empty()?);
    Ok(show(StatusCode::OK, &page))
}

/// `POST /sign-in`.
pub(crate) async fn sign_in(
    State(state): State<AdminState>,
    sent: Sent,
) -> Result<Response, ConsoleError> {
    let mut form = Form::of(&sent.fields)?;
    let name = sent.visitor.name_as_kept(sent.fields.get("name"));
    let name = form.take("name", name);
    let token = sent.fields.get("token").trim();
    match state.sessions.try_token(token, state.api.store.now()) {
        Try::Right => {}
        Try::Wrong => {
            if state.api.refusals.may_write("operators_token") {
                tracing::warn!("a wrong token was tried at the operators' console");
            }
            form.complain("token", "this is not the token");
        }
        Try::TooMany {
            retry_after_seconds,
        } => return Err(ConsoleError::TooMany(retry_after_seconds)),
    }
    match name.filter(|_| !form.is_wrong()) {
        Some(name) => {
            tracing::info!("an operator signed in");
            let cookies = sent.visitor.sign_in(&state, &name)?;
            Ok((cookies, Redirect::to("/")).into_response())
        }
        None => {
            let page = page(&state, &sent.visitor, form);
            Ok(show(StatusCode::UNPROCESSABLE_ENTITY, &page))
        }
    }
}

/// `POST /sign-out`.
pub(crate) async fn sign_out(State(state): State<AdminState>, sent: Sent) -> Response {
    let cookies = sent.visitor.sign_out(&state);
    (cookies, Redirect::to("/sign-in")).into_response()
}

fn page(state: &AdminState, visitor: &Visitor, form: Form) -> SignInPage {
    let mut layout = visitor.layout("/sign-in", "Sign in");
    layout.who = None;
    SignInPage {
        layout,
        asks_for_token: state.sessions.has_token(),
        form,
    }
}

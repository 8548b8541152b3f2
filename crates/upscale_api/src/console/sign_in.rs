//! Sign-in pages: signing in, up and out. Every try is counted before a password is looked at, and
//! the answer to a wrong one is the same in words and in time whether the address is known or not.

use askama::Template;
use axum::{
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Redirect, Response},
};
use upscale_core::Email;
use upscale_store::{User, UserOutcome};

use super::{
    error::ConsoleError,
    form::{Fields, Form, SignedForm},
    page::{Layout, show},
    password::check_password,
    second_factor::takes_code,
    session::Visitor,
    state::ConsoleState,
    tries::{HOUR_SECONDS, count, count_tries, refuse_for, too_many},
    verify::mail_link,
};
use crate::pages::query::{Done, PageQuery};

/// New users from one address in an hour.
const SIGN_UPS: u32 = 10;

#[derive(Template)]
#[template(path = "console/sign_in.html")]
struct SignInPage {
    layout: Layout,
    email: String,
    /// The password was right, and the user has a second factor.
    wants_code: bool,
    problem: Problem,
}

#[derive(Template)]
#[template(path = "console/sign_up.html")]
struct SignUpPage {
    layout: Layout,
    email: String,
    problem: Problem,
}

/// What is wrong, each sentence beside its field.
#[derive(Debug, Default)]
pub(crate) struct Problem {
    pub(crate) email: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) code: Option<String>,
    pub(crate) form: Option<String>,
}

impl Problem {
    pub(crate) fn form(sentence: impl Into<String>) -> Self {
        Self {
            form: Some(sentence.into()),
            ..Self::default()
        }
    }
}

/// `GET /sign-in`.
pub(crate) async fn sign_in_page(visitor: Visitor, PageQuery(done): PageQuery<Done>) -> Response {
    if visitor.session.is_some() {
        return Redirect::to("/").into_response();
    }
    let page = SignInPage {
        layout: Layout::new(&visitor, "/sign-in", "Sign in").with_notice(&done),
        email: String::new(),
        wants_code: false,
        problem: Problem::default(),
    };
    show(StatusCode::OK, &page)
}

/// `POST /sign-in`.
pub(crate) async fn sign_in(
    State(state): State<ConsoleState>,
    form: Form,
) -> Result<Response, ConsoleError> {
    let typed = form.fields.get("email");
    if let Some(seconds) = count_tries(&state, &form.visitor, typed).await? {
        let page = sign_in_again(&form, Problem::form(too_many(seconds)));
        return Ok(refuse_for(seconds, &page));
    }
    let Some(user) = find_right_user(&state, &form.fields).await? else {
        // Beside the password, for that is what most people mistype; which of the two is wrong is not said.
        let wrong = Problem {
            password: Some("Incorrect email or password.".to_owned()),
            ..Problem::default()
        };
        let page = sign_in_again(&form, wrong);
        return Ok(show(StatusCode::UNPROCESSABLE_ENTITY, &page));
    };
    if !takes_code(&state, &user, form.fields.get("code")).await? {
        let mut page = sign_in_again(&form, code_problem(form.fields.get("code")));
        page.wants_code = true;
        return Ok(show(StatusCode::UNPROCESSABLE_ENTITY, &page));
    }
    enter(&state, &form.visitor, &user).await
}

fn code_problem(code: &str) -> Problem {
    if code.is_empty() {
        let sentence = "Enter your password again and the six digits from your authenticator app.";
        return Problem::form(sentence);
    }
    let sentence = "This code is incorrect or was already used. Wait for the next one.";
    Problem {
        code: Some(sentence.to_owned()),
        ..Problem::default()
    }
}

async fn find_right_user(
    state: &ConsoleState,
    fields: &Fields,
) -> Result<Option<User>, ConsoleError> {
    let user = match Email::parse(fields.get("email")) {
        Ok(email) => state.api.store.users().find(&email).await?,
        Err(_) => None,
    };
    let hash = user.as_ref().and_then(|user| user.password_hash.as_deref());
    let is_right = state
        .passwords
        .is_right(fields.get("password"), hash)
        .await?;
    Ok(user.filter(|_| is_right))
}

fn sign_in_again(form: &Form, problem: Problem) -> SignInPage {
    SignInPage {
        layout: Layout::new(&form.visitor, "/sign-in", "Sign in"),
        email: form.fields.get("email").to_owned(),
        wants_code: false,
        problem,
    }
}

/// `GET /sign-up`.
pub(crate) async fn sign_up_page(visitor: Visitor) -> Response {
    if visitor.session.is_some() {
        return Redirect::to("/").into_response();
    }
    let page = SignUpPage {
        layout: Layout::new(&visitor, "/sign-up", "Sign up"),
        email: String::new(),
        problem: Problem::default(),
    };
    show(StatusCode::OK, &page)
}

/// `POST /sign-up`: a user and an account of their own.
pub(crate) async fn sign_up(
    State(state): State<ConsoleState>,
    form: Form,
) -> Result<Response, ConsoleError> {
    let again = |problem| SignUpPage {
        layout: Layout::new(&form.visitor, "/sign-up", "Sign up"),
        email: form.fields.get("email").to_owned(),
        problem,
    };
    let (typed, password) = (form.fields.get("email"), form.fields.get("password"));
    let email = Email::parse(typed);
    let problem = Problem {
        email: email.as_ref().err().map(ToString::to_string),
        password: check_password(password)
            .err()
            .map(|error| error.to_string()),
        ..Problem::default()
    };
    let Ok(email) = email else {
        return Ok(show(StatusCode::UNPROCESSABLE_ENTITY, &again(problem)));
    };
    if problem.password.is_some() {
        return Ok(show(StatusCode::UNPROCESSABLE_ENTITY, &again(problem)));
    }
    let subject = format!("sign-up {}", form.visitor.address);
    if let Some(seconds) = count(&state, &subject, SIGN_UPS, HOUR_SECONDS).await? {
        return Ok(refuse_for(
            seconds,
            &again(Problem::form(too_many(seconds))),
        ));
    }
    let hash = state.passwords.hash(password).await?;
    match state
        .api
        .store
        .users()
        .create(None, &email, Some(&hash))
        .await?
    {
        UserOutcome::Created(user) => {
            mail_link(&state, &user).await?;
            enter(&state, &form.visitor, &user).await
        }
        UserOutcome::EmailTaken | UserOutcome::NoSuchAccount => {
            let taken = "An account with this email already exists.".to_owned();
            let problem = Problem {
                email: Some(taken),
                ..Problem::default()
            };
            Ok(show(StatusCode::UNPROCESSABLE_ENTITY, &again(problem)))
        }
    }
}

/// A new session, whatever the browser brought along.
pub(crate) async fn enter(
    state: &ConsoleState,
    visitor: &Visitor,
    user: &User,
) -> Result<Response, ConsoleError> {
    let cookies = visitor.sign_in(state, user).await?;
    Ok((cookies, Redirect::to("/")).into_response())
}

/// `POST /sign-out`.
pub(crate) async fn sign_out(
    State(state): State<ConsoleState>,
    form: SignedForm,
) -> Result<Response, ConsoleError> {
    let cookies = form.who.visitor.sign_out(&state).await?;
    Ok((cookies, Redirect::to("/sign-in")).into_response())
}

/// `POST /sign-out-everywhere`: this browser and all others.
pub(crate) async fn sign_out_everywhere(
    State(state): State<ConsoleState>,
    form: SignedForm,
) -> Result<Response, ConsoleError> {
    let user = &form.who.session.user.id;
    state.api.store.users().end_sessions(user).await?;
    let cookies: HeaderMap = form.who.visitor.sign_out(&state).await?;
    Ok((cookies, Redirect::to("/sign-in")).into_response())
}

//! The door: signing in, up and out. Every try is counted by address and by e-mail before a password is looked at, and
//! the answer to a wrong one is the same in words and in time whether the address is known or not.

use askama::Template;
use axum::{
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Redirect, Response},
};
use sha2::{Digest, Sha256};
use upscale_core::{Email, hex};
use upscale_store::{AttemptOutcome, User, UserOutcome};

use super::{
    error::ConsoleError,
    form::{Fields, Form, SignedForm},
    page::{Layout, show},
    password::check_password,
    second_factor::takes_code,
    session::Visitor,
    state::ConsoleState,
};

/// Tries to sign in or up, or to reset a password, from one address in a window.
const ADDRESS_TRIES: u32 = 30;
/// Tries to sign in with one e-mail address in a window, from wherever.
const EMAIL_TRIES: u32 = 10;
/// New users from one address in an hour.
const SIGN_UPS: u32 = 10;
const WINDOW_SECONDS: i64 = 15 * 60;
pub(crate) const HOUR_SECONDS: i64 = 3_600;

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
pub(crate) async fn sign_in_page(visitor: Visitor) -> Response {
    if visitor.session.is_some() {
        return Redirect::to("/").into_response();
    }
    let page = SignInPage {
        layout: Layout::new(&visitor, "/sign-in", "Sign in"),
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
        let page = sign_in_again(&form, too_many(seconds));
        return Ok(refuse_for(seconds, &page));
    }
    let Some(user) = find_right_user(&state, &form.fields).await? else {
        let wrong = Problem::form("This e-mail address and this password do not go together.");
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
    Problem::form(match code {
        "" => "Type the password once more, and the six digits of your authenticator.",
        _ => "This code is wrong or was used before. Wait for the next one.",
    })
}

async fn find_right_user(
    state: &ConsoleState,
    fields: &Fields,
) -> Result<Option<User>, ConsoleError> {
    let user = match Email::parse(fields.get("email")) {
        Ok(email) => state.api.store.find_user(&email).await?,
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
        form: None,
    };
    let Ok(email) = email else {
        return Ok(show(StatusCode::UNPROCESSABLE_ENTITY, &again(problem)));
    };
    if problem.password.is_some() {
        return Ok(show(StatusCode::UNPROCESSABLE_ENTITY, &again(problem)));
    }
    let subject = format!("sign-up {}", form.visitor.address);
    if let Some(seconds) = count(&state, &subject, SIGN_UPS, HOUR_SECONDS).await? {
        return Ok(refuse_for(seconds, &again(too_many(seconds))));
    }
    let hash = state.passwords.hash(password).await?;
    match state
        .api
        .store
        .create_user(None, &email, Some(&hash))
        .await?
    {
        UserOutcome::Created(user) => enter(&state, &form.visitor, &user).await,
        UserOutcome::EmailTaken | UserOutcome::NoSuchAccount => {
            let taken = "Somebody signs in with this address already.".to_owned();
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
    let cookies = visitor.sign_in(state, &user.id).await?;
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
    state.api.store.end_sessions(user).await?;
    let cookies: HeaderMap = form.who.visitor.sign_out(&state).await?;
    Ok((cookies, Redirect::to("/sign-in")).into_response())
}

/// Counts a try by address and by what was typed as e-mail; the seconds to wait when there were too many of either.
pub(crate) async fn count_tries(
    state: &ConsoleState,
    visitor: &Visitor,
    email: &str,
) -> Result<Option<i64>, ConsoleError> {
    let by_address = format!("address {}", visitor.address);
    if let Some(seconds) = count(state, &by_address, ADDRESS_TRIES, WINDOW_SECONDS).await? {
        return Ok(Some(seconds));
    }
    // A hash, because people type their passwords into the wrong field.
    let typed = email.trim().to_ascii_lowercase();
    let by_email = format!("e-mail {}", hex(&Sha256::digest(typed.as_bytes())));
    count(state, &by_email, EMAIL_TRIES, WINDOW_SECONDS).await
}

/// Counts one try of this subject; the seconds to wait when there were too many.
pub(crate) async fn count(
    state: &ConsoleState,
    subject: &str,
    limit: u32,
    window_seconds: i64,
) -> Result<Option<i64>, ConsoleError> {
    let counted = state
        .api
        .store
        .count_attempt(subject, limit, window_seconds);
    match counted.await? {
        AttemptOutcome::Allowed => Ok(None),
        AttemptOutcome::TooMany {
            retry_after_seconds,
        } => Ok(Some(retry_after_seconds)),
    }
}

pub(crate) fn too_many(seconds: i64) -> Problem {
    let minutes = (seconds + 59) / 60;
    let unit = if minutes == 1 { "minute" } else { "minutes" };
    Problem::form(format!(
        "Too many tries. Wait {minutes} {unit} and try again."
    ))
}

/// The page with 429 and when to come back.
pub(crate) fn refuse_for(seconds: i64, page: &impl Template) -> Response {
    metrics::counter!("upscale_limits_hit_total", "limit" => "sign_in").increment(1);
    let mut response = show(StatusCode::TOO_MANY_REQUESTS, page);
    let headers = response.headers_mut();
    headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    response
}

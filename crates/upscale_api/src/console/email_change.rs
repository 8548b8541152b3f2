//! Another e-mail address: asked for with the password, confirmed by a link mailed to the new address and opened where its
//! user is signed in; then the old address is told.

use askama::Template;
use axum::{
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse, Redirect, Response},
};
use upscale_core::{Email, SecretToken};
use upscale_store::{EmailChangeOutcome, User};

use super::{
    error::ConsoleError,
    form::SignedForm,
    mail::{send_email_change, tell_email_changed},
    page::{Layout, show},
    password_again::ask_password,
    session::Visitor,
    settings::SettingsPage,
    state::ConsoleState,
    tries::{HOUR_SECONDS, count, refuse_for, too_many},
    verify::may_mail,
};

/// Changes that one user asks for in an hour: each sends a mail to an address that may be anyone's.
const CHANGES_AN_HOUR: u32 = 5;

#[derive(Template)]
#[template(path = "console/email_change.html")]
struct ChangePage {
    layout: Layout,
    /// The new address.
    email: String,
    step: Step,
}

enum Step {
    /// A link is on its way.
    Mailed,
    /// The link was opened by its user, who signs in with this address until now.
    Confirm(SecretToken, Email),
    /// The link was opened where its user is not signed in.
    SignInFirst(Email),
    /// Someone has taken the address meanwhile.
    Taken,
}

fn page(visitor: &Visitor, to: &Email, step: Step) -> ChangePage {
    ChangePage {
        layout: Layout {
            must_verify: false,
            ..Layout::new(visitor, "/settings", "Change email address")
        },
        email: to.to_string(),
        step,
    }
}

/// `POST /settings/email`: nothing is changed yet.
pub(crate) async fn ask(
    State(state): State<ConsoleState>,
    form: SignedForm,
) -> Result<Response, ConsoleError> {
    let (mailer, url) = state.link_mailer().ok_or(ConsoleError::NotFound)?;
    let (user, typed) = (&form.who.session.user, form.fields.get("email"));
    let mut settings = SettingsPage::new(&state, &form.who).await?;
    typed.clone_into(&mut settings.change.email);
    if let Some(refused) = ask_password(&state, &form).await? {
        settings.change.password_problem = Some(refused.sentence.clone());
        return Ok(refused.answer(&settings));
    }
    let to = match new_address(&state, user, typed).await? {
        Ok(to) => to,
        Err(sentence) => {
            settings.change.email_problem = Some(sentence);
            return Ok(show(StatusCode::UNPROCESSABLE_ENTITY, &settings));
        }
    };
    if let Some(seconds) = may_ask(&state, user, &to).await? {
        settings.change.email_problem = Some(too_many(seconds));
        return Ok(refuse_for(seconds, &settings));
    }
    send_email_change(&state, mailer, url, user, to.clone());
    let page = page(&form.who.visitor, &to, Step::Mailed);
    Ok(show(StatusCode::OK, &page))
}

/// The address, or what is wrong with it. That one is taken is no secret here: signing up says so as well.
async fn new_address(
    state: &ConsoleState,
    user: &User,
    typed: &str,
) -> Result<Result<Email, String>, ConsoleError> {
    let to = match Email::parse(typed) {
        Ok(to) => to,
        Err(error) => return Ok(Err(error.to_string())),
    };
    if to == user.email {
        return Ok(Err("This is your email address already.".to_owned()));
    }
    if state.api.store.users().find(&to).await?.is_some() {
        return Ok(Err("An account with this email already exists.".to_owned()));
    }
    Ok(Ok(to))
}

/// Counts the change by its user and by the address; the seconds to wait when there were too many.
async fn may_ask(
    state: &ConsoleState,
    user: &User,
    to: &Email,
) -> Result<Option<i64>, ConsoleError> {
    let subject = format!("email change {}", user.id);
    match count(state, &subject, CHANGES_AN_HOUR, HOUR_SECONDS).await? {
        Some(seconds) => Ok(Some(seconds)),
        None => may_mail(state, "email change", to).await,
    }
}

/// `GET /settings/email/{token}`: changes nothing yet, for some mailboxes open every link themselves.
pub(crate) async fn confirm_page(
    State(state): State<ConsoleState>,
    visitor: Visitor,
    Path(token): Path<String>,
) -> Result<Response, ConsoleError> {
    let token = SecretToken::parse(&token).ok_or(ConsoleError::NotFound)?;
    let users = state.api.store.users();
    let found = users.find_email_change(&token.hash()).await?;
    let (user, to) = found.ok_or(ConsoleError::NotFound)?;
    let step = if visitor.is(&user.id) {
        Step::Confirm(token, user.email)
    } else {
        Step::SignInFirst(user.email)
    };
    Ok(show(StatusCode::OK, &page(&visitor, &to, step)))
}

/// `POST /settings/email/{token}`: from now on the user signs in with the new address.
pub(crate) async fn confirm(
    State(state): State<ConsoleState>,
    Path(token): Path<String>,
    form: SignedForm,
) -> Result<Response, ConsoleError> {
    let token = SecretToken::parse(&token).ok_or(ConsoleError::NotFound)?;
    let (users, user) = (state.api.store.users(), &form.who.session.user);
    let found = users.find_email_change(&token.hash()).await?;
    let (_, to) = found.ok_or(ConsoleError::NotFound)?;
    match users.change_email(&user.id, &token.hash()).await? {
        EmailChangeOutcome::Changed { from, to } => {
            tell_email_changed(&state, user, from, &to);
            Ok(Redirect::to("/settings?done=email").into_response())
        }
        EmailChangeOutcome::Taken => {
            let page = page(&form.who.visitor, &to, Step::Taken);
            Ok(show(StatusCode::UNPROCESSABLE_ENTITY, &page))
        }
        EmailChangeOutcome::Gone => Err(ConsoleError::NotFound),
    }
}

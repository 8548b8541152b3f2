//! Whose address it is: who signs up is mailed a link, and proves by it that the address is theirs. The link counts only
//! in a session of the very user: who signed up with another's address has no link, and the other has no session.

use askama::Template;
use axum::{
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse, Redirect, Response},
};
use sha2::{Digest, Sha256};
use upscale_core::{Email, SecretToken, hex};
use upscale_store::User;

use super::{
    error::ConsoleError,
    form::SignedForm,
    mail::send_verification,
    page::{Layout, show},
    session::Visitor,
    state::ConsoleState,
    tries::{HOUR_SECONDS, count, refuse_for, too_many},
};

/// Mails of one kind to one address in an hour.
const MAILS_AN_HOUR: u32 = 3;

#[derive(Template)]
#[template(path = "console/verify.html")]
struct VerifyPage {
    layout: Layout,
    email: String,
    step: Step,
}

enum Step {
    /// The link was opened by its user.
    Confirm(SecretToken),
    /// The link was opened where its user is not signed in.
    SignInFirst,
    /// Another link is on its way.
    Mailed,
    /// Or is not, and why.
    NotMailed(String),
}

impl VerifyPage {
    fn new(visitor: &Visitor, email: &Email, step: Step) -> Self {
        // The page says itself what is to be done.
        let layout = Layout {
            must_verify: false,
            ..Layout::new(visitor, "/verify", "Email address")
        };
        Self {
            layout,
            email: email.to_string(),
            step,
        }
    }
}

/// Mails a new user the link, where links can be mailed.
pub(crate) async fn mail_link(state: &ConsoleState, user: &User) -> Result<(), ConsoleError> {
    let Some((mailer, url)) = state.link_mailer() else {
        return Ok(());
    };
    if may_mail(state, "verify", &user.email).await?.is_none() {
        send_verification(state, mailer, url, user);
    }
    Ok(())
}

/// Counts a mail of this kind to an address, anyone who asked for it; the seconds to wait when there were too many.
pub(crate) async fn may_mail(
    state: &ConsoleState,
    kind: &str,
    to: &Email,
) -> Result<Option<i64>, ConsoleError> {
    let to = hex(&Sha256::digest(to.as_str().as_bytes()));
    let subject = format!("{kind} mail {to}");
    count(state, &subject, MAILS_AN_HOUR, HOUR_SECONDS).await
}

/// `POST /verify`: the link once more; the one before dies.
pub(crate) async fn mail_again(
    State(state): State<ConsoleState>,
    form: SignedForm,
) -> Result<Response, ConsoleError> {
    let user = &form.who.session.user;
    let (mailer, url) = state.link_mailer().ok_or(ConsoleError::NotFound)?;
    if user.verified_at.is_some() {
        return Ok(Redirect::to("/settings").into_response());
    }
    let page = |step| VerifyPage::new(&form.who.visitor, &user.email, step);
    if let Some(seconds) = may_mail(&state, "verify", &user.email).await? {
        let page = page(Step::NotMailed(too_many(seconds)));
        return Ok(refuse_for(seconds, &page));
    }
    send_verification(&state, mailer, url, user);
    Ok(show(StatusCode::OK, &page(Step::Mailed)))
}

/// `GET /verify/{token}`: changes nothing yet, for some mailboxes open every link themselves.
pub(crate) async fn confirm_page(
    State(state): State<ConsoleState>,
    visitor: Visitor,
    Path(token): Path<String>,
) -> Result<Response, ConsoleError> {
    let token = SecretToken::parse(&token).ok_or(ConsoleError::NotFound)?;
    let hash = token.hash();
    let user = state.api.store.users().find_verification(&hash).await;
    let user = user?.ok_or(ConsoleError::NotFound)?;
    let step = if visitor.is(&user.id) {
        Step::Confirm(token)
    } else {
        Step::SignInFirst
    };
    let page = VerifyPage::new(&visitor, &user.email, step);
    Ok(show(StatusCode::OK, &page))
}

/// `POST /verify/{token}`: the address is the user's.
pub(crate) async fn confirm(
    State(state): State<ConsoleState>,
    Path(token): Path<String>,
    form: SignedForm,
) -> Result<Response, ConsoleError> {
    let token = SecretToken::parse(&token).ok_or(ConsoleError::NotFound)?;
    let user = &form.who.session.user.id;
    let hash = token.hash();
    if !state.api.store.users().verify(user, &hash).await? {
        return Err(ConsoleError::NotFound);
    }
    Ok(Redirect::to("/settings?done=verified").into_response())
}

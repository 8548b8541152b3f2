//! What the console writes to its users: links that prove an address, change it or set a password, and word of what was changed. A form is answered
//! before anyone looks whether there is a user, so neither its words nor its time say so. `mailer.rs` sends.

use std::sync::Arc;

use upscale_core::{Email, SecretToken};
use upscale_store::User;

use super::{
    error::ConsoleError,
    mailer::{Mail, Mailer, post},
    state::ConsoleState,
};

/// A link that sets a password works this long.
const LINK_SECONDS: i64 = 3_600;
/// A link that proves an address works this long: people sign up in the evening and read their mail in the morning.
const VERIFICATION_SECONDS: i64 = 86_400;

/// A change that its user is notified of.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Change {
    /// Another password.
    Password,
    /// Signing in asks for a code now.
    SecondFactorOn,
    /// It does not any more.
    SecondFactorOff,
}

/// Sends a link to anyone who signs in with this address, if anyone does. Returns at once.
pub(crate) fn send_reset(state: &ConsoleState, mailer: &Arc<Mailer>, url: &Arc<str>, to: Email) {
    let (state, url) = (state.clone(), Arc::clone(url));
    post(mailer, async move { write_reset(&state, &url, to).await });
}

/// Sends a new user the link that proves their address. Returns at once.
pub(crate) fn send_verification(
    state: &ConsoleState,
    mailer: &Arc<Mailer>,
    url: &Arc<str>,
    user: &User,
) {
    let (state, url, user) = (state.clone(), Arc::clone(url), user.clone());
    post(mailer, async move {
        write_verification(&state, &url, &user).await.map(Some)
    });
}

/// Sends the link that changes a user's address to the new one. Returns at once.
pub(crate) fn send_email_change(
    state: &ConsoleState,
    mailer: &Arc<Mailer>,
    url: &Arc<str>,
    user: &User,
    to: Email,
) {
    let (state, url, user) = (state.clone(), Arc::clone(url), user.clone());
    post(mailer, async move {
        write_email_change(&state, &url, &user, to).await.map(Some)
    });
}

/// Tells a user what was changed, where mail is sent: it may have been someone else. Returns at once.
pub(crate) fn tell_change(state: &ConsoleState, to: &Email, change: Change) {
    tell(state, |url| write_change(url, to.clone(), change));
}

/// Tells the address that a user signed in with until now.
pub(crate) fn tell_email_changed(state: &ConsoleState, user: &User, from: Email, to: &Email) {
    tell(state, |url| Mail {
        to: from,
        subject: "Your Upscale email address was changed".to_owned(),
        text: format!(
            "The email address of your Upscale account at {url} was changed to {to}. This address no longer signs in.\n\n\
             If this was not you, contact the operator of the service now and name the account {}.\n",
            user.account_id
        ),
    });
}

/// Tells a user that they were deleted.
pub(crate) fn tell_deleted(state: &ConsoleState, to: &Email) {
    tell(state, |url| Mail {
        to: to.clone(),
        subject: "Your Upscale account was deleted".to_owned(),
        text: format!(
            "Your sign-in at {url} was deleted, as you asked. We no longer keep this email address.\n\n\
             If this was not you, contact the operator of the service.\n"
        ),
    });
}

fn tell(state: &ConsoleState, write: impl FnOnce(&str) -> Mail) {
    if let Some((mailer, url)) = state.link_mailer() {
        let mail = write(url);
        post(mailer, async move { Ok(Some(mail)) });
    }
}

fn write_change(url: &str, to: Email, change: Change) -> Mail {
    let what = match change {
        Change::Password => "Your password was changed and every other browser was signed out",
        Change::SecondFactorOn => "Two-factor authentication was turned on",
        Change::SecondFactorOff => "Two-factor authentication was turned off",
    };
    Mail {
        to,
        subject: "Your sign-in to the Upscale console was changed".to_owned(),
        text: format!(
            "{what}, at {url}.\n\n\
             If this was not you, set a new password at {url}/reset now and contact the operator.\n"
        ),
    }
}

/// The link is made here, so that it is nowhere but in the mail; earlier ones die.
async fn write_reset(
    state: &ConsoleState,
    url: &str,
    to: Email,
) -> Result<Option<Mail>, ConsoleError> {
    let Some(user) = state.api.store.users().find(&to).await? else {
        return Ok(None);
    };
    let token = SecretToken::random()?;
    state
        .api
        .store
        .users()
        .create_reset(&user.id, &token.hash(), LINK_SECONDS)
        .await?;
    let link = format!("{url}/reset/{}", token.reveal());
    Ok(Some(Mail {
        to,
        subject: "Reset your password for the Upscale console".to_owned(),
        text: format!(
            "Someone, probably you, asked to reset your password at {url}.\n\n\
             Open this link to set a new password. It works once, within one hour:\n\n{link}\n\n\
             If this was not you, ignore this email. Your password stays the same.\n"
        ),
    }))
}

/// As [`write_reset`].
async fn write_email_change(
    state: &ConsoleState,
    url: &str,
    user: &User,
    to: Email,
) -> Result<Mail, ConsoleError> {
    let token = SecretToken::random()?;
    let users = state.api.store.users();
    users
        .create_email_change(&user.id, &to, &token.hash(), LINK_SECONDS)
        .await?;
    let link = format!("{url}/settings/email/{}", token.reveal());
    Ok(Mail {
        to,
        subject: "Confirm your new Upscale email address".to_owned(),
        text: format!(
            "Someone asked to use this email address for their Upscale account at {url}.\n\n\
             If this was you, open this link in the browser where you are signed in. It works once, within one hour:\n\n\
             {link}\n\n\
             If this was not you, ignore this mail. Nothing changes without the link.\n"
        ),
    })
}

/// As [`write_reset`]. Someone may have signed up with another's address: the mail says what the other can do.
async fn write_verification(
    state: &ConsoleState,
    url: &str,
    user: &User,
) -> Result<Mail, ConsoleError> {
    let token = SecretToken::random()?;
    state
        .api
        .store
        .users()
        .create_verification(&user.id, &token.hash(), VERIFICATION_SECONDS)
        .await?;
    let link = format!("{url}/verify/{}", token.reveal());
    Ok(Mail {
        to: user.email.clone(),
        subject: "Confirm your email address for the Upscale console".to_owned(),
        text: format!(
            "Someone, probably you, signed up with this email address at {url}.\n\n\
             Open this link to confirm it, in the browser where you are signed in. It works once, within a day:\n\n\
             {link}\n\n\
             If this was not you, ignore this mail: without the link the account can do nothing. To use the service \
             yourself, set your own password at {url}/reset.\n"
        ),
    })
}

//! What the console writes to its users: links that set a password, and word of what was changed. A form is answered
//! before anybody looks whether there is a user, so neither its words nor its time say so. `mailer.rs` sends.

use std::sync::Arc;

use upscale_core::{Email, SecretToken};

use super::{
    error::ConsoleError,
    mailer::{Mail, Mailer, post},
    state::ConsoleState,
};

/// A link works this long.
const LINK_SECONDS: i64 = 3_600;

/// What a user is told of afterwards, whoever did it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Change {
    /// Another password.
    Password,
    /// Signing in asks for a code now.
    SecondFactorOn,
    /// It does not any more.
    SecondFactorOff,
}

/// Sends a link to whoever signs in with this address, if anybody does. Returns at once.
pub(crate) fn send_reset(state: &ConsoleState, mailer: &Arc<Mailer>, url: &Arc<str>, to: Email) {
    let (state, url) = (state.clone(), Arc::clone(url));
    post(mailer, async move { write_reset(&state, &url, to).await });
}

/// Tells a user what was changed, where mail is sent: it may have been somebody else. Returns at once.
pub(crate) fn tell_change(state: &ConsoleState, to: &Email, change: Change) {
    if let Some((mailer, url)) = state.link_mailer() {
        let mail = write_change(url, to.clone(), change);
        post(mailer, async move { Ok(Some(mail)) });
    }
}

fn write_change(url: &str, to: Email, change: Change) -> Mail {
    let what = match change {
        Change::Password => "The password was changed, and every other browser signed out",
        Change::SecondFactorOn => "The second factor was turned on",
        Change::SecondFactorOff => "The second factor was turned off",
    };
    Mail {
        to,
        subject: "A change to how you sign in to the Upscale console".to_owned(),
        text: format!(
            "{what}, at {url}.\n\n\
             If it was not you, set a new password at {url}/reset now, and tell the operator of the service.\n"
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
        subject: "A new password for the Upscale console".to_owned(),
        text: format!(
            "Somebody, probably you, asked for a new password at {url}.\n\n\
             This link sets it. It works once, within one hour:\n\n{link}\n\n\
             If it was not you, nothing has to be done: your password stays as it is.\n"
        ),
    }))
}

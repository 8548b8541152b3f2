//! Mail to users, off the path of requests: a form is answered before anybody looks whether there is a user, so neither
//! its words nor its time say so. Whoever starts the service sends; this room opens no connections.

use std::{pin::Pin, sync::Arc};

use metrics::counter;
use tokio::sync::Semaphore;
use upscale_core::{Email, SecretToken};

use super::{error::ConsoleError, state::ConsoleState};

/// Mails that may wait or be under way; more are not sent, and said so in the log.
const PLACES: u32 = 64;
/// Mails sent at a time.
const AT_A_TIME: usize = 4;
/// A link works this long.
const LINK_SECONDS: i64 = 3_600;

/// One mail of plain text to one person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mail {
    /// Whom it is for.
    pub to: Email,
    /// One line.
    pub subject: String,
    /// Lines end in `\n`.
    pub text: String,
}

/// A mail was not taken; the words are for the log and name no address.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the mail was not sent: {0}")]
pub struct MailError(pub String);

/// Hands a mail to a mail server, within a time of its own.
pub type SendMail =
    Arc<dyn Fn(Mail) -> Pin<Box<dyn Future<Output = Result<(), MailError>> + Send>> + Send + Sync>;

/// The way out, with as many places as there may be mails.
pub(crate) struct Mailer {
    send: SendMail,
    places: Arc<Semaphore>,
    turns: Semaphore,
}

impl Mailer {
    pub(crate) fn new(send: SendMail) -> Self {
        Self {
            send,
            places: Arc::new(Semaphore::new(PLACES as usize)),
            turns: Semaphore::new(AT_A_TIME),
        }
    }

    /// Resolves when every mail that was promised is sent or given up.
    pub(crate) async fn idle(&self) {
        let _all = self.places.acquire_many(PLACES).await;
    }
}

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

/// One after another, a few at a time; not at all when too many wait.
fn post(
    mailer: &Arc<Mailer>,
    write: impl Future<Output = Result<Option<Mail>, ConsoleError>> + Send + 'static,
) {
    let Ok(place) = Arc::clone(&mailer.places).try_acquire_owned() else {
        tracing::warn!(places = PLACES, "a mail was not sent: too many wait");
        return count("dropped");
    };
    let mailer = Arc::clone(mailer);
    tokio::spawn(async move {
        let _place = place;
        let _turn = mailer.turns.acquire().await;
        match write.await {
            Ok(Some(mail)) => hand_over(&mailer, mail).await,
            Ok(None) => count("nobody"),
            Err(error) => {
                tracing::warn!(%error, "a mail was not written");
                count("failed");
            }
        }
    });
}

async fn hand_over(mailer: &Mailer, mail: Mail) {
    match (mailer.send)(mail).await {
        Ok(()) => count("sent"),
        Err(error) => {
            tracing::error!(%error, "a user waits for a mail in vain");
            count("failed");
        }
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
    let Some(user) = state.api.store.find_user(&to).await? else {
        return Ok(None);
    };
    let token = SecretToken::random()?;
    state
        .api
        .store
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

fn count(outcome: &'static str) {
    counter!("upscale_mails_total", "outcome" => outcome).increment(1);
}

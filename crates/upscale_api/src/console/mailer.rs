//! Mail off the path of requests, so many at a time. Anyone who starts the service sends; this room opens no connections.

use std::{pin::Pin, sync::Arc};

use metrics::counter;
use tokio::sync::Semaphore;
use upscale_core::Email;

use super::error::ConsoleError;

/// Mails that may wait or be under way; more are not sent, and said so in the log.
const PERMITS: u32 = 64;
/// Mails sent at a time.
const AT_A_TIME: usize = 4;
/// One mail of plain text to one person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mail {
    /// Whom it is for.
    pub to: Email,
    /// Subject, one line without line breaks.
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

/// The way out, with as many permits as there may be mails.
pub(crate) struct Mailer {
    send: SendMail,
    permits: Arc<Semaphore>,
    at_once: Semaphore,
}

impl Mailer {
    pub(crate) fn new(send: SendMail) -> Self {
        Self {
            send,
            permits: Arc::new(Semaphore::new(PERMITS as usize)),
            at_once: Semaphore::new(AT_A_TIME),
        }
    }

    /// Resolves when every mail that was promised is sent or given up.
    pub(crate) async fn idle(&self) {
        let _all = self.permits.acquire_many(PERMITS).await;
    }
}

/// One after another, a few at a time; not at all when too many wait.
pub(crate) fn post(
    mailer: &Arc<Mailer>,
    write: impl Future<Output = Result<Option<Mail>, ConsoleError>> + Send + 'static,
) {
    let Ok(permit) = Arc::clone(&mailer.permits).try_acquire_owned() else {
        tracing::warn!(permits = PERMITS, "a mail was not sent: too many wait");
        return count("dropped");
    };
    let mailer = Arc::clone(mailer);
    tokio::spawn(async move {
        let _permit = permit;
        let _sending = mailer.at_once.acquire().await;
        match write.await {
            Ok(Some(mail)) => hand_over(&mailer, mail).await,
            Ok(None) => count("unknown"),
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
            tracing::error!(%error, "a user is waiting for a mail that was not sent");
            count("failed");
        }
    }
}

fn count(outcome: &'static str) {
    counter!("upscale_mails_total", "outcome" => outcome).increment(1);
}

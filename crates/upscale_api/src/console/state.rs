//! What every page may reach.

use std::sync::Arc;

use super::{
    mailer::{Mailer, SendMail},
    password::Passwords,
};
use crate::api_state::ApiState;

/// How the console is reached, and how it reaches its users.
#[derive(Clone, Default)]
pub struct ConsoleOptions {
    /// What people type, such as `https://console.example.com`; where it listens, when no one says. With https, cookies
    /// are sent over TLS alone.
    pub url: Option<String>,
    /// Sends forgotten passwords' links. They name `url`, without which none is sent: a link must not lead to whatever
    /// host a request names.
    pub send_mail: Option<SendMail>,
}

/// Shared by all requests of the console. Cheap to clone.
#[derive(Clone)]
pub struct ConsoleState {
    pub(crate) api: ApiState,
    pub(crate) url: Option<Arc<str>>,
    pub(crate) passwords: Arc<Passwords>,
    pub(crate) mailer: Option<Arc<Mailer>>,
}

impl ConsoleState {
    /// On the same store and results as the API.
    #[must_use]
    pub fn new(api: ApiState, options: ConsoleOptions) -> Self {
        Self {
            api,
            url: options.url.map(|url| url.trim_end_matches('/').into()),
            passwords: Arc::default(),
            mailer: options.send_mail.map(Mailer::new).map(Arc::new),
        }
    }

    /// Resolves when no mail waits or is under way: who stops the service waits for it, as long as it can.
    pub async fn mailed(&self) {
        if let Some(mailer) = &self.mailer {
            mailer.idle().await;
        }
    }

    /// Whether browsers reach it over TLS.
    pub(crate) fn is_https(&self) -> bool {
        self.url
            .as_ref()
            .is_some_and(|url| url.starts_with("https://"))
    }

    /// The way to mail links, and the address that they begin with.
    pub(crate) fn link_mailer(&self) -> Option<(&Arc<Mailer>, &Arc<str>)> {
        self.mailer.as_ref().zip(self.url.as_ref())
    }
}

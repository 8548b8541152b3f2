//! What every page may reach.

use std::sync::Arc;

use super::password::Passwords;
use crate::api_state::ApiState;

/// How the console is reached.
#[derive(Debug, Clone, Default)]
pub struct ConsoleOptions {
    /// What people type, such as `https://console.example.com`; where it listens, when nobody says. With https, cookies
    /// are sent over TLS alone.
    pub url: Option<String>,
}

/// Shared by all requests of the console. Cheap to clone.
#[derive(Clone)]
pub struct ConsoleState {
    pub(crate) api: ApiState,
    pub(crate) url: Option<Arc<str>>,
    pub(crate) passwords: Arc<Passwords>,
}

impl ConsoleState {
    /// On the same store and results as the API.
    #[must_use]
    pub fn new(api: ApiState, options: ConsoleOptions) -> Self {
        Self {
            api,
            url: options.url.map(|url| url.trim_end_matches('/').into()),
            passwords: Arc::default(),
        }
    }

    /// Whether browsers reach it over TLS.
    pub(crate) fn is_https(&self) -> bool {
        self.url
            .as_ref()
            .is_some_and(|url| url.starts_with("https://"))
    }
}

//! What every page may reach, and how the console is entered.

use std::sync::Arc;

use super::{
    books::Books,
    sessions::{AdminSessions, AdminToken},
};
use crate::api_state::ApiState;

/// Who is let in.
pub enum AdminSignIn {
    /// Anyone who knows the token.
    Token(AdminToken),
    /// Anyone who can open the listener's file: its permissions have decided.
    FilePermissions,
}

/// How the operators' console is entered, and where customers have theirs.
pub struct AdminOptions {
    /// Who is let in.
    pub sign_in: AdminSignIn,
    /// The customers' console as people reach it, for links that set a password; none where it is not served.
    pub console_url: Option<String>,
}

/// Shared by all requests of the operators' console. Cheap to clone.
#[derive(Clone)]
pub struct AdminState {
    pub(crate) api: ApiState,
    pub(crate) sessions: Arc<AdminSessions>,
    pub(crate) console_url: Option<Arc<str>>,
    pub(crate) books: Arc<Books>,
}

impl AdminState {
    /// On the same store as the API.
    #[must_use]
    pub fn new(api: ApiState, options: AdminOptions) -> Self {
        let token = match options.sign_in {
            AdminSignIn::Token(token) => Some(token),
            AdminSignIn::FilePermissions => None,
        };
        Self {
            api,
            sessions: Arc::new(AdminSessions::new(token)),
            console_url: options
                .console_url
                .map(|url| url.trim_end_matches('/').into()),
            books: Arc::default(),
        }
    }
}

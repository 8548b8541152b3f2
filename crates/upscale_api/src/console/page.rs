//! The customers' pages: their navigation, and what is said after something was done. The rest of the layout and the
//! headers are those of `pages/page.rs`.

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::Response,
};

use super::{session::Visitor, state::ConsoleState};
pub(crate) use crate::pages::page::{Layout, Link, Sources, add_security_headers, asset, show};
use crate::pages::query::Done;

const LINKS: [Link; 7] = [
    Link {
        url: "/",
        name: "Overview",
        icon: "overview",
    },
    Link {
        url: "/playground",
        name: "Playground",
        icon: "playground",
    },
    Link {
        url: "/tasks",
        name: "Tasks",
        icon: "tasks",
    },
    Link {
        url: "/keys",
        name: "Keys",
        icon: "keys",
    },
    Link {
        url: "/credits",
        name: "Credits",
        icon: "credits",
    },
    Link {
        url: "/docs",
        name: "Docs",
        icon: "docs",
    },
    Link {
        url: "/settings",
        name: "Settings",
        icon: "settings",
    },
];

impl Layout {
    /// Of a page for this visitor, below one of the navigation's links.
    pub(crate) fn new(visitor: &Visitor, here: &'static str, title: &str) -> Self {
        let session = visitor.session.as_ref();
        Self {
            who: session.map(|session| session.user.email.to_string()),
            form_token: visitor.form_token(),
            must_verify: visitor.must_verify,
            ..Self::of_console("Upscale", &LINKS, here, title)
        }
    }

    /// With a sentence about what was just done, where that is known.
    pub(crate) fn with_notice(mut self, done: &Done) -> Self {
        let notice = match done.done.as_str() {
            "password" => "Password changed. Every other browser was signed out.",
            "second-factor-on" => "Two-factor authentication is on.",
            "second-factor-off" => "Two-factor authentication is off.",
            "session-ended" => "That browser was signed out.",
            "revoked" => "Key revoked.",
            "email" => "Email address changed. Sign in with the new one from now on.",
            "account-deleted" => {
                "Your account was deleted. Its keys no longer work, and its results go on their usual schedule."
            }
            "user-deleted" => {
                "Your sign-in was deleted. The account stays with the others who sign in for it."
            }
            "verified" => "Email address confirmed.",
            _ => return self,
        };
        self.notice = Some(notice);
        self
    }
}

/// The headers of every answer.
pub(crate) async fn add_headers(
    State(state): State<ConsoleState>,
    request: Request,
    next: Next,
) -> Response {
    let mut response = next.run(request).await;
    add_security_headers(response.headers_mut(), state.is_https());
    response
}

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
    },
    Link {
        url: "/keys",
        name: "Keys",
    },
    Link {
        url: "/credits",
        name: "Credits",
    },
    Link {
        url: "/tasks",
        name: "Tasks",
    },
    Link {
        url: "/playground",
        name: "Playground",
    },
    Link {
        url: "/docs",
        name: "Docs",
    },
    Link {
        url: "/settings",
        name: "Settings",
    },
];

impl Layout {
    /// Of a page for this visitor, below one of the navigation's links.
    pub(crate) fn new(visitor: &Visitor, here: &'static str, title: &str) -> Self {
        let session = visitor.session.as_ref();
        Self {
            who: session.map(|session| session.user.email.to_string()),
            form_token: visitor.form_token(),
            ..Self::of_house("Upscale", &LINKS, here, title)
        }
    }

    /// With a sentence about what was just done, where that is known.
    pub(crate) fn with_notice(mut self, done: &Done) -> Self {
        let notice = match done.done.as_str() {
            "password" => "The password is changed; every other browser is signed out.",
            "second-factor-on" => "The second factor is on.",
            "second-factor-off" => "The second factor is off.",
            "revoked" => "The key is revoked.",
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

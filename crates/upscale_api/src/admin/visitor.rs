//! Who looks at a page: an operator who has signed in, a script, someone of this machine who came by the socket, or
//! no one yet. Everyone may look but no one; a change needs a name.

use axum::{
    extract::{FromRequestParts, Request, State},
    http::{HeaderMap, Method, header, request::Parts},
    middleware::Next,
    response::Response,
};
use upscale_core::{SecretToken, parse_name};

use super::{
    sessions::{SESSION_SECONDS, Try},
    state::AdminState,
};
use crate::{
    client_address::PeerUser,
    pages::{
        cookies::{CookieNames, Cookies, Kind, Planted, append},
        error::ConsoleError,
        form::form_token,
        page::{Layout, Link},
    },
    permits::Owner,
};

/// Strict: no one comes here by a link from elsewhere.
const COOKIES: CookieNames = CookieNames {
    session: "upscale-operator",
    visitor: "upscale-operator-visitor",
    browser: "upscale-operator-browser",
    same_site: "Strict",
};
/// In which a script says for whom it makes a change.
const OPERATOR_HEADER: &str = "upscale-operator";

const LINKS: [Link; 5] = [
    Link {
        url: "/",
        name: "Overview",
        icon: "overview",
    },
    Link {
        url: "/accounts",
        name: "Accounts",
        icon: "accounts",
    },
    Link {
        url: "/tasks",
        name: "Tasks",
        icon: "tasks",
    },
    Link {
        url: "/payments",
        name: "Payments",
        icon: "credits",
    },
    Link {
        url: "/actions",
        name: "Audit trail",
        icon: "actions",
    },
];

/// As what someone is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Who {
    /// Has not shown the token.
    Unknown,
    /// Came by the socket, and has not said a name.
    Local,
    /// Has a session under this name.
    Named(String),
    /// Sent the token with the request itself, or named itself by the socket: no browser does either for a page of
    /// elsewhere.
    Script(Option<String>),
}

/// Anyone who sent this request.
#[derive(Clone)]
pub(crate) struct Visitor {
    /// Of the session, or of the visitor who has none.
    pub(crate) cookie: SecretToken,
    pub(crate) who: Who,
    /// The user of this machine, where the socket told.
    user: Option<u32>,
}

/// A visitor who may look.
pub(crate) struct Operator(pub(crate) Visitor);

impl Visitor {
    /// Under which name changes are kept.
    pub(crate) fn operator(&self) -> Option<&str> {
        match &self.who {
            Who::Named(name) => Some(name),
            Who::Script(name) => name.as_deref(),
            Who::Unknown | Who::Local => None,
        }
    }

    /// What this visitor typed as a name, with what the kernel knows beside it.
    pub(crate) fn name_as_kept(&self, typed: &str) -> Result<String, String> {
        name_as_kept(typed, self.user)
    }

    /// The layout of a page below one of the navigation's links.
    pub(crate) fn layout(&self, here: &'static str, title: &str) -> Layout {
        let (who, leave) = match &self.who {
            Who::Unknown => (None, ""),
            Who::Local => (Some("not named".to_owned()), "Say who you are"),
            Who::Named(name) => (Some(name.clone()), "Sign out"),
            Who::Script(name) => (Some(name.clone().unwrap_or_default()), "Sign out"),
        };
        Layout {
            who,
            leave,
            form_token: form_token(&self.cookie),
            ..Layout::of_console("Upscale operators", &LINKS, here, title)
        }
    }

    /// Opens a session with a new cookie and ends the one there was; its `Set-Cookie`.
    pub(crate) fn sign_in(
        &self,
        state: &AdminState,
        operator: &str,
    ) -> Result<HeaderMap, ConsoleError> {
        let cookie = SecretToken::random()?;
        state.sessions.end_session(&self.cookie);
        let now = state.api.store.now();
        state.sessions.open_session(&cookie, operator, now);
        let cookies = Cookies::of(COOKIES, false);
        let mut headers = HeaderMap::new();
        let session = cookies.set(Kind::Session, cookie.reveal(), SESSION_SECONDS);
        append(&mut headers, &session);
        append(&mut headers, &cookies.set(Kind::Visitor, "", 0));
        Ok(headers)
    }

    /// Ends this browser's session; the `Set-Cookie` that forgets it.
    pub(crate) fn sign_out(&self, state: &AdminState) -> HeaderMap {
        state.sessions.end_session(&self.cookie);
        let mut headers = HeaderMap::new();
        let forgotten = Cookies::of(COOKIES, false).set(Kind::Session, "", 0);
        append(&mut headers, &forgotten);
        headers
    }
}

fn name_as_kept(typed: &str, user: Option<u32>) -> Result<String, String> {
    match user {
        Some(user) if !typed.trim().is_empty() => {
            parse_name(&format!("{} (uid {user})", typed.trim()))
        }
        _ => parse_name(typed.trim()),
    }
}

/// Finds out who is there, before any page; gives a new visitor a cookie.
pub(crate) async fn recognise(
    State(state): State<AdminState>,
    request: Request,
    next: Next,
) -> Result<Response, ConsoleError> {
    let (mut parts, body) = request.into_parts();
    let cookies = Cookies::of(COOKIES, false);
    let user = parts.extensions.get::<PeerUser>().map(|user| user.0);
    let session = cookies.find(Kind::Session, &parts.headers);
    let session = session.and_then(|cookie| {
        let operator = state
            .sessions
            .find_operator(&cookie, state.api.store.now())?;
        Some((cookie, Who::Named(operator)))
    });
    let (cookie, who, planted) = match (find_script(&state, &parts.headers, user)?, session) {
        (Some(script), _) => (SecretToken::random()?, script, None),
        (None, Some((cookie, who))) => (cookie, who, None),
        (None, None) => {
            let planted = Planted::of(&cookies, &parts.headers, SESSION_SECONDS)?;
            let who = match state.sessions.has_token() {
                true => Who::Unknown,
                false => Who::Local,
            };
            (planted.cookie.clone(), who, Some(planted))
        }
    };
    // What brings a form takes its permit with the form in hand.
    let is_complete = matches!(parts.method, Method::GET | Method::HEAD);
    let operators = &state.api.permits.operators;
    let _permit = is_complete
        .then(|| operators.take(Owner::Operator))
        .transpose()?;
    parts.extensions.insert(Visitor { cookie, who, user });
    let mut response = next.run(Request::from_parts(parts, body)).await;
    if let Some(planted) = planted {
        planted.plant(response.headers_mut());
    }
    Ok(response)
}

/// A request that brings the token itself; by the socket, one that names its operator.
fn find_script(
    state: &AdminState,
    headers: &HeaderMap,
    user: Option<u32>,
) -> Result<Option<Who>, ConsoleError> {
    let named = headers.get(OPERATOR_HEADER).map(|name| {
        let name = name.to_str().map_err(|_| ConsoleError::Nameless)?;
        name_as_kept(name, user).map_err(|_| ConsoleError::Nameless)
    });
    let named = named.transpose()?;
    if !state.sessions.has_token() {
        return Ok(named.map(|name| Who::Script(Some(name))));
    }
    let Some(bearer) = headers.get(header::AUTHORIZATION) else {
        return Ok(None);
    };
    let bearer = bearer.to_str().ok().and_then(|text| text.split_once(' '));
    let token = bearer.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    let token = token.map_or("", |(_, token)| token.trim());
    match state.sessions.try_token(token, state.api.store.now()) {
        Try::Right => Ok(Some(Who::Script(named))),
        Try::Wrong => Err(ConsoleError::WrongToken),
        Try::TooMany {
            retry_after_seconds,
        } => Err(ConsoleError::TooMany(retry_after_seconds)),
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Visitor {
    type Rejection = ConsoleError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ConsoleError> {
        let visitor = parts.extensions.get::<Self>().cloned();
        visitor
            .ok_or_else(|| ConsoleError::Broken("the route does not know its visitors".to_owned()))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Operator {
    type Rejection = ConsoleError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ConsoleError> {
        let visitor = Visitor::from_request_parts(parts, state).await?;
        if visitor.who == Who::Unknown {
            return Err(ConsoleError::SignedOut);
        }
        Ok(Self(visitor))
    }
}

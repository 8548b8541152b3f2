//! Who looks at a page. A cookie holds 256 random bits and the store their hash; signing in always makes new ones, so
//! that a cookie somebody planted before is worth nothing after. Who is not signed in has a cookie too, for the sake
//! of the forms alone.

use std::{net::IpAddr, sync::Arc};

use axum::{
    extract::{FromRequestParts, Request, State},
    http::{HeaderMap, Method, request::Parts},
    middleware::Next,
    response::Response,
};
use upscale_core::{SecretToken, UserId};
use upscale_store::Session;

use super::{error::ConsoleError, state::ConsoleState};
use crate::{
    client_address::client_address,
    pages::{
        cookies::{CookieNames, Cookies, Kind, Planted, append},
        form::{form_token, is_form_token},
    },
    places::{Full, Owner, Place, Pool},
    trail::Trail,
};

/// A session ends this long after signing in, whatever is done in it.
pub(crate) const SESSION_SECONDS: i64 = 7 * 86_400;

/// One browser, as its cookies name it.
#[derive(Clone)]
pub(crate) struct Visitor {
    /// Of the session, or of the visitor who has none.
    token: SecretToken,
    /// Who is signed in.
    pub(crate) session: Option<Arc<Session>>,
    /// From where, as far as it can be believed.
    pub(crate) address: IpAddr,
}

/// A visitor who is signed in.
pub(crate) struct SignedIn {
    pub(crate) visitor: Visitor,
    pub(crate) session: Arc<Session>,
}

impl Visitor {
    /// Under whom their places are counted: the account of who is signed in, the address of who is not.
    pub(crate) fn owner(&self) -> Owner {
        match &self.session {
            Some(session) => Owner::Account(session.user.account_id),
            None => Owner::Address(self.address),
        }
    }

    /// Where their forms wait when they do not come at once.
    pub(crate) fn bodies<'a>(&self, state: &'a ConsoleState) -> &'a Arc<Pool> {
        match self.session {
            Some(_) => &state.api.places.keyed_bodies,
            None => &state.api.places.unknown_bodies,
        }
    }

    /// A place to be answered in: a session counts as a key.
    pub(crate) fn take_place(&self, state: &ConsoleState) -> Result<Place, Full> {
        let places = &state.api.places;
        let pool = match self.session {
            Some(_) => &places.keyed,
            None => &places.public,
        };
        pool.take(self.owner())
    }

    fn of(token: SecretToken, session: Option<Arc<Session>>, address: IpAddr) -> Self {
        Self {
            token,
            session,
            address,
        }
    }

    /// Goes with every form of this visitor's pages.
    pub(crate) fn form_token(&self) -> String {
        form_token(&self.token)
    }

    /// Whether a form was shown to this visitor.
    pub(crate) fn is_form_token(&self, text: &str) -> bool {
        is_form_token(&self.token, text)
    }

    /// Opens a session of new secrets and ends the one this browser had; its `Set-Cookie`.
    pub(crate) async fn sign_in(
        &self,
        state: &ConsoleState,
        user: &UserId,
    ) -> Result<HeaderMap, ConsoleError> {
        let token = SecretToken::random()?;
        let replaces = self.session.as_ref().map(|_| self.token.hash());
        state
            .api
            .store
            .users()
            .create_session(user, &token.hash(), replaces.as_ref(), SESSION_SECONDS)
            .await?;
        let mut headers = HeaderMap::new();
        let cookies = Cookies::of(COOKIES, state.is_https());
        append(
            &mut headers,
            &cookies.set(Kind::Session, token.reveal(), SESSION_SECONDS),
        );
        append(&mut headers, &cookies.set(Kind::Visitor, "", 0));
        Ok(headers)
    }

    /// Ends this browser's session; the `Set-Cookie` that forgets it.
    pub(crate) async fn sign_out(&self, state: &ConsoleState) -> Result<HeaderMap, ConsoleError> {
        state
            .api
            .store
            .users()
            .end_session(&self.token.hash())
            .await?;
        let mut headers = HeaderMap::new();
        append(
            &mut headers,
            &Cookies::of(COOKIES, state.is_https()).set(Kind::Session, "", 0),
        );
        Ok(headers)
    }
}

/// Finds out who is there, before any page; gives a new visitor a cookie.
pub(crate) async fn recognise(
    State(state): State<ConsoleState>,
    request: Request,
    next: Next,
) -> Result<Response, ConsoleError> {
    let (mut parts, body) = request.into_parts();
    let cookies = Cookies::of(COOKIES, state.is_https());
    let address = client_address(&parts, &state.api.limits.trusted_proxies);
    let session = find_session(&state, &cookies, &parts.headers).await?;
    let (visitor, planted) = match session {
        Some((token, session)) => (Visitor::of(token, Some(Arc::new(session)), address), None),
        None => {
            let planted = Planted::of(&cookies, &parts.headers, SESSION_SECONDS)?;
            (
                Visitor::of(planted.cookie.clone(), None, address),
                Some(planted),
            )
        }
    };
    if let Some(session) = &visitor.session {
        let account = &session.user.account_id;
        if let Some(trail) = parts.extensions.get::<Arc<Trail>>() {
            let _ = trail.caller.set((*account, None));
        }
        let counted = state.api.throttle.count_page(account);
        counted.map_err(ConsoleError::TooFast)?;
    }
    // What brings a form takes its place with the form in hand.
    let is_complete = matches!(parts.method, Method::GET | Method::HEAD);
    let _place = is_complete
        .then(|| visitor.take_place(&state))
        .transpose()?;
    parts.extensions.insert(visitor);
    let mut response = next.run(Request::from_parts(parts, body)).await;
    if let Some(planted) = planted {
        planted.plant(response.headers_mut());
    }
    Ok(response)
}

async fn find_session(
    state: &ConsoleState,
    cookies: &Cookies,
    headers: &HeaderMap,
) -> Result<Option<(SecretToken, Session)>, ConsoleError> {
    let Some(token) = cookies.find(Kind::Session, headers) else {
        return Ok(None);
    };
    let session = state.api.store.users().find_session(&token.hash()).await?;
    Ok(session.map(|session| (token, session)))
}

impl<S: Send + Sync> FromRequestParts<S> for Visitor {
    type Rejection = ConsoleError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ConsoleError> {
        let visitor = parts.extensions.get::<Self>().cloned();
        visitor
            .ok_or_else(|| ConsoleError::Broken("the route does not know its visitors".to_owned()))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for SignedIn {
    type Rejection = ConsoleError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ConsoleError> {
        let visitor = Visitor::from_request_parts(parts, state).await?;
        let session = visitor.session.clone().ok_or(ConsoleError::SignedOut)?;
        Ok(Self { visitor, session })
    }
}

/// Lax, because people come here by a link: to a reset, or back from a payment.
const COOKIES: CookieNames = CookieNames {
    session: "upscale-session",
    visitor: "upscale-visitor",
    same_site: "Lax",
};

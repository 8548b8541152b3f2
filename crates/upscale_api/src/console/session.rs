//! Who looks at a page. A cookie holds 256 random bits and the store their hash; signing in always makes new ones, so
//! that a cookie someone planted before is worth nothing after. Who is not signed in has a cookie too, for the sake
//! of the forms alone.

use std::{
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
};

use askama::Template;
use axum::{
    extract::{FromRequestParts, Request, State},
    http::{HeaderMap, Method, StatusCode, header, request::Parts},
    middleware::Next,
    response::Response,
};
use upscale_core::{SecretToken, UserId};
use upscale_store::{Session, SessionRecord, User};

use super::{
    error::ConsoleError,
    page::{Layout, show},
    state::ConsoleState,
};
use crate::{
    client_address::client_address,
    pages::{
        cookies::{CookieNames, Cookies, Kind, Planted, append},
        error::ErrorText,
        form::{form_token, is_form_token},
    },
    permits::{Full, Owner, Permit, Pool},
    request_context::RequestContext,
};

#[derive(Template)]
#[template(path = "console/message.html")]
struct MessagePage {
    layout: Layout,
    message: String,
}

/// A session ends this long after signing in, whatever is done in it.
pub(crate) const SESSION_SECONDS: i64 = 7 * 86_400;
/// A browser is known as its user's for this long after signing in.
const BROWSER_SECONDS: i64 = 90 * 86_400;

/// One browser, as its cookies name it.
#[derive(Clone)]
pub(crate) struct Visitor {
    /// Of the session, or of the visitor who has none.
    token: SecretToken,
    /// Who is signed in.
    pub(crate) session: Option<Arc<Session>>,
    /// What a browser has in which someone signed in before.
    pub(crate) browser: Option<SecretToken>,
    /// Whether who is signed in has yet to prove their address, where links can be mailed.
    pub(crate) must_verify: bool,
    /// From where, as far as it can be believed.
    pub(crate) address: IpAddr,
    /// What the browser calls itself.
    agent: Arc<str>,
}

/// A visitor who is signed in.
pub(crate) struct SignedIn {
    pub(crate) visitor: Visitor,
    pub(crate) session: Arc<Session>,
}

impl Visitor {
    /// Whether this user is signed in here.
    pub(crate) fn is(&self, user: &UserId) -> bool {
        let session = self.session.as_ref();
        session.is_some_and(|session| session.user.id == *user)
    }

    /// Under whom their permits are counted: the account of who is signed in, the address of who is not.
    pub(crate) fn owner(&self) -> Owner {
        match &self.session {
            Some(session) => Owner::Account(session.user.account_id),
            None => Owner::Address(self.address),
        }
    }

    /// Where their forms wait when they do not come at once.
    pub(crate) fn bodies<'a>(&self, state: &'a ConsoleState) -> &'a Arc<Pool> {
        match self.session {
            Some(_) => &state.api.permits.keyed_bodies,
            None => &state.api.permits.unknown_bodies,
        }
    }

    /// A permit to be answered in: a session counts as a key.
    pub(crate) fn take_permit(&self, state: &ConsoleState) -> Result<Permit, Full> {
        let permits = &state.api.permits;
        let pool = match self.session {
            Some(_) => &permits.keyed,
            None => &permits.public,
        };
        pool.take(self.owner())
    }

    /// What this session is called in the list of its user's.
    pub(crate) fn session_name(&self) -> String {
        SessionRecord::name_of(&self.token.hash())
    }

    /// Goes with every form of this visitor's pages.
    pub(crate) fn form_token(&self) -> String {
        form_token(&self.token)
    }

    /// Whether a form was shown to this visitor.
    pub(crate) fn is_form_token(&self, text: &str) -> bool {
        is_form_token(&self.token, text)
    }

    /// Opens a session of new secrets and ends the one this browser had, which is known as the user's from now on; its
    /// `Set-Cookie`.
    pub(crate) async fn sign_in(
        &self,
        state: &ConsoleState,
        user: &User,
    ) -> Result<HeaderMap, ConsoleError> {
        let token = SecretToken::random()?;
        let replaces = self.session.as_ref().map(|_| self.token.hash());
        state
            .api
            .store
            .users()
            .create_session_of(
                &user.id,
                &token.hash(),
                replaces.as_ref(),
                SESSION_SECONDS,
                &self.agent,
            )
            .await?;
        let mut headers = self.be_known(state, user).await?;
        let cookies = Cookies::of(COOKIES, state.is_https());
        append(
            &mut headers,
            &cookies.set(Kind::Session, token.reveal(), SESSION_SECONDS),
        );
        append(&mut headers, &cookies.set(Kind::Visitor, "", 0));
        Ok(headers)
    }

    /// Makes this browser one of the user's; the `Set-Cookie` that it is known by. One of another user's gets a new
    /// secret.
    pub(crate) async fn be_known(
        &self,
        state: &ConsoleState,
        user: &User,
    ) -> Result<HeaderMap, ConsoleError> {
        let users = state.api.store.users();
        let token = match &self.browser {
            Some(token) if users.knows_browser(&user.email, &token.hash()).await? => token.clone(),
            _ => SecretToken::random()?,
        };
        users
            .know_browser(&user.id, &token.hash(), BROWSER_SECONDS)
            .await?;
        let mut headers = HeaderMap::new();
        let cookies = Cookies::of(COOKIES, state.is_https());
        append(
            &mut headers,
            &cookies.set(Kind::Browser, token.reveal(), BROWSER_SECONDS),
        );
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

/// The permit of a request, for pages that wait and need none meanwhile.
#[derive(Clone)]
pub(crate) struct PermitInHand(Arc<Mutex<Option<Permit>>>);

impl PermitInHand {
    /// Others may have it from now on.
    pub(crate) fn give_back(&self) {
        drop(self.0.lock().unwrap_or_else(PoisonError::into_inner).take());
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
    let (token, session, planted) = match session {
        Some((token, session)) => (token, Some(Arc::new(session)), None),
        None => {
            let planted = Planted::of(&cookies, &parts.headers, SESSION_SECONDS)?;
            (planted.cookie.clone(), None, Some(planted))
        }
    };
    let is_unproved = |session: &Arc<Session>| session.user.verified_at.is_none();
    let visitor = Visitor {
        token,
        must_verify: session.as_ref().is_some_and(is_unproved) && state.link_mailer().is_some(),
        session,
        browser: cookies.find(Kind::Browser, &parts.headers),
        address,
        agent: parts
            .headers
            .get(header::USER_AGENT)
            .and_then(|agent| agent.to_str().ok())
            .unwrap_or_default()
            .into(),
    };
    if let Some(session) = &visitor.session {
        let account = &session.user.account_id;
        if let Some(context) = parts.extensions.get::<Arc<RequestContext>>() {
            let _ = context.caller.set((*account, None));
        }
        let counted = state.api.throttle.count_page(account);
        counted.map_err(ConsoleError::TooFast)?;
    }
    // What brings a form takes its permit with the form in hand.
    let is_complete = matches!(parts.method, Method::GET | Method::HEAD);
    let permit = is_complete
        .then(|| visitor.take_permit(&state))
        .transpose()?;
    let permit = PermitInHand(Arc::new(Mutex::new(permit)));
    parts.extensions.insert(permit.clone());
    parts.extensions.insert(visitor.clone());
    let response = next.run(Request::from_parts(parts, body)).await;
    let mut response = keep_navigation(&visitor, response);
    if let Some(planted) = planted {
        planted.plant(response.headers_mut());
    }
    Ok(response)
}

/// An answer that is no page, with the navigation of who is signed in.
fn keep_navigation(visitor: &Visitor, response: Response) -> Response {
    let Some(text) = response.extensions().get::<ErrorText>().cloned() else {
        return response;
    };
    if visitor.session.is_none() {
        return response;
    }
    let page = MessagePage {
        layout: Layout::new(visitor, "", text.title),
        message: text.message,
    };
    let (mut parts, _) = response.into_parts();
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, show(StatusCode::OK, &page).into_body())
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

impl SignedIn {
    /// Whether the session has not been ended meanwhile, as a new password does.
    pub(crate) async fn is_still_signed_in(
        &self,
        state: &ConsoleState,
    ) -> Result<bool, ConsoleError> {
        let session = self.visitor.token.hash();
        let found = state.api.store.users().find_session(&session).await?;
        Ok(found.is_some())
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
    browser: "upscale-browser",
    same_site: "Lax",
};

//! Answers that are no page: one enum, one small page for all of them.

use std::any::Any;

use askama::Template;
use axum::{
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{Html, IntoResponse, Redirect, Response},
};
use upscale_store::StoreError;

use super::assets::{ICON_URL, STYLE_URL};
use crate::{access_log::PageTrouble, permits::Full, request_body::NoBody};

/// Why a page is not shown.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConsoleError {
    /// No one is signed in: led to the sign-in page instead.
    #[error("Sign in first.")]
    SignedOut,
    /// Nothing there, or nothing of this account.
    #[error("This page does not exist.")]
    NotFound,
    /// The address exists, the method does not.
    #[error("Method not allowed; see the Allow header.")]
    MethodNotAllowed,
    /// The form was not sent by a page of ours to this browser.
    #[error(
        "This form has expired. Nothing was changed. Go back, reload the page and submit it again."
    )]
    Forged,
    /// The user has yet to prove that their e-mail address is theirs.
    #[error("Confirm your email address first: open the link we sent you. Nothing was changed.")]
    Unverified,
    /// Asked for by a name that is not this machine's.
    #[error(
        "The operators' console answers only on localhost and loopback addresses. Forward its port and open localhost."
    )]
    WrongHost,
    /// A script's token is not the token.
    #[error("This is not the operators' token.")]
    WrongToken,
    /// A script changes something for no one.
    #[error(
        "Changes are recorded with a name. Send yours in the header Upscale-Operator, 1 to 100 characters."
    )]
    Nameless,
    /// Too many wrong tokens; the seconds until one is looked at again.
    #[error("Too many wrong tokens were tried. Wait {0} s and try again.")]
    TooMany(i64),
    /// The form is larger than any of ours.
    #[error("The form is too large or incomplete.")]
    BadForm,
    /// More pages than anyone looks at; seconds until there are more.
    #[error("Too many requests. Wait a moment and reload this page.")]
    TooFast(i64),
    /// The store or the processor is busy; the detail is for the log alone.
    #[error("The service is busy. Nothing was changed. Try again in a moment.")]
    Busy(String),
    /// The store's answer was lost after it had been told to commit; the detail is for the log alone.
    #[error(
        "The outcome is unknown: the connection to the database was lost. Check whether the change was made, then try again."
    )]
    OutcomeUnknown(String),
    /// Our fault; the detail is for the log alone.
    #[error("Internal error. Retry; if it persists, contact support with the request ID.")]
    Broken(String),
}

impl From<StoreError> for ConsoleError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(detail) => Self::Busy(detail),
            StoreError::OutcomeUnknown(detail) => Self::OutcomeUnknown(detail),
            StoreError::Refused(detail) | StoreError::Corrupt(detail) => Self::Broken(detail),
        }
    }
}

impl From<Full> for ConsoleError {
    fn from(full: Full) -> Self {
        Self::Busy(full.0)
    }
}

impl From<NoBody> for ConsoleError {
    fn from(no_body: NoBody) -> Self {
        match no_body {
            NoBody::NoPermit(full) => full.into(),
            NoBody::TooLarge | NoBody::TooSlow | NoBody::Broken => Self::BadForm,
        }
    }
}

impl From<upscale_core::NoRandomness> for ConsoleError {
    fn from(error: upscale_core::NoRandomness) -> Self {
        Self::Busy(error.to_string())
    }
}

#[derive(Template)]
#[template(path = "console/error.html")]
struct ErrorPage<'a> {
    title: &'static str,
    message: &'a str,
    style: &'static str,
    icon: &'static str,
}

/// What an answer that is no page says, to be shown with the console's navigation.
#[derive(Debug, Clone)]
pub(crate) struct ErrorText {
    pub(crate) title: &'static str,
    pub(crate) message: String,
}

impl ConsoleError {
    fn row(&self) -> (StatusCode, &'static str) {
        match self {
            Self::SignedOut => (StatusCode::SEE_OTHER, "Signed out"),
            Self::NotFound => (StatusCode::NOT_FOUND, "Not found"),
            Self::MethodNotAllowed => (StatusCode::METHOD_NOT_ALLOWED, "Not possible"),
            Self::Forged => (StatusCode::FORBIDDEN, "Not accepted"),
            Self::Unverified => (StatusCode::FORBIDDEN, "Not confirmed yet"),
            Self::WrongHost => (StatusCode::MISDIRECTED_REQUEST, "Not here"),
            Self::WrongToken => (StatusCode::UNAUTHORIZED, "Not known"),
            Self::Nameless => (StatusCode::BAD_REQUEST, "Name missing"),
            Self::TooMany(_) => (StatusCode::TOO_MANY_REQUESTS, "Too many tries"),
            Self::BadForm => (StatusCode::BAD_REQUEST, "Not accepted"),
            Self::TooFast(_) => (StatusCode::TOO_MANY_REQUESTS, "Too fast"),
            Self::Busy(_) => (StatusCode::SERVICE_UNAVAILABLE, "Busy"),
            Self::OutcomeUnknown(_) => (StatusCode::GATEWAY_TIMEOUT, "Not known"),
            Self::Broken(_) => (StatusCode::INTERNAL_SERVER_ERROR, "Broken"),
        }
    }
}

impl ConsoleError {
    /// What the line of the request says beside it.
    fn trouble(self) -> Option<PageTrouble> {
        let (detail, is_broken) = match self {
            Self::Busy(detail) | Self::OutcomeUnknown(detail) => (detail, false),
            Self::Broken(detail) => (detail, true),
            _ => return None,
        };
        Some(PageTrouble { detail, is_broken })
    }

    fn add_headers(&self, headers: &mut HeaderMap) {
        match self {
            Self::Busy(_) | Self::OutcomeUnknown(_) => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
            Self::TooMany(seconds) => {
                metrics::counter!("upscale_limits_hit_total", "limit" => "sign_in").increment(1);
                headers.insert(header::RETRY_AFTER, HeaderValue::from(*seconds));
            }
            Self::TooFast(seconds) => {
                metrics::counter!("upscale_limits_hit_total", "limit" => "pages").increment(1);
                headers.insert(header::RETRY_AFTER, HeaderValue::from(*seconds));
            }
            Self::WrongToken => {
                let bearer = HeaderValue::from_static("Bearer");
                headers.insert(header::WWW_AUTHENTICATE, bearer);
            }
            _ => {}
        }
    }
}

impl IntoResponse for ConsoleError {
    fn into_response(self) -> Response {
        let (status, title) = self.row();
        if matches!(self, Self::SignedOut) {
            return Redirect::to("/sign-in").into_response();
        }
        let message = self.to_string();
        let page = ErrorPage {
            title,
            message: &message,
            style: &STYLE_URL,
            icon: &ICON_URL,
        };
        // Not `show`, which answers a template that fails with an error's page.
        let html = page.render().unwrap_or_default();
        let mut response = (status, Html(html)).into_response();
        self.add_headers(response.headers_mut());
        response
            .extensions_mut()
            .insert(ErrorText { title, message });
        if let Some(trouble) = self.trouble() {
            response.extensions_mut().insert(trouble);
        }
        response
    }
}

/// For every address that no route has.
pub(crate) async fn not_found() -> ConsoleError {
    ConsoleError::NotFound
}

/// For every method that a route does not have.
pub(crate) async fn method_not_allowed() -> ConsoleError {
    ConsoleError::MethodNotAllowed
}

/// The panic's text may hold anything, so it stays on the process' standard error.
pub(crate) fn panicked(_panic: Box<dyn Any + Send>) -> Response {
    ConsoleError::Broken("a page panicked".to_owned()).into_response()
}

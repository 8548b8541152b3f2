//! What a browser posts. Nothing is changed by a request that does not pass here: its Origin must be ours, and it must
//! carry the token of this very visitor. Then the fields as typed, to be shown again beside what is wrong with them.

use axum::extract::{FromRequest, FromRequestParts, Request};

use super::{
    error::ConsoleError,
    session::{SignedIn, Visitor},
    state::ConsoleState,
};
pub(crate) use crate::pages::form::{Fields, origin};
use crate::pages::form::{check_origin, read_fields};

/// A form that one of our pages sent.
pub(crate) struct Form {
    pub(crate) visitor: Visitor,
    pub(crate) fields: Fields,
    /// Scheme, host and port that it came from, which are ours.
    pub(crate) origin: String,
}

/// The same, by somebody who is signed in.
pub(crate) struct SignedForm {
    pub(crate) who: SignedIn,
    pub(crate) fields: Fields,
    /// Scheme, host and port that it came from, which are ours.
    pub(crate) origin: String,
}

impl FromRequest<ConsoleState> for Form {
    type Rejection = ConsoleError;

    async fn from_request(request: Request, state: &ConsoleState) -> Result<Self, ConsoleError> {
        let (mut parts, body) = request.into_parts();
        let visitor = Visitor::from_request_parts(&mut parts, state).await?;
        let origin = check_origin(&parts.headers, state.url.as_deref())?;
        let fields = read_fields(body, state.api.limits.body_timeout).await?;
        if !visitor.is_form_token(fields.get("form")) {
            return Err(ConsoleError::Forged);
        }
        Ok(Self {
            visitor,
            fields,
            origin,
        })
    }
}

impl FromRequest<ConsoleState> for SignedForm {
    type Rejection = ConsoleError;

    async fn from_request(request: Request, state: &ConsoleState) -> Result<Self, ConsoleError> {
        let (mut parts, body) = request.into_parts();
        let who = SignedIn::from_request_parts(&mut parts, state).await?;
        let form = Form::from_request(Request::from_parts(parts, body), state).await?;
        Ok(Self {
            who,
            fields: form.fields,
            origin: form.origin,
        })
    }
}

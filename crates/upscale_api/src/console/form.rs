//! What a browser posts. Nothing is changed by a request that does not pass here: its Origin must be ours, and it must
//! carry the token of this very visitor. Then the fields as typed, to be shown again beside what is wrong with them.

use axum::extract::{FromRequest, FromRequestParts, Request};

use super::{
    error::ConsoleError,
    session::{SignedIn, Visitor},
    state::ConsoleState,
};
pub(crate) use crate::pages::form::{Fields, origin};
use crate::{
    pages::form::{Sender, check_origin, read_fields},
    permits::Permit,
};

/// A form that one of our pages sent.
pub(crate) struct Form {
    pub(crate) visitor: Visitor,
    pub(crate) fields: Fields,
    /// Scheme, host and port that it came from, which are ours.
    pub(crate) origin: String,
    /// Held until the answer is there.
    permit: Permit,
}

/// The same, by someone who is signed in.
pub(crate) struct SignedForm {
    pub(crate) who: SignedIn,
    pub(crate) fields: Fields,
    /// Scheme, host and port that it came from, which are ours.
    pub(crate) origin: String,
    _permit: Permit,
}

impl SignedForm {
    /// For what a person must not do under someone else's address.
    ///
    /// # Errors
    /// [`ConsoleError::Unverified`] where the user has yet to prove it.
    pub(crate) fn check_verified(&self) -> Result<(), ConsoleError> {
        if self.who.visitor.must_verify {
            return Err(ConsoleError::Unverified);
        }
        Ok(())
    }
}

impl FromRequest<ConsoleState> for Form {
    type Rejection = ConsoleError;

    async fn from_request(request: Request, state: &ConsoleState) -> Result<Self, ConsoleError> {
        let (mut parts, body) = request.into_parts();
        let visitor = Visitor::from_request_parts(&mut parts, state).await?;
        let origin = check_origin(&parts.headers, state.url.as_deref())?;
        let sender = Sender {
            pool: visitor.bodies(state),
            owner: visitor.owner(),
            is_known: visitor.session.is_some(),
        };
        let deadline = state.api.limits.body_timeout;
        let fields = read_fields(&parts, body, deadline, sender).await?;
        let permit = visitor.take_permit(state)?;
        if !visitor.is_form_token(fields.get("form")) {
            return Err(ConsoleError::Forged);
        }
        Ok(Self {
            visitor,
            fields,
            origin,
            permit,
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
            _permit: form.permit,
        })
    }
}

//! What an operator posts. Nothing is changed by a request that does not pass here: it is a script's, or its Origin is
//! ours and it carries the token of this very browser. Then the fields as typed, to be shown again beside what is wrong.

use axum::extract::{FromRequest, FromRequestParts, Request};
use upscale_core::{NoRandomness, is_token, parse_reason, random_token};
use upscale_store::OnBehalf;

use super::{
    state::AdminState,
    visitor::{Visitor, Who},
};
use crate::{
    pages::{
        error::ConsoleError,
        form::{Fields, Sender, check_origin, is_form_token, read_fields},
    },
    permits::{Owner, Permit},
};

/// A form that one of our pages sent to someone who may, or who is to say who they are.
pub(crate) struct Sent {
    pub(crate) visitor: Visitor,
    pub(crate) fields: Fields,
    /// Held until the answer is there.
    permit: Permit,
}

/// A form of someone with a name.
pub(crate) struct Change {
    pub(crate) visitor: Visitor,
    /// Under which name it is kept.
    pub(crate) operator: String,
    pub(crate) fields: Fields,
    _permit: Permit,
}

/// One form as a page shows it: what was typed, and what is wrong with it.
pub(crate) struct Form {
    /// Made with the page: the same form sent twice counts once.
    pub(crate) nonce: String,
    fields: Fields,
    problems: Vec<(&'static str, String)>,
}

impl FromRequest<AdminState> for Sent {
    type Rejection = ConsoleError;

    async fn from_request(request: Request, state: &AdminState) -> Result<Self, ConsoleError> {
        let (mut parts, body) = request.into_parts();
        let visitor = Visitor::from_request_parts(&mut parts, state).await?;
        let is_script = matches!(visitor.who, Who::Script(_));
        if !is_script {
            check_origin(&parts.headers, None)?;
        }
        let sender = Sender {
            pool: &state.api.permits.operator_bodies,
            owner: Owner::Operator,
            is_known: visitor.who != Who::Unknown,
        };
        let deadline = state.api.limits.body_timeout;
        let fields = read_fields(&parts, body, deadline, sender).await?;
        let permit = state.api.permits.operators.take(Owner::Operator)?;
        if !is_script && !is_form_token(&visitor.cookie, fields.get("form")) {
            return Err(ConsoleError::Forged);
        }
        Ok(Self {
            visitor,
            fields,
            permit,
        })
    }
}

impl FromRequest<AdminState> for Change {
    type Rejection = ConsoleError;

    async fn from_request(request: Request, state: &AdminState) -> Result<Self, ConsoleError> {
        let (mut parts, body) = request.into_parts();
        let visitor = Visitor::from_request_parts(&mut parts, state).await?;
        let operator = match (&visitor.who, visitor.operator()) {
            (_, Some(name)) => name.to_owned(),
            (Who::Script(_), None) => return Err(ConsoleError::Nameless),
            (_, None) => return Err(ConsoleError::SignedOut),
        };
        let sent = Sent::from_request(Request::from_parts(parts, body), state).await?;
        Ok(Self {
            visitor,
            operator,
            fields: sent.fields,
            _permit: sent.permit,
        })
    }
}

impl Change {
    /// Who and why; none, with a sentence beside the field, without a reason.
    pub(crate) fn on_behalf(&self, form: &mut Form) -> Option<OnBehalf> {
        let reason = form.take("reason", parse_reason(self.fields.get("reason")))?;
        Some(OnBehalf {
            operator: self.operator.clone(),
            reason,
        })
    }
}

impl Form {
    /// As a page shows it first.
    pub(crate) fn empty() -> Result<Self, NoRandomness> {
        Ok(Self {
            nonce: random_token()?,
            fields: Fields::default(),
            problems: Vec::new(),
        })
    }

    /// With these values in its fields.
    pub(crate) fn filled(fields: Fields) -> Result<Self, NoRandomness> {
        Ok(Self {
            fields,
            ..Self::empty()?
        })
    }

    /// As it was sent; a script's may come without a nonce.
    pub(crate) fn of(fields: &Fields) -> Result<Self, NoRandomness> {
        let sent = fields.get("nonce");
        let nonce = match is_token(sent) {
            true => sent.to_owned(),
            false => random_token()?,
        };
        Ok(Self {
            nonce,
            fields: fields.clone(),
            problems: Vec::new(),
        })
    }

    /// As typed; empty when it was not.
    pub(crate) fn value(&self, name: &str) -> &str {
        self.fields.get(name)
    }

    /// What is wrong with this field.
    pub(crate) fn problem(&self, name: &str) -> Option<&str> {
        let found = self.problems.iter().find(|(field, _)| *field == name);
        found.map(|(_, sentence)| sentence.as_str())
    }

    /// Whether anything is.
    pub(crate) fn is_wrong(&self) -> bool {
        !self.problems.is_empty()
    }

    /// Puts a sentence beside a field.
    pub(crate) fn complain(&mut self, name: &'static str, sentence: &str) {
        let mut letters = sentence.trim_end_matches('.').chars();
        let first = letters.next().map(|first| first.to_uppercase().to_string());
        let sentence = format!("{}{}.", first.unwrap_or_default(), letters.as_str());
        self.problems.push((name, sentence));
    }

    /// The value of a field, or its sentence beside it.
    pub(crate) fn take<T>(&mut self, name: &'static str, parsed: Result<T, String>) -> Option<T> {
        match parsed {
            Ok(value) => Some(value),
            Err(sentence) => {
                self.complain(name, &sentence);
                None
            }
        }
    }
}

//! The password once more, before something that a borrowed browser must not do.

use askama::Template;
use axum::{http::StatusCode, response::Response};

use super::{
    error::ConsoleError,
    form::SignedForm,
    page::show,
    state::ConsoleState,
    tries::{count_signed_in, refuse_for, too_many},
};

/// Why it was not taken.
pub(super) struct Refused {
    /// For the field of the password.
    pub(super) sentence: String,
    /// How long to wait, after too many tries.
    seconds: Option<i64>,
}

impl Refused {
    /// The page that has the sentence.
    pub(super) fn answer(&self, page: &impl Template) -> Response {
        match self.seconds {
            Some(seconds) => refuse_for(seconds, page),
            None => show(StatusCode::UNPROCESSABLE_ENTITY, page),
        }
    }
}

/// None when the field `password` holds the password of who is signed in.
pub(super) async fn ask_password(
    state: &ConsoleState,
    form: &SignedForm,
) -> Result<Option<Refused>, ConsoleError> {
    if let Some(seconds) = count_signed_in(state, &form.who).await? {
        return Ok(Some(Refused {
            sentence: too_many(seconds),
            seconds: Some(seconds),
        }));
    }
    let hash = form.who.session.user.password_hash.as_deref();
    let is_right = state
        .passwords
        .is_right(form.fields.get("password"), hash)
        .await?;
    Ok((!is_right).then(|| Refused {
        sentence: "Incorrect password.".to_owned(),
        seconds: None,
    }))
}

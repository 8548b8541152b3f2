//! The end of an account at its user's own wish: the password, and the address typed out, so that no single click does it.

use axum::{
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Redirect, Response},
};
use upscale_core::Email;
use upscale_store::DeletionOutcome;

use super::{
    error::ConsoleError, form::SignedForm, mail::tell_deleted, page::show,
    password_again::ask_password, settings::SettingsPage, state::ConsoleState,
};

/// `POST /settings/delete`.
pub(crate) async fn delete(
    State(state): State<ConsoleState>,
    form: SignedForm,
) -> Result<Response, ConsoleError> {
    let user = &form.who.session.user;
    let mut settings = SettingsPage::new(&state, &form.who).await?;
    let typed = Email::parse(form.fields.get("confirm"));
    if typed.as_ref() != Ok(&user.email) {
        settings.leave.confirm_problem = Some("Type your email address to confirm.".to_owned());
    }
    if let Some(refused) = ask_password(&state, &form).await? {
        settings.leave.password_problem = Some(refused.sentence.clone());
        return Ok(refused.answer(&settings));
    }
    if settings.leave.confirm_problem.is_some() {
        return Ok(show(StatusCode::UNPROCESSABLE_ENTITY, &settings));
    }
    let done = match state.api.store.users().delete(&user.id).await? {
        DeletionOutcome::Account => "account-deleted",
        DeletionOutcome::User => "user-deleted",
        // Another browser was faster, and told the user.
        DeletionOutcome::Gone => return Err(ConsoleError::SignedOut),
    };
    tell_deleted(&state, &user.email);
    let cookies = form.who.visitor.sign_out(&state).await?;
    let page = format!("/sign-in?done={done}");
    Ok((cookies, Redirect::to(&page)).into_response())
}

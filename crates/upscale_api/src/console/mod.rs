//! The customer's console: pages rendered here, a stylesheet and a little JavaScript from the same listener, nothing
//! from anywhere else. It asks the store the same questions as the API and orders by the same verb, with the same
//! limits; who signs in is kept by `session.rs`, every form is checked by `form.rs`.

mod buying;
mod credits;
mod deletion;
mod docs;
mod email_change;
mod export;
mod export_rows;
mod files;
mod form;
mod keys;
mod ledger_file;
mod mail;
mod mailer;
mod overview;
mod page;
mod password;
mod password_again;
mod playground;
mod purchases;
mod recovery;
mod reset;
mod second_factor;
mod session;
mod settings;
mod shop;
mod sign_in;
mod snippets;
mod start;
mod state;
mod task_search;
mod task_view;
mod tasks;
mod title;
mod tries;
mod verify;

pub use self::{
    mailer::{Mail, MailError, SendMail},
    password::{PasswordError, hash_password},
    state::{ConsoleOptions, ConsoleState},
};

use axum::{
    Extension, Router, middleware,
    routing::{get, post},
};

use crate::{
    access_log::PagesOf,
    pages::{error, shown},
    router::{Bounds, bounded},
};

/// Every page and form of the console, for a listener of its own.
pub fn console_router(state: ConsoleState) -> Router {
    let bounds = Bounds::of(&state.api);
    let pages = Router::new()
        .route("/", get(overview::overview))
        .route(
            "/sign-in",
            get(sign_in::sign_in_page).post(sign_in::sign_in),
        )
        .route(
            "/sign-up",
            get(sign_in::sign_up_page).post(sign_in::sign_up),
        )
        .route("/sign-out", post(sign_in::sign_out))
        .route("/sign-out-everywhere", post(sign_in::sign_out_everywhere))
        .route("/reset", get(reset::ask_page).post(reset::ask))
        .route("/reset/{token}", get(reset::reset_page).post(reset::reset))
        .route("/verify", post(verify::mail_again))
        .route(
            "/verify/{token}",
            get(verify::confirm_page).post(verify::confirm),
        )
        .route("/settings", get(settings::settings))
        .route("/settings/password", post(settings::change_password))
        .route("/settings/email", post(email_change::ask))
        .route(
            "/settings/email/{token}",
            get(email_change::confirm_page).post(email_change::confirm),
        )
        .route("/settings/export", get(export::export))
        .route("/settings/delete", post(deletion::delete))
        .route("/settings/sessions/{name}/end", post(settings::end_session))
        .route("/settings/recovery-codes", post(recovery::renew))
        .route("/settings/second-factor", post(second_factor::begin))
        .route("/settings/second-factor/on", post(second_factor::turn_on))
        .route("/settings/second-factor/off", post(second_factor::turn_off))
        .route("/keys", get(keys::list).post(keys::create))
        .route(
            "/keys/{id}/rotate",
            get(keys::rotate_page).post(keys::rotate),
        )
        .route("/keys/{id}/revoke", get(keys::confirm).post(keys::revoke))
        .route("/credits", get(credits::credits).post(buying::buy))
        .route("/credits/ledger.csv", get(ledger_file::ledger_file))
        .route("/credits/orders/{id}/state", get(buying::checkout_state))
        .route("/tasks", get(tasks::list))
        .route("/tasks/{id}", get(tasks::one))
        .route("/tasks/{id}/state", get(tasks::state_of))
        .route("/tasks/{id}/thumbnail", get(files::thumbnail))
        .route("/tasks/{id}/download", get(files::download))
        .route(
            "/playground",
            get(playground::playground).post(playground::create),
        )
        .route("/playground/preview", post(playground::preview))
        .route("/docs", get(docs::docs))
        .fallback(error::not_found)
        .method_not_allowed_fallback(error::method_not_allowed)
        .layer(middleware::from_fn_with_state(
            state.clone(),
            session::recognise,
        ))
        .route("/assets/{file}", get(page::asset))
        .route("/samples/{file}", get(files::sample))
        .layer(middleware::from_fn_with_state(
            state.clone(),
            page::add_headers,
        ))
        .with_state(state);
    bounded(pages, bounds, error::panicked).layer(Extension(PagesOf("console")))
}

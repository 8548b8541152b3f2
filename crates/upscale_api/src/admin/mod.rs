//! The operators' console: queue, workers, books, accounts, payments, tasks and what operators did, on a listener that only
//! this machine reaches. It asks and does what the commands do, by the same verbs of the store; every change has a name
//! and a reason. Who may come in is decided by `sessions.rs`, who is there by `visitor.rs`, and each form passes `change.rs`.
//! What it shares with the customers' console stands in `pages/`.

mod access;
mod account;
mod accounts;
mod actions;
mod books;
mod change;
mod host;
mod keys;
mod lately;
mod money;
mod overview;
mod payments;
mod rows;
mod sessions;
mod sign_in;
mod state;
mod task;
mod tasks;
mod visitor;

pub use self::{
    sessions::AdminToken,
    state::{AdminOptions, AdminSignIn, AdminState},
};

use axum::{
    Extension, Router,
    extract::Request,
    middleware::{self, Next},
    response::Response,
    routing::{get, post},
};

use crate::{
    access_log::PagesOf,
    pages::{error, page},
    router::{Bounds, bounded},
};

/// Every page and form of the operators' console, for a listener of its own.
pub fn admin_router(state: AdminState) -> Router {
    let bounds = Bounds::of(&state.api);
    let pages = Router::new()
        .route("/", get(overview::overview))
        .route("/search", get(tasks::search))
        .route("/accounts", get(accounts::list))
        .route("/accounts/{id}", get(account::one))
        .route("/accounts/{id}/ledger", get(account::ledger))
        .route("/accounts/{id}/tasks", get(account::tasks))
        .route("/accounts/{id}/limits", post(money::set_limits))
        .route("/accounts/{id}/adjust", post(money::adjust))
        .route("/accounts/{id}/purchase", post(money::book_purchase))
        .route(
            "/accounts/{id}/keys/{key}",
            get(access::key_page).post(access::revoke),
        )
        .route(
            "/accounts/{id}/users/{user}",
            get(access::user_page).post(access::reset),
        )
        .route("/accounts/{id}/keys", get(keys::list))
        .route("/payments", get(payments::list))
        .route("/tasks", get(tasks::list))
        .route("/tasks/{id}", get(task::one))
        .route("/tasks/{id}/refund", post(task::refund))
        .route("/actions", get(actions::list))
        .route(
            "/sign-in",
            get(sign_in::sign_in_page).post(sign_in::sign_in),
        )
        .route("/sign-out", post(sign_in::sign_out))
        .fallback(error::not_found)
        .method_not_allowed_fallback(error::method_not_allowed)
        .layer(middleware::from_fn_with_state(
            state.clone(),
            visitor::recognise,
        ))
        .route("/assets/{file}", get(page::asset))
        .layer(middleware::from_fn(host::check))
        .layer(middleware::from_fn(add_headers))
        .with_state(state);
    bounded(pages, bounds, error::panicked).layer(Extension(PagesOf("admin")))
}

async fn add_headers(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    page::add_security_headers(response.headers_mut(), false);
    response
}

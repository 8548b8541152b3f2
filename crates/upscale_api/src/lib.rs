//! HTTP in, HTTP out: the contract's two endpoints, the delivery of result files and the consoles,
//! and the front that bounds every connection. What is decided or kept is decided in `upscale_core` and kept
//! in `upscale_store`; image bytes pass through here only as a stream that no one looks into.

mod access_log;
mod admin;
mod api_limits;
mod api_state;
mod bare_refusal;
mod client_address;
mod clients;
mod connection;
mod connections;
mod console;
mod create_body;
mod create_upscale;
mod error;
mod extract;
mod follow;
mod get_upscale;
mod health;
mod openapi;
mod pages;
mod permits;
mod prefer;
mod public_urls;
mod rate_headers;
mod readiness;
mod refusal_log;
mod request_body;
mod request_context;
mod results;
mod router;
mod serve;
mod serve_limits;
mod storage_watch;
mod stripe;
mod task_body;
mod throttle;
mod tls;
mod unread_body;
mod waiting;

pub use admin::{AdminOptions, AdminSignIn, AdminState, AdminToken, admin_router};
pub use api_limits::{ApiLimits, FAILING_AUTH_PER_MINUTE, READS_PER_SECOND};
pub use api_state::ApiState;
pub use client_address::parse_trusted_proxy;
pub use console::{
    ConsoleOptions, ConsoleState, Mail, MailError, PasswordError, SendMail, console_router,
    hash_password,
};
pub use openapi::openapi_json;
pub use permits::PermitLimits;
pub use public_urls::{Addresses, PublicUrls};
pub use results::ResultDelivery;
pub use router::{api_router, results_router};
pub use serve::{Listener, listen, serve};
pub use serve_limits::ServeLimits;
pub use stripe::{BuyOutcome, NewSession, OpenSession, SessionError, Stripe};
pub use tls::{Tls, TlsError};

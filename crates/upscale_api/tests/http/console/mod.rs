//! The customer's console as a browser sees it, without JavaScript: cookies kept, forms sent with what their pages hold.
//! The looks and the script are tried in a real Chromium by the binary's tests.

mod account_life;
mod addresses;
pub(crate) mod browser;
mod buying;
mod forms;
mod guests;
mod keys;
mod known_browsers;
pub(crate) mod looks;
mod mails;
mod pages;
mod pictures;
mod queries;
mod security;

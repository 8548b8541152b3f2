//! The customer's console as a browser sees it, without JavaScript: cookies kept, forms sent with what their pages hold.
//! The looks and the script are tried in a real Chromium by the binary's tests.

pub(crate) mod browser;
mod buying;
mod forms;
mod guests;
pub(crate) mod looks;
mod mails;
mod pages;
mod queries;
mod security;

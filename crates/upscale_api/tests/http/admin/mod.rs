//! The operators' console through both of its doors: a socket whose permissions have decided, and loopback with a token.

pub(crate) mod browser;
mod forms;
mod pages;
mod queries;
mod security;
mod signing_in;

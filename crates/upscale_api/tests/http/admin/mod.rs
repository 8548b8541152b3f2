//! The operators' console by both ways in: a socket whose permissions have decided, and loopback with a token.

pub(crate) mod browser;
mod forms;
mod pages;
mod queries;
mod security;
mod signing_in;

//! The operators' console through both of its doors: a socket whose permissions have decided, and loopback with a token.

pub(crate) mod browser;
mod doors;
mod forms;
mod pages;
mod queries;
mod security;

//! The documents, held against what is there: every page is in the book, every link leads somewhere, every command line
//! runs, every error has its row.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

#[allow(
    dead_code,
    unreachable_pub,
    reason = "each test binary uses its own part of the harness"
)]
#[path = "../harness/mod.rs"]
mod harness;
#[allow(
    dead_code,
    unreachable_pub,
    reason = "each test binary uses its own part of the judge"
)]
#[path = "../history/mod.rs"]
mod history;

mod commands;
mod links;
mod pages;
mod session;
mod shapes;
mod tables;

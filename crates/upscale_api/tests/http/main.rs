//! The API as a client sees it: real router, real SQLite store, real sockets on loopback. `harness.rs`
//! audits the ledger and greps the log after every test.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod admin;
mod api_reference;
mod client;
mod console;
mod create;
mod create_limits;
mod errors;
mod front;
mod harness;
mod idempotency;
mod keys;
mod malformed;
mod malformed_cases;
mod openapi;
mod price;
mod queries;
mod read;
mod results;
mod slow_sockets;
mod storage;
mod stripe;
mod tls;
mod waiting;

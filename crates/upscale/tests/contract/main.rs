//! Whole-service tests: the real binary, real HTTP, real images; one module a chapter of the contract.

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

mod admin;
mod audit;
mod backup;
mod command_line;
mod creating;
mod doctor;
mod fairness;
mod files;
mod gpu;
mod idempotency;
#[cfg(debug_assertions)]
mod injected_calls;
mod keys;
mod limits;
mod links;
mod looks;
mod lost_data;
mod mails;
mod memory;
mod metrics;
mod models;
mod money;
mod pictures;
mod process;
mod refusals;
mod results;
mod sandbox;
mod secret_key;
mod several_processes;
mod sources;
mod storage;
mod submit;
#[cfg(debug_assertions)]
mod system_calls;
mod tls;
mod traces;

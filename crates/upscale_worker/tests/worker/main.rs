//! The worker against a world that does everything wrong: sources on loopback, children that die, a store
//! that others use too.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "all of this is a test"
)]

mod attempts;
mod black_box;
mod certificates;
mod children;
mod downloads;
mod fake_child;
mod machine;
mod name_server;
mod refusals;
mod source;
mod stopping;
mod world;

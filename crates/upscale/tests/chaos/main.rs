//! What a service must survive: processes killed and frozen, disks full, clocks set, lines cut, storages that fail, at
//! any moment, under load. The judge of `history/` has the last word.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking and may say what it measured"
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

mod clock_steps;
mod cut_commits;
mod cutter;
mod deaths;
mod dice;
mod figures;
mod fleet;
mod fleet_deeds;
mod freezes;
mod full_disk;
mod gpu;
mod heirs;
mod kills;
mod load;
mod nth_call;
mod outages;
mod processes;
mod rolling;
mod soak;
mod sync_order;

//! A URL, a redirect and a resolver's answers of anything at all: what is accepted leads to no forbidden address.

#![no_main]
#![allow(clippy::panic, reason = "a fuzz target fails by panicking")]

#[path = "properties/guard.rs"]
mod guard;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| guard::check(bytes));

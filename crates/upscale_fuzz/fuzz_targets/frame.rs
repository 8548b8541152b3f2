//! Bytes of a child that may be anyone's by now: an answer within its limits or an error, never a panic or a wait.

#![no_main]
#![allow(clippy::panic, reason = "a fuzz target fails by panicking")]

#[path = "properties/frame.rs"]
mod frame;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| frame::check(bytes));

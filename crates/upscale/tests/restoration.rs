//! Our own networks are refused on no photograph, however small, awkward or damaged. `UPSCALE_TEST_DATA` says where the
//! photographs are; with `UPSCALE_CHECK_PICTURES=200` two hundred are taken in place of four.

#![allow(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "a test says what it did and may fail loudly"
)]

#[path = "../../upscale_image/tests/pictures/bed/mod.rs"]
mod bed;

use std::ops::ControlFlow;

use bed::{PIXELS_MAX, Trial, damage, drawn, photographs};
use upscale_core::Scale;
use upscale_engine::{Engine, EngineOptions};
use upscale_image::{check_result, decode};

/// Pictures that are drawn, with the data or without.
const DRAWN: usize = 4;
/// Photographs, unless the environment says otherwise.
const PHOTOGRAPHS: usize = 4;
/// Result pixels beyond which a trial is left to longer runs: networks take their time.
const RESULT_PIXELS_MAX: usize = 300_000;

#[test]
fn our_own_networks_are_never_refused() {
    let asked = std::env::var("UPSCALE_CHECK_PICTURES").ok();
    let count = asked
        .and_then(|count| count.parse().ok())
        .unwrap_or(PHOTOGRAPHS);
    let engine = Engine::shipped(EngineOptions::default()).expect("shipped");
    let (mut results, mut refused) = (0, Vec::new());
    for (number, (name, picture)) in drawn(DRAWN).chain(photographs(count)).enumerate() {
        let trial = Trial::new(number, &name, &picture);
        if trial.truth.width() * trial.truth.height() > RESULT_PIXELS_MAX {
            continue;
        }
        let scale = if trial.scale == 2 {
            Scale::X2
        } else {
            Scale::X4
        };
        for damage in damage::ALL {
            let file = damage.file(&trial, number as u64);
            let source = decode(&file, PIXELS_MAX).expect("decodes");
            let mut made = Vec::with_capacity(trial.truth.samples().len());
            let mut take = |rows: upscale_core::Rows<'_>| {
                made.extend_from_slice(rows.samples);
                ControlFlow::Continue(())
            };
            let done = engine.upscale(&source.color, scale, source.condition, &mut take);
            done.expect("upscales");
            results += 1;
            if let Err(failure) = check_result(&source.color, trial.scale, &made) {
                refused.push(format!("{} {}: {failure}", damage.name(), trial.name));
            }
        }
    }
    println!("{} of {results} results refused", refused.len());
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

//! Networks from file to pixels: one program for all of it, for each would link the engine anew.

mod conditioning;
mod faces;
mod golden;
mod kernels;
mod model_files;
mod ncnn_pairs;
mod precision;
mod streaming;

use std::ops::ControlFlow;

use upscale_core::{Condition, Pixels, Scale};
use upscale_engine::Engine;

/// All samples of the result, which must come.
#[expect(clippy::expect_used, reason = "a test may fail loudly")]
fn upscale(engine: &Engine, source: &Pixels, scale: Scale, condition: Condition) -> Vec<f32> {
    let mut output = Vec::new();
    let done = engine.upscale(source, scale, condition, &mut |rows| {
        output.extend_from_slice(rows.samples);
        ControlFlow::Continue(())
    });
    done.expect("is upscaled");
    output
}

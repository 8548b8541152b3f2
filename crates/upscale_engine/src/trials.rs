//! What tests of integers share: random pictures, and a network in single precision and in integers.

use std::ops::ControlFlow;

use upscale_core::{Pixels, Rows};
use upscale_simd::Kernels;

use crate::network::Network;
use crate::plan::Plan;
use crate::ranges::{Observed, Ranges};
use crate::shapes::{Random, Shape};
use crate::upscale::{Cut, run_strips, upscale};

/// A network that integers suit …
pub(crate) const SUITED: Shape = Shape::Compact {
    channels: 40,
    convs: 3,
};
/// … and one that they would spoil: random gates multiply errors, and its output differs by tens of levels.
pub(crate) const SPOILT: Shape = Shape::Span {
    channels: 64,
    blocks: 10,
};

/// Colours up to `largest`.
pub(crate) fn noise(width: usize, height: usize, largest: f32) -> Pixels {
    let mut random = Random(9);
    let samples = (0..width * height * 3).map(|_| largest * random.unit());
    Pixels::new(width, height, 3, samples.collect()).unwrap()
}

/// What a plan makes of a picture, on two threads.
pub(crate) fn run(plan: &Plan, source: &Pixels) -> Vec<f32> {
    let mut output = Vec::new();
    let mut sink = |rows: Rows<'_>| {
        output.extend_from_slice(rows.samples);
        ControlFlow::Continue(())
    };
    upscale(plan, source, 2, &mut sink, &|| false).unwrap();
    output
}

/// The same in a given cut.
pub(crate) fn run_cut(plan: &Plan, source: &Pixels, threads: usize, cut: &Cut) -> Vec<f32> {
    let mut output = Vec::new();
    let mut sink = |rows: Rows<'_>| {
        output.extend_from_slice(rows.samples);
        ControlFlow::Continue(())
    };
    run_strips(plan, source, threads, cut, &mut sink, &|| false).unwrap();
    output
}

/// In single precision, and in integers whose scales come from a picture with colours up to 1.
pub(crate) fn plans(network: &Network, kernels: Kernels) -> [Plan; 2] {
    let mut exact = Plan::new(&network.unfolded(), kernels);
    exact.observed = Some(Observed::new(exact.layers.len()));
    run(&exact, &noise(30, 24, 1.0));
    let ranges = Ranges(vec![exact.observed.take().unwrap().table()]);
    let integers = Plan::new(&network.unfolded(), kernels).with_words(&ranges);
    [exact, integers]
}

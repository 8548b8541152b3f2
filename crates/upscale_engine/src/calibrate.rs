//! Where the scales of 16-bit integers come from: a small rendered picture that has what pictures have (smooth
//! ground, edges in all directions, strokes, noise), run through the network in single precision once.

use std::ops::ControlFlow;

use upscale_core::{Pixels, Rows};
use upscale_simd::Kernels;

use crate::network::Network;
use crate::plan::Plan;
use crate::shapes::Random;
use crate::upscale::upscale;
use crate::words::Observed;

/// Ten by eight tiles: 7 ms for the largest network that ships.
const WIDTH: usize = 60;
const HEIGHT: usize = 48;
/// Mean difference (root of the mean square) from single precision that a network may show on the picture, which is
/// harder than pictures are: a quarter of an 8-bit level. Beyond, it stays in single precision.
const DIFFERENCE_MAX: f64 = 0.25 / 255.0;

/// The network's plan in 16-bit integers where that is safe and faster, else in single precision.
pub(crate) fn fast_plan(network: &Network, kernels: Kernels) -> Plan {
    let mut exact = Plan::new(network, kernels);
    if !kernels.has_words() {
        return exact;
    }
    let picture = picture();
    exact.observed = Some(Observed::new(exact.layers.len()));
    let expected = run(&exact, &picture);
    let Some(observed) = exact.observed.take() else {
        return exact;
    };
    let fast = Plan::new(network, kernels).with_words(&observed);
    let given = run(&fast, &picture);
    let is_close = difference(&given, &expected) <= DIFFERENCE_MAX;
    if is_close { fast } else { exact }
}

/// Root of the mean square; infinite where one has nothing to compare, NaN where a number is.
fn difference(given: &[f32], expected: &[f32]) -> f64 {
    if given.is_empty() || given.len() != expected.len() {
        return f64::INFINITY;
    }
    let pairs = given.iter().zip(expected);
    let squares = pairs.map(|(a, b)| f64::from(a - b).powi(2));
    (squares.sum::<f64>() / given.len() as f64).sqrt()
}

fn run(plan: &Plan, picture: &Pixels) -> Vec<f32> {
    let mut output = Vec::new();
    let mut sink = |rows: Rows<'_>| {
        output.extend_from_slice(rows.samples);
        ControlFlow::Continue(())
    };
    match upscale(plan, picture, 1, &mut sink, &|| false) {
        Ok(()) => output,
        Err(_) => Vec::new(),
    }
}

fn picture() -> Pixels {
    let mut random = Random(11);
    let mut samples = Vec::with_capacity(WIDTH * HEIGHT * 3);
    for (y, x) in (0..HEIGHT).flat_map(|y| (0..WIDTH).map(move |x| (y, x))) {
        let noise = random.unit() - 0.5;
        samples.extend(colour(x as f32, y as f32).map(|v| (v + 0.06 * noise).clamp(0.0, 1.0)));
    }
    Pixels::new(WIDTH, HEIGHT, 3, samples).unwrap_or_else(|_| unreachable!("three samples a pixel"))
}

/// Left: sky and a disc. Middle: black strokes of two pixels on white. Right: waves that get finer.
fn colour(x: f32, y: f32) -> [f32; 3] {
    let column = x as usize;
    if column < 24 {
        let inside = (x - 12.0).hypot(y - 24.0) < 9.0;
        return match inside {
            true => [0.9, 0.25, 0.1],
            false => [0.2 + 0.01 * y, 0.4 + 0.008 * x, 0.95 - 0.012 * y],
        };
    }
    if column < 42 {
        let stroke = ((x + 0.7 * y) as usize % 7) < 2 || (y as usize % 11) < 1;
        return [if stroke { 0.0 } else { 1.0 }; 3];
    }
    let wave = 0.5 + 0.45 * (0.02 * (x - 42.0) * y).sin();
    [wave, 1.0 - wave, 0.5 + 0.4 * (0.9 * x).cos()]
}

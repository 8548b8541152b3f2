//! By how much the steepest edges of a picture overshoot, as a share of their step: what sharpening leaves beside them.

use upscale_simd::widened;

use super::edges::{EDGE_MIN, EDGES_FROM, STEP_PIXELS_MAX, columns, rows, smooth};
use super::{Plane, quantiles};

/// Pixels on both sides of an edge that are looked at: beside it those that overshoot, then those it leads to.
const REACH: usize = 7;
const SPAN: usize = 2 * REACH + 1;
/// A thin line overshoots on one side by most of its step; sharpening by less.
const OVERSHOOT_MAX: f32 = 0.5;

/// Quantiles of the lesser side where neither side overshoots by half a step, quantiles of both sides' mean, and the
/// share of such edges; nothing where a picture has no edge.
pub(super) fn features(luma: &Plane) -> Vec<f32> {
    let every = (luma.width * luma.height).div_ceil(STEP_PIXELS_MAX);
    let ways = [
        rows(&smoothed_down(luma), every),
        columns(&smoothed_across(luma), every),
    ];
    let spans = || {
        let lines = ways
            .iter()
            .flat_map(|way| way.samples.chunks_exact(way.width));
        lines.flat_map(|line| line.array_windows::<SPAN>())
    };
    let mut steps: Vec<f32> = spans().map(|span| step(span).abs()).collect();
    let limit = quantiles(&mut steps, &[EDGES_FROM]);
    let limit = limit.first().copied().unwrap_or(0.0).max(EDGE_MIN);
    let steep = spans().filter(|span| step(span).abs() >= limit);
    summed_up(&steep.map(sides).collect::<Vec<_>>())
}

fn summed_up(sides: &[[f32; 2]]) -> Vec<f32> {
    let edges = sides
        .iter()
        .filter(|[one, other]| one.max(*other) < OVERSHOOT_MAX);
    let mut lesser: Vec<f32> = edges.map(|[one, other]| one.min(*other)).collect();
    let mut means: Vec<f32> = sides
        .iter()
        .map(|[one, other]| (one + other) * 0.5)
        .collect();
    let share = lesser.len() as f32 / means.len().max(1) as f32;
    let mut found = Vec::new();
    for (values, places) in [
        (&mut lesser, [0.25, 0.5, 0.75]),
        (&mut means, [0.1, 0.25, 0.5]),
    ] {
        let mut at = quantiles(values, &places);
        at.resize(places.len(), 0.0);
        found.extend(at.into_iter().map(|value| value.clamp(-1.0, 1.0)));
    }
    found.push(share);
    found
}

/// The step over the four pixels in the middle.
fn step(span: &[f32; SPAN]) -> f32 {
    span[REACH + 2] - span[REACH - 2]
}

/// By which share of its step an edge in the middle overshoots, after it and before it.
fn sides(span: &[f32; SPAN]) -> [f32; 2] {
    let rising = step(span) > 0.0;
    let size = step(span).abs().max(1.0);
    let mean = |from: usize| (span[from] + span[from + 1] + span[from + 2]) / 3.0;
    let most = |from: usize| span[from].max(span[from + 1]).max(span[from + 2]);
    let least = |from: usize| span[from].min(span[from + 1]).min(span[from + 2]);
    let (left, right) = (mean(0), mean(SPAN - 3));
    let (nearer_left, nearer_right) = (REACH - 3, REACH + 1);
    let [after, before] = if rising {
        [most(nearer_right) - right, left - least(nearer_left)]
    } else {
        [right - least(nearer_right), most(nearer_left) - left]
    };
    [after / size, before / size]
}

/// By 1, 2, 1 from above to below, without the outermost pixels.
fn smoothed_down(plane: &Plane) -> Plane {
    let row = |y: usize| &plane.samples[y * plane.width + 1..(y + 1) * plane.width - 1];
    smoothed(plane, |y, to| smooth([row(y), row(y + 1), row(y + 2)], to))
}

/// The same from left to right.
fn smoothed_across(plane: &Plane) -> Plane {
    let row = |y: usize| &plane.samples[(y + 1) * plane.width..(y + 2) * plane.width];
    smoothed(plane, |y, to| {
        smooth([row(y), &row(y)[1..], &row(y)[2..]], to)
    })
}

fn smoothed(plane: &Plane, of_row: impl Fn(usize, &mut [f32])) -> Plane {
    let (width, height) = (plane.width - 2, plane.height - 2);
    let mut samples = vec![0.0; width * height];
    for (y, to) in samples.chunks_exact_mut(width).enumerate() {
        widened!(of_row(y, to));
    }
    Plane {
        width,
        height,
        samples,
    }
}

//! How steep the steepest places of a picture are, over one, two and four pixels, and which part of a step falls
//! between two neighbours: all of it at a sharp edge.

use upscale_simd::widened;

use super::{Plane, log, quantiles};

/// Of larger pictures every so many rows and columns are taken, so that as many pixels' steps are looked at.
pub(super) const STEP_PIXELS_MAX: usize = 1 << 16;
/// Edges are the steps over four pixels that are greater than all but 3 in 100.
pub(super) const EDGES_FROM: f64 = 0.97;
/// And at least so many levels.
pub(super) const EDGE_MIN: f32 = 1.0;
const SPAN: usize = 4;

/// One kind of difference along a line, put after those of the lines before.
type OfLine = fn(&[f32], &mut Vec<f32>);

pub(super) fn features(luma: &Plane) -> Vec<f32> {
    let every = (luma.width * luma.height).div_ceil(STEP_PIXELS_MAX);
    let soft = Lines::of(&softened(luma), every);
    let sharp = Lines::of(&inner(luma), every);
    let mut found = Vec::new();
    let mut asked = |lines: &Lines, of_line: OfLine, shares: &[f64]| {
        let mut values = lines.all(of_line);
        found.extend(quantiles(&mut values, shares).into_iter().map(log));
    };
    let steps: [OfLine; 3] = [differences::<1>, differences::<2>, differences::<SPAN>];
    for of_line in steps {
        asked(&soft, of_line, &[0.9, 0.97, 0.99, 0.998]);
    }
    asked(&sharp, differences::<1>, &[0.97, 0.998]);
    asked(&soft, bends, &[0.97, 0.99, 0.998]);
    let spans = soft.all(differences::<SPAN>);
    let limit = quantiles(&mut spans.clone(), &[EDGES_FROM])
        .first()
        .copied()
        .unwrap_or(0.0)
        .max(EDGE_MIN);
    for lines in [&soft, &sharp] {
        found.extend(steepness(&lines.all(steepest), &spans, limit));
    }
    found
}

/// At 30, 60 and 90 % of the edges, the greatest step between neighbours as a share of the step over four pixels.
fn steepness(greatest: &[f32], spans: &[f32], limit: f32) -> [f32; 3] {
    let edges = greatest
        .iter()
        .zip(spans)
        .filter(|(_, span)| **span >= limit);
    let mut shares: Vec<f32> = edges.map(|(step, span)| step / span).collect();
    match quantiles(&mut shares, &[0.3, 0.6, 0.9]).as_slice() {
        // Steps that overshoot say no more than sharp ones.
        [low, middle, high] => [*low, *middle, *high].map(|share| share.clamp(0.0, 2.0)),
        // A picture without an edge is as sharp as any.
        _ => [1.0; 3],
    }
}

/// Every so many rows and columns of a plane, each kind as a plane of its own.
struct Lines {
    ways: [Plane; 2],
}

impl Lines {
    fn of(plane: &Plane, every: usize) -> Self {
        Self {
            ways: [rows(plane, every), columns(plane, every)],
        }
    }

    fn all(&self, of_line: OfLine) -> Vec<f32> {
        let mut found = Vec::new();
        for plane in &self.ways {
            for line in plane.samples.chunks_exact(plane.width) {
                of_line(line, &mut found);
            }
        }
        found
    }
}

pub(super) fn rows(plane: &Plane, every: usize) -> Plane {
    let rows = plane.samples.chunks_exact(plane.width).step_by(every);
    Plane {
        width: plane.width,
        height: plane.height.div_ceil(every),
        samples: rows.collect::<Vec<_>>().concat(),
    }
}

pub(super) fn columns(plane: &Plane, every: usize) -> Plane {
    let column = |x: usize| plane.samples[x..].iter().step_by(plane.width).copied();
    Plane {
        width: plane.height,
        height: plane.width.div_ceil(every),
        samples: (0..plane.width).step_by(every).flat_map(column).collect(),
    }
}

fn differences<const APART: usize>(line: &[f32], found: &mut Vec<f32>) {
    found.extend(line.iter().zip(&line[APART..]).map(|(a, b)| (b - a).abs()));
}

fn bends(line: &[f32], found: &mut Vec<f32>) {
    found.extend(line.windows(3).map(|w| (w[2] - 2.0 * w[1] + w[0]).abs()));
}

/// The greatest step between neighbours within each span of four.
fn steepest(line: &[f32], found: &mut Vec<f32>) {
    let greatest = |window: &[f32]| {
        let steps = window.iter().zip(&window[1..]);
        steps.fold(0.0_f32, |most, (a, b)| most.max((b - a).abs()))
    };
    found.extend(line.windows(SPAN + 1).map(greatest));
}

/// Smoothed by 1, 2, 1 both ways, without the outermost pixels: down first, across after it.
fn softened(plane: &Plane) -> Plane {
    let (width, height) = (plane.width, plane.height);
    let row = |y: usize| &plane.samples[y * width..(y + 1) * width];
    let mut samples = vec![0.0; (width - 2) * (height - 2)];
    let mut column = vec![0.0; width];
    for (y, to) in samples.chunks_exact_mut(width - 2).enumerate() {
        widened!({
            smooth([row(y), row(y + 1), row(y + 2)], &mut column);
            smooth([&column, &column[1..], &column[2..]], to);
        });
    }
    Plane {
        width: width - 2,
        height: height - 2,
        samples,
    }
}

#[inline(always)]
pub(super) fn smooth([a, b, c]: [&[f32]; 3], to: &mut [f32]) {
    for (((sum, a), b), c) in to.iter_mut().zip(a).zip(b).zip(c) {
        *sum = (a + 2.0 * b + c) * 0.25;
    }
}

/// The plane without its outermost pixels.
fn inner(plane: &Plane) -> Plane {
    let rows = plane.samples.chunks_exact(plane.width);
    let rows = rows.skip(1).take(plane.height - 2);
    let rows: Vec<_> = rows.map(|row| &row[1..plane.width - 1]).collect();
    Plane {
        width: plane.width - 2,
        height: plane.height - 2,
        samples: rows.concat(),
    }
}

//! The end of every network: the last layer's channels become pixels, the base is added, the sum clamped.

use std::ops::Range;

use crate::bicubic::{Phase, linear_phases, phases, replicated};
use crate::job::{Job, Span};
use crate::network::Base;
use crate::picture::colours;
use crate::winograd::TILE;

/// Pixels beside a segment that the bicubic base reads.
const MARGIN: usize = 2;

/// Rows of the base in the making.
#[derive(Default)]
pub(crate) struct BaseRows {
    /// Source rows weighted for one output row, with a margin on both sides, RGB.
    blended: Vec<f32>,
    /// An output row of the base, RGB.
    base: Vec<f32>,
}

/// Writes the output rows of the last layer's row `row` of a row of tiles: `values` holds `stride` numbers per pixel,
/// `[dy][dx][colour]` first. Where a pixel is a part of squares that the source does not fill, the output is cut.
#[inline(always)]
pub(crate) fn write_rows(
    job: &Job<'_>,
    span: &Span,
    row: usize,
    pixels: &Range<usize>,
    (values, stride): (&[f32], usize),
    rows: &mut BaseRows,
) {
    let (scale, channels) = (job.plan.shuffle, job.source.channels());
    let y = span.tile_row * TILE + row;
    let phases = phases(scale);
    let first = job.place_in_segment(pixels.start, span.segment) * scale;
    let height = job.source.height() * job.plan.scale;
    let width = job.source.width() * job.plan.scale;
    let count = (pixels.len() * scale).min(width.saturating_sub(pixels.start * scale));
    for dy in 0..scale {
        if y * scale + dy >= height || count == 0 {
            return;
        }
        match job.plan.base {
            Base::Nearest => nearest(job, y, pixels, rows),
            Base::Bicubic => bicubic(job, y, pixels, (&phases, dy), rows),
            Base::Bilinear => {
                let columns = pixels.start * scale..pixels.end * scale;
                bilinear(job, y * scale + dy, columns, rows);
            }
            Base::Zero => {
                rows.base.clear();
                rows.base.resize(pixels.len() * scale * 3, 0.0);
            }
        }
        let run = 3 * scale;
        let corrections = values.chunks(stride).map(|v| &v[dy * run..(dy + 1) * run]);
        for (base, correction) in rows.base.chunks_exact_mut(run).zip(corrections) {
            for (sum, value) in base.iter_mut().zip(correction) {
                *sum = (*sum + value).clamp(0.0, 1.0);
            }
        }
        let mut output = job.write_output(span.tile_row, row * scale + dy, span.segment);
        let output = &mut output[first * channels..][..count * channels];
        match channels {
            3 => output.copy_from_slice(&rows.base[..count * 3]),
            _ => mean(&rows.base, output),
        }
    }
}

/// Gray output is the mean of the three colours.
fn mean(colours: &[f32], to: &mut [f32]) {
    for (gray, rgb) in to.iter_mut().zip(colours.chunks_exact(3)) {
        *gray = (rgb[0] + rgb[1] + rgb[2]) / 3.0;
    }
}

#[inline(always)]
fn nearest(job: &Job<'_>, y: usize, pixels: &Range<usize>, rows: &mut BaseRows) {
    let source = job.source.row(y);
    rows.base.clear();
    for x in pixels.clone() {
        let pixel = colours(job.source, source, x);
        for _ in 0..job.plan.scale {
            rows.base.extend_from_slice(&pixel);
        }
    }
}

/// Row `y` of the base, output columns `columns`; those beyond the picture's edge mean nothing.
#[inline(always)]
fn bilinear(job: &Job<'_>, y: usize, columns: Range<usize>, rows: &mut BaseRows) {
    let source = job.source;
    let phases = linear_phases(job.plan.scale);
    let (lines, below) = neighbours(&phases, y, source.height());
    let [upper, lower] = lines.map(|line| source.row(line));
    rows.base.clear();
    for x in columns {
        let (pixels, right) = neighbours(&phases, x, source.width());
        let [a, b] = pixels.map(|x| colours(source, upper, x));
        let [c, d] = pixels.map(|x| colours(source, lower, x));
        for i in 0..3 {
            let (above, under) = (mix(a[i], b[i], right), mix(c[i], d[i], right));
            rows.base.push(mix(above, under, below));
        }
    }
}

/// The two source pixels that an output pixel lies between, and the share of the second.
#[inline(always)]
fn neighbours(phases: &[Phase], output: usize, size: usize) -> ([usize; 2], f32) {
    let phase = &phases[output % phases.len()];
    let first = (output / phases.len()) as isize + phase.first + 1;
    let pixels = [first, first + 1].map(|pixel| replicated(pixel, size));
    (pixels, phase.taps[2] as f32)
}

/// `share` of `b`, the rest of `a`.
#[inline(always)]
fn mix(a: f32, b: f32, share: f32) -> f32 {
    a + share * (b - a)
}

#[inline(always)]
fn bicubic(
    job: &Job<'_>,
    y: usize,
    pixels: &Range<usize>,
    (phases, dy): (&[Phase], usize),
    rows: &mut BaseRows,
) {
    blend(job, y, pixels, &phases[dy], &mut rows.blended);
    let count = pixels.len();
    rows.base.resize(count * phases.len() * 3, 0.0);
    for (dx, phase) in phases.iter().enumerate() {
        let taps = phase.taps.map(|tap| tap as f32);
        let first = (MARGIN as isize + phase.first) as usize * 3;
        let from = rows.blended[first..].windows(12).step_by(3);
        let to = rows.base.chunks_exact_mut(3 * phases.len());
        for (window, to) in from.zip(to) {
            for colour in 0..3 {
                let sum = taps[0] * window[colour] + taps[1] * window[colour + 3];
                let sum = sum + taps[2] * window[colour + 6] + taps[3] * window[colour + 9];
                to[dx * 3 + colour] = sum;
            }
        }
    }
}

/// Four source rows, weighted; columns beyond the edges repeat the edge. Slices, and no closure for every pixel: that took
/// 3 % of a network at 4x.
#[inline(always)]
fn blend(job: &Job<'_>, y: usize, pixels: &Range<usize>, phase: &Phase, to: &mut Vec<f32>) {
    let (source, taps) = (job.source, phase.taps.map(|tap| tap as f32));
    // Columns of the source that are asked for, and how many before them are beyond the edge.
    let inside = pixels.start.saturating_sub(MARGIN)..(pixels.end + MARGIN).min(source.width());
    let before = MARGIN.saturating_sub(pixels.start);
    let samples = inside.start * source.channels()..inside.end * source.channels();
    let rows: [&[f32]; 4] = std::array::from_fn(|tap| {
        let row = y as isize + phase.first + tap as isize;
        &source.row(replicated(row, source.height()))[samples.clone()]
    });
    to.clear();
    to.resize((pixels.len() + 2 * MARGIN) * 3, 0.0);
    let end = before + inside.len();
    let blended = &mut to[before * 3..end * 3];
    match source.channels() {
        3 => blend_rows(rows, taps, blended),
        _ => blend_grays(rows, taps, blended),
    }
    for column in 0..before {
        to.copy_within(before * 3..before * 3 + 3, column * 3);
    }
    for column in end..pixels.len() + 2 * MARGIN {
        to.copy_within((end - 1) * 3..end * 3, column * 3);
    }
}

#[inline(always)]
fn blend_rows([a, b, c, d]: [&[f32]; 4], taps: [f32; 4], to: &mut [f32]) {
    for ((((sum, a), b), c), d) in to.iter_mut().zip(a).zip(b).zip(c).zip(d) {
        *sum = taps[0] * a + taps[1] * b + taps[2] * c + taps[3] * d;
    }
}

#[inline(always)]
fn blend_grays([a, b, c, d]: [&[f32]; 4], taps: [f32; 4], to: &mut [f32]) {
    for ((((pixel, a), b), c), d) in to.chunks_exact_mut(3).zip(a).zip(b).zip(c).zip(d) {
        pixel.fill(taps[0] * a + taps[1] * b + taps[2] * c + taps[3] * d);
    }
}

//! Whether to believe what a file says of its compression. A PNG may hold a picture that was a JPEG before, and a
//! JPEG may have been saved again more finely; both leave the lattice of 8 x 8 blocks behind, and the lattice is
//! looked for here. Where it is found, no one knows how coarse the tables were: the networks are told so.

use std::array;

use upscale_core::Compression;
use upscale_simd::widened;

use crate::colour::Layout;

/// Side of a JPEG's blocks.
const BLOCK: usize = 8;
/// A step between two pixels counts when it is the greatest of so many on either side; 3 is the most that leaves no
/// second lattice line in view.
const REACH: usize = 3;
/// … greater than rounding …
const STEP_MIN: f32 = 4e-6;
/// … and smaller than an edge that was drawn: block steps of the coarsest tables stay below 40 levels.
const STEP_MAX: f32 = 40.0 / 255.0;
/// Fewer columns or rows say nothing.
const SIDE_MIN: usize = 32;
/// How far, in deviations of the other seven places, the lattice's place must stand out in both directions. Of 200
/// photographs, drawings and screenshots, shrunk to half their size, 1 is above; after a JPEG of quality 50, 75, 90
/// and 95 it is 90, 84, 70 and 46 % of them. `tests/pictures/lattice.rs` prints the same for pictures of its own.
const DEVIATIONS_MIN: f64 = 3.5;
/// Deviations are taken as at least so many times what chance alone would make them: neighbouring rows are no
/// independent witnesses.
const CHANCE_TIMES: f64 = 3.0;
/// A table's mean up to this one (JPEG quality 95) promises a picture without visible blocks.
const FINE_MEAN_MAX: f32 = 6.5;
/// Such a file has a faint lattice of its own: one in the same place must be stronger than this, relative to the
/// other places, to be someone else's. Of the same 200, none is above after quality 95, and 80 % are when they were
/// of quality 50 before that.
const OWN_EXCESS_MAX: f64 = 2.0;

/// What the networks are told, given what the file says. `samples` as decoded, not yet turned: the lattice of the
/// file itself begins at the first pixel.
pub(crate) fn believed(
    claimed: Compression,
    layout: Layout,
    width: usize,
    samples: &[f32],
) -> Compression {
    let suspicious = match claimed {
        Compression::Unknown => return claimed,
        Compression::Lossless => |_: &Lattice| true,
        Compression::Quantised { luma_mean, .. } if luma_mean <= FINE_MEAN_MAX => {
            Lattice::is_foreign
        }
        Compression::Quantised { .. } => return claimed,
    };
    let luma = luma(layout, samples);
    match find_lattice(&luma, width) {
        Some(lattice) if suspicious(&lattice) => Compression::Unknown,
        _ => claimed,
    }
}

/// Brightness enough for finding edges, `[0, 1]`.
fn luma(layout: Layout, samples: &[f32]) -> Vec<f32> {
    let pixels = samples.chunks_exact(layout.channels());
    match layout {
        Layout::Gray | Layout::GrayAlpha => pixels.map(|p| p[0]).collect(),
        Layout::Rgb | Layout::Rgba => pixels
            .map(|p| 0.299 * p[0] + 0.587 * p[1] + 0.114 * p[2])
            .collect(),
        Layout::Cmyk => pixels.map(|p| (1.0 - p[1]) * (1.0 - p[3])).collect(),
    }
}

/// Blocks that stand out in both directions.
struct Lattice {
    across: Line,
    down: Line,
}

/// The place, of the eight, that has most steps.
struct Line {
    place: usize,
    /// How far it stands out.
    deviations: f64,
    /// By how much it exceeds the other places' mean, relative to that mean.
    excess: f64,
}

impl Lattice {
    /// Not what the file's own fine tables leave.
    fn is_foreign(&self) -> bool {
        let own_place = self.across.place == 0 && self.down.place == 0;
        !own_place || self.across.excess.min(self.down.excess) > OWN_EXCESS_MAX
    }
}

fn find_lattice(luma: &[f32], width: usize) -> Option<Lattice> {
    let height = luma.len() / width;
    if width.min(height) < SIDE_MIN {
        return None;
    }
    let lattice = Lattice {
        across: line(luma, width),
        down: line(&transposed(luma, width), height),
    };
    let found = lattice.across.deviations.min(lattice.down.deviations) > DEVIATIONS_MIN;
    found.then_some(lattice)
}

fn transposed(plane: &[f32], width: usize) -> Vec<f32> {
    let height = plane.len() / width;
    let mut turned = Vec::with_capacity(plane.len());
    for x in 0..width {
        turned.extend((0..height).map(|y| plane[y * width + x]));
    }
    turned
}

/// Counts, for each of the eight places that a block's edge can have in a row, how often the picture's step there is
/// greater than all around it; where there is no lattice all places are alike.
fn line(plane: &[f32], width: usize) -> Line {
    let mut votes = [0u32; BLOCK];
    let mut bends = vec![0.0; width - 3];
    let mut steps = vec![0; bends.len() - 2 * REACH];
    for row in plane.chunks_exact(width) {
        widened!({
            // A step beyond the slope around it: that of a smooth gradient is 0.
            find_bends([row, &row[1..], &row[2..], &row[3..]], &mut bends);
            find_steps(array::from_fn(|at| &bends[at..]), &mut steps);
        });
        for (at, is_step) in steps.iter().enumerate() {
            votes[place_of(at)] += u32::from(*is_step);
        }
    }
    let mut chances = [0.0; BLOCK];
    for at in 0..steps.len() {
        chances[place_of(at)] += (plane.len() / width) as f64;
    }
    standing_out(array::from_fn(|place| {
        (f64::from(votes[place]), chances[place].max(1.0))
    }))
}

/// Which of the places of a block's edge the middle of the bends from `at` on is: `bends[i]` is the step between pixels i + 1
/// and i + 2.
fn place_of(at: usize) -> usize {
    (at + REACH + 2) % BLOCK
}

#[inline(always)]
fn find_bends([a, b, c, d]: [&[f32]; 4], bends: &mut [f32]) {
    for ((((bend, a), b), c), d) in bends.iter_mut().zip(a).zip(b).zip(c).zip(d) {
        *bend = ((c - b) - 0.5 * (d - c + b - a)).abs();
    }
}

/// 1 where a bend is greater than the three on either side: `around` begin one after the other. No branches, so that the
/// compiler makes vectors of it.
#[inline(always)]
fn find_steps(around: [&[f32]; 2 * REACH + 1], steps: &mut [u8]) {
    let [a, b, c, middle, d, e, f] = around.map(|bends| &bends[..steps.len()]);
    for (at, is_step) in steps.iter_mut().enumerate() {
        let step = middle[at];
        let beside = a[at].max(b[at]).max(c[at]).max(d[at]).max(e[at]).max(f[at]);
        // An edge between two flat fields was drawn: what a compressor left has some ripple near it.
        let ripple = a[at].max(b[at]).max(e[at]).max(f[at]);
        let is_within = (step > STEP_MIN) & (step < STEP_MAX);
        *is_step = u8::from((beside < step) & is_within & (ripple > STEP_MIN));
    }
}

/// Votes and chances by place.
fn standing_out(counts: [(f64, f64); BLOCK]) -> Line {
    let share = |place: usize| counts[place].0 / counts[place].1;
    let most = (0..BLOCK).max_by(|&a, &b| share(a).total_cmp(&share(b)));
    let place = most.unwrap_or(0);
    let others = || (0..BLOCK).filter(|&other| other != place).map(share);
    let count = (BLOCK - 1) as f64;
    let mean = others().sum::<f64>() / count;
    let variance = others().map(|one| (one - mean) * (one - mean)).sum::<f64>() / count;
    let chance = CHANCE_TIMES * (mean * (1.0 - mean) / counts[place].1).sqrt();
    let excess = share(place) - mean;
    Line {
        place,
        deviations: excess / variance.sqrt().max(chance).max(1e-4),
        excess: excess / (mean + 0.01),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What [`find_steps`] does, one place at a time.
    fn is_step(around: &[f32]) -> bool {
        let step = around[REACH];
        let mut beside = around.iter().enumerate().filter(|(at, _)| *at != REACH);
        let ripple = around[0].max(around[1]).max(around[5]).max(around[6]);
        let is_within = step > STEP_MIN && step < STEP_MAX;
        beside.all(|(_, other)| *other < step) && is_within && ripple > STEP_MIN
    }

    #[test]
    fn steps_are_those_of_the_plain_form() {
        let mut state = 1_u32;
        let random = (0..20_000).map(|at| {
            // xorshift32, George Marsaglia. Few values, so that neighbours are alike; some beyond both limits.
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            let flat = at % 50 < 10;
            if flat {
                0.0
            } else {
                (state >> 28) as f32 * 0.0115
            }
        });
        let bends: Vec<f32> = random.collect();
        let bends = [
            bends,
            vec![STEP_MIN, STEP_MAX, 0.0, 1.0, 0.0, STEP_MIN, 0.1],
        ]
        .concat();
        let mut steps = vec![0; bends.len() - 2 * REACH];
        find_steps(array::from_fn(|at| &bends[at..]), &mut steps);
        let plain = bends
            .windows(2 * REACH + 1)
            .map(|around| u8::from(is_step(around)));
        assert_eq!(steps, plain.collect::<Vec<_>>());
        assert!(steps.iter().filter(|&&step| step == 1).count() > 300);
    }
}

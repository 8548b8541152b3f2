//! What blocks of 8 x 8 pixels say: contrast between neighbours, between pairs, in colour; quantiles over the blocks.

use super::{Codes, FLOOR, log, luma, quantiles};

const BLOCK: usize = 8;
/// A block with more pixels than this share at the ends of the range is clipped: its noise cannot be seen.
const CLIPPED_MAX: f32 = 0.2;
/// Fewer blocks that are neither flat nor clipped say nothing by themselves: then all are taken.
const USEFUL_MIN: usize = 4;
/// The share of blocks with the least coarse contrast: what contrast they have left is mostly noise.
const CALM_SHARE: f64 = 0.15;
/// Of the finest luma's square, the colours' at most, and of the straight bands' square the finest luma's at most.
const TEXTURE_TINT_MAX: f32 = 0.1;
const TEXTURE_FINE_MAX: f32 = 0.19;

/// Mean squares of Haar's bands in one block, each in the scale that white noise of deviation 1 gives 1.
#[derive(Clone, Copy, Default)]
struct Block {
    /// Diagonal and straight bands of single pixels.
    fine: f32,
    straight: f32,
    /// The same of the means of 2 x 2 pixels.
    fine2: f32,
    straight2: f32,
    /// Straight bands of the means of 4 x 4.
    straight3: f32,
    /// Diagonal bands of the colour differences.
    tint: f32,
    flat: bool,
    clipped: bool,
}

/// Which of a block's numbers.
type Band = fn(&Block) -> f32;

const QUANTILES: [(Band, &[f64]); 5] = [
    (|b| b.fine, &[0.05, 0.15, 0.3, 0.5, 0.8]),
    (|b| b.straight, &[0.05, 0.3, 0.6]),
    (|b| b.fine2, &[0.05, 0.3, 0.6]),
    (|b| b.straight2, &[0.05, 0.3]),
    (|b| b.tint, &[0.05, 0.3, 0.5]),
];
const CALM: [Band; 5] = [
    |b| b.fine,
    |b| b.straight,
    |b| b.fine2,
    |b| b.straight2,
    |b| b.tint,
];
const MEANS: [Band; 5] = [
    |b| b.fine,
    |b| b.straight,
    |b| b.fine2,
    |b| b.straight2,
    |b| b.straight3,
];

pub(super) fn features(codes: &Codes) -> Vec<f32> {
    let all = blocks(codes);
    let share = |is: fn(&Block) -> bool| {
        all.iter().filter(|block| is(block)).count() as f32 / all.len() as f32
    };
    let mut found = vec![share(|b| b.flat), share(|b| b.clipped)];
    let mut useful: Vec<Block> = all
        .iter()
        .filter(|b| !b.flat && !b.clipped)
        .copied()
        .collect();
    if useful.len() < USEFUL_MIN {
        useful.clone_from(&all);
    }
    for (band, shares) in QUANTILES {
        let mut values: Vec<f32> = useful.iter().map(band).collect();
        found.extend(quantiles(&mut values, shares).iter().map(|v| log(v.sqrt())));
    }
    let mut coarse: Vec<f32> = useful.iter().map(|b| b.straight2).collect();
    let limit = quantiles(&mut coarse, &[CALM_SHARE])
        .first()
        .copied()
        .unwrap_or(0.0);
    useful.retain(|block| block.straight2 <= limit);
    found.extend(CALM.map(|band| log(mean(&useful, band).sqrt())));
    found.extend(MEANS.map(|band| log(mean(&all, band).sqrt())));
    found
}

/// Whether what reads as noise may be texture: alike in all colours, as light and shade are and a sensor's noise is not, and
/// fading towards the finest detail, as white noise does not. Squares, in the calmest blocks: measured in `estimate.py`.
pub(super) fn may_be_texture(features: &[f32]) -> bool {
    let calm_at = 2 + QUANTILES
        .iter()
        .map(|(_, shares)| shares.len())
        .sum::<usize>();
    let square = |place: usize| {
        let log = features.get(calm_at + place).copied().unwrap_or(0.0);
        (log.exp2() - FLOOR).powi(2)
    };
    let [finest, straight, tint] = [0, 1, 4].map(square);
    tint < TEXTURE_TINT_MAX * finest && finest < TEXTURE_FINE_MAX * straight
}

fn mean(blocks: &[Block], band: Band) -> f32 {
    let sum: f64 = blocks.iter().map(|block| f64::from(band(block))).sum();
    (sum / blocks.len() as f64) as f32
}

fn blocks(codes: &Codes) -> Vec<Block> {
    let (columns, rows) = (codes.width / BLOCK, codes.height / BLOCK);
    let mut found = Vec::with_capacity(columns * rows);
    for top in (0..rows).map(|row| row * BLOCK) {
        for left in (0..columns).map(|column| column * BLOCK) {
            let pixel = |x: usize, y: usize| &codes.levels[(top + y) * codes.width + left + x];
            found.push(block(&pixel));
        }
    }
    found
}

fn block<'a>(pixel: &impl Fn(usize, usize) -> &'a [f32; 3]) -> Block {
    let luma: [[f32; 8]; 8] = std::array::from_fn(|y| std::array::from_fn(|x| luma(pixel(x, y))));
    let colour = |other: usize| -> [[f32; 8]; 8] {
        std::array::from_fn(|y| {
            std::array::from_fn(|x| {
                let levels = pixel(x, y);
                levels[other] - levels[1]
            })
        })
    };
    let first = Bands::of::<8, 4>(&luma);
    let second = Bands::of::<4, 2>(&first.means::<4>());
    let third = Bands::of::<2, 1>(&second.means::<2>());
    let ends = luma.iter().flatten().filter(|v| **v <= 1.0 || **v >= 254.0);
    let clipped = ends.count() as f32 / (BLOCK * BLOCK) as f32 > CLIPPED_MAX;
    // A level's means have half the amplitude of the level before: their squares count fourfold, and again.
    let (fine2, straight2) = (second.diagonal * 4.0, second.straight * 4.0);
    Block {
        fine: first.diagonal,
        straight: first.straight,
        fine2,
        straight2,
        straight3: third.straight * 16.0,
        tint: 0.5
            * (Bands::of::<8, 4>(&colour(0)).diagonal + Bands::of::<8, 4>(&colour(2)).diagonal),
        flat: first.diagonal + first.straight + fine2 + straight2 == 0.0,
        clipped,
    }
}

/// One level of Haar's transform of a square.
struct Bands {
    means: [[f32; 4]; 4],
    /// Mean squares: of the diagonal band, and of the horizontal and the vertical one together.
    diagonal: f32,
    straight: f32,
}

impl Bands {
    /// Of `SIDE x SIDE` samples, `HALF` being half of `SIDE`.
    fn of<const SIDE: usize, const HALF: usize>(square: &[[f32; SIDE]; SIDE]) -> Self {
        let (mut means, mut diagonal, mut straight) = ([[0.0; 4]; 4], 0.0, 0.0);
        for y in 0..HALF {
            for x in 0..HALF {
                let (a, b) = (square[2 * y][2 * x], square[2 * y][2 * x + 1]);
                let (c, d) = (square[2 * y + 1][2 * x], square[2 * y + 1][2 * x + 1]);
                means[y][x] = (a + b + c + d) * 0.25;
                diagonal += squared((a - b - c + d) * 0.5);
                straight += 0.5 * (squared((a - b + c - d) * 0.5) + squared((a + b - c - d) * 0.5));
            }
        }
        let count = (HALF * HALF) as f32;
        Self {
            means,
            diagonal: diagonal / count,
            straight: straight / count,
        }
    }

    fn means<const SIDE: usize>(&self) -> [[f32; SIDE]; SIDE] {
        std::array::from_fn(|y| std::array::from_fn(|x| self.means[y][x]))
    }
}

fn squared(value: f32) -> f32 {
    value * value
}

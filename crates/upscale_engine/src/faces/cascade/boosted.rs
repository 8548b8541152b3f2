//! The first look: locally assembled binary patterns (Yan, Shan, Chen, Gao: "Locally assembled binary (LAB) feature with
//! feature-centric cascade for fast and accurate face detection", CVPR 2008). A pattern says which of the eight squares of 3
//! x 3 pixels round a ninth are no brighter than it; 150 places of a window each look up a vote for the pattern they see.

use super::SIDE;
use super::reader::Reader;
use crate::faces::plane::Plane;

/// Side of one square, in pixels.
const SQUARE: usize = 3;
/// Patterns: eight squares, brighter or not.
const PATTERNS: usize = 256;
/// After so many votes their sum is held against a threshold.
const GROUP: usize = 10;
/// Least standard deviation of a window's pixels: flat ones are no faces.
const DEVIATION_MIN: f64 = 10.0;

/// One boosted classifier: faces seen from one side.
#[derive(Debug)]
pub(super) struct View {
    groups: Vec<Group>,
}

#[derive(Debug)]
struct Group {
    places: Vec<Offset>,
    /// The votes so far must reach it.
    threshold: f32,
}

#[derive(Debug)]
struct Offset {
    x: usize,
    y: usize,
    votes: [f32; PATTERNS],
}

impl View {
    pub(super) fn read(file: &mut Reader) -> Result<Self, String> {
        let count = file.count()?;
        file.expect("patterns", PATTERNS as i32 - 1)?;
        let places: Vec<_> = (0..count)
            .map(|_| Ok((coordinate(file)?, coordinate(file)?)))
            .collect::<Result<_, String>>()?;
        let thresholds = file.floats(count)?;
        if count % GROUP != 0 {
            return Err(format!("{count} places, not in groups of {GROUP}"));
        }
        let mut groups = Vec::with_capacity(count / GROUP);
        for (places, thresholds) in places.chunks(GROUP).zip(thresholds.chunks(GROUP)) {
            let place = |&(x, y)| {
                Ok(Offset {
                    x,
                    y,
                    votes: votes(file)?,
                })
            };
            groups.push(Group {
                places: places.iter().map(place).collect::<Result<_, String>>()?,
                threshold: thresholds[GROUP - 1],
            });
        }
        Ok(Self { groups })
    }

    /// The sum of all votes for the window at `corner`; none as soon as a threshold is missed.
    pub(super) fn score(&self, corner: Corner<'_>) -> Option<f32> {
        let mut score = 0.0;
        for group in &self.groups {
            for place in &group.places {
                score += place.votes[usize::from(corner.pattern(place.x, place.y))];
            }
            if score < group.threshold {
                return None;
            }
        }
        Some(score)
    }
}

/// Within a window, so that its pattern lies within it too.
fn coordinate(file: &mut Reader) -> Result<usize, String> {
    let found = file.count()?;
    match found <= SIDE - 3 * SQUARE {
        true => Ok(found),
        false => Err(format!("a pattern at {found} of {SIDE} pixels")),
    }
}

fn votes(file: &mut Reader) -> Result<[f32; PATTERNS], String> {
    let votes = file.floats(PATTERNS)?;
    votes
        .try_into()
        .map_err(|votes: Vec<f32>| format!("{} votes", votes.len()))
}

/// The pattern at each pixel of one level of the pyramid.
pub(super) struct Patterns {
    width: usize,
    patterns: Vec<u8>,
}

/// The upper left corner of a window.
#[derive(Clone, Copy)]
pub(super) struct Corner<'a> {
    width: usize,
    patterns: &'a [u8],
}

impl Corner<'_> {
    fn pattern(self, x: usize, y: usize) -> u8 {
        self.patterns[y * self.width + x]
    }
}

impl Patterns {
    /// Of a level of at least 9 x 9 pixels. Patterns that would stick out on the right or below are 0; no window has one.
    pub(super) fn of(level: &Plane) -> Self {
        let (width, height) = (level.width(), level.height());
        let sums = square_sums(level);
        let mut patterns = vec![0; width * height];
        let last = 2 * SQUARE;
        for (y, row) in patterns.chunks_exact_mut(width).enumerate() {
            if y + 3 * SQUARE > height {
                break;
            }
            let [upper, middle, lower] =
                [0, SQUARE, last].map(|down| &sums[(y + down) * width..][..width]);
            for (x, pattern) in row.iter_mut().take(width - 3 * SQUARE + 1).enumerate() {
                let centre = middle[x + SQUARE];
                let round = [
                    upper[x],
                    upper[x + SQUARE],
                    upper[x + last],
                    middle[x],
                    middle[x + last],
                    lower[x],
                    lower[x + SQUARE],
                    lower[x + last],
                ];
                let bits = round.map(|sum| u8::from(centre >= sum));
                *pattern = bits.iter().fold(0, |bits, bit| bits << 1 | bit);
            }
        }
        Self { width, patterns }
    }

    pub(super) fn at(&self, x: usize, y: usize) -> Corner<'_> {
        Corner {
            width: self.width,
            patterns: &self.patterns[y * self.width + x..],
        }
    }
}

/// The sum of the 3 x 3 pixels of which each pixel is the upper left one; less where they stick out.
fn square_sums(level: &Plane) -> Vec<u16> {
    let across = |row: &[u8]| -> Vec<u16> {
        let sum = |x: usize| row[x..].iter().take(SQUARE).map(|&v| u16::from(v)).sum();
        (0..row.len()).map(sum).collect()
    };
    let rows: Vec<Vec<u16>> = (0..level.height()).map(|y| across(level.row(y))).collect();
    let down = |y: usize| {
        let mut sums = rows[y].clone();
        for below in rows.iter().skip(y + 1).take(SQUARE - 1) {
            sums.iter_mut().zip(below).for_each(|(sum, v)| *sum += v);
        }
        sums
    };
    (0..rows.len()).flat_map(down).collect()
}

/// Whether the window at (`x`, `y`) is more than one tone.
pub(super) fn is_lively(level: &Plane, x: usize, y: usize) -> bool {
    let (mut sum, mut squares) = (0_u32, 0_u32);
    for row in y..y + SIDE {
        for &pixel in level.row(row).iter().skip(x).take(SIDE) {
            sum += u32::from(pixel);
            squares += u32::from(pixel) * u32::from(pixel);
        }
    }
    let area = (SIDE * SIDE) as f64;
    let mean = f64::from(sum) / area;
    (f64::from(squares) / area - mean * mean).sqrt() > DEVIATION_MIN
}

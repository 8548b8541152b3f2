//! What the perceptrons see of a window: SURF descriptors (Li, Zhang: "Learning SURF cascade for fast and accurate object
//! detection", CVPR 2013). A patch is cut into 2 x 2 cells; each cell has eight sums of its gradients.

use super::SIDE;
use crate::faces::plane::Plane;

/// Sums of a cell: dx and |dx| where dy is not negative, and where it is; dy and |dy| where dx is not negative, and where it is.
const SUMS: usize = 8;
/// Numbers of a descriptor: 2 x 2 cells.
pub(super) const NUMBERS: usize = 4 * SUMS;
/// Least side of a patch, and how far apart patches of a size are.
const PATCH_MIN: usize = 16;
/// Width and height of patches, as a ratio.
const SHAPES: [(usize, usize); 5] = [(1, 1), (1, 2), (2, 1), (2, 3), (3, 2)];
/// Of the table of sums, which has a row and a column of zeros in front.
const ROW: usize = SIDE + 1;

/// A rectangle of a window, in pixels; both sides are even.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patch {
    x: usize,
    y: usize,
    width: usize,
    height: usize,
}

/// All patches, in the order in which models number them.
pub(super) fn patches() -> Vec<Patch> {
    let mut patches = Vec::new();
    for (wide, high) in SHAPES {
        for height in PATCH_MIN..=SIDE {
            let width = height / high * wide;
            let fits = (PATCH_MIN..=SIDE).contains(&width);
            if height % 2 != 0 || height % high != 0 || width % 2 != 0 || !fits {
                continue;
            }
            for y in (0..=SIDE - height).step_by(PATCH_MIN) {
                let places = (0..=SIDE - width).step_by(PATCH_MIN);
                patches.extend(places.map(|x| Patch {
                    x,
                    y,
                    width,
                    height,
                }));
            }
        }
    }
    patches
}

/// The sums of all gradients above and to the left of each pixel of one window.
pub(super) struct Gradients {
    table: Vec<[i32; SUMS]>,
}

impl Gradients {
    /// Of a window of 40 x 40 pixels.
    pub(super) fn of(window: &Plane) -> Self {
        let mut table = vec![[0; SUMS]; ROW * ROW];
        for y in 0..SIDE {
            let rows = [
                window.row(y.saturating_sub(1)),
                window.row(y),
                window.row((y + 1).min(SIDE - 1)),
            ];
            // One-sided at the edges, where it counts twice.
            let twice = if y == 0 || y == SIDE - 1 { 2 } else { 1 };
            let mut along = [0; SUMS];
            for x in 0..SIDE {
                let dx = across(rows[1], x);
                let dy = twice * (i32::from(rows[2][x]) - i32::from(rows[0][x]));
                add(&mut along, sums(dx, dy));
                let mut total = table[y * ROW + x + 1];
                add(&mut total, along);
                table[(y + 1) * ROW + x + 1] = total;
            }
        }
        Self { table }
    }

    /// The descriptor of `patch`, of length one (or zero, where there is no gradient).
    pub(super) fn descriptor(&self, patch: Patch) -> [f32; NUMBERS] {
        let (width, height) = (patch.width / 2, patch.height / 2);
        let mut numbers = [0; NUMBERS];
        for (cell, numbers) in numbers.chunks_exact_mut(SUMS).enumerate() {
            let (x, y) = (patch.x + cell % 2 * width, patch.y + cell / 2 * height);
            let corner = |x: usize, y: usize| &self.table[y * ROW + x];
            let upper = (corner(x, y), corner(x + width, y));
            let lower = (corner(x, y + height), corner(x + width, y + height));
            for (sum, number) in numbers.iter_mut().enumerate() {
                *number = lower.1[sum] - lower.0[sum] - upper.1[sum] + upper.0[sum];
            }
        }
        // A sum is at most 20 x 20 x 510: its square is exact here, and so is the sum of all.
        let square = |&number: &i32| f64::from(number) * f64::from(number);
        let length = numbers.iter().map(square).sum::<f64>().sqrt() as f32;
        match length == 0.0 {
            true => [0.0; NUMBERS],
            false => numbers.map(|number| number as f32 / length),
        }
    }
}

/// The difference of the neighbours left and right; twice the one-sided one at the edges.
fn across(row: &[u8], x: usize) -> i32 {
    let at = |x: usize| i32::from(row[x]);
    match x {
        0 => 2 * (at(1) - at(0)),
        x if x == SIDE - 1 => 2 * (at(x) - at(x - 1)),
        _ => at(x + 1) - at(x - 1),
    }
}

fn sums(dx: i32, dy: i32) -> [i32; SUMS] {
    let of = |along: i32, side: i32| match side < 0 {
        false => [along, along.abs(), 0, 0],
        true => [0, 0, along, along.abs()],
    };
    let ([a, b, c, d], [e, f, g, h]) = (of(dx, dy), of(dy, dx));
    [a, b, c, d, e, f, g, h]
}

fn add(to: &mut [i32; SUMS], more: [i32; SUMS]) {
    to.iter_mut().zip(more).for_each(|(to, more)| *to += more);
}

//! Where edges run and how sure that is, source row by source row.

use upscale_core::soft_share;
use upscale_simd::widened;

use crate::check::around;
use crate::gaussian::{across, down, taps};
use crate::ring::Ring;
use crate::spare::Spare;

/// Deviations of the Gaussians before the gradients and over their products, in source pixels. With a wider one over the
/// products lines that cross are no edge; with a narrower one the course trembles too.
const INNER: f32 = 0.7;
const OUTER: f32 = 1.6;
/// How far they reach, in source pixels, and how many each takes in.
const INNER_REACH: usize = 2;
const OUTER_REACH: usize = 5;
const INNER_TAPS: usize = 2 * INNER_REACH + 1;
const OUTER_TAPS: usize = 2 * OUTER_REACH + 1;
/// Gradient that counts half as an edge: two levels of 8 bits a source pixel.
const EDGE: f32 = 2.0 / 255.0;

/// How freely pixels move, in sharp and in soft pictures: a soft source says less of where its edges run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Freedom {
    /// Of the coherence: how far there has to be one edge alone. With the 12th in sharp ones, drawn graphics behind JPEG 90
    /// lost 0.027 dB at 4x and not 0.018.
    exponent: f32,
    /// So many of an edge's mean slopes, each of a result pixel, a pixel moves by at half: a corner or the end of a line is no
    /// edge that trembles. A sharp source says nearly all of where a line bends, at 2x above all: with 2 and
    /// the 6th power drawn graphics behind JPEG 90 lost 0.34 dB there, with 0.6 and the 16th 0.04.
    slopes: f32,
}

impl Freedom {
    /// In a picture that reads as soft as that, in source pixels; at `scale`, 2 or 4.
    pub(super) fn new(softness: f32, scale: usize) -> Self {
        let between = |[sharp, soft]: [f32; 2]| sharp + (soft - sharp) * soft_share(softness);
        let (exponents, slopes) = match scale {
            2 => ([16.0, 7.0], [0.6, 2.0]),
            _ => ([16.0, 3.5], [3.0, 30.0]),
        };
        Self {
            exponent: between(exponents),
            slopes: between(slopes) / scale as f32,
        }
    }
}

/// What is known of a source pixel's edge.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Cell {
    /// Along it: columns and rows, of length 1.
    pub(super) direction: [f32; 2],
    /// How far one edge alone is there, 0..1: a power of the coherence, times what is left of the gradient beside [`EDGE`].
    pub(super) share: f32,
    /// Square of how far a pixel's brightness may move.
    pub(super) limit: f32,
}

/// The structure tensor of a picture (Bigun and Granlund 1987), as its rows come.
pub(super) struct Course {
    height: usize,
    freedom: Freedom,
    inner: [f32; INNER_TAPS],
    outer: [f32; OUTER_TAPS],
    /// Brightness, blurred across; blurred both ways; the squares of its gradients across and down and their product, one
    /// after the other, blurred across. As many rows as a blur down leans on, and one or more.
    brightness: Ring<f32, 8>,
    smooth: Ring<f32, 8>,
    products: Ring<f32, 16>,
    next: usize,
}

impl Course {
    pub(super) fn new(height: usize, freedom: Freedom) -> Self {
        Self {
            height,
            freedom,
            inner: taps(INNER),
            outer: taps(OUTER),
            brightness: Ring::new(),
            smooth: Ring::new(),
            products: Ring::new(),
            next: 0,
        }
    }

    /// Takes the brightness of the next source row. [`Course::pop`] must be asked before the one after it, until it has no
    /// row more.
    pub(super) fn push(&mut self, row: &[f32], spare: &mut Spare) {
        across(row, &self.inner, self.brightness.next(), spare);
    }

    /// Fills the next row of cells, if all that it leans on is there.
    pub(super) fn pop<const KEPT: usize>(
        &mut self,
        cells: &mut Ring<Cell, KEPT>,
        spare: &mut Spare,
    ) -> bool {
        loop {
            if self
                .products
                .is_complete(self.next, OUTER_REACH, self.height)
            {
                let mut sums = spare.row();
                down(
                    &self.products,
                    [self.next, self.height],
                    &self.outer,
                    &mut sums,
                );
                fill(cells.next(), &sums, self.freedom);
                spare.keep([sums]);
                self.next += 1;
                return true;
            }
            if self
                .smooth
                .is_complete(self.products.count(), 1, self.height)
            {
                self.take_products(spare);
            } else if self
                .brightness
                .is_complete(self.smooth.count(), INNER_REACH, self.height)
            {
                let y = self.smooth.count();
                down(
                    &self.brightness,
                    [y, self.height],
                    &self.inner,
                    self.smooth.next(),
                );
            } else {
                return false;
            }
        }
    }

    fn take_products(&mut self, spare: &mut Spare) {
        let y = self.products.count();
        let rows: [_; 3] = self.smooth.around(y, self.height);
        let width = rows[1].len();
        let row = around(rows[1], 1, &(0..width), 1, spare);
        let mut products = [spare.zeros(width), spare.zeros(width), spare.zeros(width)];
        let [xx, yy, xy] = &mut products;
        widened!(multiply(&row, [rows[0], rows[2]], [xx, yy, xy]));
        let blurred = self.products.next();
        for plane in &products {
            across(plane, &self.outer, blurred, spare);
        }
        spare.keep([row]);
        spare.keep(products);
    }
}

/// Products of the gradients of a row, given with a pixel before and after it, between the rows above and below.
#[inline(always)]
fn multiply(row: &[f32], [above, below]: [&[f32]; 2], [xx, yy, xy]: [&mut [f32]; 3]) {
    for x in 0..above.len() {
        let across = (row[x + 2] - row[x]) * 0.5;
        let down = (below[x] - above[x]) * 0.5;
        xx[x] = across * across;
        yy[x] = down * down;
        xy[x] = across * down;
    }
}

/// Cells of the sums of squares and products, one after the other.
fn fill(cells: &mut Vec<Cell>, sums: &[f32], freedom: Freedom) {
    let (xx, rest) = sums.split_at(sums.len() / 3);
    let (yy, xy) = rest.split_at(xx.len());
    let tensors = xx.iter().zip(yy).zip(xy);
    cells.extend(tensors.map(|((xx, yy), xy)| cell([*xx, *yy, *xy], freedom)));
}

#[inline]
fn cell([xx, yy, xy]: [f32; 3], Freedom { exponent, slopes }: Freedom) -> Cell {
    let (turned, other, power) = (xx - yy, 2.0 * xy, xx + yy);
    let size = (turned * turned + other * other).sqrt() + 1e-12;
    let half = |cosine: f32| ((1.0 + cosine) * 0.5).max(0.0).sqrt();
    let sine = half(-turned / size).copysign(other);
    let coherence = (size / (power + 1e-9)).min(1.0);
    Cell {
        direction: [-sine, half(turned / size)],
        share: coherence.powf(exponent) * power / (power + EDGE * EDGE),
        limit: power * slopes * slopes,
    }
}

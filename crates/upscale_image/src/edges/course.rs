//! Where edges run and how sure that is, source row by source row.

use std::array;
use std::collections::VecDeque;

/// Deviations of the Gaussians before the gradients and over their products, and how far they reach, in source pixels. With
/// a wider one over the products lines that cross are no edge; with a narrower one the course trembles too.
const INNER: (f32, usize) = (0.7, 2);
const OUTER: (f32, usize) = (2.2, 6);
/// Gradient that counts half as an edge: two levels of 8 bits a source pixel.
const EDGE: f32 = 2.0 / 255.0;
/// So many of an edge's mean slopes a pixel moves by at half: a corner or the end of a line is no edge that trembles. With
/// a third of it RealSR's edges tremble by 0.202 pixels in place of 0.19; drawn graphics lose 0.02 dB less.
const SLOPES: f32 = 3.0;

/// What is known of a source pixel's edge.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Cell {
    /// Along it: columns and rows, of length 1.
    pub(super) direction: [f32; 2],
    /// How far one edge alone is there, 0..1: the 12th power of the coherence (with the 8th, drawn graphics behind JPEG 90
    /// lost 0.1 dB and not 0.05), times what is left of the gradient beside [`EDGE`].
    pub(super) share: f32,
    /// Square of how far a pixel's brightness may move.
    pub(super) limit: f32,
}

/// Rows of N numbers a pixel that come one after another, of which the last few are kept.
struct Kept<const N: usize> {
    rows: VecDeque<Vec<[f32; N]>>,
    first: usize,
}

impl<const N: usize> Kept<N> {
    fn new() -> Self {
        Self {
            rows: VecDeque::new(),
            first: 0,
        }
    }

    /// Rows that came.
    fn count(&self) -> usize {
        self.first + self.rows.len()
    }

    fn row(&self, y: usize) -> &[[f32; N]] {
        &self.rows[y - self.first]
    }

    fn push(&mut self, row: Vec<[f32; N]>) {
        self.rows.push_back(row);
    }

    /// Lets go the rows before row `y`.
    fn keep_from(&mut self, y: usize) {
        while self.first < y {
            self.rows.pop_front();
            self.first += 1;
        }
    }

    /// Row `y` blurred down; beyond the last row is the last one.
    fn blurred(&self, y: usize, taps: &[f32], last: usize) -> Vec<[f32; N]> {
        let reach = taps.len() / 2;
        let mut sums = vec![[0.0; N]; self.row(y).len()];
        for (index, tap) in taps.iter().enumerate() {
            let row = self.row((y + index).saturating_sub(reach).min(last));
            for (sum, pixel) in sums.iter_mut().zip(row) {
                *sum = array::from_fn(|n| sum[n] + tap * pixel[n]);
            }
        }
        sums
    }
}

/// The structure tensor of a picture (Bigun and Granlund 1987), as its rows come.
pub(super) struct Course {
    height: usize,
    scale: usize,
    inner: Vec<f32>,
    outer: Vec<f32>,
    /// Brightness, blurred across; blurred both ways; the products of its gradients, blurred across.
    brightness: Kept<1>,
    smooth: Kept<1>,
    products: Kept<3>,
    next: usize,
}

impl Course {
    pub(super) fn new(height: usize, scale: usize) -> Self {
        Self {
            height,
            scale,
            inner: taps(INNER),
            outer: taps(OUTER),
            brightness: Kept::new(),
            smooth: Kept::new(),
            products: Kept::new(),
            next: 0,
        }
    }

    /// Takes the brightness of the next source row; hands the rows of cells that are known to `take`, in order.
    pub(super) fn push(&mut self, row: &[f32], take: &mut impl FnMut(Vec<Cell>)) {
        let last = self.height - 1;
        let row: Vec<[f32; 1]> = row.iter().map(|sample| [*sample]).collect();
        self.brightness.push(across(&row, &self.inner));
        while self.is_next(self.smooth.count(), INNER.1, self.brightness.count()) {
            let y = self.smooth.count();
            self.smooth
                .push(self.brightness.blurred(y, &self.inner, last));
            self.brightness.keep_from((y + 1).saturating_sub(INNER.1));
        }
        while self.is_next(self.products.count(), 1, self.smooth.count()) {
            let y = self.products.count();
            self.products
                .push(across(&self.products_of(y), &self.outer));
            self.smooth.keep_from(y);
        }
        while self.is_next(self.next, OUTER.1, self.products.count()) {
            let row = self.products.blurred(self.next, &self.outer, last);
            take(row.iter().map(|tensor| cell(*tensor, self.scale)).collect());
            self.next += 1;
            self.products.keep_from(self.next.saturating_sub(OUTER.1));
        }
    }

    /// Whether row `y` can be made of rows up to `reach` below it, of which `known` are there.
    fn is_next(&self, y: usize, reach: usize, known: usize) -> bool {
        y < self.height && known > (y + reach).min(self.height - 1)
    }

    /// Of the gradients of row `y`: both squares and the product of both.
    fn products_of(&self, y: usize) -> Vec<[f32; 3]> {
        let above = self.smooth.row(y.saturating_sub(1));
        let (own, below) = (
            self.smooth.row(y),
            self.smooth.row((y + 1).min(self.height - 1)),
        );
        let products = (0..own.len()).map(|x| {
            let (left, right) = (x.saturating_sub(1), (x + 1).min(own.len() - 1));
            let across = (own[right][0] - own[left][0]) * 0.5;
            let down = (below[x][0] - above[x][0]) * 0.5;
            [across * across, down * down, across * down]
        });
        products.collect()
    }
}

/// Normalised taps of a Gaussian.
fn taps((sigma, reach): (f32, usize)) -> Vec<f32> {
    let taps = (0..=2 * reach).map(|index| {
        let distance = index.abs_diff(reach) as f32 / sigma;
        (-0.5 * distance * distance).exp()
    });
    let taps: Vec<f32> = taps.collect();
    let sum: f32 = taps.iter().sum();
    taps.iter().map(|tap| tap / sum).collect()
}

/// A row blurred along itself; beyond its ends is its last pixel.
fn across<const N: usize>(row: &[[f32; N]], taps: &[f32]) -> Vec<[f32; N]> {
    let (reach, last) = (taps.len() / 2, row.len() - 1);
    (0..row.len())
        .map(|x| {
            taps.iter().enumerate().fold([0.0; N], |sum, (index, tap)| {
                let pixel = row[(x + index).saturating_sub(reach).min(last)];
                array::from_fn(|n| sum[n] + tap * pixel[n])
            })
        })
        .collect()
}

fn cell([xx, yy, xy]: [f32; 3], scale: usize) -> Cell {
    let (turned, other, power) = (xx - yy, 2.0 * xy, xx + yy);
    let size = (turned * turned + other * other).sqrt() + 1e-12;
    let half = |cosine: f32| ((1.0 + cosine) * 0.5).max(0.0).sqrt();
    let sine = half(-turned / size).copysign(other);
    let coherence = (size / (power + 1e-9)).min(1.0);
    let slopes = SLOPES / scale as f32;
    Cell {
        direction: [-sine, half(turned / size)],
        share: coherence.powi(12) * power / (power + EDGE * EDGE),
        limit: power * slopes * slopes,
    }
}

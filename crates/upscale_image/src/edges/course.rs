//! Where edges run and how sure that is, source row by source row.

use std::collections::VecDeque;

use upscale_simd::widened;

/// Deviations of the Gaussians before the gradients and over their products, and how far they reach, in source pixels. With
/// a wider one over the products lines that cross are no edge; with a narrower one the course trembles too.
const INNER: (f32, usize) = (0.7, 2);
const OUTER: (f32, usize) = (2.2, 6);
/// Gradient that counts half as an edge: two levels of 8 bits a source pixel.
const EDGE: f32 = 2.0 / 255.0;
/// So many of an edge's mean slopes, each of a result pixel, a pixel moves by at half: a corner or the end of a line is no
/// edge that trembles. At 4x with a third of it RealSR's edges tremble by 0.202 pixels in place of 0.194. At 2x the source
/// says nearly all of where a line bends: with 3 drawn graphics behind JPEG 90 lost 0.21 dB, with 0.6 0.06.
const fn slopes(scale: usize) -> f32 {
    if scale == 2 { 0.6 } else { 3.0 }
}

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

/// Rows that come one after another, of which the last few are kept.
#[derive(Default)]
struct Kept {
    rows: VecDeque<Vec<f32>>,
    first: usize,
}

impl Kept {
    /// Rows that came.
    fn count(&self) -> usize {
        self.first + self.rows.len()
    }

    fn row(&self, y: usize) -> &[f32] {
        &self.rows[y - self.first]
    }

    fn push(&mut self, row: Vec<f32>) {
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
    fn blurred(&self, y: usize, taps: &[f32], last: usize) -> Vec<f32> {
        let reach = taps.len() / 2;
        let mut sums = vec![0.0; self.row(y).len()];
        for (index, tap) in taps.iter().enumerate() {
            let row = self.row((y + index).saturating_sub(reach).min(last));
            widened!(add(&mut sums, row, *tap));
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
    /// Brightness, blurred across; blurred both ways; the squares of its gradients across and down and their product, one
    /// after the other, blurred across.
    brightness: Kept,
    smooth: Kept,
    products: Kept,
    next: usize,
}

impl Course {
    pub(super) fn new(height: usize, scale: usize) -> Self {
        Self {
            height,
            scale,
            inner: taps(INNER),
            outer: taps(OUTER),
            brightness: Kept::default(),
            smooth: Kept::default(),
            products: Kept::default(),
            next: 0,
        }
    }

    /// Takes the brightness of the next source row; hands the rows of cells that are known to `take`, in order.
    pub(super) fn push(&mut self, row: &[f32], take: &mut impl FnMut(Vec<Cell>)) {
        let last = self.height - 1;
        self.brightness.push(across(row, &self.inner));
        while self.is_next(self.smooth.count(), INNER.1, self.brightness.count()) {
            let y = self.smooth.count();
            self.smooth
                .push(self.brightness.blurred(y, &self.inner, last));
            self.brightness.keep_from((y + 1).saturating_sub(INNER.1));
        }
        while self.is_next(self.products.count(), 1, self.smooth.count()) {
            let y = self.products.count();
            self.products.push(self.products_of(y));
            self.smooth.keep_from(y);
        }
        while self.is_next(self.next, OUTER.1, self.products.count()) {
            let sums = self.products.blurred(self.next, &self.outer, last);
            take(cells(&sums, self.scale));
            self.next += 1;
            self.products.keep_from(self.next.saturating_sub(OUTER.1));
        }
    }

    /// Whether row `y` can be made of rows up to `reach` below it, of which `known` are there.
    fn is_next(&self, y: usize, reach: usize, known: usize) -> bool {
        y < self.height && known > (y + reach).min(self.height - 1)
    }

    fn products_of(&self, y: usize) -> Vec<f32> {
        let above = self.smooth.row(y.saturating_sub(1));
        let below = self.smooth.row((y + 1).min(self.height - 1));
        let row = padded(self.smooth.row(y), 1);
        let width = above.len();
        let mut products = [vec![0.0; width], vec![0.0; width], vec![0.0; width]];
        let [xx, yy, xy] = &mut products;
        widened!(multiply(&row, [above, below], [xx, yy, xy]));
        products
            .iter()
            .flat_map(|plane| across(plane, &self.outer))
            .collect()
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

#[inline(always)]
fn add(sums: &mut [f32], row: &[f32], tap: f32) {
    for (sum, sample) in sums.iter_mut().zip(row) {
        *sum += tap * sample;
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

/// A row and `reach` times its first and last pixel before and after it.
fn padded(row: &[f32], reach: usize) -> Vec<f32> {
    let mut padded = vec![row[0]; row.len() + 2 * reach];
    padded[reach..][..row.len()].copy_from_slice(row);
    padded[reach + row.len()..].fill(row[row.len() - 1]);
    padded
}

/// A row blurred along itself; beyond its ends is its last pixel.
fn across(row: &[f32], taps: &[f32]) -> Vec<f32> {
    let padded = padded(row, taps.len() / 2);
    let mut sums = vec![0.0; row.len()];
    for (index, tap) in taps.iter().enumerate() {
        widened!(add(&mut sums, &padded[index..], *tap));
    }
    sums
}

/// Of the sums of squares and products, one after the other.
fn cells(sums: &[f32], scale: usize) -> Vec<Cell> {
    let (xx, rest) = sums.split_at(sums.len() / 3);
    let (yy, xy) = rest.split_at(xx.len());
    let tensors = xx.iter().zip(yy).zip(xy);
    tensors
        .map(|((xx, yy), xy)| cell([*xx, *yy, *xy], scale))
        .collect()
}

#[inline]
fn cell([xx, yy, xy]: [f32; 3], scale: usize) -> Cell {
    let (turned, other, power) = (xx - yy, 2.0 * xy, xx + yy);
    let size = (turned * turned + other * other).sqrt() + 1e-12;
    let half = |cosine: f32| ((1.0 + cosine) * 0.5).max(0.0).sqrt();
    let sine = half(-turned / size).copysign(other);
    let coherence = (size / (power + 1e-9)).min(1.0);
    let slopes = slopes(scale) / scale as f32;
    Cell {
        direction: [-sine, half(turned / size)],
        share: coherence.powi(12) * power / (power + EDGE * EDGE),
        limit: power * slopes * slopes,
    }
}

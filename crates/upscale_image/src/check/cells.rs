//! Source and result pooled to cells of 4 × 4 source pixels: there noise, softness and sharpening hardly count any more,
//! and another picture does.

use upscale_core::Pixels;

use super::parts::Parts;

/// Side of a cell, in source pixels. What is left over at the right and at the bottom belongs to the last cell.
const CELL: usize = 4;

/// Rows of cells being filled.
#[derive(Debug)]
pub(crate) struct Cells {
    channels: usize,
    columns: Parts,
    rows: Parts,
    source: Vec<f32>,
    result: Vec<f32>,
    /// The source's finished cells above; empty at the top.
    above: Vec<f32>,
}

/// A cell and its neighbours: means, sample by sample.
pub(crate) struct Cell<'a> {
    /// Its first source column.
    pub(crate) x: usize,
    source: &'a [f32],
    result: &'a [f32],
    /// The source's cells at the left and above, where there are any.
    beside: [Option<&'a [f32]>; 2],
}

impl Cells {
    pub(crate) fn new(source: &Pixels) -> Self {
        let columns = Parts::new(source.width(), CELL, CELL);
        let samples = columns.count() * source.channels();
        Self {
            channels: source.channels(),
            columns,
            rows: Parts::new(source.height(), CELL, CELL),
            source: vec![0.0; samples],
            result: vec![0.0; samples],
            above: Vec::new(),
        }
    }

    /// Adds row `y` of source and result, and hands on the cells that end with it.
    pub(crate) fn add(
        &mut self,
        y: usize,
        source: &[f32],
        result: &[f32],
        mut each: impl FnMut(&Cell<'_>),
    ) {
        pool(&mut self.source, source, self.channels);
        pool(&mut self.result, result, self.channels);
        let Some(row) = self.rows.ending_at(y) else {
            return;
        };
        self.divide(self.rows.range(row).len());
        for index in 0..self.columns.count() {
            each(&self.cell(index));
        }
        std::mem::swap(&mut self.above, &mut self.source);
        self.source.clear();
        self.source.resize(self.result.len(), 0.0);
        self.result.fill(0.0);
    }

    /// Sums to means.
    fn divide(&mut self, rows: usize) {
        for index in 0..self.columns.count() {
            let share = 1.0 / (self.columns.range(index).len() * rows) as f32;
            let samples = index * self.channels..(index + 1) * self.channels;
            for plane in [&mut self.source, &mut self.result] {
                plane[samples.clone()]
                    .iter_mut()
                    .for_each(|sum| *sum *= share);
            }
        }
    }

    fn cell(&self, index: usize) -> Cell<'_> {
        let samples = index * self.channels..(index + 1) * self.channels;
        let left = samples.start.checked_sub(self.channels);
        Cell {
            x: self.columns.range(index).start,
            beside: [
                left.map(|left| &self.source[left..samples.start]),
                self.above.get(samples.clone()),
            ],
            source: &self.source[samples.clone()],
            result: &self.result[samples],
        }
    }
}

/// Adds a row to the cells that its pixels lie in.
fn pool(sums: &mut [f32], row: &[f32], channels: usize) {
    match channels {
        1 => pool_pixels::<1>(sums, row),
        _ => pool_pixels::<3>(sums, row),
    }
}

/// The number of channels is known when this is compiled: three times as fast.
fn pool_pixels<const CHANNELS: usize>(sums: &mut [f32], row: &[f32]) {
    let (pixels, _) = row.as_chunks::<CHANNELS>();
    let (cells, _) = sums.as_chunks_mut::<CHANNELS>();
    let last = cells.len() - 1;
    for (index, block) in pixels.chunks(CELL).enumerate() {
        let cell = &mut cells[index.min(last)];
        for pixel in block {
            cell.iter_mut()
                .zip(pixel)
                .for_each(|(sum, sample)| *sum += sample);
        }
    }
}

/// Sums over the cells of a square.
#[derive(Debug, Clone, Default)]
pub(crate) struct CellSums {
    cells: f64,
    channels: f64,
    source: [f64; 3],
    result: [f64; 3],
    source_squares: f64,
    result_squares: f64,
    /// Squared differences between the source's cells beside and above one another.
    step_squares: f64,
    steps: f64,
    /// Squared differences between source and result.
    pub(crate) error_squares: f64,
    /// The same with two of the result's channels swapped: red and blue, red and green, green and blue.
    pub(crate) swapped_squares: [f64; 3],
}

impl CellSums {
    /// Adds a cell.
    pub(crate) fn add(&mut self, cell: &Cell<'_>) {
        self.cells += 1.0;
        self.channels = cell.source.len() as f64;
        for (c, (own, found)) in cell.source.iter().zip(cell.result).enumerate() {
            let (own, found) = (f64::from(*own), f64::from(*found));
            self.source[c] += own;
            self.result[c] += found;
            self.source_squares += own * own;
            self.result_squares += found * found;
        }
        self.error_squares += distance(cell.source, cell.result);
        if let &[r, g, b] = cell.result {
            let swaps = [[b, g, r], [g, r, b], [r, b, g]];
            for (sum, swapped) in self.swapped_squares.iter_mut().zip(swaps) {
                *sum += distance(cell.source, &swapped);
            }
        }
        for other in cell.beside.iter().flatten() {
            self.steps += other.len() as f64;
            self.step_squares += distance(cell.source, other);
        }
    }

    /// Root mean square of the source's steps from cell to cell.
    pub(crate) fn step(&self) -> f64 {
        (self.step_squares / self.steps.max(1.0)).sqrt()
    }

    /// Root mean square difference between source and result.
    pub(crate) fn error(&self) -> f64 {
        (self.error_squares / self.samples()).sqrt()
    }

    /// Standard deviation of the source, around each channel's own mean.
    pub(crate) fn source_deviation(&self) -> f64 {
        self.deviation(&self.source, self.source_squares)
    }

    /// Standard deviation of the result.
    pub(crate) fn result_deviation(&self) -> f64 {
        self.deviation(&self.result, self.result_squares)
    }

    /// Number of cells times channels.
    pub(crate) fn samples(&self) -> f64 {
        (self.cells * self.channels).max(1.0)
    }

    fn deviation(&self, sums: &[f64; 3], squares: f64) -> f64 {
        let of_means: f64 = sums.iter().map(|sum| sum * sum / self.cells.max(1.0)).sum();
        ((squares - of_means).max(0.0) / self.samples()).sqrt()
    }
}

fn distance(one: &[f32], other: &[f32]) -> f64 {
    let pairs = one.iter().zip(other);
    pairs.map(|(a, b)| f64::from((a - b) * (a - b))).sum()
}

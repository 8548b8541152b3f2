//! A group of result rows and what an average along its edges reaches.

use std::array;

use super::course::Cell;
use super::{LEAST, MARGIN, REACH};
use crate::ring::Ring;

/// Steps along an edge to each side, their length, and the deviation of the weights of what is found there, in source
/// pixels. Edges tremble over some ten of them. Steps half as long, and twice as many, change nothing; four of 1.6 leave edges
/// a hundredth further beside their course and take up to 0.01 dB.
const STEPS: usize = 5;
const STRIDE: f32 = 1.3;
const ALONG: f32 = 3.5;

/// One number for each result pixel of a source pixel, of which there are `S` times `S`.
pub(super) type Block<const S: usize> = [[f32; S]; S];

/// Rows of cells and of brightness from `first` on, the source row [`REACH`] above that of the group, or the picture's.
pub(super) struct Around<'a, const S: usize> {
    cells: Vec<&'a [Cell]>,
    /// Each with the [`MARGIN`] of source pixels before and after it.
    rows: Vec<&'a [f32]>,
    /// Of the group, of `cells`.
    own: usize,
    weights: [f32; STEPS],
}

impl<'a, const S: usize> Around<'a, S> {
    /// Of the group of source row `y`, of a source of `height` rows.
    pub(super) fn new<const C: usize, const P: usize>(
        cells: &'a Ring<Cell, C>,
        planes: &'a Ring<f32, P>,
        [y, height]: [usize; 2],
    ) -> Self {
        let first = y.saturating_sub(REACH);
        // A row more of brightness: between the last two.
        let around = |last: usize| first..=last.min(height - 1);
        let plane = |y| {
            let plane = planes.row(y, height);
            plane.chunks_exact(plane.len() / S)
        };
        Self {
            cells: around(y + REACH).map(|y| cells.row(y, height)).collect(),
            rows: around(y + REACH + 1).flat_map(plane).collect(),
            own: y - first,
            weights: array::from_fn(|step| {
                let distance = (step + 1) as f32 * STRIDE / ALONG;
                (-0.5 * distance * distance).exp()
            }),
        }
    }

    /// By how much each result pixel of a source pixel becomes brighter; nothing where none does.
    #[inline(always)]
    pub(super) fn steps(&self, x: usize) -> Option<Block<S>> {
        let beside = self.beside(x);
        let is_edge = |cell: &Cell| cell.share >= LEAST;
        if !beside.iter().flatten().any(is_edge) {
            return None;
        }
        let share: Block<S> = drawn_out(&beside.map(|row| row.map(|cell| cell.share)));
        if share.iter().flatten().all(|share| *share < LEAST) {
            return None;
        }
        let limit: Block<S> = drawn_out(&beside.map(|row| row.map(|cell| cell.limit)));
        let own = self.block([x as f32, self.own as f32]);
        let mut steps = self.average(x, &own);
        for row in 0..S {
            for column in 0..S {
                let (share, limit) = (share[row][column], limit[row][column]);
                let share = if share < LEAST { 0.0 } else { share };
                let step = share * (steps[row][column] - own[row][column]);
                steps[row][column] = step * limit / (limit + step * step + 1e-9);
            }
        }
        Some(steps)
    }

    /// The cell and those around it; beyond the picture the nearest.
    #[inline(always)]
    fn beside(&self, x: usize) -> [[Cell; 3]; 3] {
        let y = self.own;
        [y.saturating_sub(1), y, (y + 1).min(self.cells.len() - 1)].map(|y| {
            let row = self.cells[y];
            [x.saturating_sub(1), x, (x + 1).min(row.len() - 1)].map(|x| row[x])
        })
    }

    /// Mean brightness along the edge through a cell, as far as it is one to both sides: what comes from one side alone moves
    /// the end of a line (line integral convolution, Cabral and Leedom 1993). All pixels of the cell go one way.
    #[inline(always)]
    fn average(&self, x: usize, own: &Block<S>) -> Block<S> {
        let (mut sum, mut weights) = (*own, 1.0);
        let start = [x as f32, self.own as f32];
        let direction = self.cells[self.own][x].direction;
        let mut walks = [direction, direction.map(|part| -part)].map(|heading| (start, heading));
        let mut least = 1.0_f32;
        for weight in self.weights {
            for walk in &mut walks {
                least = least.min(self.walk_on(walk));
            }
            if least < LEAST {
                break;
            }
            let weight = weight * least;
            for (place, _) in walks {
                add(&mut sum, &self.block(place), weight);
            }
            weights += 2.0 * weight;
        }
        for sum in sum.iter_mut().flatten() {
            *sum /= weights;
        }
        sum
    }

    /// One step, in source pixels from the first row that there is; how far there is an edge still. Beyond the picture nothing
    /// is known of one.
    #[inline(always)]
    fn walk_on(&self, (here, heading): &mut ([f32; 2], [f32; 2])) -> f32 {
        *here = [here[0] + STRIDE * heading[0], here[1] + STRIDE * heading[1]];
        let [x, y] = here.map(|place| place + 0.5);
        let within = |place: f32, count: usize| (0.0..count as f32).contains(&place);
        if !within(x, self.cells[0].len()) || !within(y, self.cells.len()) {
            return 0.0;
        }
        let cell = self.cells[y as usize][x as usize];
        let [x, y] = cell.direction;
        let along = x * heading[0] + y * heading[1];
        let sign = if along < 0.0 { -1.0 } else { 1.0 };
        *heading = [x * sign, y * sign];
        cell.share
    }

    /// Brightness of a cell's pixels if the cell lay there, in source pixels from the first row that there is: between the four
    /// pixels around each; beyond the picture is its edge.
    #[inline(always)]
    fn block(&self, [x, y]: [f32; 2]) -> Block<S> {
        let (x, y) = ((x + MARGIN as f32) * S as f32, y * S as f32);
        let (column, row) = (x as usize, y.floor());
        let (across, down) = (x - column as f32, y - row);
        let last = self.rows.len() as isize - 1;
        let line = |index: usize| -> [f32; S] {
            let row = (row as isize + index as isize).clamp(0, last) as usize;
            let pixels = &self.rows[row][column..][..=S];
            array::from_fn(|x| pixels[x] + (pixels[x + 1] - pixels[x]) * across)
        };
        let (mut made, mut upper) = ([[0.0; S]; S], line(0));
        for (index, made) in made.iter_mut().enumerate() {
            let lower = line(index + 1);
            *made = array::from_fn(|x| upper[x] + (lower[x] - upper[x]) * down);
            upper = lower;
        }
        made
    }
}

#[inline(always)]
fn add<const S: usize>(sum: &mut Block<S>, block: &Block<S>, weight: f32) {
    for (sum, sample) in sum.as_flattened_mut().iter_mut().zip(block.as_flattened()) {
        *sum += weight * sample;
    }
}

/// Of a cell and those around it, what lies between at each of its pixels.
#[inline(always)]
fn drawn_out<const S: usize>(beside: &[[f32; 3]; 3]) -> Block<S> {
    let mut block = [[0.0; S]; S];
    for (row, made) in block.iter_mut().enumerate() {
        let (above, down) = between::<S>(row);
        let mut line = [0.0; 3];
        for (at, line) in line.iter_mut().enumerate() {
            *line = beside[above][at] + (beside[above + 1][at] - beside[above][at]) * down;
        }
        for (column, made) in made.iter_mut().enumerate() {
            let (left, across) = between::<S>(column);
            *made = line[left] + (line[left + 1] - line[left]) * across;
        }
    }
    block
}

/// The first of the two cells, of three, that a pixel of the second lies between, and the other's share.
#[inline(always)]
fn between<const S: usize>(index: usize) -> (usize, f32) {
    let place = (index as f32 + 0.5) / S as f32 + 0.5;
    (place as usize, place.fract())
}

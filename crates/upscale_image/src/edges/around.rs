//! A group of result rows and what an average along its edges reaches.

use std::collections::VecDeque;

use super::LEAST;
use super::course::Cell;

/// Steps along an edge to each side, their length, and the deviation of the weights of what is found there, in source
/// pixels. Edges tremble over some ten of them.
const STEPS: usize = 8;
const STRIDE: f32 = 0.65;
const ALONG: f32 = 2.5;

/// Rows of cells and of brightness, both from that of one source row on.
pub(super) struct Around<'a> {
    cells: Vec<&'a [Cell]>,
    rows: Vec<&'a [f32]>,
    first: usize,
    /// Rows of the whole result.
    height: usize,
    scale: usize,
    weights: [f32; STEPS],
}

impl<'a> Around<'a> {
    /// Of source rows `first` and on, of a source of `height` rows.
    pub(super) fn new(
        cells: &'a VecDeque<Vec<Cell>>,
        planes: &'a VecDeque<Vec<f32>>,
        [first, height]: [usize; 2],
        scale: usize,
    ) -> Self {
        let rows = |plane: &'a Vec<f32>| plane.chunks_exact(plane.len() / scale);
        Self {
            cells: cells.iter().map(Vec::as_slice).collect(),
            rows: planes.iter().flat_map(rows).collect(),
            first,
            height: height * scale,
            scale,
            weights: std::array::from_fn(|step| {
                let distance = (step + 1) as f32 * STRIDE / ALONG;
                (-0.5 * distance * distance).exp()
            }),
        }
    }

    /// Whether any pixel of a source pixel's block may move.
    pub(super) fn has_edge(&self, x: usize, y: usize) -> bool {
        let y = y - self.first;
        let rows = &self.cells[y.saturating_sub(1)..(y + 2).min(self.cells.len())];
        rows.iter().any(|row| {
            let beside = &row[x.saturating_sub(1)..(x + 2).min(row.len())];
            beside.iter().any(|cell| cell.share >= LEAST)
        })
    }

    /// By how much a result pixel becomes brighter.
    pub(super) fn step(&self, x: usize, y: usize) -> f32 {
        let (share, limit) = self.share_and_limit(x, y);
        if share < LEAST {
            return 0.0;
        }
        let own = self.rows[y - self.first * self.scale][x];
        let step = share * (self.average([x as f32, y as f32], own) - own);
        step * limit / (limit + step * step + 1e-9)
    }

    /// Between the four cells around a result pixel.
    fn share_and_limit(&self, x: usize, y: usize) -> (f32, f32) {
        let first = self.first as f32;
        let place = |at: usize| (at as f32 + 0.5) / self.scale as f32 - 0.5;
        let (left, right, across) = beside(place(x), self.cells[0].len());
        let (above, below, down) = beside(place(y) - first, self.cells.len());
        let at = |row: &[Cell], part: fn(&Cell) -> f32| {
            part(&row[left]) + (part(&row[right]) - part(&row[left])) * across
        };
        let between = |part: fn(&Cell) -> f32| {
            let (above, below) = (at(self.cells[above], part), at(self.cells[below], part));
            above + (below - above) * down
        };
        (between(|cell| cell.share), between(|cell| cell.limit))
    }

    /// Mean brightness along the edge through a place, as far as it is one to both sides: what comes from one side alone
    /// moves the end of a line (line integral convolution, Cabral and Leedom 1993).
    fn average(&self, start: [f32; 2], own: f32) -> f32 {
        let (mut sum, mut weights) = (own, 1.0);
        let direction = self.cell(start).direction;
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
            sum += weight * (self.brightness(walks[0].0) + self.brightness(walks[1].0));
            weights += 2.0 * weight;
        }
        sum / weights
    }

    /// One step; how far there is an edge still.
    fn walk_on(&self, (here, heading): &mut ([f32; 2], [f32; 2])) -> f32 {
        let stride = STRIDE * self.scale as f32;
        *here = [here[0] + stride * heading[0], here[1] + stride * heading[1]];
        let Cell {
            direction: [x, y],
            share,
            ..
        } = *self.cell(*here);
        let turn = if x * heading[0] + y * heading[1] < 0.0 {
            -1.0
        } else {
            1.0
        };
        *heading = [x * turn, y * turn];
        if self.is_inside(*here) { share } else { 0.0 }
    }

    /// Beyond the picture nothing is known of an edge.
    fn is_inside(&self, [x, y]: [f32; 2]) -> bool {
        let within = |place: f32, count: usize| (0.0..=(count - 1) as f32).contains(&place);
        within(x, self.rows[0].len()) && within(y, self.height)
    }

    /// The cell that a place in the result lies in; beyond the picture the nearest.
    fn cell(&self, [x, y]: [f32; 2]) -> &Cell {
        let cell = |at: f32| ((at + 0.5) / self.scale as f32) as usize;
        let row = self.cells[cell(y).saturating_sub(self.first).min(self.cells.len() - 1)];
        &row[cell(x).min(row.len() - 1)]
    }

    /// Between the four pixels around a place.
    fn brightness(&self, [x, y]: [f32; 2]) -> f32 {
        let y = y - (self.first * self.scale) as f32;
        let (above, below, down) = beside(y, self.rows.len());
        let (above, below) = (self.rows[above], self.rows[below]);
        let (left, right, across) = beside(x, above.len());
        let upper = above[left] + (above[right] - above[left]) * across;
        let lower = below[left] + (below[right] - below[left]) * across;
        upper + (lower - upper) * down
    }
}

/// The places before and after one among `count`, and the second's share.
fn beside(place: f32, count: usize) -> (usize, usize, f32) {
    let place = place.clamp(0.0, (count - 1) as f32);
    let before = place as usize;
    (before, (before + 1).min(count - 1), place - before as f32)
}

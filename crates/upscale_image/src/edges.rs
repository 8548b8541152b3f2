//! Edges laid on their own course: what a network draws of a noisy, soft or staircased edge trembles round that, over some
//! ten source pixels; averaged along it the edge is straight, and 3 to 6 % less steep. Works on a moving window of rows, so
//! that the result can be written while the networks are still at work. `training/upscale_training/edges.py` is the same
//! on a whole picture.
//!
//! Where the course is, the result itself says, shrunk to the source's size. On pairs from real cameras at 4x edges lie 0.93
//! to 1.00 times as far beside their course as the originals' do, where it was 1.18 to 1.5 times
//! (`training/upscale_training/look_gates.py`).

mod around;
mod course;

use std::ops::RangeInclusive;

use upscale_simd::widened;

use self::around::Around;
use self::course::{Cell, Course, Freedom};
use crate::brightness::{add_brightness, brighten};
use crate::error::WriteError;
use crate::groups::{Take, Waiting};
use crate::ring::Ring;
use crate::spare::Spare;

/// Widths of sources whose edges are laid, in pixels. Of wider ones the rows that wait are too large: 16 groups and the
/// brightness of 32 are 20 MiB at the upper end and 4x. Narrower ones have no room for an edge's course, and hundreds of
/// thousands of rows.
const WIDTHS: RangeInclusive<usize> = 16..=4_096;
/// Source rows that an average reaches to each side: five steps of 1.3 source pixels, and the pixel between two rows.
const REACH: usize = 7;
/// Source pixels that rows of brightness are longer by at either end, with the picture's edge.
const MARGIN: usize = REACH + 1;
/// Shares below this are none.
const LEAST: f32 = 1.0 / 16.0;

/// The moving window.
pub(crate) struct Edges {
    scale: usize,
    channels: usize,
    height: usize,
    course: Course,
    /// Of source rows: 15 that an average reaches.
    cells: Ring<Cell, 16>,
    /// Brightness of the result rows of each source row, with a margin: those, and 8 that [`Course`] is behind.
    planes: Ring<f32, 32>,
    waiting: Waiting<16>,
}

impl Edges {
    /// Of a result 2 or 4 times as large as a source of `width` and `height` pixels of 1 or 3 samples, which reads as soft as
    /// that, in its pixels; none for another scale or where the width is none of [`WIDTHS`].
    pub(crate) fn new(
        [width, height]: [usize; 2],
        channels: usize,
        scale: usize,
        softness: f32,
    ) -> Option<Self> {
        (WIDTHS.contains(&width) && matches!(scale, 2 | 4)).then(|| Self {
            scale,
            channels,
            height,
            course: Course::new(height, Freedom::new(softness, scale)),
            cells: Ring::new(),
            planes: Ring::new(),
            waiting: Waiting::new(),
        })
    }

    /// Takes the next group and its means; hands those that are done to `take`, in order.
    ///
    /// # Errors
    /// The first of `take`.
    pub(crate) fn push(
        &mut self,
        group: &[f32],
        means: Vec<f32>,
        spare: &mut Spare,
        take: Take<'_>,
    ) -> Result<(), WriteError> {
        let mut row = spare.row();
        add_brightness(&means, self.channels, &mut row);
        self.course.push(&row, spare);
        spare.keep([row]);
        self.add_plane(group);
        self.waiting.push(group, means);
        while self.course.pop(&mut self.cells, spare) {
            while let Some(y) = self.known() {
                self.lay(y);
                self.waiting.hand_on(spare, take)?;
            }
        }
        Ok(())
    }

    /// The next group, if all that an average over it reaches is there.
    fn known(&self) -> Option<usize> {
        let next = self.waiting.first();
        self.cells
            .is_complete(next, REACH, self.height)
            .then_some(next)
    }

    /// Brightness of a group's rows, each with the margin.
    fn add_plane(&mut self, group: &[f32]) {
        let margin = MARGIN * self.scale;
        let plane = self.planes.next();
        for row in group.chunks_exact(group.len() / self.scale) {
            let first = plane.len() + margin;
            plane.resize(first, 0.0);
            add_brightness(row, self.channels, plane);
            let last = plane.len() - 1;
            plane.resize(last + 1 + margin, plane[last]);
            let start = plane[first];
            plane[first - margin..first].fill(start);
        }
    }

    fn lay(&mut self, y: usize) {
        match self.scale {
            2 => self.lay_blocks::<2>(y),
            _ => self.lay_blocks::<4>(y),
        }
    }

    /// Lays the edges of the group of source row `y`.
    fn lay_blocks<const S: usize>(&mut self, y: usize) {
        let around = Around::<S>::new(&self.cells, &self.planes, [y, self.height]);
        let (group, channels) = (self.waiting.rows_mut(y), self.channels);
        widened!(lay_group(group, channels, &around));
    }
}

#[inline(always)]
fn lay_group<const S: usize>(group: &mut [f32], channels: usize, around: &Around<'_, S>) {
    let row_samples = group.len() / S;
    for x in 0..row_samples / (S * channels) {
        let Some(steps) = around.steps(x) else {
            continue;
        };
        for (row, steps) in group.chunks_exact_mut(row_samples).zip(steps) {
            let block = &mut row[x * S * channels..][..S * channels];
            brighten(block, channels, &steps);
        }
    }
}

#[cfg(test)]
mod tests;

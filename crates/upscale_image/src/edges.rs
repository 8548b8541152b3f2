//! Edges laid on their own course: what a network draws of a noisy, soft or staircased edge trembles round that, over some
//! ten source pixels; averaged along it the edge is straight, as steep as before. Works on a moving window of rows, so
//! that the result can be written while the networks are still at work. `training/upscale_training/edges.py` is the same
//! on a whole picture.
//!
//! Where the course is, the result itself says, shrunk to the source's size. On pairs from real cameras at 4x PSNR gains 0.07 dB,
//! and edges lie 1.02 to 1.15 times as far beside their course as the originals' do, where it was 1.18 to 1.5 times
//! (`training/upscale_training/look_gates.py`).

mod around;
mod course;

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use self::around::Around;
use self::course::{Cell, Course};
use crate::error::WriteError;

/// Widths of sources whose edges are laid, in pixels. Of wider ones the rows that wait are too large: 16 groups and the
/// brightness of 22 are 18 MiB at the upper end and 4x. Narrower ones have no room for an edge's course, and hundreds of
/// thousands of rows.
const WIDTHS: RangeInclusive<usize> = 16..=4_096;
/// Source rows that an average reaches to each side: eight steps of 0.65 source pixels, and the pixel between two rows.
const REACH: usize = 6;
/// Source pixels that rows of brightness are longer by at either end, with the picture's edge.
const MARGIN: usize = REACH + 1;
/// Shares below this are none.
const LEAST: f32 = 1.0 / 16.0;

/// Where groups go: the rows of each, and its means.
type Take<'a> = &'a mut dyn FnMut(&[f32], Vec<f32>) -> Result<(), WriteError>;

/// The moving window.
pub(crate) struct Edges {
    scale: usize,
    channels: usize,
    height: usize,
    course: Course,
    /// Cells of source rows `first` and on, and the brightness of their result rows, of which more have come.
    cells: VecDeque<Vec<Cell>>,
    planes: VecDeque<Vec<f32>>,
    first: usize,
    /// Groups that wait, with their means, the first for source row `next_group`.
    waiting: VecDeque<(Vec<f32>, Vec<f32>)>,
    next_group: usize,
}

impl Edges {
    /// Of a result 2 or 4 times as large as a source of `width` and `height` pixels of 1 or 3 samples; none where the width is
    /// none of [`WIDTHS`].
    pub(crate) fn new([width, height]: [usize; 2], channels: usize, scale: usize) -> Option<Self> {
        WIDTHS.contains(&width).then(|| Self {
            scale,
            channels,
            height,
            course: Course::new(height, scale),
            cells: VecDeque::new(),
            planes: VecDeque::new(),
            first: 0,
            waiting: VecDeque::new(),
            next_group: 0,
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
        take: Take<'_>,
    ) -> Result<(), WriteError> {
        let cells = &mut self.cells;
        self.course
            .push(&brightness(&means, self.channels), &mut |row| {
                cells.push_back(row);
            });
        self.planes.push_back(self.plane(group));
        self.waiting.push_back((group.to_vec(), means));
        while self.is_known() {
            let Some((mut group, means)) = self.waiting.pop_front() else {
                return Ok(());
            };
            self.lay(&mut group);
            take(&group, means)?;
            self.next_group += 1;
            self.forget();
        }
        Ok(())
    }

    /// Whether all that an average over the next group reaches is there.
    fn is_known(&self) -> bool {
        let last = (self.next_group + REACH).min(self.height - 1);
        self.first + self.cells.len() > last
    }

    /// Lets go what no later group reaches.
    fn forget(&mut self) {
        while self.first + REACH < self.next_group {
            self.cells.pop_front();
            self.planes.pop_front();
            self.first += 1;
        }
    }

    /// Brightness of a group's rows, each with the margin.
    fn plane(&self, group: &[f32]) -> Vec<f32> {
        let margin = MARGIN * self.scale;
        let row_samples = group.len() / self.scale;
        let mut plane = Vec::with_capacity(group.len() / self.channels + 2 * margin * self.scale);
        for row in group.chunks_exact(row_samples) {
            let row = brightness(row, self.channels);
            plane.extend(std::iter::repeat_n(row[0], margin));
            plane.extend_from_slice(&row);
            plane.extend(std::iter::repeat_n(row[row.len() - 1], margin));
        }
        plane
    }

    fn lay(&self, group: &mut [f32]) {
        match self.scale {
            2 => self.lay_blocks::<2>(group),
            _ => self.lay_blocks::<4>(group),
        }
    }

    /// Lays the edges of the next group.
    fn lay_blocks<const S: usize>(&self, group: &mut [f32]) {
        let around = Around::<S>::new(&self.cells, &self.planes, [self.first, self.height]);
        let row_samples = group.len() / S;
        for x in 0..row_samples / (S * self.channels) {
            let Some(steps) = around.steps(x, self.next_group) else {
                continue;
            };
            for (row, steps) in group.chunks_exact_mut(row_samples).zip(steps) {
                let block = &mut row[x * S * self.channels..][..S * self.channels];
                for (pixel, step) in block.chunks_exact_mut(self.channels).zip(steps) {
                    move_by(pixel, step);
                }
            }
        }
    }
}

fn move_by(pixel: &mut [f32], step: f32) {
    if step != 0.0 {
        for sample in pixel {
            *sample = sample.clamp(0.0, 1.0) + step;
        }
    }
}

/// Luma of Rec. 601 of every pixel, within 0..1.
fn brightness(samples: &[f32], channels: usize) -> Vec<f32> {
    let within = |sample: f32| sample.clamp(0.0, 1.0);
    if channels == 1 {
        return samples.iter().copied().map(within).collect();
    }
    let (pixels, _) = samples.as_chunks::<3>();
    let luma = |pixel: &[f32; 3]| {
        let [red, green, blue] = pixel.map(within);
        0.299 * red + 0.587 * green + 0.114 * blue
    };
    pixels.iter().map(luma).collect()
}

#[cfg(test)]
mod tests;

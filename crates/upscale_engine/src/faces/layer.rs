//! Faces that were drawn, and how they are laid over the ordinary rows.

use std::ops::Range;

use upscale_core::Pixels;

use super::features::Features;
use super::region::{Area, Veil};

/// The faces that one network drew.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Layer {
    /// How much of each face shows.
    pub(super) veils: Vec<Veil>,
    pub(super) patches: Vec<Patch>,
}

/// A network's output for one area, guarded.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Patch {
    pub(super) area: Area,
    /// Rows of `area.width * factor * channels` samples.
    pub(super) samples: Vec<f32>,
    /// Where it shows; none: everywhere.
    pub(super) features: Option<Features>,
}

/// How the rows of a result lie.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Stride {
    factor: usize,
    channels: usize,
}

impl Stride {
    /// Of `source` enlarged `factor` times.
    pub(super) fn of(source: &Pixels, factor: usize) -> Self {
        Self {
            factor,
            channels: source.channels(),
        }
    }
}

impl Layer {
    /// Lays the patches over a part of a result row, from column and row `first` on.
    pub(super) fn lay_over(&self, first: [usize; 2], part: &mut [f32], stride: Stride) {
        for patch in &self.patches {
            self.lay(patch, first, part, stride);
        }
    }

    /// How much shows of some columns of row `y`, in output pixels: where faces meet, of the one that shows most. Each veil is
    /// asked where it reaches alone: asked everywhere, 202 faces in 0.49 MP took six seconds.
    fn shares(&self, columns: Range<usize>, y: usize) -> Vec<f32> {
        let mut shares = vec![0.0; columns.len()];
        for veil in self.veils.iter().filter(|veil| veil.rows().contains(&y)) {
            let reached = veil.columns();
            for x in reached.start.max(columns.start)..reached.end.min(columns.end) {
                let share = &mut shares[x - columns.start];
                *share = f32::max(*share, veil.share(x, y));
            }
        }
        shares
    }

    /// Lays what `part` has of a patch over it; both in output pixels.
    fn lay(&self, patch: &Patch, [x, y]: [usize; 2], part: &mut [f32], stride: Stride) {
        let Stride { factor, channels } = stride;
        let area = patch.area.enlarged(factor);
        let Some(from) = y.checked_sub(area.top).filter(|&from| from < area.height) else {
            return;
        };
        let columns = area.left.max(x)..area.right().min(x + part.len() / channels);
        if columns.is_empty() {
            return;
        }
        let shown = columns.start - area.left..columns.end - area.left;
        let patch_row = &patch.samples[from * area.width * channels..];
        let patch_row = &patch_row[shown.start * channels..shown.end * channels];
        let row = &mut part[(columns.start - x) * channels..(columns.end - x) * channels];
        let pixels = row
            .chunks_exact_mut(channels)
            .zip(patch_row.chunks_exact(channels));
        let mut shares = self.shares(columns, y);
        if let Some(features) = &patch.features {
            let features = features.row(from, factor);
            let shown = &features[shown];
            shares
                .iter_mut()
                .zip(shown)
                .for_each(|(share, shown)| *share *= shown);
        }
        for (share, (pixel, face)) in shares.into_iter().zip(pixels) {
            // Not even `v + 0 * d`: outside the faces every bit stays.
            if share > 0.0 {
                for (sample, &face) in pixel.iter_mut().zip(face) {
                    *sample += share * (face - *sample);
                }
            }
        }
    }
}

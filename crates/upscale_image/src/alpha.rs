//! Transparency: colour is bled outward under alpha 0 before the networks see it, alpha goes through them as gray, and
//! what comes back is kept within its neighbourhood.

use upscale_core::{Pixels, Rows, WrongSampleCount};

use crate::check::OutputCheck;
use crate::decoded::Source;
use crate::error::WriteError;
use crate::groups::Groups;
use crate::shrink::shrunk;
use crate::spare::Spare;

/// The upscaled alpha, as 16-bit samples (24 MB for the largest result), kept until colour has caught up.
#[derive(Debug)]
pub struct AlphaPlane {
    width: usize,
    height: usize,
    scale: usize,
    samples: Vec<u16>,
    source: Pixels,
    next_row: usize,
    groups: Groups,
    check: OutputCheck,
    spare: Spare,
}

impl AlphaPlane {
    /// A plane for `source`'s alpha, `scale` times its size; `None` when the source is opaque.
    #[must_use]
    pub fn new(source: &Source, scale: usize) -> Option<Self> {
        let alpha = source.alpha.clone()?;
        let (width, height) = (alpha.width() * scale, alpha.height() * scale);
        Some(Self {
            width,
            height,
            scale,
            samples: Vec::with_capacity(width * height),
            next_row: 0,
            groups: Groups::new(width * scale),
            check: OutputCheck::new(&alpha),
            spare: Spare::default(),
            source: alpha,
        })
    }

    /// Takes the next finished rows of one channel, as the network made them.
    ///
    /// # Errors
    /// [`WriteError::RowOrder`] when rows are missing, repeated or of the wrong width; [`WriteError::Check`] when they
    /// are not the source's alpha.
    pub fn push_rows(&mut self, rows: Rows<'_>) -> Result<(), WriteError> {
        let fits = rows.first_row == self.next_row
            && rows.row_samples == self.width
            && rows.row_count <= self.height - self.next_row
            && rows.samples.len() == rows.row_count * rows.row_samples;
        if !fits {
            return Err(WriteError::RowOrder {
                given: rows.first_row,
                expected: self.next_row,
                height: self.height,
                given_samples: rows.row_samples,
            });
        }
        self.next_row += rows.row_count;
        let (source, scale) = (&self.source, self.scale);
        let (check, samples, spare) = (&mut self.check, &mut self.samples, &mut self.spare);
        self.groups.push(rows.samples, &mut |group| {
            let y = samples.len() / group.len();
            let means = shrunk(group, 1, scale, spare);
            check.take(source, y, scale, group, &means, spare)?;
            spare.keep([means]);
            keep_within(source, y, scale, group, samples);
            Ok(())
        })
    }

    pub(crate) fn is_whole(&self, width: usize, height: usize) -> bool {
        (self.width, self.height) == (width, height) && self.samples.len() == width * height
    }

    /// Row `y`, 0 to 65,535.
    pub(crate) fn row(&self, y: usize) -> &[u16] {
        &self.samples[y * self.width..(y + 1) * self.width]
    }
}

/// A network may ring at a hard edge; alpha must not: it stays within the 3 × 3 source pixels around it.
fn keep_within(source: &Pixels, y: usize, scale: usize, group: &[f32], samples: &mut Vec<u16>) {
    let bounds = neighbourhood(source, y);
    for row in group.chunks_exact(source.width() * scale) {
        for (x, value) in row.iter().enumerate() {
            let (low, high) = bounds[x / scale];
            let kept = value.max(low).min(high);
            samples.push((kept * 65_535.0).round() as u16);
        }
    }
}

/// Smallest and largest sample of the 3 × 3 source pixels around each pixel of row `y`.
fn neighbourhood(source: &Pixels, y: usize) -> Vec<(f32, f32)> {
    let rows = y.saturating_sub(1)..(y + 2).min(source.height());
    let column: Vec<(f32, f32)> = (0..source.width())
        .map(|x| range(rows.clone().map(|row| source.row(row)[x])))
        .collect();
    (0..column.len())
        .map(|x| {
            let around = &column[x.saturating_sub(1)..(x + 2).min(column.len())];
            let low = range(around.iter().map(|pair| pair.0)).0;
            (low, range(around.iter().map(|pair| pair.1)).1)
        })
        .collect()
}

fn range(values: impl Iterator<Item = f32>) -> (f32, f32) {
    values.fold((f32::INFINITY, f32::NEG_INFINITY), |(low, high), v| {
        (low.min(v), high.max(v))
    })
}

/// Gives every invisible pixel the colour of the visible ones around it: the picture is halved again and again,
/// weighting by alpha, and filled back from the coarse to the fine (push-pull; Gortler et al., The Lumigraph, 1996).
/// So no colour that no one was meant to see leaks into an edge.
pub(crate) fn bleed(color: Pixels, alpha: &Pixels) -> Result<Pixels, WrongSampleCount> {
    let hidden = alpha.samples().iter().any(|a| *a <= 0.0);
    let visible = alpha.samples().iter().any(|a| *a > 0.0);
    if !hidden || !visible {
        return Ok(color);
    }
    let (width, height, channels) = (color.width(), color.height(), color.channels());
    let mut samples = color.into_samples();
    let weights = alpha.samples().to_vec();
    fill(width, height, channels, &mut samples, &weights);
    Pixels::new(width, height, channels, samples)
}

/// Fills the pixels of weight 0 from a picture of half the size.
fn fill(width: usize, height: usize, channels: usize, samples: &mut [f32], weights: &[f32]) {
    if (width == 1 && height == 1) || weights.iter().all(|w| *w > 0.0) {
        return;
    }
    let (half_width, half_height) = (width.div_ceil(2), height.div_ceil(2));
    let mut sums = vec![0.0; half_width * half_height * channels];
    let mut half_weights = vec![0.0; half_width * half_height];
    for (index, weight) in weights.iter().enumerate().filter(|(_, w)| **w > 0.0) {
        let half = (index / width / 2) * half_width + (index % width) / 2;
        half_weights[half] += weight;
        for c in 0..channels {
            sums[half * channels + c] += weight * samples[index * channels + c];
        }
    }
    for (sum, weight) in sums.chunks_exact_mut(channels).zip(&half_weights) {
        if *weight > 0.0 {
            sum.iter_mut().for_each(|s| *s /= weight);
        }
    }
    fill(half_width, half_height, channels, &mut sums, &half_weights);
    for (index, _) in weights.iter().enumerate().filter(|(_, w)| **w <= 0.0) {
        let half = (index / width / 2) * half_width + (index % width) / 2;
        let from = half * channels..(half + 1) * channels;
        samples[index * channels..(index + 1) * channels].copy_from_slice(&sums[from]);
    }
}

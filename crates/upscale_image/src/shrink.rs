//! The result at the source's size again: every source pixel beside the mean of the `scale × scale` result pixels made
//! of it. What the check compares and the balance corrects.

use crate::light::light;

/// The result rows that belong to one source row, `scale` of them, one after the other.
#[derive(Debug, Default)]
pub(crate) struct Group {
    pub(crate) rows: Vec<f32>,
}

/// One row of means, as wide as the source.
pub(crate) struct Shrunk {
    /// Of code values.
    pub(crate) codes: Vec<f32>,
    /// Of linear light.
    pub(crate) light: Vec<f32>,
}

impl Group {
    /// Means over the blocks of a group whose rows are `scale × width` pixels of `channels` samples.
    pub(crate) fn shrunk(&self, channels: usize, scale: usize) -> Shrunk {
        let row_samples = self.rows.len() / scale;
        let mut codes = vec![0.0; row_samples];
        let mut lights = vec![0.0; row_samples];
        for row in self.rows.chunks_exact(row_samples) {
            for ((code, sum), light_sum) in row.iter().zip(&mut codes).zip(&mut lights) {
                let code = code.clamp(0.0, 1.0);
                *sum += code;
                *light_sum += light(code);
            }
        }
        Shrunk {
            codes: across(&codes, channels, scale),
            light: across(&lights, channels, scale),
        }
    }
}

/// Means of `scale` neighbouring pixels, given the sums of `scale` rows.
fn across(sums: &[f32], channels: usize, scale: usize) -> Vec<f32> {
    match channels {
        1 => across_pixels::<1>(sums, scale),
        _ => across_pixels::<3>(sums, scale),
    }
}

/// The number of channels is known when this is compiled: several times as fast.
fn across_pixels<const CHANNELS: usize>(sums: &[f32], scale: usize) -> Vec<f32> {
    let share = 1.0 / (scale * scale) as f32;
    let (pixels, _) = sums.as_chunks::<CHANNELS>();
    let mut means = Vec::with_capacity(sums.len() / scale);
    for block in pixels.chunks_exact(scale) {
        let mut mean = [0.0; CHANNELS];
        for pixel in block {
            mean.iter_mut()
                .zip(pixel)
                .for_each(|(sum, sample)| *sum += sample);
        }
        means.extend(mean.map(|sum| sum * share));
    }
    means
}

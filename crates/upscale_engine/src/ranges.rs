//! How large the numbers get that 16-bit integers stand for (`words.rs`): noted while a picture runs through a network,
//! kept in a file beside the weights that ship.

use std::sync::atomic::{AtomicU32, Ordering};

use upscale_core::Estimate;

use crate::error::ModelError;
use crate::products::Products;
use crate::winograd::{POSITIONS, WINDOW};

/// The largest 16-bit integer.
pub(crate) const WORD_MAX: f32 = 32_767.0;
/// How much larger than was ever noted an input may be before its tile is scaled down.
const HEADROOM: f32 = 1.5;
/// What is kept of a layer: a number for every position, and one for its inputs before they are transformed.
pub(crate) const KEPT: usize = POSITIONS + 1;
/// Bytes of a layer in a file: numbers in single precision, little-endian.
const LAYER_BYTES: usize = 4 * KEPT;
/// Levels of noise that restoring networks have ranges for.
pub(crate) const NOISES: [f32; 4] = [0.0, 4.0, 12.0, Estimate::NOISE_MAX];
/// Pixels of softness, likewise; a table for each pair, noise by noise. One table for all made the
/// error (rms) 1.1 to 2.1 times what it is with ranges of the condition's own; these tables 1.0 to 1.2 times.
pub(crate) const SOFTNESSES: [f32; 4] = [0.0, 0.6, 1.3, Estimate::SOFTNESS_MAX];
const TABLES: usize = NOISES.len() * SOFTNESSES.len();

/// The largest magnitude of each layer's transformed inputs at every position, and last of the inputs; zeros for layers that
/// have none.
pub(crate) type Table = Vec<[f32; KEPT]>;

/// One table, or one for each pair of [`NOISES`] and [`SOFTNESSES`]; none where no layer is to be in integers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ranges(pub(crate) Vec<Table>);

/// Takes note of them from several threads, as bits: those of numbers that are not negative have the same order.
pub(crate) struct Observed(Vec<[AtomicU32; KEPT]>);

impl Observed {
    pub(crate) fn new(layers: usize) -> Self {
        let zeros = || std::array::from_fn(|_| AtomicU32::new(0));
        Self((0..layers).map(|_| zeros()).collect())
    }

    /// Notes the transformed inputs of some tiles.
    pub(crate) fn note(&self, layer: usize, shape: &Products, products: &[f32], depth: usize) {
        for (position, largest) in self.0[layer].iter().take(POSITIONS).enumerate() {
            let rows = products[shape.position(position)..].chunks(shape.tile_stride);
            note(
                largest,
                rows.take(shape.tiles).flat_map(|row| &row[..depth]),
            );
        }
    }

    /// Notes inputs before they are transformed.
    pub(crate) fn note_inputs(&self, layer: usize, numbers: &[f32]) {
        note(&self.0[layer][POSITIONS], numbers);
    }

    /// What was noted.
    pub(crate) fn table(&self) -> Table {
        let magnitude = |bits: &AtomicU32| f32::from_bits(bits.load(Ordering::Relaxed));
        let layers = self.0.iter().map(|layer| layer.each_ref().map(magnitude));
        layers.collect()
    }
}

fn note<'a>(largest: &AtomicU32, values: impl IntoIterator<Item = &'a f32>) {
    let values = values.into_iter();
    let found = values.fold(0.0_f32, |found, value| found.max(value.abs()));
    largest.fetch_max(found.to_bits(), Ordering::Relaxed);
}

impl Ranges {
    /// Those of a network that integers do not suit.
    pub(crate) const NONE: Self = Self(Vec::new());

    /// A file's bytes.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let numbers = self.0.iter().flatten().flatten();
        numbers.flat_map(|number| number.to_le_bytes()).collect()
    }

    /// Reads a file's bytes for a network of so many layers.
    ///
    /// # Errors
    /// [`ModelError`] when it is not as long as one table or all of them.
    pub(crate) fn parse(file: &[u8], layers: usize) -> Result<Self, ModelError> {
        let one = layers * LAYER_BYTES;
        if one == 0 || ![one, TABLES * one].contains(&file.len()) {
            let given = file.len();
            return Err(ModelError(format!(
                "ranges of {given} bytes; {layers} layers have {one}, or {TABLES} times that"
            )));
        }
        let number = |four: &[u8]| f32::from_le_bytes(std::array::from_fn(|at| four[at]));
        let layer = |bytes: &[u8]| std::array::from_fn(|at| number(&bytes[4 * at..]));
        let table = |bytes: &[u8]| bytes.chunks_exact(LAYER_BYTES).map(layer).collect();
        Ok(Self(file.chunks_exact(one).map(table).collect()))
    }

    /// Those of a picture so noisy and soft, one table: what lies between the tables that stand nearest.
    pub(crate) fn at(&self, estimate: Option<Estimate>) -> Self {
        if self.0.len() < TABLES {
            return self.clone();
        }
        // A picture of which nothing is known is not restored: any table would do.
        let estimate = estimate.unwrap_or(Estimate::NONE);
        let (noise, softness) = (
            nearest(&NOISES, estimate.noise),
            nearest(&SOFTNESSES, estimate.softness),
        );
        let mut table = vec![[0.0; KEPT]; self.0[0].len()];
        for (row, share) in noise {
            for (column, other) in softness {
                let from = self.0[row * SOFTNESSES.len() + column].as_flattened();
                for (to, from) in table.as_flattened_mut().iter_mut().zip(from) {
                    *to += share * other * from;
                }
            }
        }
        Self(vec![table])
    }

    /// What scales an input up to 16 bits at every position, by the first table; none where nothing was noted that scales
    /// could be made of.
    pub(crate) fn input_scales(&self, layer: usize) -> Option<[f32; POSITIONS]> {
        let (magnitudes, _) = self.0.first()?.get(layer)?.split_first_chunk()?;
        let largest = magnitudes.iter().copied().fold(0.0, f32::max);
        // A position at which nothing was seen has a range all the same.
        is_usual(largest)
            .then(|| magnitudes.map(|m| WORD_MAX / (HEADROOM * m.max(largest / 1024.0))))
    }

    /// What scales an input of a layer up to at most `most`, by the first table; none where nothing was noted that it could be
    /// made of.
    pub(crate) fn input_scale(&self, layer: usize, most: f32) -> Option<f32> {
        let largest = self.0.first()?.get(layer)?[POSITIONS];
        is_usual(largest).then_some(most / (HEADROOM * largest))
    }

    /// The same for a network whose kernels lie on their side, as `turned.rs` makes it.
    pub(crate) fn turned(mut self) -> Self {
        for layer in self.0.iter_mut().flatten() {
            let before = *layer;
            for (at, magnitude) in layer.iter_mut().take(POSITIONS).enumerate() {
                *magnitude = before[at % WINDOW * WINDOW + at / WINDOW];
            }
        }
        self
    }
}

/// Whether scales can be made of such a magnitude.
fn is_usual(largest: f32) -> bool {
    largest.is_normal() && largest < 1e30
}

/// The steps below and above a value, each with its share; the last two for what lies beyond them.
fn nearest(steps: &[f32], value: f32) -> [(usize, f32); 2] {
    let value = value.clamp(steps[0], steps[steps.len() - 1]);
    let above = steps.iter().skip(1).position(|step| value <= *step);
    let above = above.map_or(steps.len() - 1, |at| at + 1);
    let share = (value - steps[above - 1]) / (steps[above] - steps[above - 1]);
    [(above - 1, 1.0 - share), (above, share)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted() -> [f32; KEPT] {
        std::array::from_fn(|at| at as f32)
    }

    #[test]
    fn a_file_gives_what_was_written() {
        for tables in [1, TABLES] {
            let ranges = Ranges(vec![vec![counted(), [0.5; KEPT]]; tables]);
            assert_eq!(Ranges::parse(&ranges.to_bytes(), 2).unwrap(), ranges);
        }
        let short = Ranges(vec![vec![counted()]]).to_bytes();
        let error = Ranges::parse(&short, 3).unwrap_err().to_string();
        assert_eq!(
            error,
            "the model file cannot be used: ranges of 260 bytes; 3 layers have 780, or 16 times that"
        );
        assert!(Ranges::parse(&[], 0).is_err());
    }

    #[test]
    fn rows_become_columns_and_come_back() {
        let ranges = Ranges(vec![vec![counted()]]);
        let turned = ranges.clone().turned().0[0][0];
        assert_eq!([turned[1], turned[POSITIONS]], [8.0, 64.0]);
        assert_eq!(ranges.clone().turned().turned(), ranges);
    }

    /// Table n holds n everywhere, so that a value says which tables it came from.
    #[test]
    fn between_the_steps_lies_their_mean() {
        let ranges = Ranges((0..TABLES).map(|n| vec![[n as f32; KEPT]]).collect());
        let at = |noise, softness| {
            let found = ranges.at(Some(Estimate {
                noise,
                softness,
                ..Estimate::NONE
            }));
            assert_eq!(found.0.len(), 1);
            found.0[0][0][63]
        };
        assert_eq!([at(0.0, 0.0), at(4.0, 0.0), at(0.0, 0.6)], [0.0, 4.0, 1.0]);
        assert_eq!([at(2.0, 0.0), at(2.0, 0.3), at(8.0, 2.2)], [2.0, 2.5, 9.0]);
        assert_eq!([at(99.0, 9.0), at(-1.0, -1.0)], [15.0, 0.0]);
        assert!(at(f32::NAN, 0.0).is_nan());
    }
}

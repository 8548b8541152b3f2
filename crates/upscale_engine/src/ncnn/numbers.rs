//! The binary half of an ncnn model, `.bin`: the numbers of all layers in the order of the text, without names. A
//! layer's main numbers have a tag before them that says how they are stored; all others are 32-bit floats.

use half::f16;

use crate::architecture::PARAMETERS_MAX;
use crate::error::{ModelError, refuse};

/// 16-bit floats, filled up to four bytes.
const TAG_F16: u32 = 0x0130_6B47;
/// 8-bit integers, in two forms.
const TAG_I8: u32 = 0x000D_4B38;
/// 32-bit floats.
const TAG_F32: [u32; 2] = [0, 0x0002_C056];
/// A weight beyond this overflows within a few layers.
const VALUE_MAX: f32 = 1e6;

/// What is left of the file.
pub(super) struct Numbers<'a> {
    rest: &'a [u8],
    taken: usize,
}

impl<'a> Numbers<'a> {
    pub(super) fn of(file: &'a [u8]) -> Self {
        Self {
            rest: file,
            taken: 0,
        }
    }

    /// Numbers with a tag before them.
    pub(super) fn tagged(&mut self, layer: &str, count: usize) -> Result<Vec<f32>, ModelError> {
        let tag = self.bytes(layer, 4)?;
        let tag = u32::from_le_bytes([tag[0], tag[1], tag[2], tag[3]]);
        match tag {
            TAG_F16 => {
                self.charge(count)?;
                let bytes = self.bytes(layer, (2 * count).next_multiple_of(4))?;
                let halves = bytes.as_chunks::<2>().0.iter().take(count);
                checked(layer, halves.map(|&b| f16::from_le_bytes(b).to_f32()))
            }
            TAG_I8 => Err(refuse(format!(
                "the numbers of {layer} are 8-bit integers; supported are 16-bit and 32-bit floats"
            ))),
            _ if TAG_F32.contains(&tag) => self.plain(layer, count),
            _ => Err(refuse(format!(
                "the numbers of {layer} have the tag {tag:#010x}; supported are 16-bit and 32-bit floats. Or the .bin \
                 is another model's"
            ))),
        }
    }

    /// 32-bit floats without a tag.
    pub(super) fn plain(&mut self, layer: &str, count: usize) -> Result<Vec<f32>, ModelError> {
        self.charge(count)?;
        let bytes = self.bytes(layer, 4 * count)?;
        let numbers = bytes.as_chunks::<4>().0.iter();
        checked(layer, numbers.map(|&b| f32::from_le_bytes(b)))
    }

    /// Numbers that a network gets without reading them count all the same.
    pub(super) fn charge(&mut self, count: usize) -> Result<(), ModelError> {
        self.taken = self.taken.saturating_add(count);
        if self.taken > PARAMETERS_MAX {
            return Err(refuse(format!("more than {PARAMETERS_MAX} parameters")));
        }
        Ok(())
    }

    /// The whole file was read.
    pub(super) fn check_end(&self) -> Result<(), ModelError> {
        match self.rest.len() {
            0 => Ok(()),
            left => Err(refuse(format!(
                "{left} bytes of the .bin belong to no layer: it is another model's"
            ))),
        }
    }

    fn bytes(&mut self, layer: &str, count: usize) -> Result<&'a [u8], ModelError> {
        let left = self.rest.len();
        let (taken, rest) = self.rest.split_at_checked(count).ok_or_else(|| {
            refuse(format!(
                "{layer} needs {count} bytes of the .bin, {left} are left"
            ))
        })?;
        self.rest = rest;
        Ok(taken)
    }
}

fn checked(layer: &str, values: impl Iterator<Item = f32>) -> Result<Vec<f32>, ModelError> {
    let values: Vec<f32> = values.collect();
    // Infinities and NaN fail the same test.
    if values.iter().all(|value| value.abs() <= VALUE_MAX) {
        return Ok(values);
    }
    Err(refuse(format!(
        "{layer} has a value that is not within 1e6"
    )))
}

//! A tensor as a file describes it: some bytes, a type, a shape, strides. Its numbers are made when asked for.

use half::{bf16, f16};

use super::kind::Kind;
use super::limits::DIMENSIONS_MAX;
use super::pickle::View;
use crate::error::{ModelError, refuse};

/// A weight beyond this overflows within a few layers.
const VALUE_MAX: f32 = 1e6;

/// A tensor that still lies in its file.
pub(crate) struct Tensor<'a> {
    kind: Kind,
    /// Its storage: what `offset` and `strides` count in.
    bytes: &'a [u8],
    offset: usize,
    pub(crate) shape: Vec<usize>,
    strides: Vec<usize>,
}

impl<'a> Tensor<'a> {
    /// Bytes that hold the tensor's numbers in order and nothing else.
    pub(crate) fn contiguous(kind: Kind, bytes: &'a [u8], shape: Vec<usize>) -> Self {
        let mut strides = vec![1_usize; shape.len()];
        for i in (1..shape.len()).rev() {
            strides[i - 1] = strides[i].saturating_mul(shape[i]);
        }
        Self {
            kind,
            bytes,
            offset: 0,
            shape,
            strides,
        }
    }

    /// What a pickle says of a tensor, held against its storage's real bytes.
    pub(crate) fn of_view(view: &View<'_>, bytes: &'a [u8]) -> Result<Self, ModelError> {
        let storage = &view.storage;
        let count = bytes.len() / storage.kind.size();
        let end = storage.start.checked_add(storage.count);
        if end.is_none_or(|end| end > count) {
            let (wanted, key) = (storage.count, storage.key);
            return Err(refuse(format!(
                "storage {key:?} of {wanted} numbers has {count} in the file"
            )));
        }
        check_within(view)?;
        Ok(Self {
            kind: storage.kind,
            bytes,
            offset: storage.start + view.offset,
            shape: view.shape.clone(),
            strides: view.strides.clone(),
        })
    }

    /// How many numbers it has.
    pub(crate) fn count(&self) -> usize {
        self.shape.iter().product()
    }

    /// Its numbers, in the order of its shape.
    ///
    /// # Errors
    /// When they are no floats, or one of them is not finite or beyond a million.
    pub(crate) fn values(&self, name: &str) -> Result<Vec<f32>, ModelError> {
        let size = self.kind.size();
        let mut values = Vec::with_capacity(self.count());
        let mut index = vec![0; self.shape.len()];
        for _ in 0..self.count() {
            let steps = index
                .iter()
                .zip(&self.strides)
                .map(|(i, stride)| i * stride);
            let at = (self.offset + steps.sum::<usize>()) * size;
            let value = self.number(name, self.bytes.get(at..at + size).unwrap_or(&[]))?;
            values.push(value);
            advance(&mut index, &self.shape);
        }
        // Infinities and NaN fail the same test.
        if !values.iter().all(|value| value.abs() <= VALUE_MAX) {
            return Err(refuse(format!("{name} has a value that is not within 1e6")));
        }
        Ok(values)
    }

    fn number(&self, name: &str, bytes: &[u8]) -> Result<f32, ModelError> {
        Ok(match (self.kind, bytes) {
            (Kind::F64, &[a, b, c, d, e, f, g, h]) => {
                f64::from_le_bytes([a, b, c, d, e, f, g, h]) as f32
            }
            (Kind::F32, &[a, b, c, d]) => f32::from_le_bytes([a, b, c, d]),
            (Kind::F16, &[a, b]) => f16::from_le_bytes([a, b]).to_f32(),
            (Kind::Bf16, &[a, b]) => bf16::from_le_bytes([a, b]).to_f32(),
            (kind, _) => {
                return Err(refuse(format!(
                    "{name} is of type {kind:?}, not F16, BF16, F32 or F64"
                )));
            }
        })
    }
}

/// The next index in row-major order.
fn advance(index: &mut [usize], shape: &[usize]) {
    for (i, &size) in index.iter_mut().zip(shape).rev() {
        *i += 1;
        if *i < size {
            return;
        }
        *i = 0;
    }
}

/// The last number of a view lies within its storage, and it has no more numbers than there are.
fn check_within(view: &View<'_>) -> Result<(), ModelError> {
    let lies = || {
        refuse(format!(
            "a tensor of shape {:?} lies outside its storage",
            view.shape
        ))
    };
    let dimensions = view.shape.len();
    if dimensions > DIMENSIONS_MAX || dimensions != view.strides.len() {
        return Err(refuse(format!(
            "a tensor of {dimensions} dimensions, at most {DIMENSIONS_MAX}"
        )));
    }
    let count = view
        .shape
        .iter()
        .try_fold(1_usize, |all, &size| all.checked_mul(size));
    let mut last = view.offset;
    for (&size, &stride) in view.shape.iter().zip(&view.strides) {
        let step = size.saturating_sub(1).checked_mul(stride);
        last = step
            .and_then(|step| last.checked_add(step))
            .ok_or_else(lies)?;
    }
    match count {
        Some(0) if view.offset <= view.storage.count => Ok(()),
        Some(count) if count <= view.storage.count && last < view.storage.count => Ok(()),
        _ => Err(lies()),
    }
}

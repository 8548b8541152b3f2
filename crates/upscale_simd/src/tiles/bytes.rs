//! Bytes that begin with a cache line: a row of a tile register that lies in two is two loads, and
//! products over such rows ran at 0.7 of the speed.

use std::ops::{Deref, DerefMut};

use crate::buffer::Buffer;

/// A fixed count of bytes, 0 at first, and up to three more.
pub(super) struct Bytes(Buffer);

impl Bytes {
    pub(super) fn zeroed(count: usize) -> Self {
        Self(Buffer::zeroed(count.div_ceil(size_of::<f32>())))
    }
}

impl Default for Bytes {
    fn default() -> Self {
        Self::zeroed(0)
    }
}

impl Deref for Bytes {
    type Target = [i8];

    #[inline(always)]
    fn deref(&self) -> &[i8] {
        bytes_of(&self.0)
    }
}

impl DerefMut for Bytes {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [i8] {
        bytes_of_mut(&mut self.0)
    }
}

/// The bytes of numbers.
pub(super) fn bytes_of(numbers: &[f32]) -> &[i8] {
    // SAFETY: the same memory, borrowed as it is; bytes have no alignment, and any bits are one.
    unsafe { std::slice::from_raw_parts(numbers.as_ptr().cast(), size_of_val(numbers)) }
}

/// The same, to write: whatever they become, they are numbers.
pub(super) fn bytes_of_mut(numbers: &mut [f32]) -> &mut [i8] {
    let count = size_of_val(numbers);
    // SAFETY: as above, borrowed for this alone; any bits are a number.
    unsafe { std::slice::from_raw_parts_mut(numbers.as_mut_ptr().cast(), count) }
}

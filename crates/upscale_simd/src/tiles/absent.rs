//! Where the architecture has no tile registers.

use std::ops::Range;

use super::{Line, SplitRows, SplitWeights};
use crate::Ahead;

/// There is none.
#[derive(Debug, Clone, Copy)]
pub(super) enum Granted {}

/// # Safety
/// Cannot be called.
pub(super) unsafe fn split_pixels(
    granted: Granted,
    _numbers: (&[f32], usize),
    _scale: f32,
    _bytes: [&mut [i8]; 2],
    _place: (usize, usize),
) -> f32 {
    match granted {}
}

/// # Safety
/// Cannot be called.
pub(super) unsafe fn convolve_rows(
    granted: Granted,
    _input: &SplitRows,
    _weights: &SplitWeights,
    _line: Line<'_>,
    _place: (usize, Range<usize>),
    _output: (&mut [&mut [f32]], usize),
    _ahead: &mut Ahead,
) {
    match granted {}
}

//! Where the architecture has no tile registers.

use std::ops::Range;

use super::{ByteRows, Layout, Line, Packing, SplitWeights};
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
    _to: (&mut [i8], Layout),
) -> f32 {
    match granted {}
}

/// # Safety
/// Cannot be called.
pub(super) unsafe fn convolve_rows(
    granted: Granted,
    _input: &ByteRows<'_>,
    _weights: &SplitWeights,
    _line: (Line<'_>, Option<Packing<'_>>),
    _place: (usize, Range<usize>),
    _output: (&mut [&mut [f32]], usize),
    _ahead: &mut Ahead,
) -> f32 {
    match granted {}
}

//! How much there may be of anything in a file.

/// Entries of a container, tensors of a file.
pub(super) const TENSORS_MAX: usize = 16_384;
/// Longest name of a tensor, in bytes.
pub(super) const NAME_BYTES_MAX: usize = 256;
/// Dimensions of a tensor; a convolution has four.
pub(super) const DIMENSIONS_MAX: usize = 8;

//! The types of number that a file may hold.

/// How a number is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    F64,
    F32,
    F16,
    Bf16,
    /// Integers of that many bytes: counters and the like, never weights.
    Integer(usize),
    /// No weights either, of a size that no one asks for.
    Other,
}

impl Kind {
    /// Bytes of a number.
    pub(crate) fn size(self) -> usize {
        match self {
            Self::F64 => 8,
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
            Self::Integer(size) => size,
            Self::Other => 1,
        }
    }
}

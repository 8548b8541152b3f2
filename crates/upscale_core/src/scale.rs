//! The two scales on offer.

use std::fmt;

/// How many times wider and higher the result is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scale {
    /// Twice as wide and high.
    X2,
    /// Four times as wide and high.
    X4,
}

impl Scale {
    /// Both, smallest first.
    pub const ALL: [Self; 2] = [Self::X2, Self::X4];

    /// 2 or 4; anything else is none.
    #[must_use]
    pub const fn from_factor(factor: i64) -> Option<Self> {
        match factor {
            2 => Some(Self::X2),
            4 => Some(Self::X4),
            _ => None,
        }
    }

    /// Result pixels a source pixel, along each side: 2 or 4.
    #[must_use]
    pub const fn factor(self) -> usize {
        match self {
            Self::X2 => 2,
            Self::X4 => 4,
        }
    }
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x", self.factor())
    }
}

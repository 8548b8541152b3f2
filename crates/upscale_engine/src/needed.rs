//! Which products of a tile count where a picture is narrower or lower than the tile.

use crate::winograd::{TILE, WINDOW};

/// The last point counts for the last output of a tile alone.
const LAST_UNUSED_MAX: usize = TILE - 1;

/// What a tile has of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Narrow {
    /// Points that count, in columns and in rows: first and end.
    pub(crate) columns: (usize, usize),
    pub(crate) rows: (usize, usize),
    pub(crate) line: Line,
}

/// Whether a picture is a line of pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    No,
    /// One pixel wide.
    Standing,
    /// One pixel high.
    Lying,
}

impl Narrow {
    /// All products of every tile.
    pub(crate) const WHOLE: Self = Self {
        columns: (0, WINDOW),
        rows: (0, WINDOW),
        line: Line::No,
    };

    /// For a map of that many columns and rows.
    pub(crate) fn of(width: usize, height: usize) -> Self {
        let line = match (width, height) {
            (1, _) => Line::Standing,
            (_, 1) => Line::Lying,
            _ => Line::No,
        };
        Self {
            columns: points(width, line == Line::Standing),
            rows: points(height, line == Line::Lying),
            line,
        }
    }

    /// Whether any pixel of the picture needs the products at `position`.
    pub(crate) fn needs(self, position: usize) -> bool {
        let (row, column) = (position / WINDOW, position % WINDOW);
        (self.rows.0..self.rows.1).contains(&row)
            && (self.columns.0..self.columns.1).contains(&column)
    }

    /// Whether the functions of `narrow.rs` are to be used.
    pub(crate) fn is_line(self) -> bool {
        self.line != Line::No
    }
}

/// The points that count in a picture of `size` pixels; the first is zero where the picture is a line.
fn points(size: usize, is_line: bool) -> (usize, usize) {
    let end = if size <= LAST_UNUSED_MAX {
        WINDOW - 1
    } else {
        WINDOW
    };
    (usize::from(is_line), end)
}

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
    /// Where the picture is a line of pixels.
    pub(crate) line: Option<Line>,
}

/// How a line of pixels lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
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
        line: None,
    };

    /// For a map of that many columns and rows.
    pub(crate) fn of(width: usize, height: usize) -> Self {
        Self {
            columns: points(width),
            rows: points(height),
            line: None,
        }
    }

    /// For a map of that many columns and rows, one of which is one; as [`Narrow::of`] for others.
    pub(crate) fn of_line(width: usize, height: usize) -> Self {
        let (line, long) = match (width, height) {
            (1, _) => (Line::Standing, height),
            (_, 1) => (Line::Lying, width),
            _ => return Self::of(width, height),
        };
        Self {
            columns: points(long),
            rows: (1, 2),
            line: Some(line),
        }
    }

    /// Whether any pixel of the picture needs the products at `position`.
    pub(crate) fn needs(self, position: usize) -> bool {
        let (row, column) = (position / WINDOW, position % WINDOW);
        (self.rows.0..self.rows.1).contains(&row)
            && (self.columns.0..self.columns.1).contains(&column)
    }
}

/// The points that count in a picture of `size` pixels.
fn points(size: usize) -> (usize, usize) {
    let end = if size <= LAST_UNUSED_MAX {
        WINDOW - 1
    } else {
        WINDOW
    };
    (0, end)
}

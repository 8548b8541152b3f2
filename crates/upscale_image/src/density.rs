//! How many pixels make a metre: JFIF, EXIF and `pHYs` say it in three ways, the result says it in one.

/// Pixels per unit, horizontally and vertically.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Density {
    pub(crate) x: u32,
    pub(crate) y: u32,
    /// `true`: per metre; `false`: only the ratio of the two means anything.
    pub(crate) per_metre: bool,
}

/// PNG's four-byte integers end here (PNG specification, 3rd edition, section 7.1).
const PNG_INTEGER_MAX: f64 = 2_147_483_647.0;

impl Density {
    /// From pixels per unit, `units_per_metre` of which make a metre (inch: 1 / 0.0254, centimetre: 100).
    pub(crate) fn per_metre(x: f64, y: f64, units_per_metre: f64) -> Option<Self> {
        Some(Self {
            x: whole(x * units_per_metre)?,
            y: whole(y * units_per_metre)?,
            per_metre: true,
        })
    }

    /// Only the shape of a pixel is known; square pixels are what everyone assumes anyway.
    pub(crate) fn aspect(x: u32, y: u32) -> Option<Self> {
        (x != 0 && y != 0 && x != y).then_some(Self {
            x,
            y,
            per_metre: false,
        })
    }

    /// For a picture turned by a quarter.
    pub(crate) fn transposed(self) -> Self {
        Self {
            x: self.y,
            y: self.x,
            per_metre: self.per_metre,
        }
    }

    /// The picture keeps its size on paper: `scale` times the pixels, `scale` times the density.
    pub(crate) fn scaled(self, scale: usize) -> Option<Self> {
        if !self.per_metre {
            return Some(self);
        }
        Self::per_metre(f64::from(self.x), f64::from(self.y), scale as f64)
    }
}

fn whole(value: f64) -> Option<u32> {
    let rounded = value.round();
    (1.0..=PNG_INTEGER_MAX)
        .contains(&rounded)
        .then_some(rounded as u32)
}

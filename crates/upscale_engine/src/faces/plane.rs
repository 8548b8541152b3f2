//! The eight-bit luma in which faces and their features are found.

use std::ops::Range;

use upscale_core::Pixels;

/// A gray picture of 8 bits a pixel, row by row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plane {
    width: usize,
    height: usize,
    luma: Vec<u8>,
}

impl Plane {
    /// A picture of `width` pixels a row.
    ///
    /// # Errors
    /// A picture whose pixels do not fill whole rows is refused, with the numbers.
    pub fn new(width: usize, luma: Vec<u8>) -> Result<Self, String> {
        match luma.len().checked_rem(width) {
            Some(0) => Ok(Self {
                width,
                height: luma.len() / width,
                luma,
            }),
            _ => Err(format!("{} pixels in rows of {width}", luma.len())),
        }
    }

    /// The luma of a picture of 1 or 3 channels.
    pub(super) fn of(source: &Pixels) -> Self {
        let level = |value: f32| (value * 255.0 + 0.5) as u8;
        let luma = match source.channels() {
            1 => source.samples().iter().map(|&v| level(v)).collect(),
            _ => {
                let pixels = source.samples().chunks_exact(3);
                // BT.601, as the detector's own training pictures.
                pixels
                    .map(|p| level(0.299 * p[0] + 0.587 * p[1] + 0.114 * p[2]))
                    .collect()
            }
        };
        Self {
            width: source.width(),
            height: source.height(),
            luma,
        }
    }

    /// All pixels in levels of 255.
    pub(super) fn levels(&self) -> Vec<f32> {
        self.luma.iter().copied().map(f32::from).collect()
    }

    /// Pixels a row.
    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// Rows.
    pub(super) fn height(&self) -> usize {
        self.height
    }

    /// The pixels of one row; none below the picture.
    pub(super) fn row(&self, y: usize) -> &[u8] {
        let start = y.saturating_mul(self.width);
        self.luma
            .get(start..)
            .map_or(&[], |rest| rest.get(..self.width).unwrap_or_default())
    }

    /// A part of the picture, left and right exchanged.
    pub(super) fn mirrored(&self, columns: Range<usize>, rows: Range<usize>) -> Self {
        let (width, height) = (columns.len(), rows.len());
        let row = |y: usize| &self.luma[y * self.width..][columns.clone()];
        Self {
            width,
            height,
            luma: rows.flat_map(|y| row(y).iter().rev().copied()).collect(),
        }
    }

    /// Means of 2 x 2 pixels; an odd last row or column is left out.
    pub(super) fn halved(&self) -> Self {
        let (width, height) = (self.width / 2, self.height / 2);
        let at = |x: usize, y: usize| u16::from(self.luma[y * self.width + x]);
        let mean = |x: usize, y: usize| {
            let sum = at(x, y) + at(x + 1, y) + at(x, y + 1) + at(x + 1, y + 1);
            ((sum + 2) / 4) as u8
        };
        let rows = (0..height).flat_map(|y| (0..width).map(move |x| (2 * x, 2 * y)));
        Self {
            width,
            height,
            luma: rows.map(|(x, y)| mean(x, y)).collect(),
        }
    }

    /// Every pixel with its eight neighbours by the binomial weights 1, 2, 1, edges replicated: white noise of 12 levels
    /// has 4.5 left.
    pub(super) fn smoothed(&self) -> Self {
        let near = |at: usize, size: usize| [at.saturating_sub(1), at, (at + 1).min(size - 1)];
        let weighed = |values: [u16; 3]| values[0] + 2 * values[1] + values[2];
        let pixel = |x: usize, y: usize| {
            let columns = near(x, self.width);
            let rows = near(y, self.height).map(|row| {
                let row = self.row(row);
                weighed(columns.map(|column| u16::from(row[column])))
            });
            ((weighed(rows) + 8) / 16) as u8
        };
        let all = (0..self.height).flat_map(|y| (0..self.width).map(move |x| (x, y)));
        Self {
            luma: all.map(|(x, y)| pixel(x, y)).collect(),
            ..*self
        }
    }

    /// Every pixel three times as far from its smoothed self as it was: most of what a blur of one pixel takes is back.
    pub(super) fn sharpened(&self) -> Self {
        let smooth = self.smoothed();
        let away = |(&pixel, &smooth): (&u8, &u8)| {
            (3 * i16::from(pixel) - 2 * i16::from(smooth)).clamp(0, 255) as u8
        };
        Self {
            luma: self.luma.iter().zip(&smooth.luma).map(away).collect(),
            ..*self
        }
    }

    /// The square of `side` pixels at (`x`, `y`); black where it sticks out of the picture.
    pub(super) fn square(&self, x: i64, y: i64, side: usize) -> Self {
        let mut luma = vec![0; side * side];
        let left = usize::try_from(-x).unwrap_or(0).min(side);
        let first = usize::try_from(x).unwrap_or(0).min(self.width);
        let count = (side - left).min(self.width - first);
        for (offset, row) in luma.chunks_exact_mut(side.max(1)).enumerate() {
            let Ok(from) = usize::try_from(y + offset as i64) else {
                continue;
            };
            if let Some(pixels) = self.row(from).get(first..first + count) {
                row[left..left + count].copy_from_slice(pixels);
            }
        }
        Self {
            width: side,
            height: side,
            luma,
        }
    }

    /// Another size, as the detector's model was trained with it: bilinear between the pixel at `floor(x * ratio)` and the
    /// next, rounded down, nothing averaged. Pictures of one pixel in either direction stay as they are.
    pub(super) fn resized(&self, width: usize, height: usize) -> Self {
        if (self.width, self.height) == (width, height) || self.width.min(self.height) < 2 {
            return self.clone();
        }
        let columns = taps(self.width, width);
        let mut luma = Vec::with_capacity(width * height);
        for (y, down) in taps(self.height, height) {
            let (upper, lower) = (self.row(y), self.row(y + 1));
            luma.extend(columns.iter().map(|&(x, across)| {
                let along = |row: &[u8]| {
                    (1.0 - across) * f64::from(row[x]) + across * f64::from(row[x + 1])
                };
                ((1.0 - down) * along(upper) + down * along(lower)) as u8
            }));
        }
        Self {
            width,
            height,
            luma,
        }
    }
}

/// For each of `to` places: the first of the two pixels between which it lies, and how far towards the second.
fn taps(from: usize, to: usize) -> Vec<(usize, f64)> {
    let ratio = from as f64 / to as f64;
    let tap = |place: usize| {
        let at = ratio * place as f64;
        let first = (at as usize).min(from - 2);
        (first, at - first as f64)
    };
    (0..to).map(tap).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plane(width: usize, height: usize) -> Plane {
        Plane::new(
            width,
            (0..width * height).map(|i| (i % 251) as u8).collect(),
        )
        .unwrap()
    }

    #[test]
    fn halving_and_mirroring_keep_the_right_pixels() {
        let picture = plane(7, 4);
        let half = picture.halved();
        assert_eq!((half.width, half.height), (3, 2));
        // 0, 1 over 7, 8.
        assert_eq!(half.luma[0], 4);
        let part = picture.mirrored(1..4, 2..4);
        assert_eq!((part.width, part.height), (3, 2));
        assert_eq!(part.luma, [17, 16, 15, 24, 23, 22]);
    }

    #[test]
    fn smoothing_weighs_eight_neighbours_and_keeps_what_is_even() {
        let mut luma = vec![0; 25];
        luma[12] = 160;
        let spread = Plane::new(5, luma).unwrap().smoothed();
        assert_eq!(spread.row(1), [0, 10, 20, 10, 0]);
        assert_eq!(spread.row(2), [0, 20, 40, 20, 0]);
        for (width, height) in [(1, 1), (1, 4), (5, 3)] {
            let even = Plane::new(width, vec![77; width * height]).unwrap();
            assert_eq!(even.smoothed(), even);
        }
    }

    #[test]
    fn sharpening_takes_smoothing_from_both_sides_and_keeps_what_is_even() {
        let edge = |x: usize| if x < 4 { 100 } else { 140 };
        let picture = Plane::new(8, (0..16).map(|i| edge(i % 8)).collect()).unwrap();
        let sharp = picture.sharpened();
        assert_eq!(sharp.row(0), [100, 100, 100, 80, 160, 140, 140, 140]);
        assert_eq!(sharp.row(0), sharp.row(1));
        let checks = Plane::new(2, vec![0, 255, 255, 0]).unwrap();
        assert_eq!(checks.sharpened(), checks);
    }

    #[test]
    fn a_square_is_black_outside_of_the_picture() {
        let picture = plane(3, 2);
        assert_eq!(picture.square(-1, -1, 3).luma, [0, 0, 0, 0, 0, 1, 0, 3, 4]);
        assert_eq!(picture.square(2, 1, 2).luma, [5, 0, 0, 0]);
        for far in [-9, 9, i64::from(i32::MAX), i64::from(i32::MIN)] {
            assert_eq!(picture.square(far, 0, 2).luma, [0; 4], "{far}");
            assert_eq!(picture.square(0, far, 2).luma, [0; 4], "{far}");
        }
        assert!(picture.square(0, 0, 0).luma.is_empty());
    }

    #[test]
    fn rows_must_be_whole() {
        assert!(Plane::new(3, vec![0; 7]).is_err());
        assert!(Plane::new(0, Vec::new()).is_err());
        assert_eq!(plane(3, 2).row(1), [3, 4, 5]);
        assert!(plane(3, 2).row(2).is_empty());
    }
}

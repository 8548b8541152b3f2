//! The eight ways in which a picture may lie.

use upscale_core::Pixels;

/// How a picture lies: exchanged along its diagonal or not, then left and right exchanged or not, then top and bottom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Orientation {
    transposed: bool,
    mirrored: bool,
    flipped: bool,
}

impl Orientation {
    /// Exchanged along its diagonal.
    pub(crate) const TRANSPOSED: Self = Self::number(1);
    /// Left and right exchanged.
    pub(crate) const MIRRORED: Self = Self::number(2);
    /// All eight.
    pub(crate) const ALL: [Self; 8] = [
        Self::number(0),
        Self::number(1),
        Self::number(2),
        Self::number(3),
        Self::number(4),
        Self::number(5),
        Self::number(6),
        Self::number(7),
    ];

    const fn number(bits: u8) -> Self {
        Self {
            transposed: bits & 1 != 0,
            mirrored: bits & 2 != 0,
            flipped: bits & 4 != 0,
        }
    }

    /// Where in a picture of `width` columns and `height` rows stands what lies at `x`, `y` once it is turned: the
    /// pixel's number, row by row.
    pub(crate) fn place(self, (x, y): (usize, usize), (width, height): (usize, usize)) -> usize {
        let (x, y) = if self.transposed { (y, x) } else { (x, y) };
        let x = if self.mirrored { width - 1 - x } else { x };
        let y = if self.flipped { height - 1 - y } else { y };
        y * width + x
    }

    /// The picture, turned.
    pub(crate) fn of(self, picture: &Pixels) -> Pixels {
        let (size, channels) = ((picture.width(), picture.height()), picture.channels());
        let (width, height) = if self.transposed {
            (size.1, size.0)
        } else {
            size
        };
        let places = (0..height).flat_map(|y| (0..width).map(move |x| self.place((x, y), size)));
        let samples = places
            .flat_map(|place| &picture.samples()[place * channels..(place + 1) * channels])
            .copied()
            .collect();
        Pixels::new(width, height, channels, samples)
            .unwrap_or_else(|_| unreachable!("as many samples as before"))
    }

    /// Adds row `y` of a turned picture to `sums`, a picture of that size that is not turned.
    pub(crate) fn add(
        self,
        row: &[f32],
        y: usize,
        sums: &mut [f32],
        size: (usize, usize),
        channels: usize,
    ) {
        for (x, pixel) in row.chunks_exact(channels).enumerate() {
            let place = self.place((x, y), size) * channels;
            let sums = &mut sums[place..place + channels];
            for (sum, sample) in sums.iter_mut().zip(pixel) {
                *sum += sample;
            }
        }
    }
}

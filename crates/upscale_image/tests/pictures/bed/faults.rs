//! What broken kernels make of a sound result.

use upscale_core::Pixels;

use super::Dice;

/// Side of a tile, in source pixels: wherever it lies, it covers a square of the check.
pub const TILE: usize = 64;

/// An injected fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    NotANumber,
    FlatField,
    /// A tile of one colour, its own mean.
    FlatTile,
    MissingTile,
    /// A tile from elsewhere.
    PastedTile,
    /// A tile one source pixel to the right.
    ShiftedTile,
    ShiftedPicture,
    SwappedChannels,
    Inverted,
    /// Colours that moved everywhere.
    Drift,
    Noise,
}

impl Fault {
    pub const ALL: [Self; 11] = [
        Self::NotANumber,
        Self::FlatField,
        Self::FlatTile,
        Self::MissingTile,
        Self::PastedTile,
        Self::ShiftedTile,
        Self::ShiftedPicture,
        Self::SwappedChannels,
        Self::Inverted,
        Self::Drift,
        Self::Noise,
    ];

    /// Whether it is a tile that is wrong, not the whole picture.
    pub fn is_of_a_tile(self) -> bool {
        use Fault::{FlatTile, MissingTile, PastedTile, ShiftedTile};
        matches!(self, FlatTile | MissingTile | PastedTile | ShiftedTile)
    }

    /// The result with the fault in it. Tiles are [`TILE`] source pixels wide and high, at most half the picture.
    pub fn inject(self, sound: &Pixels, scale: usize, dice: &mut Dice) -> Pixels {
        let mut canvas = Canvas::new(sound);
        let side = |length: usize| (length / 2).clamp(1, TILE * scale);
        let tile = Tile {
            width: side(sound.width()),
            height: side(sound.height()),
            left: dice.below(sound.width() - side(sound.width()) + 1),
            top: dice.below(sound.height() - side(sound.height()) + 1),
        };
        match self {
            Self::NotANumber => {
                let at = dice.below(canvas.samples.len());
                canvas.samples[at] = f32::NAN;
            }
            Self::FlatField => canvas.samples.fill(0.5),
            Self::FlatTile => {
                let mean = canvas.mean(&tile);
                canvas.fill(&tile, |_, _, c| mean[c]);
            }
            Self::MissingTile => canvas.fill(&tile, |_, _, _| 0.0),
            Self::PastedTile => {
                let left = dice.below(sound.width() - tile.width + 1);
                let top = dice.below(sound.height() - tile.height + 1);
                canvas.fill(&tile, |x, y, c| sound.row(top + y)[(left + x) * 3 + c]);
            }
            Self::ShiftedTile => canvas.shift(sound, &tile, scale),
            Self::ShiftedPicture => canvas.shift(sound, &Tile::whole(sound), scale),
            Self::SwappedChannels => canvas
                .samples
                .chunks_exact_mut(3)
                .for_each(|p| p.swap(0, 2)),
            Self::Inverted => canvas.samples.iter_mut().for_each(|s| *s = 1.0 - *s),
            Self::Drift => canvas.samples.chunks_exact_mut(3).for_each(|pixel| {
                pixel[0] += 0.075;
                pixel[1] -= 0.075;
            }),
            Self::Noise => canvas
                .samples
                .iter_mut()
                .for_each(|s| *s += dice.share() - 0.5),
        }
        canvas.into_pixels()
    }
}

struct Tile {
    left: usize,
    top: usize,
    width: usize,
    height: usize,
}

impl Tile {
    fn whole(picture: &Pixels) -> Self {
        Self {
            left: 0,
            top: 0,
            width: picture.width(),
            height: picture.height(),
        }
    }
}

struct Canvas {
    width: usize,
    height: usize,
    samples: Vec<f32>,
}

impl Canvas {
    fn new(picture: &Pixels) -> Self {
        Self {
            width: picture.width(),
            height: picture.height(),
            samples: picture.samples().to_vec(),
        }
    }

    fn into_pixels(self) -> Pixels {
        Pixels::new(self.width, self.height, 3, self.samples).expect("as many")
    }

    /// Gives every sample of the tile the colour `color(column, row, channel)`, counted from the tile's corner.
    fn fill(&mut self, tile: &Tile, color: impl Fn(usize, usize, usize) -> f32) {
        for (y, x) in (0..tile.height).flat_map(|y| (0..tile.width).map(move |x| (y, x))) {
            let at = ((tile.top + y) * self.width + tile.left + x) * 3;
            (0..3).for_each(|c| self.samples[at + c] = color(x, y, c));
        }
    }

    fn mean(&self, tile: &Tile) -> [f32; 3] {
        let mut sums = [0.0_f64; 3];
        for (y, x) in (0..tile.height).flat_map(|y| (0..tile.width).map(move |x| (y, x))) {
            let at = ((tile.top + y) * self.width + tile.left + x) * 3;
            (0..3).for_each(|c| sums[c] += f64::from(self.samples[at + c]));
        }
        sums.map(|sum| (sum / (tile.width * tile.height) as f64) as f32)
    }

    fn shift(&mut self, sound: &Pixels, tile: &Tile, distance: usize) {
        self.fill(tile, |x, y, c| {
            let from = (tile.left + x).saturating_sub(distance);
            sound.row(tile.top + y)[from * 3 + c]
        });
    }
}

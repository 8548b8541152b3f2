//! What something that computes networks elsewhere, such as a GPU, sees of one: its maps and layers, to be read only.

use crate::network::{Base, Layer, Network};

impl Network {
    /// Channels of every map; map 0 ([`crate::PICTURE`]) is the source's.
    #[must_use]
    pub fn maps(&self) -> &[usize] {
        &self.maps
    }

    /// Width and height of every map in those of map 0: 1, 2, 4 or 8.
    #[must_use]
    pub fn factors(&self) -> &[usize] {
        &self.factors
    }

    /// The layers, in the order in which they run; each writes a map of its own, and none reads a later one's.
    #[must_use]
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// The first layer of every section, ascending from 0: only maps that leave a section have to be whole.
    #[must_use]
    pub fn sections(&self) -> &[usize] {
        &self.sections
    }

    /// What the last layer's shuffled map is added to, before the clamp to 0..1.
    #[must_use]
    pub fn base(&self) -> Base {
        self.base
    }

    /// Source pixels on a side of what becomes one pixel of map 0: its channel `(c * u + dy) * u + dx` is colour `c` of
    /// the pixel `dx` to the right and `dy` below; beyond the source's edge the last column or row is repeated.
    #[must_use]
    pub fn unshuffle(&self) -> usize {
        self.unshuffle
    }

    /// Subtracted from the source's colours on their way into map 0, outside of which all is zero.
    #[must_use]
    pub fn mean(&self) -> [f32; 3] {
        self.mean
    }

    /// Side of the squares of output pixels that one pixel of the last layer makes: its channel `(c * s + dy) * s + dx`
    /// is colour `c` of the pixel `dx` to the right and `dy` below.
    #[must_use]
    pub fn shuffle(&self) -> usize {
        self.last_shuffle()
    }

    /// Channels that a layer reads: of all its inputs, or of one where they are interleaved.
    #[must_use]
    pub fn channels_read(&self, layer: &Layer) -> usize {
        self.read_channels(layer)
    }
}

//! What decoding hands on: samples as a decoder gives them, and the picture that the networks and the writer get.

use upscale_core::{Compression, Condition, Pixels};

use crate::colour::curve::Curves;
use crate::colour::{Colour, Layout, Tag};
use crate::density::Density;
use crate::orientation::Orientation;
use crate::sniff::Header;

/// A customer's picture, ready for the networks.
#[derive(Debug, Clone)]
pub struct Source {
    /// Colour, upright; 1 channel when the picture is gray, else 3; bled outward under alpha 0.
    pub color: Pixels,
    /// Alpha, 1 channel; `None` when the picture is opaque.
    pub alpha: Option<Pixels>,
    /// The file it came from.
    pub header: Header,
    /// How its colour was compressed, how noisy and how soft it is; alpha is lossless, or as good as that, in every
    /// format.
    pub condition: Condition,
    pub(crate) sixteen_bit: bool,
    pub(crate) tag: Tag,
    pub(crate) curves: Option<Curves>,
    pub(crate) density: Option<Density>,
}

/// Samples as a decoder gives them: interleaved, `[0, 1]`, not yet turned.
pub(crate) struct Decoded {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) layout: Layout,
    pub(crate) samples: Vec<f32>,
    pub(crate) sixteen_bit: bool,
    pub(crate) colour: Colour,
    pub(crate) orientation: Orientation,
    pub(crate) density: Option<Density>,
    /// What the file says of itself.
    pub(crate) compression: Compression,
}

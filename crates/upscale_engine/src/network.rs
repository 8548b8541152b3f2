//! What a network is: maps, and layers between them, in the order in which they run. No arithmetic here;
//! `reference.rs` says what the layers mean, the kernels run them fast, `model_file.rs` reads them from files.

use crate::conditioning::Conditioning;
use crate::ranges::Ranges;

/// A map of the network: index into [`Network::maps`]. Map 0 is the source picture: see [`Network::unshuffle`].
pub type Map = usize;

/// The source picture as a map.
pub const PICTURE: Map = 0;

/// A network: 3x3 and 1x1 convolutions over maps, then a pixel shuffle onto a base.
#[derive(Debug, Clone)]
pub struct Network {
    pub(crate) name: String,
    /// Enlargement of the picture: see [`Network::last_shuffle`].
    pub(crate) scale: usize,
    pub(crate) base: Base,
    /// Side of the squares of source pixels that become one pixel of map 0 with `3 * unshuffle²` channels, in the
    /// order of PyTorch's `pixel_unshuffle`; 1 for most. A width or height that it does not divide is filled up by
    /// repeating the last column or row, and the output is cut to `scale` times the source.
    pub(crate) unshuffle: usize,
    /// Subtracted from the source's colours; outside the picture map 0 is zero all the same.
    pub(crate) mean: [f32; 3],
    /// Channels of every map.
    pub(crate) maps: Vec<usize>,
    /// Width and height of every map in those of map 0.
    pub(crate) factors: Vec<usize>,
    pub(crate) layers: Vec<Layer>,
    /// How its layers are set by what is known of a picture's compression; none: they are the same for all.
    pub(crate) conditioning: Option<Conditioning>,
    /// First layer of every section. A section is run over the whole picture before the next one begins: its results
    /// are whole maps, and only inside of it rows may leave early. One section where all maps are streamed.
    pub(crate) sections: Vec<usize>,
    /// How large its numbers get, where that was found once.
    pub(crate) ranges: Option<Ranges>,
}

/// What the shuffled last layer is added to before the clamp to 0..1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// Bicubic interpolation of the source, see `bicubic.rs`.
    Bicubic,
    /// Every source pixel repeated (Compact).
    Nearest,
    /// Bilinear interpolation of the source, see `bicubic.rs` (SRResNet).
    Bilinear,
    /// Nothing: the last layer is the picture (ESRGAN, SPAN).
    Zero,
}

/// One convolution (zero padded, stride 1) and what happens to its sums before they are stored.
#[derive(Debug, Clone)]
pub struct Layer {
    /// Read side by side as one map of all their channels. One of half the output's factor is read as if every pixel
    /// of it were two wide and two high (nearest neighbour); the zeros outside come after that.
    pub inputs: Vec<Map>,
    /// Whether four inputs of half the output's factor are read as one map of their channels, which are the same in
    /// number: its pixel `x`, `y` is the pixel `x / 2`, `y / 2` of input `y % 2 * 2 + x % 2`. What a convolution and
    /// PyTorch's `pixel_shuffle` of 2 make, kept as four maps.
    pub is_interleaved: bool,
    /// The map that it writes.
    pub output: Map,
    /// 3 or 1: the side of the kernel.
    pub side: usize,
    /// `[output channel][input channel][row][column]`.
    pub weights: Vec<f32>,
    /// One number for each output channel.
    pub bias: Vec<f32>,
    /// Applied to the sums first.
    pub activation: Activation,
    /// Applied in order, after the activation.
    pub combine: Vec<Combine>,
}

/// Element-wise function of a sum.
#[derive(Debug, Clone, PartialEq)]
pub enum Activation {
    /// `v`
    None,
    /// `max(v, 0)`
    Relu,
    /// `v` where positive, else `v` times the channel's slope; LeakyReLU has one slope for all channels.
    Prelu(Vec<f32>),
    /// `v * sigmoid(v)`
    Silu,
    /// `v * tanh(ln(1 + exp(v)))`
    Mish,
}

/// What joins another map `h` of the same shape to a layer's value `v`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Combine {
    /// `scale * v + h`
    Add {
        /// `h`, as wide and as high.
        map: Map,
        /// What `v` is multiplied by.
        scale: f32,
    },
    /// SPAN's gate: `(v + h) * (sigmoid(v) - 0.5)`
    Gate {
        /// `h`, as wide and as high.
        map: Map,
    },
}

impl Layer {
    /// Whether both read and write the same, so that numbers of one stand where those of the other do.
    pub(crate) fn has_shape_of(&self, other: &Self) -> bool {
        self.inputs == other.inputs
            && self.is_interleaved == other.is_interleaved
            && (self.output, self.side) == (other.output, other.side)
            && (self.weights.len(), self.bias.len()) == (other.weights.len(), other.bias.len())
            && self.activation == other.activation
            && self.combine == other.combine
    }
}

impl Combine {
    /// The map that it joins.
    #[must_use]
    pub fn map(self) -> Map {
        match self {
            Self::Add { map, .. } | Self::Gate { map } => map,
        }
    }
}

impl Network {
    /// A network without layers, of one map: the picture.
    pub(crate) fn empty(name: &str, scale: usize, base: Base) -> Self {
        Self {
            name: name.to_owned(),
            scale,
            base,
            unshuffle: 1,
            mean: [0.0; 3],
            maps: vec![3],
            factors: vec![1],
            layers: Vec::new(),
            conditioning: None,
            sections: vec![0],
            ranges: None,
        }
    }

    /// As [`Network::empty`], with map 0 made of squares of `side` x `side` source pixels.
    pub(crate) fn unshuffled(name: &str, scale: usize, base: Base, side: usize) -> Self {
        Self {
            unshuffle: side,
            maps: vec![3 * side * side],
            ..Self::empty(name, scale, base)
        }
    }

    /// What comes next is a new section.
    pub(crate) fn begin_section(&mut self) {
        self.sections.push(self.layers.len());
    }

    /// Appends a layer and gives the map that it writes, as large as its inputs.
    pub(crate) fn push(
        &mut self,
        inputs: &[Map],
        conv: (Vec<f32>, Vec<f32>),
        activation: Activation,
        combine: &[Combine],
    ) -> Map {
        let factor = inputs.first().map_or(1, |&map| self.factors[map]);
        self.push_at((factor, false), inputs, conv, activation, combine)
    }

    /// Appends a layer that reads its inputs enlarged twice, and gives the map that it writes.
    pub(crate) fn push_up(
        &mut self,
        inputs: &[Map],
        conv: (Vec<f32>, Vec<f32>),
        activation: Activation,
    ) -> Map {
        let factor = inputs.first().map_or(1, |&map| self.factors[map]);
        self.push_at((2 * factor, false), inputs, conv, activation, &[])
    }

    /// Appends a layer that reads four maps as one: see [`Layer::is_interleaved`].
    pub(crate) fn push_interleaved(
        &mut self,
        inputs: [Map; 4],
        conv: (Vec<f32>, Vec<f32>),
        activation: Activation,
    ) -> Map {
        let factor = 2 * self.factors[inputs[0]];
        self.push_at((factor, true), &inputs, conv, activation, &[])
    }

    fn push_at(
        &mut self,
        (factor, is_interleaved): (usize, bool),
        inputs: &[Map],
        (weights, bias): (Vec<f32>, Vec<f32>),
        activation: Activation,
        combine: &[Combine],
    ) -> Map {
        let output = self.maps.len();
        let read = self.channels_of(inputs, is_interleaved);
        let side = if weights.len() == bias.len() * read {
            1
        } else {
            3
        };
        self.maps.push(bias.len());
        self.factors.push(factor);
        self.layers.push(Layer {
            inputs: inputs.to_vec(),
            is_interleaved,
            output,
            side,
            weights,
            bias,
            activation,
            combine: combine.to_vec(),
        });
        output
    }

    /// The name in its file, such as `f-x2`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// 1, 2 or 4.
    #[must_use]
    pub fn scale(&self) -> usize {
        self.scale
    }

    /// Whether it makes something else of a picture when told something else of its compression.
    #[must_use]
    pub fn is_conditioned(&self) -> bool {
        self.conditioning.is_some()
    }

    /// Multiply-accumulates of all convolutions per source pixel, computed directly.
    #[must_use]
    pub fn macs_per_pixel(&self) -> usize {
        let macs = self.layers.iter().map(|layer| {
            let factor = self.factors[layer.output];
            layer.weights.len() * factor * factor
        });
        macs.sum::<usize>()
            .div_ceil(self.unshuffle * self.unshuffle)
    }

    /// Weights, biases and learnt slopes: one slope for all channels is a leaky ReLU's, which no one learnt.
    #[must_use]
    pub fn parameters(&self) -> usize {
        let count = |layer: &Layer| match &layer.activation {
            Activation::Prelu(slopes) if slopes.iter().any(|slope| *slope != slopes[0]) => {
                layer.weights.len() + layer.bias.len() + slopes.len()
            }
            _ => layer.weights.len() + layer.bias.len(),
        };
        self.layers.iter().map(count).sum()
    }

    /// Side of the squares of output pixels that one pixel of the last layer makes: it has three times as many
    /// channels as such a square has pixels, in the order of PyTorch's `pixel_shuffle`.
    pub(crate) fn last_shuffle(&self) -> usize {
        self.scale * self.unshuffle / self.factors.last().copied().unwrap_or(1)
    }

    /// How far, in source pixels, an output pixel sees: one per 3x3 layer on the longest path, 2 for the base.
    #[must_use]
    pub fn reach(&self) -> usize {
        // In eighths of a pixel of map 0, of which a pixel of factor 8 is one.
        let mut reach = vec![0; self.maps.len()];
        for layer in &self.layers {
            let pixel = 8 / self.factors[layer.output];
            let read = layer.inputs.iter().map(|&map| {
                // The neighbour of a repeated pixel lies up to a whole smaller pixel away.
                let repeated = self.factors[map] < self.factors[layer.output];
                reach[map] + layer.side / 2 * pixel * if repeated { 2 } else { 1 }
            });
            let joined = layer.combine.iter().map(|combine| reach[combine.map()]);
            reach[layer.output] = read.chain(joined).max().unwrap_or(0);
        }
        let eighths = reach.into_iter().max().unwrap_or(0);
        (eighths.div_ceil(8) * self.unshuffle + self.unshuffle - 1).max(2)
    }

    /// Whether the fast executor runs it; else the reference does.
    pub(crate) fn has_kernels(&self) -> bool {
        let ends_wide = |layer: &Layer| layer.side == 3 && layer.inputs[..] != [PICTURE];
        let fits = |layer: &Layer| {
            let factor = self.factors[layer.output];
            let over_picture = layer.inputs[..] == [PICTURE] && layer.side == 3 && factor == 1;
            let over_maps = layer.inputs.iter().all(|&map| {
                let enlarged = factor / self.factors[map];
                map != PICTURE && (enlarged == 1 || enlarged == 2 && layer.side == 3)
            });
            over_picture || over_maps
        };
        let plain_end =
            matches!(self.base, Base::Zero | Base::Bilinear) || self.last_shuffle() == self.scale;
        plain_end && self.layers.last().is_some_and(ends_wide) && self.layers.iter().all(fits)
    }

    /// Channels that a layer reads.
    pub(crate) fn read_channels(&self, layer: &Layer) -> usize {
        self.channels_of(&layer.inputs, layer.is_interleaved)
    }

    fn channels_of(&self, inputs: &[Map], is_interleaved: bool) -> usize {
        let count = if is_interleaved { 1 } else { inputs.len() };
        inputs.iter().take(count).map(|&map| self.maps[map]).sum()
    }
}

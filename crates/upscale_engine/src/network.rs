//! What a network is: maps, and layers between them, in the order in which they run. No arithmetic here;
//! `reference.rs` says what the layers mean, the kernels run them fast, `model_file.rs` reads them from files.

use crate::conditioning::Conditioning;

/// A map of the network: index into [`Network::maps`]. Map 0 is the source picture (3 channels, 0..1).
pub(crate) type Map = usize;

/// The source picture as a map.
pub(crate) const PICTURE: Map = 0;

/// A network: 3x3 and 1x1 convolutions over maps of the source's size, then a pixel shuffle onto a base.
#[derive(Debug, Clone)]
pub struct Network {
    pub(crate) name: String,
    /// Enlargement: the last layer has `3 * scale * scale` channels in PyTorch's pixel-shuffle order.
    pub(crate) scale: usize,
    pub(crate) base: Base,
    /// Channels of every map.
    pub(crate) maps: Vec<usize>,
    pub(crate) layers: Vec<Layer>,
    /// How its layers are set by what is known of a picture's compression; none: they are the same for all.
    pub(crate) conditioning: Option<Conditioning>,
}

/// What the shuffled last layer is added to before the clamp to 0..1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Base {
    /// Bicubic interpolation of the source, see `bicubic.rs`.
    Bicubic,
    /// Every source pixel repeated (Compact).
    Nearest,
}

/// One convolution (zero padded, stride 1) and what happens to its sums before they are stored.
#[derive(Debug, Clone)]
pub(crate) struct Layer {
    /// Read side by side as one map of all their channels.
    pub(crate) inputs: Vec<Map>,
    pub(crate) output: Map,
    /// 3 or 1: the side of the kernel.
    pub(crate) side: usize,
    /// `[output channel][input channel][row][column]`.
    pub(crate) weights: Vec<f32>,
    pub(crate) bias: Vec<f32>,
    pub(crate) activation: Activation,
    /// Applied in order, after the activation.
    pub(crate) combine: Vec<Combine>,
}

/// Element-wise function of a sum.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Activation {
    /// `v`
    None,
    /// `max(v, 0)`
    Relu,
    /// `v` where positive, else `v` times the channel's slope; LeakyReLU has one slope for all channels.
    Prelu(Vec<f32>),
    /// `v * sigmoid(v)`
    Silu,
}

/// What joins another map `h` of the same shape to a layer's value `v`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Combine {
    /// `scale * v + h`
    Add { map: Map, scale: f32 },
    /// SPAN's gate: `(v + h) * (sigmoid(v) - 0.5)`
    Gate { map: Map },
}

impl Combine {
    pub(crate) fn map(self) -> Map {
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
            maps: vec![3],
            layers: Vec::new(),
            conditioning: None,
        }
    }

    /// Appends a layer and gives the map that it writes.
    pub(crate) fn push(
        &mut self,
        inputs: &[Map],
        (weights, bias): (Vec<f32>, Vec<f32>),
        activation: Activation,
        combine: &[Combine],
    ) -> Map {
        let output = self.maps.len();
        let read: usize = inputs.iter().map(|&map| self.maps[map]).sum();
        let side = if weights.len() == bias.len() * read {
            1
        } else {
            3
        };
        self.maps.push(bias.len());
        self.layers.push(Layer {
            inputs: inputs.to_vec(),
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

    /// 2 or 4.
    #[must_use]
    pub fn scale(&self) -> usize {
        self.scale
    }

    /// Multiply-accumulates of all convolutions per source pixel, computed directly.
    #[must_use]
    pub fn macs_per_pixel(&self) -> usize {
        self.layers.iter().map(|layer| layer.weights.len()).sum()
    }

    /// How far, in source pixels, an output pixel sees: one per 3x3 layer on the longest path, 2 for the base.
    pub(crate) fn reach(&self) -> usize {
        let mut reach = vec![0; self.maps.len()];
        for layer in &self.layers {
            let combined = layer.combine.iter().map(|combine| combine.map());
            let read = layer
                .inputs
                .iter()
                .map(|&map| reach[map])
                .max()
                .unwrap_or(0);
            let joined = combined.map(|map| reach[map]).max().unwrap_or(0);
            reach[layer.output] = (read + layer.side / 2).max(joined);
        }
        reach.into_iter().max().unwrap_or(0).max(2)
    }

    /// Channels that a layer reads.
    pub(crate) fn read_channels(&self, layer: &Layer) -> usize {
        layer.inputs.iter().map(|&map| self.maps[map]).sum()
    }
}

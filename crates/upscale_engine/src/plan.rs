//! A network made ready for one kernel set, once: channels padded to whole vectors, weights laid out in the order
//! in which the kernels read them.

use upscale_simd::{Buffer, CHANNEL_UNIT, Kernels, PIXEL_UNIT, SPLIT_MAX, Weights, packed_pitch};

use crate::direct::Direct;
use crate::folding::Folded;
use crate::network::{Activation, Base, Combine, Layer, Map, Network, PICTURE};
use crate::packed;
use crate::ranges::{Observed, Ranges};
use crate::words::{DEPTH_MAX, Words};

/// A network, ready to run at any size.
pub(crate) struct Plan {
    pub(crate) kernels: Kernels,
    /// What a core has of the last-level cache, where it is known.
    pub(crate) cache_share_bytes: Option<usize>,
    pub(crate) scale: usize,
    /// Output pixels on a side of what one pixel of the last layer makes.
    pub(crate) shuffle: usize,
    pub(crate) base: Base,
    /// Source pixels on a side of what becomes one pixel of map 0.
    pub(crate) unshuffle: usize,
    pub(crate) mean: [f32; 3],
    /// Padded channels of every map.
    pub(crate) maps: Vec<usize>,
    /// Width and height of every map in those of map 0.
    pub(crate) factors: Vec<usize>,
    /// First layer of every section.
    pub(crate) sections: Vec<usize>,
    /// What the numbers of every map are multiplied by, where it is packed.
    pub(crate) packed: Vec<Option<f32>>,
    /// Takes note of what goes through the layers, while ranges are being found.
    pub(crate) observed: Option<Observed>,
    pub(crate) layers: Vec<PlanLayer>,
}

/// How a layer is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    /// 3x3 over the source picture, directly: 27 numbers a pixel, or nine times as many as map 0 has channels.
    Picture,
    /// 1x1, directly.
    Point,
    /// 3x3 over maps.
    Winograd,
}

/// A layer, ready to run.
pub(crate) struct PlanLayer {
    pub(crate) method: Method,
    pub(crate) inputs: Vec<Map>,
    pub(crate) output: Map,
    /// Width and height of the output in those of map 0.
    pub(crate) factor: usize,
    /// Every pixel of the inputs is read as a square of this side: 1 or 2.
    pub(crate) enlarged: usize,
    /// Whether such a square has a pixel of each of four inputs.
    pub(crate) is_interleaved: bool,
    /// Numbers per pixel that a product reads: padded channels of all inputs, of one where they are interleaved, or nine
    /// times those of map 0.
    pub(crate) depth: usize,
    /// Padded output channels.
    pub(crate) channels: usize,
    pub(crate) activation: Activation,
    pub(crate) combine: Vec<Combine>,
    /// Padded with zeros.
    pub(crate) bias: Vec<f32>,
    /// Scales and weights where its products are taken in 16-bit integers.
    pub(crate) words: Option<Words>,
    /// The same on tile registers, without Winograd.
    pub(crate) direct: Option<Direct>,
    panels: Vec<usize>,
    weights: Buffer,
}

impl Plan {
    pub(crate) fn new(folded: &Folded<'_>, kernels: Kernels) -> Self {
        let network = folded.network;
        let maps: Vec<usize> = network.maps.iter().map(|&map| padded(map)).collect();
        let last = network.layers.len() - 1;
        let layers = (0..=last).map(|index| {
            let shuffle = (index == last).then_some(network.last_shuffle());
            plan_layer(network, &maps, &folded.layer(index), shuffle, kernels)
        });
        Self {
            kernels,
            cache_share_bytes: None,
            scale: network.scale,
            shuffle: network.last_shuffle(),
            base: network.base,
            unshuffle: network.unshuffle,
            mean: network.mean,
            factors: network.factors.clone(),
            sections: network.sections.clone(),
            observed: None,
            packed: vec![None; maps.len()],
            layers: layers.collect(),
            maps,
        }
    }
}

impl Plan {
    /// The same with integers in all layers over maps where that is exact enough and faster.
    pub(crate) fn with_words(mut self, ranges: &Ranges) -> Self {
        let last = self.layers.len() - 1;
        let kernels = self.kernels;
        for (index, layer) in self.layers.iter_mut().enumerate() {
            if layer.method != Method::Picture && !layer.is_interleaved {
                let of = (&*layer, index == last);
                layer.direct = direct_layer(of, (ranges, index), &self.maps, kernels);
                let is_narrow = index < last && layer.depth <= DEPTH_MAX;
                if layer.direct.is_none() && is_narrow && layer.is_wide() {
                    let shape = (&layer.panels[..], layer.depth);
                    layer.words = Words::new((ranges, index), &layer.weights, shape, kernels);
                }
            }
            if layer.is_in_integers() {
                layer.weights = Buffer::zeroed(0);
            }
        }
        self.packed = packed::pack(&mut self.layers, &self.maps);
        self
    }

    /// Numbers from a pixel of a map to the next, in its rows.
    pub(crate) fn pitch(&self, map: Map) -> usize {
        let channels = self.maps[map];
        self.packed[map].map_or(channels, |_| packed_pitch(channels))
    }

    /// Pixels at the end of a map's rows that tile registers read beyond the last one.
    pub(crate) fn row_rest(&self) -> usize {
        match self.packed.iter().any(Option::is_some) {
            true => PIXEL_UNIT,
            false => 0,
        }
    }
}

impl PlanLayer {
    /// Numbers of one matrix.
    pub(crate) fn matrix(&self) -> usize {
        self.depth * self.channels
    }

    /// The nine taps of a Winograd layer, each as a matrix.
    pub(crate) fn taps(&self) -> &[f32] {
        &self.weights
    }

    /// Whether its weights are transformed anew for every band.
    pub(crate) fn has_taps(&self) -> bool {
        self.method == Method::Winograd && !self.is_in_integers()
    }

    /// Whether its products are taken in 16-bit integers.
    pub(crate) fn is_in_integers(&self) -> bool {
        self.words.is_some() || self.direct.is_some()
    }

    /// A matrix of pairs of 16-bit integers.
    pub(crate) fn pairs<'a>(&'a self, numbers: &'a [f32]) -> Weights<'a> {
        Weights {
            numbers,
            panels: &self.panels,
            depth: self.depth / 2,
        }
    }

    /// A matrix that stands elsewhere, in this layer's layout.
    pub(crate) fn weights<'a>(&'a self, numbers: &'a [f32]) -> Weights<'a> {
        Weights {
            numbers,
            panels: &self.panels,
            depth: self.depth,
        }
    }

    /// The matrix of a 1x1 input with `depth` channels that begins at channel `first`, or of a picture layer.
    pub(crate) fn part(&self, first: usize, depth: usize) -> Weights<'_> {
        let start = first * self.channels;
        Weights {
            numbers: &self.weights[start..start + depth * self.channels],
            panels: &self.panels,
            depth,
        }
    }

    /// The weight of a tap from input channel `k` to output channel `n` of a layer over maps; `inputs` are those maps' channels.
    fn weight(&self, inputs: &[usize], (tap, k, n): (usize, usize, usize)) -> f32 {
        if self.is_wide() {
            return self.weights[tap * self.matrix() + place(&self.panels, self.depth, k, n)];
        }
        let mut first = 0;
        for &depth in inputs {
            if k < first + depth {
                return self.part(first, depth).numbers[place(&self.panels, depth, k - first, n)];
            }
            first += depth;
        }
        unreachable!("channel {k} of {first}")
    }

    /// Whether an output row needs input rows above and below.
    pub(crate) fn is_wide(&self) -> bool {
        self.method != Method::Point
    }
}

/// On tile registers, where there are any; `maps` are the padded channels of all maps.
fn direct_layer(
    (layer, is_last): (&PlanLayer, bool),
    (ranges, index): (&Ranges, usize),
    maps: &[usize],
    kernels: Kernels,
) -> Option<Direct> {
    let tiles = kernels.tiles().filter(|_| layer.enlarged == 1)?;
    let scale = ranges.input_scale(index, SPLIT_MAX)?;
    let inputs: Vec<usize> = layer.inputs.iter().map(|&map| maps[map]).collect();
    let weight = |tap: usize, k: usize, n: usize| layer.weight(&inputs, (tap, k, n));
    Direct::new(tiles, (layer, is_last, &inputs), scale, weight)
}

fn padded(channels: usize) -> usize {
    channels.next_multiple_of(CHANNEL_UNIT)
}

fn plan_layer(
    network: &Network,
    maps: &[usize],
    layer: &Layer,
    shuffle: Option<usize>,
    kernels: Kernels,
) -> PlanLayer {
    let out = layer.bias.len();
    let channels = padded(out);
    let method = match layer {
        Layer { inputs, .. } if inputs[..] == [PICTURE] => Method::Picture,
        Layer { side: 1, .. } => Method::Point,
        _ => Method::Winograd,
    };
    let source = Source {
        layer,
        read: network.read_channels(layer),
        order: (0..out).map(|channel| shuffled(channel, shuffle)).collect(),
        inputs: layer
            .inputs
            .iter()
            .take(if layer.is_interleaved { 1 } else { usize::MAX })
            .map(|&map| (network.maps[map], maps[map]))
            .collect(),
    };
    let panels = kernels.panels(channels);
    let (depth, weights) = match method {
        Method::Picture => (9 * source.read, source.picture(&panels)),
        Method::Point => (source.depth(), source.point(&panels)),
        Method::Winograd => (source.depth(), source.winograd(&panels)),
    };
    let factor = network.factors[layer.output];
    let mut bias = vec![0.0; channels];
    for (value, &channel) in bias.iter_mut().zip(&source.order) {
        *value = layer.bias[channel];
    }
    PlanLayer {
        method,
        inputs: layer.inputs.clone(),
        output: layer.output,
        factor,
        enlarged: factor / layer.inputs.first().map_or(1, |&map| network.factors[map]),
        is_interleaved: layer.is_interleaved,
        depth,
        channels,
        activation: padded_slopes(&layer.activation, channels),
        combine: layer.combine.clone(),
        bias,
        words: None,
        direct: None,
        panels,
        weights,
    }
}

fn padded_slopes(activation: &Activation, channels: usize) -> Activation {
    match activation {
        Activation::Prelu(slopes) => {
            let mut slopes = slopes.clone();
            slopes.resize(channels, 0.0);
            Activation::Prelu(slopes)
        }
        other => other.clone(),
    }
}

/// The last layer's channels are reordered from `[colour][dy][dx]` to `[dy][dx][colour]`, so that a row of the
/// output picture takes whole runs of them.
fn shuffled(channel: usize, shuffle: Option<usize>) -> usize {
    match shuffle {
        None => channel,
        Some(scale) => (channel % 3) * scale * scale + channel / 3,
    }
}

/// A layer's weights on their way into a plan.
struct Source<'a> {
    layer: &'a Layer,
    read: usize,
    /// Which of the layer's output channels becomes the n-th.
    order: Vec<usize>,
    /// Channels of every input, and padded.
    inputs: Vec<(usize, usize)>,
}

impl Source<'_> {
    /// The taps from input channel `i` to the `n`-th output channel.
    fn taps(&self, n: usize, i: usize) -> &[f32] {
        let area = self.layer.side * self.layer.side;
        let start = (self.order[n] * self.read + i) * area;
        &self.layer.weights[start..start + area]
    }

    fn depth(&self) -> usize {
        self.inputs.iter().map(|&(_, padded)| padded).sum()
    }

    /// Padded place of every input channel.
    fn each_channel(&self) -> Vec<usize> {
        let mut places = Vec::new();
        let mut first = 0;
        for &(channels, padded) in &self.inputs {
            places.extend(first..first + channels);
            first += padded;
        }
        places
    }

    /// `[row][column][channel]`, 27 numbers deep for a picture of three channels.
    fn picture(&self, panels: &[usize]) -> Buffer {
        let (channels, depth): (usize, _) = (panels.iter().sum(), 9 * self.read);
        let mut packed = Buffer::zeroed(depth * channels);
        for n in 0..self.order.len() {
            for (i, k) in (0..self.read).flat_map(|i| (0..9).map(move |k| (i, k))) {
                packed[place(panels, depth, k * self.read + i, n)] = self.taps(n, i)[k];
            }
        }
        packed
    }

    /// Every input has a matrix of its own, one after another.
    fn point(&self, panels: &[usize]) -> Buffer {
        let channels: usize = panels.iter().sum();
        let mut packed = Buffer::zeroed(self.depth() * channels);
        let mut read = 0;
        let mut first = 0;
        for &(count, padded) in &self.inputs {
            for (i, n) in (0..count).flat_map(|i| (0..self.order.len()).map(move |n| (i, n))) {
                let at = first * channels + place(panels, padded, i, n);
                packed[at] = self.taps(n, read + i)[0];
            }
            read += count;
            first += padded;
        }
        packed
    }

    /// Every tap has a matrix of its own, one after another.
    fn winograd(&self, panels: &[usize]) -> Buffer {
        let channels: usize = panels.iter().sum();
        let depth = self.depth();
        let mut packed = Buffer::zeroed(9 * depth * channels);
        for (i, &k) in self.each_channel().iter().enumerate() {
            for n in 0..self.order.len() {
                let at = place(panels, depth, k, n);
                for (tap, &value) in self.taps(n, i).iter().enumerate() {
                    packed[tap * depth * channels + at] = value;
                }
            }
        }
        packed
    }
}

/// Index of weight `(k, n)` in a matrix laid out panel after panel, each `[depth][panel]`.
pub(crate) fn place(panels: &[usize], depth: usize, k: usize, n: usize) -> usize {
    let mut first = 0;
    for &panel in panels {
        if n < first + panel {
            return first * depth + k * panel + n - first;
        }
        first += panel;
    }
    unreachable!("channel {n} of {first}")
}

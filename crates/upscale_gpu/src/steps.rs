//! What a kernel is told of one step, as the words that `convolve.wgsl` and `frame.wgsl` read.

use upscale_core::Pixels;
use upscale_engine::{Activation, Base, Combine, Map, Network, PICTURE, linear_phases, phases};

use crate::{
    area::{Area, Cut, Location, TilePlan},
    gpu::Kernel,
    packed::{INPUTS_MAX, JOINS_MAX, PackedLayer, read_count},
};

/// Bytes between two steps' words: a multiple of every device's alignment (256) that holds the longest.
pub(crate) const STEP_BYTES: usize = 768;
/// Pixels on a side of what a workgroup makes: of a convolution, of the other kernels.
const EDGE: usize = 16;
const FRAME_EDGE: usize = 8;
/// Where in a map's place stands how many maps are read as one.
const PARTS_WORD: usize = 6;

/// One dispatch.
pub(crate) struct Step {
    pub(crate) kernel: Kernel,
    pub(crate) words: Vec<u32>,
    pub(crate) groups: [u32; 3],
    /// Multiply-accumulates.
    pub(crate) macs: usize,
}

/// A tile of a section on its way into steps.
pub(crate) struct Steps<'a> {
    pub(crate) network: &'a Network,
    pub(crate) cut: &'a Cut<'a>,
    pub(crate) plan: &'a TilePlan,
    pub(crate) source: &'a Pixels,
}

impl Steps<'_> {
    /// The source into map 0, where the section reads that.
    pub(crate) fn gather(&self) -> Option<Step> {
        let area = self.plan.made[PICTURE]?;
        Some(Step {
            kernel: Kernel::Gather,
            words: self.frame(area, PICTURE),
            groups: groups(area, FRAME_EDGE, 1),
            macs: 0,
        })
    }

    /// The last map into the pixels `area` of the result.
    pub(crate) fn spread(&self, area: Area) -> Step {
        Step {
            kernel: Kernel::Spread,
            words: self.frame(area, self.network.maps().len() - 1),
            groups: groups(area, FRAME_EDGE, 1),
            macs: 0,
        }
    }

    /// One layer; none where nothing of it is needed.
    pub(crate) fn layer(&self, index: usize, packed: PackedLayer) -> Option<Step> {
        let layer = &self.network.layers()[index];
        let area = self.plan.made[layer.output]?;
        let (width, height) = self.cut.extent(layer.output);
        let (activation, factors) = (activation_word(&layer.activation), self.network.factors());
        let mut words = area_words(area).to_vec();
        words.extend([width as u32, height as u32]);
        words.extend([read_count(layer) as u32, layer.combine.len() as u32]);
        words.extend([packed.weights, packed.bias, packed.slopes, activation]);
        words.extend(self.place(layer.output, 1));
        let mut inputs: Vec<u32> = Vec::new();
        for &map in &layer.inputs {
            let mut place = self.place(map, factors[layer.output] / factors[map]);
            place[PARTS_WORD] = if layer.is_interleaved { 4 } else { 1 };
            inputs.extend(place);
        }
        inputs.resize(INPUTS_MAX * 8, 0);
        words.extend(inputs);
        let mut joins: Vec<u32> = Vec::new();
        for combine in &layer.combine {
            let (kind, scale) = match combine {
                Combine::Add { scale, .. } => (0, *scale),
                Combine::Gate { .. } => (1, 1.0),
            };
            joins.extend(self.place(combine.map(), 1));
            joins.extend([kind, scale.to_bits(), 0, 0]);
        }
        joins.resize(JOINS_MAX * 12, 0);
        words.extend(joins);
        Some(Step {
            kernel: Kernel::Convolve {
                side: layer.side,
                out: packed.out,
            },
            words,
            groups: groups(area, EDGE, packed.slices),
            macs: layer.weights.len() * area.pixels(),
        })
    }

    fn place(&self, map: Map, repeat: usize) -> [u32; 8] {
        let Some(Location { offset, area }) = self.plan.places[map] else {
            unreachable!("what is read was planned");
        };
        let place = [
            offset,
            self.cut.columns(map),
            area.x,
            area.y,
            area.width,
            repeat,
            0,
            0,
        ];
        place.map(|number| number as u32)
    }

    /// As the struct `Frame`.
    fn frame(&self, area: Area, map: Map) -> Vec<u32> {
        let (network, source) = (self.network, self.source);
        let [offset, columns, x, y, width, ..] = self.place(map, 1);
        let base = match network.base() {
            Base::Zero => 0,
            Base::Nearest => 1,
            Base::Bicubic | Base::Bilinear => 2,
        };
        let mut words = area_words(area).to_vec();
        words.extend(
            [
                source.width(),
                source.height(),
                source.channels(),
                network.scale(),
            ]
            .map(|n| n as u32),
        );
        words.extend([
            network.unshuffle() as u32,
            network.shuffle() as u32,
            base,
            offset,
        ]);
        words.extend(network.mean().map(f32::to_bits));
        words.extend([0, columns, x, y, width]);
        let mut phases = match network.base() {
            Base::Bilinear => linear_phases(network.scale()),
            _ => phases(network.scale()),
        };
        phases.resize(4, phases[0]);
        let taps = phases.iter().flat_map(|phase| phase.taps);
        words.extend(taps.map(|tap| (tap as f32).to_bits()));
        words.extend(phases.iter().map(|phase| phase.first as i32 as u32));
        words
    }
}

fn area_words(area: Area) -> [u32; 4] {
    [area.x, area.y, area.width, area.height].map(|number| number as u32)
}

fn groups(area: Area, edge: usize, slices: usize) -> [u32; 3] {
    [
        area.width.div_ceil(edge),
        area.height.div_ceil(edge),
        slices,
    ]
    .map(|number| number as u32)
}

fn activation_word(activation: &Activation) -> u32 {
    match activation {
        Activation::None => 0,
        Activation::Relu => 1,
        Activation::Prelu(_) => 2,
        Activation::Silu => 3,
        Activation::Mish => 4,
    }
}

//! A network's numbers in the order in which the kernel reads them, in vectors of four.

use upscale_engine::{Activation, Combine, Layer, Network};

use crate::error::GpuError;

/// Maps that a layer reads side by side, as `convolve.wgsl` has room for.
pub(crate) const INPUTS_MAX: usize = 8;
/// Maps that are joined to a layer's sums.
pub(crate) const JOINS_MAX: usize = 4;
/// Vectors of output channels that an invocation makes, at most: with runs of four pixels 64 sums.
const OUT_MAX: usize = 4;

/// A network's numbers, and where each layer's stand.
#[derive(Debug)]
pub(crate) struct Packed {
    pub(crate) numbers: Vec<f32>,
    pub(crate) layers: Vec<PackedLayer>,
}

/// Where a layer's numbers stand, in vectors of four, and how its work is shared out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PackedLayer {
    /// Of every input vector and tap, a matrix of four by all output channels.
    pub(crate) weights: u32,
    pub(crate) bias: u32,
    /// Of the negative half of a PReLU.
    pub(crate) slopes: u32,
    /// Vectors of output channels that an invocation makes.
    pub(crate) out: usize,
    /// How often so many.
    pub(crate) slices: usize,
}

impl Packed {
    /// # Errors
    /// [`GpuError::Unfit`] for a layer of a kind that the kernel does not run.
    pub(crate) fn new(network: &Network) -> Result<Self, GpuError> {
        let mut packed = Self {
            numbers: Vec::new(),
            layers: Vec::new(),
        };
        for (index, layer) in network.layers().iter().enumerate() {
            check(network, layer)
                .map_err(|why| GpuError::Unfit(format!("layer {index} of the network {why}")))?;
            packed.push(network, layer);
        }
        // A slice that is not full reads beyond the last layer's numbers.
        packed.numbers.extend([0.0; 16 * OUT_MAX]);
        Ok(packed)
    }

    fn push(&mut self, network: &Network, layer: &Layer) {
        let columns = layer.bias.len().div_ceil(4);
        let slices = columns.div_ceil(OUT_MAX);
        let weights = self.place();
        self.push_weights(network, layer, columns);
        let bias = self.place();
        self.push_padded(&layer.bias);
        let slopes = self.place();
        if let Activation::Prelu(values) = &layer.activation {
            self.push_padded(values);
        }
        self.layers.push(PackedLayer {
            weights,
            bias,
            slopes,
            out: columns.div_ceil(slices),
            slices,
        });
    }

    fn place(&self) -> u32 {
        (self.numbers.len() / 4) as u32
    }

    fn push_padded(&mut self, values: &[f32]) {
        self.numbers.extend_from_slice(values);
        self.numbers
            .resize(self.numbers.len().next_multiple_of(4), 0.0);
    }

    /// `[input vector][tap][output vector][channel of the input vector][channel of the output vector]`, zeros where a
    /// vector has fewer than four channels.
    fn push_weights(&mut self, network: &Network, layer: &Layer, columns: usize) {
        let (read, taps) = (network.channels_read(layer), layer.side * layer.side);
        let mut first = 0;
        for &map in layer.inputs.iter().take(read_count(layer)) {
            let channels = network.maps()[map];
            for start in (0..channels).step_by(4) {
                for (tap, out) in (0..taps).flat_map(|tap| (0..columns).map(move |out| (tap, out)))
                {
                    for (i, o) in (0..4).flat_map(|i| (0..4).map(move |o| (i, o))) {
                        let (input, output) = (start + i, 4 * out + o);
                        let is_there = input < channels && output < layer.bias.len();
                        let at = (output * read + first + input) * taps + tap;
                        self.numbers
                            .push(if is_there { layer.weights[at] } else { 0.0 });
                    }
                }
            }
            first += channels;
        }
    }
}

/// Inputs side by side; four that are read as one count once.
pub(crate) fn read_count(layer: &Layer) -> usize {
    if layer.is_interleaved {
        1
    } else {
        layer.inputs.len()
    }
}

fn check(network: &Network, layer: &Layer) -> Result<(), String> {
    let factors = network.factors();
    if layer.inputs.is_empty() || layer.inputs.len() > INPUTS_MAX {
        return Err(format!(
            "reads {} maps, 1 to {INPUTS_MAX} can be",
            layer.inputs.len()
        ));
    }
    if layer.combine.len() > JOINS_MAX {
        return Err(format!(
            "joins {} maps, at most {JOINS_MAX} can be",
            layer.combine.len()
        ));
    }
    if !matches!(layer.side, 1 | 3) {
        return Err(format!(
            "has a kernel of {0} x {0}, 1 or 3 can be",
            layer.side
        ));
    }
    let factor = factors[layer.output];
    let smaller =
        |map: usize| factor == 0 || factors[map] == 0 || !factor.is_multiple_of(factors[map]);
    if layer.inputs.iter().any(|&map| smaller(map)) {
        return Err("reads a map that is larger than its own".to_owned());
    }
    let other = |combine: &Combine| factors[combine.map()] != factor;
    if layer.combine.iter().any(other) {
        return Err("joins a map of another size".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use upscale_engine::Shape;

    #[test]
    fn every_number_stands_where_the_kernel_looks_for_it() {
        let shape = Shape::Residual {
            channels: 6,
            blocks: 1,
        };
        let network = shape.network(2, 3);
        let packed = Packed::new(&network).unwrap();
        let index = network.layers().len() - 2;
        let layer = &network.layers()[index];
        assert_eq!((layer.inputs.len(), layer.side), (4, 1), "the fusing layer");
        let at = packed.layers[index];
        // Output channel 5 and channel 4 of the second input: vector 1 of it, the fourth of all.
        let (o, i) = (5, 6 + 4);
        let place = (at.weights as usize + ((2 + 1) * 2 + 1) * 4) * 4 + o % 4;
        assert_eq!(packed.numbers[place], layer.weights[o * 24 + i]);
        assert_eq!(packed.numbers[at.bias as usize * 4 + o], layer.bias[o]);
        assert_eq!((at.out, at.slices), (2, 1));
    }
}

//! Networks that know how a picture was compressed, or that and how noisy and soft it is: a small perceptron turns the
//! condition into a scale and an offset for each channel, and both are folded into the weights, once a picture, so that
//! a pixel costs nothing.

use std::borrow::Cow;
use std::ops::Range;

use upscale_core::Condition;

use crate::network::{Layer, Network};

/// Which numbers a network's condition has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Inputs {
    /// [`Condition::file_inputs`].
    File,
    /// [`Condition::inputs`].
    Source,
}

impl Inputs {
    /// As weight files name them.
    pub(crate) const NAMES: [&str; 2] = ["jpeg-4", "source-6"];
    /// In the order of their names.
    pub(crate) const ALL: [Self; 2] = [Self::File, Self::Source];

    pub(crate) fn count(self) -> usize {
        match self {
            Self::File => 4,
            Self::Source => 6,
        }
    }

    /// Numbers between the perceptron's two layers.
    pub(crate) fn hidden(self) -> usize {
        match self {
            Self::File => 32,
            Self::Source => 48,
        }
    }

    fn of(self, condition: Condition) -> Vec<f64> {
        let numbers = match self {
            Self::File => condition.file_inputs().to_vec(),
            Self::Source => condition.inputs().to_vec(),
        };
        numbers.into_iter().map(f64::from).collect()
    }
}

/// `output(relu(hidden(condition)))`: for each conditioned layer first a change of scale `d`, then an offset `t` for
/// each of its channels, so that the layer's weights become `(1 + d) w` and its bias `(1 + d) b + t`.
#[derive(Debug, Clone)]
pub(crate) struct Conditioning {
    /// Which of the network's layers, in their order.
    pub(crate) layers: Range<usize>,
    pub(crate) inputs: Inputs,
    /// Weights `[hidden][inputs]` and bias.
    pub(crate) hidden: (Vec<f32>, Vec<f32>),
    /// Weights `[2 * channels of all layers][hidden]` and bias.
    pub(crate) output: (Vec<f32>, Vec<f32>),
}

impl Conditioning {
    fn outputs(&self, condition: Condition) -> Vec<f64> {
        let mut hidden = dense(&self.hidden, &self.inputs.of(condition));
        hidden.iter_mut().for_each(|value| *value = value.max(0.0));
        dense(&self.output, &hidden)
    }
}

fn dense((weights, bias): &(Vec<f32>, Vec<f32>), inputs: &[f64]) -> Vec<f64> {
    let rows = weights.chunks_exact(inputs.len()).zip(bias);
    let sum = |(row, &bias): (&[f32], &f32)| {
        let products = row.iter().zip(inputs).map(|(&w, x)| f64::from(w) * x);
        f64::from(bias) + products.sum::<f64>()
    };
    rows.map(sum).collect()
}

impl Network {
    /// The network as it is for pictures of this condition; itself when it knows of none.
    pub(crate) fn folded(&self, condition: Condition) -> Cow<'_, Self> {
        let Some(conditioning) = &self.conditioning else {
            return Cow::Borrowed(self);
        };
        let outputs = conditioning.outputs(condition);
        let mut left = outputs.as_slice();
        let mut network = self.clone();
        for layer in &mut network.layers[conditioning.layers.clone()] {
            let (here, later) = left.split_at(2 * layer.bias.len());
            fold(layer, here);
            left = later;
        }
        network.conditioning = None;
        Cow::Owned(network)
    }
}

/// `outputs` has a change of scale, then an offset, for each of the layer's channels.
fn fold(layer: &mut Layer, outputs: &[f64]) {
    let (changes, offsets) = outputs.split_at(layer.bias.len());
    let per_channel = layer.weights.len() / layer.bias.len();
    let rows = layer.weights.chunks_exact_mut(per_channel);
    for (row, change) in rows.zip(changes) {
        row.iter_mut().for_each(|w| *w = scaled(*w, *change) as f32);
    }
    for ((bias, change), offset) in layer.bias.iter_mut().zip(changes).zip(offsets) {
        *bias = (scaled(*bias, *change) + offset) as f32;
    }
}

fn scaled(value: f32, change: f64) -> f64 {
    (1.0 + change) * f64::from(value)
}

//! Networks that know how a picture was compressed, or that and how noisy and soft it is: a small perceptron turns the
//! condition into a scale and an offset for each channel, which `folding.rs` folds into the weights.

use std::ops::Range;

use upscale_core::Condition;

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
    /// A change of scale, then an offset, for each channel of each layer.
    pub(crate) fn outputs(&self, condition: Condition) -> Vec<f64> {
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

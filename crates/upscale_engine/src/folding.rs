//! What a network's condition says, folded into its weights once a picture, so that a pixel costs nothing.

use std::borrow::Cow;

use upscale_core::Condition;

use crate::network::{Layer, Network};
use crate::ranges::Ranges;

/// A network under one condition. Each layer is folded when it is asked for: a plan reads each once, and a copy of all
/// weights was a twelfth of the processor time of a picture of 16 x 16.
pub(crate) struct Folded<'a> {
    pub(crate) network: &'a Network,
    /// What the condition's own network says; none where there is no such network.
    outputs: Option<Vec<f64>>,
    pub(crate) ranges: Option<Cow<'a, Ranges>>,
}

impl Network {
    /// The network as it is for pictures of this condition; itself when it knows of none.
    #[must_use]
    pub fn folded(&self, condition: Condition) -> Cow<'_, Self> {
        self.under(condition).whole()
    }

    /// The same, layer by layer.
    pub(crate) fn under(&self, condition: Condition) -> Folded<'_> {
        let Some(conditioning) = &self.conditioning else {
            return self.unfolded();
        };
        let ranges = self.ranges.as_ref();
        Folded {
            network: self,
            outputs: Some(conditioning.outputs(condition)),
            ranges: ranges.map(|ranges| Cow::Owned(ranges.at(condition.estimate))),
        }
    }

    /// Under no condition, whatever it knows of.
    pub(crate) fn unfolded(&self) -> Folded<'_> {
        Folded {
            network: self,
            outputs: None,
            ranges: self.ranges.as_ref().map(Cow::Borrowed),
        }
    }
}

impl<'a> Folded<'a> {
    pub(crate) fn layer(&self, index: usize) -> Cow<'a, Layer> {
        let layer = &self.network.layers[index];
        let Some(outputs) = self.outputs_of(index) else {
            return Cow::Borrowed(layer);
        };
        let mut layer = layer.clone();
        fold(&mut layer, outputs);
        Cow::Owned(layer)
    }

    /// The whole network; copied where there is something to fold.
    pub(crate) fn whole(self) -> Cow<'a, Network> {
        if self.outputs.is_none() {
            return Cow::Borrowed(self.network);
        }
        let mut network = self.network.clone();
        for (index, layer) in network.layers.iter_mut().enumerate() {
            if let Some(outputs) = self.outputs_of(index) {
                fold(layer, outputs);
            }
        }
        network.conditioning = None;
        network.ranges = self.ranges.map(Cow::into_owned);
        Cow::Owned(network)
    }

    /// Those of one layer, where it has any.
    fn outputs_of(&self, index: usize) -> Option<&[f64]> {
        let conditioned = self.network.conditioning.as_ref()?.layers.clone();
        let outputs = self.outputs.as_ref()?;
        let length = |layer: &Layer| 2 * layer.bias.len();
        let before = self.network.layers.get(conditioned.start..index)?;
        let first: usize = before.iter().map(length).sum();
        let own = first..first + length(&self.network.layers[index]);
        conditioned.contains(&index).then(|| &outputs[own])
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

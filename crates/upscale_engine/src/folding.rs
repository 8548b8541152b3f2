//! What a network's condition says, folded into its weights once a picture, so that a pixel costs nothing.

use std::borrow::Cow;

use upscale_core::Condition;

use crate::network::{Layer, Network};

impl Network {
    /// The network as it is for pictures of this condition; itself when it knows of none.
    #[must_use]
    pub fn folded(&self, condition: Condition) -> Cow<'_, Self> {
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
        network.ranges = self
            .ranges
            .as_ref()
            .map(|ranges| ranges.at(condition.estimate));
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

//! ArtCNN (Artoriuz, 2023; in RGB as training programs of the community have it): residual blocks of three convolutions
//! with ReLU, one long skip, and a pixel shuffle that is the result.

use super::{Architecture, Weights, shuffled_scale};
use crate::error::ModelError;
use crate::network::{Activation, Base, Combine, Network, PICTURE};

pub(super) fn build(weights: &Weights<'_>) -> Result<Network, ModelError> {
    let channels = weights.channels_of_rgb("conv0")?;
    let up = "depth_to_space.upscale.0";
    let outputs = weights.conv_shape(up)?[0];
    let scale = shuffled_scale(Architecture::ArtCnn, up, outputs)?;
    let mut network = Network::empty(&format!("artcnn-x{scale}"), scale, Base::Zero);
    let first = weights.conv("conv0", (channels, 3), 3)?;
    let head = network.push(&[PICTURE], first, Activation::None, &[]);
    let blocks = weights.blocks(|i| format!("res_block.{i}.conv.2.weight"))?;
    let add = |map| Combine::Add { map, scale: 1.0 };
    let shape = (channels, channels);
    let mut x = head;
    for block in 0..blocks {
        let conv = |part: &str| weights.conv(&format!("res_block.{block}.conv.{part}"), shape, 3);
        let h = network.push(&[x], conv("0.0")?, Activation::Relu, &[]);
        let h = network.push(&[h], conv("1.0")?, Activation::Relu, &[]);
        x = network.push(&[h], conv("2")?, Activation::None, &[add(x)]);
    }
    let body = weights.conv(&format!("res_block.{blocks}"), shape, 3)?;
    let x = network.push(&[x], body, Activation::None, &[add(head)]);
    let last = weights.conv(up, (outputs, channels), 3)?;
    network.push(&[x], last, Activation::None, &[]);
    Ok(network)
}

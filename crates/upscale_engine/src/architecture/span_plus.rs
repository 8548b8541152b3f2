//! SPANPlus (umzi2, 2024; as neosr and traiNNer-redux have it): SPAN's blocks with Mish, in one or more groups of which each
//! ends as SPAN does. It ends in a pixel shuffle, or in a convolution at 1x. The form that ends in DySample is refused:
//! where that reads its map depends on what is in it, and no bound on how far is in any file.

use super::span::{block, channels_of_rgb, merged};
use super::{Architecture, Weights, shuffled_scale};
use crate::error::{ModelError, refuse};
use crate::network::{Activation, Base, Map, Network, PICTURE};

pub(super) fn build(weights: &Weights<'_>) -> Result<Network, ModelError> {
    if weights.has("upsampler.offset.weight") {
        return Err(refuse(
            "this is SPANPlus with DySample, which is not supported: it reads its maps at places that the picture \
             decides, with no bound on how far; SPANPlus with a pixel shuffle runs (`ps`: the variants st and sts), and \
             at 1x with a convolution",
        ));
    }
    let up = match weights.has("upsampler.weight") {
        true => "upsampler",
        false => "upsampler.0",
    };
    let channels = channels_of_rgb(weights, "feats.0")?;
    let outputs = weights.conv_shape(up)?[0];
    let scale = shuffled_scale(Architecture::SpanPlus, up, outputs)?;
    if scale > 1 && up == "upsampler" {
        return Err(refuse(
            "upsampler.weight is of 1x alone and has the outputs of another scale",
        ));
    }
    let mut network = Network::empty(&format!("span-plus-x{scale}"), scale, Base::Zero);
    let first = merged(weights, "feats.0", channels, 3)?;
    let mut x = network.push(&[PICTURE], first, Activation::None, &[]);
    let groups = weights.blocks(|i| format!("feats.{}.conv_cat.weight", i + 1))?;
    for group in 1..=groups {
        x = self::group(weights, &mut network, &format!("feats.{group}"), x)?;
    }
    let last = weights.conv(up, (outputs, channels), 3)?;
    network.push(&[x], last, Activation::None, &[]);
    Ok(network)
}

/// A group of blocks, and the 1x1 convolution that joins four maps of it.
fn group(
    weights: &Weights<'_>,
    network: &mut Network,
    name: &str,
    input: Map,
) -> Result<Map, ModelError> {
    let c = network.maps[input];
    let mut add = |part: &str, h: Map| {
        let name = format!("{name}.{part}");
        block(weights, network, &name, h, Activation::Mish)
    };
    let (first, _) = add("block_1", input)?;
    let mut h = first;
    let middle = |i| format!("{name}.block_n.{i}.c1_r");
    let parts =
        ["sk", "eval_conv"].map(|part| weights.blocks(|i| format!("{}.{part}.weight", middle(i))));
    let [branches, kernels] = parts;
    for index in 0..branches?.max(kernels?) {
        (h, _) = add(&format!("block_n.{index}"), h)?;
    }
    let (h, tap) = add("block_end", h)?;
    let conv = merged(weights, &format!("{name}.conv_2"), c, c)?;
    let end = network.push(&[h], conv, Activation::None, &[]);
    let cat = weights.conv(&format!("{name}.conv_cat"), (c, 4 * c), 1)?;
    Ok(network.push(&[input, end, first, tap], cat, Activation::None, &[]))
}

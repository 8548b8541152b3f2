//! SPAN-F (Xiaomi's entry of the NTIRE challenge of 2025): five of SPAN's blocks, the first without a gate; beside them
//! a convolution of each colour by itself, which was trained from repeating every pixel.

use super::span::merged;
use super::{Architecture, Conv, Weights, shuffled_scale};
use crate::error::{ModelError, refuse};
use crate::network::{Activation, Base, Combine, Network, PICTURE};

const BLOCKS: usize = 5;

pub(super) fn build(weights: &Weights<'_>) -> Result<Network, ModelError> {
    let outputs = weights.conv_shape("conv_near")?[0];
    let scale = shuffled_scale(Architecture::SpanF, "conv_near", outputs)?;
    let [channels, ..] = weights.conv_shape("conv_cat")?;
    if channels == 3 {
        return Err(refuse(
            "it has 3 channels: its first block would have a gate",
        ));
    }
    let mut network = Network::empty(&format!("span-f-x{scale}"), scale, Base::Zero);
    let near = network.push(
        &[PICTURE],
        each_colour(weights, outputs)?,
        Activation::None,
        &[],
    );
    let (mut x, mut first) = (PICTURE, PICTURE);
    for block in 1..=BLOCKS {
        let read = network.maps[x];
        let conv =
            |part, read| merged(weights, &format!("block_{block}.c{part}_r"), channels, read);
        let h = network.push(&[x], conv(1, read)?, Activation::Silu, &[]);
        let h = network.push(&[h], conv(2, channels)?, Activation::Silu, &[]);
        let gate = [Combine::Gate { map: x }];
        let gate = if block == 1 { &[][..] } else { &gate };
        x = network.push(&[h], conv(3, channels)?, Activation::None, gate);
        if block == 1 {
            first = x;
        }
    }
    let cat = weights.conv("conv_cat", (channels, outputs + 2 * channels), 1)?;
    let x = network.push(&[near, x, first], cat, Activation::None, &[]);
    let last = merged(weights, "conv_2", outputs, channels)?;
    network.push(&[x], last, Activation::None, &[]);
    Ok(network)
}

/// `[out, 1, 3, 3]`, a third of it for each colour, as a convolution over all three.
fn each_colour(weights: &Weights<'_>, out: usize) -> Result<Conv, ModelError> {
    let kernels = weights.tensor("conv_near.weight", &[out, 1, 3, 3])?;
    let mut all = vec![0.0; out * 3 * 9];
    for (o, kernel) in kernels.chunks_exact(9).enumerate() {
        let at = (o * 3 + o * 3 / out) * 9;
        all[at..at + 9].copy_from_slice(kernel);
    }
    Ok((all, vec![0.0; out]))
}

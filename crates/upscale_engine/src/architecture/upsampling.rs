//! Enlargements by two of which each is a convolution and a pixel shuffle: EDSR's and SRResNet's. What such a convolution
//! writes is kept as four maps, which the next one reads as one.

use super::{Architecture, Conv, Weights, check_scale};
use crate::error::ModelError;
use crate::network::{Activation, Map, Network};

/// Enlargements that are looked for: 16x is refused by its number.
const UPS_MAX: usize = 4;

/// What the next convolution reads.
#[derive(Clone, Copy)]
pub(super) enum Read {
    One(Map),
    /// As `Layer::is_interleaved` has them.
    Four([Map; 4]),
}

/// How many convolutions with the names that `name` gives there are, each of which reads `channels` and doubles.
pub(super) fn count(
    weights: &Weights<'_>,
    architecture: Architecture,
    name: impl Fn(usize) -> String,
    channels: usize,
) -> Result<usize, ModelError> {
    let weight = |up| weights.find(&format!("{}.weight", name(up)));
    let ups = (0..UPS_MAX).take_while(|&up| weight(up).is_some()).count();
    let outputs = weight(0).and_then(|tensor| tensor.shape.first().copied());
    match outputs {
        Some(outputs) if ups == 1 && outputs == 9 * channels => check_scale(architecture, 3)?,
        _ => check_scale(architecture, 1 << ups)?,
    };
    Ok(ups)
}

/// Appends a convolution of `read`.
pub(super) fn convolve(
    network: &mut Network,
    read: Read,
    conv: Conv,
    activation: Activation,
) -> Map {
    match read {
        Read::One(map) => network.push(&[map], conv, activation, &[]),
        Read::Four(maps) => network.push_interleaved(maps, conv, activation),
    }
}

/// Appends the convolution `name` (`[4 * channels, channels, 3, 3]`), its activation and the pixel shuffle.
pub(super) fn double(
    weights: &Weights<'_>,
    network: &mut Network,
    name: &str,
    read: Read,
    activation: &Activation,
) -> Result<Read, ModelError> {
    let (Read::One(map) | Read::Four([map, ..])) = read;
    let channels = network.maps[map];
    let (kernels, bias) = weights.conv(name, (4 * channels, channels), 3)?;
    let parts = std::array::from_fn(|part| {
        let conv = every_fourth(&kernels, &bias, part);
        convolve(network, read, conv, activation.clone())
    });
    Ok(Read::Four(parts))
}

/// The outputs that one corner of the shuffled squares is made of: `part`, `part + 4`, ...
fn every_fourth(kernels: &[f32], bias: &[f32], part: usize) -> Conv {
    let of_one = kernels.len() / bias.len();
    let kernels = kernels.chunks_exact(of_one).skip(part).step_by(4);
    let bias = bias.iter().skip(part).step_by(4);
    (
        kernels.flatten().copied().collect(),
        bias.copied().collect(),
    )
}

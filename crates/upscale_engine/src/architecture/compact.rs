//! SRVGGNetCompact (Real-ESRGAN, 2022): a chain of convolutions with PReLU onto the repeated source.

use super::{Architecture, Weights, shuffled_scale};
use crate::error::{ModelError, refuse};
use crate::network::{Activation, Base, Network, PICTURE};

pub(super) fn build(weights: &Weights<'_>) -> Result<Network, ModelError> {
    // `body` alternates convolutions and slopes; the last convolution has no slopes behind it.
    let slopes = weights.blocks(|i| format!("body.{}.weight", 2 * i + 1))?;
    let [channels, read, ..] = weights.conv_shape("body.0")?;
    let last = format!("body.{}", 2 * slopes);
    let outputs = weights.conv_shape(&last)?[0];
    let scale = shuffled_scale(Architecture::Compact, &last, outputs)?;
    if read != 3 {
        return Err(refuse(format!(
            "body.0.weight reads {read} channels, not 3: no RGB"
        )));
    }
    let mut network = Network::empty(&format!("compact-x{scale}"), scale, Base::Nearest);
    let mut map = PICTURE;
    for i in 0..slopes {
        let read = network.maps[map];
        let conv = weights.conv(&format!("body.{}", 2 * i), (channels, read), 3)?;
        let slopes = weights.tensor(&format!("body.{}.weight", 2 * i + 1), &[channels])?;
        map = network.push(&[map], conv, Activation::Prelu(slopes), &[]);
    }
    let up = weights.conv(&last, (3 * scale * scale, channels), 3)?;
    network.push(&[map], up, Activation::None, &[]);
    Ok(network)
}

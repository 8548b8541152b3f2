//! SRResNet as BasicSR has it (`MSRResNet`): residual blocks without normalisation, doublings, and a bilinear base.

use super::upsampling::{self, Read};
use super::{Architecture, Weights, missing};
use crate::error::ModelError;
use crate::network::{Activation, Base, Combine, Network, PICTURE};

/// Slope of its leaky ReLU, which no file has.
const SLOPE: f32 = 0.1;

pub(super) fn build(weights: &Weights<'_>) -> Result<Network, ModelError> {
    let channels = weights.channels_of_rgb("conv_first")?;
    let up = |up: usize| format!("upconv{}", up + 1);
    let ups = upsampling::count(weights, Architecture::SrResNet, up, channels)?;
    if ups == 0 {
        return Err(missing("upconv1.weight"));
    }
    let scale = 1 << ups;
    let mut network = Network::empty(&format!("srresnet-x{scale}"), scale, Base::Bilinear);
    let leaky = Activation::Prelu(vec![SLOPE; channels]);
    let first = weights.conv("conv_first", (channels, 3), 3)?;
    let mut x = network.push(&[PICTURE], first, leaky.clone(), &[]);
    let shape = (channels, channels);
    for block in 0..weights.blocks(|block| format!("body.{block}.conv2.weight"))? {
        let conv = |part: usize| weights.conv(&format!("body.{block}.conv{part}"), shape, 3);
        let h = network.push(&[x], conv(1)?, Activation::Relu, &[]);
        let join = [Combine::Add { map: x, scale: 1.0 }];
        x = network.push(&[h], conv(2)?, Activation::None, &join);
    }
    let mut read = Read::One(x);
    for index in 0..ups {
        read = upsampling::double(weights, &mut network, &up(index), read, &leaky)?;
    }
    let high = weights.conv("conv_hr", shape, 3)?;
    let high = upsampling::convolve(&mut network, read, high, leaky);
    let last = weights.conv("conv_last", (3, channels), 3)?;
    network.push(&[high], last, Activation::None, &[]);
    Ok(network)
}

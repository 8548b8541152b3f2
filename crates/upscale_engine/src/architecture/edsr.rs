//! EDSR (B. Lim et al.: "Enhanced Deep Residual Networks for Single Image Super-Resolution", 2017): residual blocks without
//! normalisation, one long skip, doublings. Under the names of its authors' program and those of BasicSR.

use super::span::MEAN;
use super::upsampling::{self, Read};
use super::{Architecture, Weights};
use crate::error::{ModelError, refuse};
use crate::network::{Activation, Base, Combine, Map, Network, PICTURE};

/// Colours are 0..255 in every published network; only the authors' files say so.
const RANGE: f32 = 255.0;
/// What a block multiplies its own part with. No file has it: both programs publish 0.1 for networks of 256 channels, and
/// 1 for the others.
const RESIDUAL_OF_256: f32 = 0.1;
/// What a range that a file tells may be: colours of 0..1 to those of 16 bits.
const RANGES: std::ops::RangeInclusive<f32> = 1.0..=65_535.0;
/// How far a shift of the mean may be from the one that is known, in parts of its range: it is stored in single precision.
const SHIFT_ERROR_MAX: f32 = 1e-6;

/// How the convolutions are called.
#[derive(Clone, Copy)]
struct Names(Architecture);

impl Names {
    fn pick(self, authors: &str, basic: &str) -> String {
        match self.0 {
            Architecture::EdsrFirst => authors.to_owned(),
            _ => basic.to_owned(),
        }
    }

    /// Convolution `part`, 0 or 1, of a residual block.
    fn block(self, block: usize, part: usize) -> String {
        match self.0 {
            Architecture::EdsrFirst => format!("body.{block}.body.{}", 2 * part),
            _ => format!("body.{block}.conv{}", part + 1),
        }
    }

    /// A doubling is two parts in a row: the convolution, the shuffle.
    fn up(self, up: usize) -> String {
        match self.0 {
            Architecture::EdsrFirst => format!("tail.0.{}", 2 * up),
            _ => format!("upsample.{}", 2 * up),
        }
    }
}

pub(super) fn build(weights: &Weights<'_>, set: Architecture) -> Result<Network, ModelError> {
    let names = Names(set);
    let first = names.pick("head.0", "conv_first");
    let channels = weights.channels_of_rgb(&first)?;
    let ups = upsampling::count(weights, set, |up| names.up(up), channels)?;
    let range = match set {
        Architecture::EdsrFirst => shifted_range(weights)?,
        _ => RANGE,
    };
    let scale = 1 << ups;
    let mut network = Network::empty(&format!("edsr-x{scale}"), scale, Base::Zero);
    network.mean = MEAN;
    let mut conv = weights.conv(&first, (channels, 3), 3)?;
    conv.0.iter_mut().for_each(|weight| *weight *= range);
    let head = network.push(&[PICTURE], conv, Activation::None, &[]);
    let trunk = trunk(weights, names, &mut network, head)?;
    let mut read = Read::One(trunk);
    for up in 0..ups {
        let none = Activation::None;
        read = upsampling::double(weights, &mut network, &names.up(up), read, &none)?;
    }
    let last = names.pick("tail.1", "conv_last");
    let (mut kernels, mut bias) = weights.conv(&last, (3, channels), 3)?;
    kernels.iter_mut().for_each(|weight| *weight /= range);
    for (bias, mean) in bias.iter_mut().zip(MEAN) {
        *bias = *bias / range + mean;
    }
    upsampling::convolve(&mut network, read, (kernels, bias), Activation::None);
    Ok(network)
}

/// All residual blocks, and the convolution at their end with the long skip.
fn trunk(
    weights: &Weights<'_>,
    names: Names,
    network: &mut Network,
    head: Map,
) -> Result<Map, ModelError> {
    let channels = network.maps[head];
    let shape = (channels, channels);
    let scale = if channels == 256 {
        RESIDUAL_OF_256
    } else {
        1.0
    };
    let blocks = weights.blocks(|block| format!("{}.weight", names.block(block, 1)))?;
    let mut x = head;
    for block in 0..blocks {
        let conv = |part| weights.conv(&names.block(block, part), shape, 3);
        let h = network.push(&[x], conv(0)?, Activation::Relu, &[]);
        let join = [Combine::Add { map: x, scale }];
        x = network.push(&[h], conv(1)?, Activation::None, &join);
    }
    let last = names.pick(&format!("body.{blocks}"), "conv_after_body");
    let join = [Combine::Add {
        map: head,
        scale: 1.0,
    }];
    let conv = weights.conv(&last, shape, 3)?;
    Ok(network.push(&[x], conv, Activation::None, &join))
}

/// The range of colours for which the authors' files take a mean off and add it at the end.
fn shifted_range(weights: &Weights<'_>) -> Result<f32, ModelError> {
    let sub = weights.tensor("sub_mean.bias", &[3])?;
    let range = -sub[0] / MEAN[0];
    let add = weights.tensor("add_mean.bias", &[3])?;
    let is_near = |given: f32, known: f32| (given - known).abs() <= SHIFT_ERROR_MAX * range;
    let of_mean = |bias: &[f32], sign: f32| {
        let mut pairs = bias.iter().zip(MEAN);
        pairs.all(|(&given, mean)| is_near(sign * given, range * mean))
    };
    let mut is_known = RANGES.contains(&range) && of_mean(&sub, -1.0) && of_mean(&add, 1.0);
    for name in ["sub_mean.weight", "add_mean.weight"] {
        let mixed = weights.tensor(name, &[3, 3, 1, 1])?;
        is_known &= mixed == [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0];
    }
    match is_known {
        true => Ok(range),
        false => Err(refuse(
            "sub_mean and add_mean are not the shift by the mean colour of DIV2K that EDSR has",
        )),
    }
}

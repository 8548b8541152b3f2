//! DIS (Direct Image Supersampling): residual blocks whose convolutions have no bias, doublings with a PReLU each, and a
//! bilinear base. Written from its published definition (github.com/Kim2091/DIS).

use super::upsampling::{self, Read};
use super::{Architecture, Conv, Weights};
use crate::error::ModelError;
use crate::network::{Activation, Base, Combine, Map, Network, PICTURE};

pub(super) fn build(weights: &Weights<'_>) -> Result<Network, ModelError> {
    let channels = weights.channels_of_rgb("head")?;
    let ups = count_ups(weights, channels)?;
    let scale = 1 << ups;
    // At 1x the base is the picture itself.
    let base = if ups == 0 {
        Base::Nearest
    } else {
        Base::Bilinear
    };
    let mut network = Network::empty(&format!("dis-x{scale}"), scale, base);
    let head = weights.conv("head", (channels, 3), 3)?;
    let head = network.push(
        &[PICTURE],
        head,
        slopes(weights, "head_act", channels)?,
        &[],
    );
    let mut x = head;
    for block in 0..weights.blocks(|block| format!("body.{block}.act.weight"))? {
        x = push_block(weights, &mut network, &format!("body.{block}"), x)?;
    }
    let fusion = weights.conv("fusion", (channels, channels), 3)?;
    let join = [Combine::Add {
        map: head,
        scale: 1.0,
    }];
    let mut read = Read::One(network.push(&[x], fusion, Activation::None, &join));
    for index in 0..ups {
        let part = upsampler(weights, index);
        let activation = slopes(weights, &format!("{part}.act"), channels)?;
        let conv = format!("{part}.conv");
        read = upsampling::double(weights, &mut network, &conv, read, &activation)?;
    }
    let tail = weights.conv("tail", (3, channels), 3)?;
    upsampling::convolve(&mut network, read, tail, Activation::None);
    Ok(network)
}

/// A single enlargement has no number, two have one each.
fn upsampler(weights: &Weights<'_>, index: usize) -> String {
    if index == 0 && weights.has("upsampler.conv.weight") {
        "upsampler".to_owned()
    } else {
        format!("upsampler.{index}")
    }
}

fn count_ups(weights: &Weights<'_>, channels: usize) -> Result<usize, ModelError> {
    let name = |index| format!("{}.conv", upsampler(weights, index));
    let ups = upsampling::count(weights, Architecture::Dis, name, channels)?;
    // One without a number stands alone; numbered ones beside it are tensors too many, and are refused as such.
    let most = if weights.has("upsampler.conv.weight") {
        1
    } else {
        ups
    };
    Ok(ups.min(most))
}

/// Either kind of block; both add to `x`.
fn push_block(
    weights: &Weights<'_>,
    network: &mut Network,
    block: &str,
    x: Map,
) -> Result<Map, ModelError> {
    let channels = network.maps[x];
    let activation = slopes(weights, &format!("{block}.act"), channels)?;
    let join = [Combine::Add { map: x, scale: 1.0 }];
    if weights.has(&format!("{block}.dw_conv.depthwise.weight")) {
        let conv = dense(weights, &format!("{block}.dw_conv"), channels)?;
        return Ok(network.push(&[x], conv, activation, &join));
    }
    let conv = |part: usize| {
        let name = format!("{block}.conv{part}.weight");
        without_bias(weights, &name, &[channels, channels, 3, 3])
    };
    let h = network.push(&[x], conv(1)?, activation, &[]);
    Ok(network.push(&[h], conv(2)?, Activation::None, &join))
}

/// A depthwise 3x3 and the 1x1 after it as the one dense 3x3 that they are: nothing lies between them.
fn dense(weights: &Weights<'_>, name: &str, channels: usize) -> Result<Conv, ModelError> {
    let depthwise = weights.tensor(&format!("{name}.depthwise.weight"), &[channels, 1, 3, 3])?;
    let pointwise = format!("{name}.pointwise.weight");
    let pointwise = weights.tensor(&pointwise, &[channels, channels, 1, 1])?;
    let shares = pointwise.iter().enumerate();
    let kernels = shares.flat_map(|(at, share)| {
        let kernel = &depthwise[at % channels * 9..][..9];
        kernel.iter().map(move |weight| share * weight)
    });
    Ok((kernels.collect(), vec![0.0; channels]))
}

fn without_bias(weights: &Weights<'_>, name: &str, shape: &[usize; 4]) -> Result<Conv, ModelError> {
    Ok((weights.tensor(name, shape)?, vec![0.0; shape[0]]))
}

fn slopes(weights: &Weights<'_>, name: &str, channels: usize) -> Result<Activation, ModelError> {
    let slopes = weights.tensor(&format!("{name}.weight"), &[channels])?;
    Ok(Activation::Prelu(slopes))
}

//! SPAN (C. Wan et al.: "Swift Parameter-free Attention Network", 2023). Every 3x3 convolution was trained as the sum
//! of a 1x1 convolution and a chain of 1x1, 3x3 and 1x1; the merged kernel that some files carry may be of an earlier
//! step, so it is made anew here. Files made to be run only have nothing but the merged kernel: there it is the network.

use super::{Architecture, Conv, Weights, shuffled_scale};
use crate::error::{ModelError, refuse};
use crate::network::{Activation, Base, Combine, Map, Network, PICTURE};

const BLOCKS: usize = 6;
/// The mean colour of DIV2K. The published network is fed `(x - mean) * 255`; no file says otherwise but by `no_norm`.
pub(super) const MEAN: [f32; 3] = [0.4488, 0.4371, 0.4040];
const RANGE: f32 = 255.0;
/// Channels of the chain for one of the convolution, at most; the published network has two.
const GAIN_MAX: usize = 2;

pub(super) fn build(weights: &Weights<'_>) -> Result<Network, ModelError> {
    let channels = channels_of_rgb(weights, "conv_1")?;
    let outputs = weights.conv_shape("upsampler.0")?[0];
    let scale = shuffled_scale(Architecture::Span, "upsampler.0", outputs)?;
    let mut network = Network::empty(&format!("span-x{scale}"), scale, Base::Zero);
    let mut first = merged(weights, "conv_1", channels, 3)?;
    if weights.has("no_norm") {
        weights.skip("no_norm");
    } else {
        network.mean = MEAN;
        first.0.iter_mut().for_each(|weight| *weight *= RANGE);
    }
    let c = channels;
    let f0 = network.push(&[PICTURE], first, Activation::None, &[]);
    let (mut h, mut b1, mut o1) = (f0, f0, f0);
    for i in 1..=BLOCKS {
        (h, o1) = block(
            weights,
            &mut network,
            &format!("block_{i}"),
            h,
            Activation::Silu,
        )?;
        if i == 1 {
            b1 = h;
        }
    }
    let conv = merged(weights, "conv_2", c, c)?;
    let g = network.push(&[h], conv, Activation::None, &[]);
    let conv = weights.conv("conv_cat", (c, 4 * c), 1)?;
    let cat = network.push(&[f0, g, b1, o1], conv, Activation::None, &[]);
    let up = weights.conv("upsampler.0", (3 * scale * scale, c), 3)?;
    network.push(&[cat], up, Activation::None, &[]);
    Ok(network)
}

/// One block: its output, and its first convolution's after the activation, which the published code writes in place.
pub(super) fn block(
    weights: &Weights<'_>,
    network: &mut Network,
    name: &str,
    h: Map,
    activation: Activation,
) -> Result<(Map, Map), ModelError> {
    let c = network.maps[h];
    let conv = |part: usize| merged(weights, &format!("{name}.c{part}_r"), c, c);
    let o1 = network.push(&[h], conv(1)?, activation.clone(), &[]);
    let o2 = network.push(&[o1], conv(2)?, activation, &[]);
    let gate = [Combine::Gate { map: h }];
    Ok((network.push(&[o2], conv(3)?, Activation::None, &gate), o1))
}

/// The outputs of the first convolution, which has to read red, green and blue.
pub(super) fn channels_of_rgb(weights: &Weights<'_>, name: &str) -> Result<usize, ModelError> {
    let part = if is_merged(weights, name) {
        "eval_conv"
    } else {
        "sk"
    };
    weights.channels_of_rgb(&format!("{name}.{part}"))
}

/// Whether the file has nothing of a convolution but its merged kernel.
fn is_merged(weights: &Weights<'_>, name: &str) -> bool {
    !weights.has(&format!("{name}.sk.weight"))
}

/// The 3x3 convolution that the parts of `name` add up to.
pub(super) fn merged(
    weights: &Weights<'_>,
    name: &str,
    out: usize,
    read: usize,
) -> Result<Conv, ModelError> {
    if is_merged(weights, name) {
        return weights.conv(&format!("{name}.eval_conv"), (out, read), 3);
    }
    for part in ["weight", "bias"] {
        weights.skip(&format!("{name}.eval_conv.{part}"));
    }
    let [wide_in, ..] = weights.conv_shape(&format!("{name}.conv.0"))?;
    let [wide_out, ..] = weights.conv_shape(&format!("{name}.conv.1"))?;
    if wide_in > GAIN_MAX * read || wide_out > GAIN_MAX * out {
        return Err(refuse(format!(
            "{name}.conv is more than {GAIN_MAX} times as wide as {name}"
        )));
    }
    let conv = |part: &str, shape, side| {
        let conv = weights.conv(&format!("{name}.{part}"), shape, side)?;
        Ok::<_, ModelError>(Exact::of(conv, shape, side))
    };
    let into = conv("conv.0", (wide_in, read), 1)?;
    let middle = conv("conv.1", (wide_out, wide_in), 3)?;
    let back = conv("conv.2", (out, wide_out), 1)?;
    let mut sum = into.then(&middle).then(&back);
    let skip = conv("sk", (out, read), 1)?;
    for (weights, &one) in sum.weights.chunks_exact_mut(9).zip(&skip.weights) {
        weights[4] += one;
    }
    for (bias, &one) in sum.bias.iter_mut().zip(&skip.bias) {
        *bias += one;
    }
    let rounded = |values: Vec<f64>| values.into_iter().map(|value| value as f32).collect();
    Ok((rounded(sum.weights), rounded(sum.bias)))
}

/// A convolution in double precision: `[output][input][tap]`.
struct Exact {
    weights: Vec<f64>,
    bias: Vec<f64>,
    read: usize,
    taps: usize,
}

impl Exact {
    fn of((weights, bias): Conv, (_, read): (usize, usize), side: usize) -> Self {
        let exact = |values: Vec<f32>| values.into_iter().map(f64::from).collect();
        Self {
            weights: exact(weights),
            bias: exact(bias),
            read,
            taps: side * side,
        }
    }

    /// This one and then `next` as one convolution; only one of the two may have more than one tap.
    fn then(&self, next: &Self) -> Self {
        let taps = self.taps * next.taps;
        let (row, between) = (self.read * taps, self.bias.len());
        let mut weights = vec![0.0; next.bias.len() * row];
        let mut bias = next.bias.clone();
        for (o, sums) in weights.chunks_exact_mut(row).enumerate() {
            for (m, t) in (0..between).flat_map(|m| (0..next.taps).map(move |t| (m, t))) {
                let factor = next.weights[(o * between + m) * next.taps + t];
                bias[o] += factor * self.bias[m];
                let from = &self.weights[m * self.read * self.taps..];
                let to = sums.iter_mut().skip(t).step_by(next.taps);
                for (sum, &one) in to.zip(from.iter().take(self.read * self.taps)) {
                    *sum += factor * one;
                }
            }
        }
        Self {
            weights,
            bias,
            read: self.read,
            taps,
        }
    }
}

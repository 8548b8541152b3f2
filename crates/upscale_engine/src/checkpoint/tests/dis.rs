//! DIS: found with both kinds of blocks at every scale; what its depthwise convolutions and its slopes become.

use super::hostile::assert_refused;
use super::writer::{Saved, zip};
use crate::architecture::Architecture;
use crate::model::Model;
use crate::network::{Activation, Base, Combine};
use crate::shapes::Random;

const CHANNELS: usize = 4;

/// Two blocks; `ups` are what the enlargements are called and how many times the channels they write.
pub(super) fn tensors(is_depthwise: bool, ups: &[(&str, usize)]) -> Vec<Saved> {
    let c = CHANNELS;
    let (mut random, mut tensors) = (Random(9), Vec::new());
    let mut conv = |name: &str, shape: [usize; 4], has_bias: bool| {
        let (weights, bias) = random.conv(shape[0], shape[1], shape[2], 1.0);
        tensors.push(Saved::new(
            format!("{name}.weight"),
            shape.to_vec(),
            &weights,
        ));
        if has_bias {
            tensors.push(Saved::new(format!("{name}.bias"), vec![shape[0]], &bias));
        }
    };
    conv("head", [c, 3, 3, 3], true);
    for block in 0..2 {
        if is_depthwise {
            let name = format!("body.{block}.dw_conv");
            conv(&format!("{name}.depthwise"), [c, 1, 3, 3], false);
            conv(&format!("{name}.pointwise"), [c, c, 1, 1], false);
        } else {
            conv(&format!("body.{block}.conv1"), [c, c, 3, 3], false);
            conv(&format!("body.{block}.conv2"), [c, c, 3, 3], false);
        }
    }
    conv("fusion", [c, c, 3, 3], true);
    for (up, times) in ups {
        conv(&format!("{up}.conv"), [times * c, c, 3, 3], true);
    }
    conv("tail", [3, c, 3, 3], true);
    let bent = ["head_act", "body.0.act", "body.1.act"].map(str::to_owned);
    for name in bent
        .into_iter()
        .chain(ups.iter().map(|(up, _)| format!("{up}.act")))
    {
        let values: Vec<f32> = (0..c).map(|at| 0.1 * (at + name.len()) as f32).collect();
        tensors.push(Saved::new(format!("{name}.weight"), vec![c], &values));
    }
    tensors
}

const DOUBLE: &[(&str, usize)] = &[("upsampler", 4)];
const TWICE: &[(&str, usize)] = &[("upsampler.0", 4), ("upsampler.1", 4)];

fn slopes<'a>(tensors: &'a [Saved], name: &str) -> &'a [f32] {
    let name = format!("{name}.weight");
    &tensors.iter().find(|t| t.name == name).unwrap().values
}

#[test]
fn both_kinds_of_blocks_are_found_at_every_scale() {
    for (ups, scale, base) in [
        (&[][..], 1, Base::Nearest),
        (DOUBLE, 2, Base::Bilinear),
        (TWICE, 4, Base::Bilinear),
    ] {
        for (is_depthwise, of_block) in [(true, 1), (false, 2)] {
            let model = Model::read(&zip(&tensors(is_depthwise, ups), &["params"])).unwrap();
            assert_eq!(model.architecture, Architecture::Dis);
            assert_eq!((model.network.scale(), model.network.base), (scale, base));
            let layers = 3 + 2 * of_block + 4 * ups.len();
            assert_eq!(model.network.layers.len(), layers);
            assert!(model.network.has_kernels());
        }
    }
}

#[test]
fn a_depthwise_convolution_and_the_one_after_it_are_one() {
    let tensors = tensors(true, DOUBLE);
    let network = Model::read(&zip(&tensors, &[])).unwrap().network;
    let [depthwise, pointwise] =
        ["depthwise", "pointwise"].map(|part| slopes(&tensors, &format!("body.1.dw_conv.{part}")));
    let layer = &network.layers[2];
    for output in 0..CHANNELS {
        for input in 0..CHANNELS {
            for tap in 0..9 {
                let expected = pointwise[output * CHANNELS + input] * depthwise[input * 9 + tap];
                let at = (output * CHANNELS + input) * 9 + tap;
                assert_eq!(layer.weights[at], expected);
            }
        }
    }
    assert_eq!(layer.bias, [0.0; CHANNELS]);
    let of_block = Activation::Prelu(slopes(&tensors, "body.1.act").to_vec());
    assert_eq!(layer.activation, of_block);
    assert_eq!(layer.combine, [Combine::Add { map: 2, scale: 1.0 }]);
}

#[test]
fn every_doubling_has_its_own_slopes() {
    let tensors = tensors(false, TWICE);
    let network = Model::read(&zip(&tensors, &[])).unwrap().network;
    for (first, name) in [(6, "upsampler.0.act"), (10, "upsampler.1.act")] {
        let expected = Activation::Prelu(slopes(&tensors, name).to_vec());
        for layer in &network.layers[first..first + 4] {
            assert_eq!(layer.activation, expected);
        }
    }
}

#[test]
fn what_is_nearly_dis_is_refused() {
    let refused = |ups: &[(&str, usize)], reason: &str| {
        assert_refused(&zip(&tensors(false, ups), &[]), reason);
    };
    refused(&[("upsampler", 9)], "this is DIS at 3x; supported are");
    let thrice = [TWICE, &[("upsampler.2", 4)]].concat();
    refused(&thrice, "this is DIS at 8x; supported are");
    let mixed = [DOUBLE, &[("upsampler.1", 4)]].concat();
    refused(&mixed, "no tensor \"upsampler.1.");
    for is_depthwise in [true, false] {
        let honest = tensors(is_depthwise, TWICE);
        for gone in 0..honest.len() {
            let mut fewer = honest.clone();
            fewer.remove(gone);
            let name = &honest[gone].name;
            assert!(Model::read(&zip(&fewer, &[])).is_err(), "without {name}");
        }
    }
}

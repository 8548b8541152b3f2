//! EDSR under both sets of names, and SRResNet: what becomes of their doublings, their mean, their residual scale.

use super::hostile::assert_refused;
use super::writer::{Saved, zip};
use crate::architecture::Architecture::{self, EdsrBasic, EdsrFirst, SrResNet};
use crate::model::Model;
use crate::network::{Activation, Base, Combine, Layer};
use crate::shapes::Random;

const MEAN: [f32; 3] = [0.4488, 0.4371, 0.4040];

/// The tensors of a network of two blocks; every doubling has `outputs` times as many outputs as channels.
pub(super) fn tensors(
    architecture: Architecture,
    channels: usize,
    (ups, outputs): (usize, usize),
) -> Vec<Saved> {
    let (mut random, mut tensors) = (Random(4), Vec::new());
    let mut conv = |name: String, out: usize, read: usize| {
        let (weights, bias) = random.conv(out, read, 3, 1.0);
        let shape = vec![out, read, 3, 3];
        tensors.push(Saved::new(format!("{name}.weight"), shape, &weights));
        tensors.push(Saved::new(format!("{name}.bias"), vec![out], &bias));
    };
    let c = channels;
    let name = |first: &str, others: &str| match architecture {
        EdsrFirst => first.to_owned(),
        _ => others.to_owned(),
    };
    conv(name("head.0", "conv_first"), c, 3);
    for (block, part) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let first = format!("body.{block}.body.{}", 2 * part);
        let others = format!("body.{block}.conv{}", part + 1);
        conv(name(&first, &others), c, c);
    }
    let end = if architecture == SrResNet {
        "conv_hr"
    } else {
        "conv_after_body"
    };
    conv(name("body.2", end), c, c);
    for up in 0..ups {
        let basic = format!("upsample.{}", 2 * up);
        let up = match architecture {
            EdsrFirst => format!("tail.0.{}", 2 * up),
            EdsrBasic => basic,
            _ => format!("upconv{}", up + 1),
        };
        conv(up, outputs * c, c);
    }
    conv(name("tail.1", "conv_last"), 3, c);
    if architecture == EdsrFirst {
        tensors.extend(shifts(255.0));
    }
    tensors
}

/// The two shifts of the mean, for colours of `0..range`.
fn shifts(range: f32) -> Vec<Saved> {
    let unit = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0];
    let both = [("sub_mean", -range), ("add_mean", range)];
    let tensors = both.into_iter().flat_map(|(name, sign)| {
        let bias = MEAN.map(|mean| sign * mean);
        [
            Saved::new(format!("{name}.weight"), vec![3, 3, 1, 1], &unit),
            Saved::new(format!("{name}.bias"), vec![3], &bias),
        ]
    });
    tensors.collect()
}

fn read(tensors: &[Saved]) -> Model {
    Model::read(&zip(tensors, &["params"])).unwrap()
}

fn values<'a>(tensors: &'a [Saved], name: &str) -> &'a [f32] {
    &tensors.iter().find(|t| t.name == name).unwrap().values
}

#[test]
fn all_three_forms_are_found_at_their_scales() {
    for architecture in [EdsrFirst, EdsrBasic, SrResNet] {
        for ups in [1, 2] {
            let model = read(&tensors(architecture, 4, (ups, 4)));
            assert_eq!(model.architecture, architecture);
            assert_eq!(model.network.scale(), 1 << ups);
            assert!(model.network.has_kernels());
        }
    }
    for architecture in [EdsrFirst, EdsrBasic] {
        assert_eq!(read(&tensors(architecture, 4, (0, 4))).network.scale(), 1);
    }
}

#[test]
fn a_doubling_is_four_convolutions_that_the_next_one_reads_as_one() {
    let tensors = tensors(EdsrBasic, 4, (2, 4));
    let network = read(&tensors).network;
    let kinds = |layer: &Layer| (layer.inputs.len(), layer.is_interleaved);
    let layers: Vec<_> = network.layers.iter().map(kinds).collect();
    let mut expected = vec![(1, false); 10];
    expected.extend([(4, true); 5]);
    assert_eq!(layers, expected);
    for (first, name) in [(6, "upsample.0"), (10, "upsample.2")] {
        let weights = values(&tensors, &format!("{name}.weight")).chunks_exact(36);
        let bias = values(&tensors, &format!("{name}.bias"));
        for (output, (weights, &bias)) in weights.zip(bias).enumerate() {
            let layer = &network.layers[first + output % 4];
            let at = output / 4;
            assert_eq!(&layer.weights[at * 36..(at + 1) * 36], weights);
            assert_eq!(layer.bias[at], bias);
        }
    }
}

#[test]
fn edsr_has_its_mean_and_its_range_in_the_first_and_the_last_layer() {
    let mut first = tensors(EdsrFirst, 4, (1, 4));
    for range in [255.0, 1.0] {
        first.truncate(first.len() - 4);
        first.extend(shifts(range));
        let network = read(&first).network;
        assert_eq!((network.mean, network.base), (MEAN, Base::Zero));
        let weights = values(&first, "head.0.weight").iter();
        let given = network.layers[0].weights.iter();
        assert!(
            given
                .zip(weights)
                .all(|(given, weight)| *given == weight * range)
        );
        let last = network.layers.last().unwrap();
        for ((given, bias), mean) in last
            .bias
            .iter()
            .zip(values(&first, "tail.1.bias"))
            .zip(MEAN)
        {
            assert!((given - (bias / range + mean)).abs() < 1e-6);
        }
    }
}

#[test]
fn only_networks_of_256_channels_scale_their_residuals() {
    for (channels, expected) in [(8, 1.0), (256, 0.1)] {
        let network = read(&tensors(EdsrBasic, channels, (1, 4))).network;
        let join = Combine::Add {
            map: 1,
            scale: expected,
        };
        assert_eq!(network.layers[2].combine, [join]);
        assert_eq!(
            network.layers[5].combine,
            [Combine::Add { map: 1, scale: 1.0 }]
        );
    }
}

#[test]
fn srresnet_lies_on_a_bilinear_base_and_has_no_long_skip() {
    let network = read(&tensors(SrResNet, 4, (2, 4))).network;
    assert_eq!((network.mean, network.base), ([0.0; 3], Base::Bilinear));
    let leaky = Activation::Prelu(vec![0.1; 4]);
    let is_leaky = |layer: &Layer| layer.activation == leaky;
    let found: Vec<_> = (0..15)
        .filter(|&at| is_leaky(&network.layers[at]))
        .collect();
    assert_eq!(found, [0, 5, 6, 7, 8, 9, 10, 11, 12, 13]);
    assert!(network.layers[5].combine.is_empty());
}

#[test]
fn what_is_nearly_one_of_them_is_refused() {
    for architecture in [EdsrFirst, EdsrBasic, SrResNet] {
        let name = architecture.name();
        let message = format!("this is {name} at 3x; supported are 1x, 2x and 4x");
        assert_refused(&zip(&tensors(architecture, 4, (1, 9)), &[]), &message);
        let message = format!("this is {name} at 8x; supported are 1x, 2x and 4x");
        assert_refused(&zip(&tensors(architecture, 4, (3, 4)), &[]), &message);
        assert_refused(
            &zip(&tensors(architecture, 4, (2, 9)), &[]),
            "has shape [36, 4, 3, 3]",
        );
        let honest = tensors(architecture, 4, (1, 4));
        for gone in 0..honest.len() {
            let mut fewer = honest.clone();
            fewer.remove(gone);
            assert!(
                Model::read(&zip(&fewer, &[])).is_err(),
                "without {}",
                honest[gone].name
            );
        }
        let mut more = honest;
        more.push(Saved::new("attention".to_owned(), vec![1], &[0.0]));
        assert_refused(&zip(&more, &[]), "no tensor \"attention\"");
    }
    assert_refused(
        &zip(&tensors(SrResNet, 4, (0, 4)), &[]),
        "upconv1.weight is missing",
    );
}

#[test]
fn another_shift_of_the_mean_is_refused() {
    for range in [0.0, -255.0, 1e5] {
        let mut changed = tensors(EdsrFirst, 4, (1, 4));
        changed.truncate(changed.len() - 4);
        changed.extend(shifts(range));
        assert_refused(&zip(&changed, &[]), "not the shift by the mean colour");
    }
    let honest = tensors(EdsrFirst, 4, (1, 4));
    for (name, at) in [
        ("sub_mean.weight", 1),
        ("sub_mean.bias", 0),
        ("add_mean.bias", 2),
    ] {
        let mut changed = honest.clone();
        let tensor = changed.iter_mut().find(|t| t.name == name).unwrap();
        tensor.values[at] += 0.1;
        assert_refused(&zip(&changed, &[]), "not the shift by the mean colour");
    }
}

//! SPANPlus: found with its training branches and without, by groups of blocks, and refused with DySample.

use super::hostile::assert_refused;
use super::writer::{Saved, zip};
use crate::architecture::Architecture;
use crate::model::Model;
use crate::network::Activation;
use crate::shapes::Random;

const CHANNELS: usize = 2;

/// Groups of three blocks; `up` is the last convolution and has `outputs`.
pub(super) fn tensors(groups: usize, (up, outputs): (&str, usize)) -> Vec<Saved> {
    let (mut random, mut tensors) = (Random(8), Vec::new());
    let mut conv = |name: String, out: usize, read: usize, side: usize| {
        let (weights, bias) = random.conv(out, read, side, 1.0);
        let shape = vec![out, read, side, side];
        tensors.push(Saved::new(format!("{name}.weight"), shape, &weights));
        tensors.push(Saved::new(format!("{name}.bias"), vec![out], &bias));
    };
    let mut wide = vec![("feats.0".to_owned(), 3)];
    for group in 1..=groups {
        for (block, part) in ["block_1", "block_n.0", "block_end"]
            .into_iter()
            .flat_map(|block| (1..=3).map(move |part| (block, part)))
        {
            wide.push((format!("feats.{group}.{block}.c{part}_r"), CHANNELS));
        }
        wide.push((format!("feats.{group}.conv_2"), CHANNELS));
        conv(format!("feats.{group}.conv_cat"), CHANNELS, 4 * CHANNELS, 1);
    }
    for (name, read) in wide {
        conv(format!("{name}.sk"), CHANNELS, read, 1);
        conv(format!("{name}.conv.0"), 2 * read, read, 1);
        conv(format!("{name}.conv.1"), 2 * CHANNELS, 2 * read, 3);
        conv(format!("{name}.conv.2"), CHANNELS, 2 * CHANNELS, 1);
        conv(format!("{name}.eval_conv"), CHANNELS, read, 3);
    }
    conv(up.to_owned(), outputs, CHANNELS, 3);
    tensors
}

#[test]
fn it_is_found_at_every_scale_with_and_without_branches() {
    for (up, outputs, scale) in [
        ("upsampler", 3, 1),
        ("upsampler.0", 12, 2),
        ("upsampler.0", 48, 4),
    ] {
        for groups in [1, 2] {
            let mut tensors = tensors(groups, (up, outputs));
            let whole = Model::read(&zip(&tensors, &["params_ema"])).unwrap();
            tensors.retain(|t| !t.name.contains(".sk.") && !t.name.contains(".conv."));
            let merged = Model::read(&zip(&tensors, &[])).unwrap();
            for model in [whole, merged] {
                assert_eq!(model.architecture, Architecture::SpanPlus);
                assert_eq!(model.network.scale(), scale);
                assert_eq!(model.network.layers.len(), 1 + groups * 11 + 1);
                assert_eq!(model.network.layers[1].activation, Activation::Mish);
                assert!(model.network.has_kernels());
            }
        }
    }
}

#[test]
fn what_does_not_run_is_refused_by_name() {
    let mut dynamic = tensors(1, ("upsampler.end_conv", 3));
    let offset = Saved::new("upsampler.offset.weight".to_owned(), vec![1], &[0.0]);
    dynamic.push(offset);
    assert_refused(&zip(&dynamic, &[]), "this is SPANPlus with DySample");
    let message = "this is SPANPlus at 3x; supported are 1x, 2x and 4x";
    assert_refused(&zip(&tensors(1, ("upsampler.0", 27)), &[]), message);
    assert_refused(&zip(&tensors(1, ("upsampler", 12)), &[]), "of 1x alone");
}

#[test]
fn one_tensor_more_or_less_is_refused() {
    let honest = tensors(2, ("upsampler.0", 12));
    let is_unread = |name: &str| name.contains("eval_conv");
    for gone in (0..honest.len()).filter(|&at| !is_unread(&honest[at].name)) {
        let mut fewer = honest.clone();
        fewer.remove(gone);
        let read = Model::read(&zip(&fewer, &[]));
        assert!(read.is_err(), "without {}", honest[gone].name);
    }
    let mut more = honest;
    more.push(Saved::new("feats.3.gamma".to_owned(), vec![1], &[0.0]));
    assert_refused(&zip(&more, &[]), "no tensor \"feats.3.gamma\"");
}

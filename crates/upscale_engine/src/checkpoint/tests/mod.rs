//! Files as PyTorch writes them, made here byte by byte: read back to the very network they were made of, and refused
//! one damage after another.

mod dis;
mod hostile;
mod residual;
mod span_plus;
mod writer;

use self::writer::{Saved, legacy, safetensors, zip};
use crate::architecture::Architecture;
use crate::model::Model;
use crate::network::{Activation, Layer, Network};
use crate::shapes::{Random, Shape};

const RRDB: Shape = Shape::Rrdb {
    channels: 6,
    growth: 4,
    blocks: 2,
};

/// A network's layers under the names that `name` gives them, in the order of the layers.
fn saved(network: &Network, names: &[String]) -> Vec<Saved> {
    assert_eq!(names.len(), network.layers.len());
    let tensors = network.layers.iter().zip(names).flat_map(|(layer, name)| {
        let (out, side) = (layer.bias.len(), layer.side);
        let read = network.read_channels(layer);
        [
            Saved::new(
                format!("{name}.weight"),
                vec![out, read, side, side],
                &layer.weights,
            ),
            Saved::new(format!("{name}.bias"), vec![out], &layer.bias),
        ]
    });
    tensors.collect()
}

/// Block, dense block and convolution to a name.
type Dense = fn(usize, usize, usize) -> String;

/// The names of RRDBNet's layers in their order.
fn rrdb_names(architecture: Architecture, blocks: usize) -> Vec<String> {
    let parts = (0..blocks * 15).map(|i| (i / 15, i / 5 % 3 + 1, i % 5 + 1));
    let (first, dense, rest): (_, Dense, Vec<String>) = match architecture {
        Architecture::EsrganOld => (
            "model.0",
            |b, d, c| format!("model.1.sub.{b}.RDB{d}.conv{c}.0"),
            [format!("model.1.sub.{blocks}")]
                .into_iter()
                .chain(["model.3", "model.6", "model.8", "model.10"].map(str::to_owned))
                .collect(),
        ),
        Architecture::Bsrgan => (
            "conv_first",
            |b, d, c| format!("RRDB_trunk.{b}.RDB{d}.conv{c}"),
            ["trunk_conv", "upconv1", "upconv2", "HRconv", "conv_last"]
                .map(str::to_owned)
                .to_vec(),
        ),
        _ => (
            "conv_first",
            |b, d, c| format!("body.{b}.rdb{d}.conv{c}"),
            ["conv_body", "conv_up1", "conv_up2", "conv_hr", "conv_last"]
                .map(str::to_owned)
                .to_vec(),
        ),
    };
    let dense = parts.map(|(block, one, part)| dense(block, one, part));
    std::iter::once(first.to_owned())
        .chain(dense)
        .chain(rest)
        .collect()
}

fn assert_same(given: &Network, expected: &Network) {
    assert_eq!(
        (given.scale, given.unshuffle),
        (expected.scale, expected.unshuffle)
    );
    assert_eq!(
        (&given.maps, &given.factors),
        (&expected.maps, &expected.factors)
    );
    assert_eq!(given.sections, expected.sections);
    let parts = |layer: &Layer| {
        let Layer {
            inputs,
            weights,
            bias,
            activation,
            combine,
            ..
        } = layer.clone();
        (inputs, weights, bias, activation, combine)
    };
    for (index, (one, other)) in given.layers.iter().zip(&expected.layers).enumerate() {
        assert!(parts(one) == parts(other), "layer {index}");
    }
}

#[test]
fn esrgan_under_all_three_sets_of_names_is_the_network_it_was_made_of() {
    for architecture in [
        Architecture::EsrganOld,
        Architecture::EsrganNew,
        Architecture::Bsrgan,
    ] {
        for scale in [2, 4] {
            let network = RRDB.network(scale, 3);
            let tensors = saved(&network, &rrdb_names(architecture, 2));
            let model = Model::read(&zip(&tensors, &["params_ema"])).unwrap();
            assert_eq!(model.architecture, architecture);
            assert_same(&model.network, &network);
        }
    }
}

#[test]
fn every_container_and_wrapper_gives_the_same_network() {
    let network = RRDB.network(4, 3);
    let mut tensors = saved(&network, &rrdb_names(Architecture::EsrganNew, 2));
    let read = |file: &[u8], container: &str| {
        let model = Model::read(file).unwrap();
        assert_eq!(model.container, container);
        assert_same(&model.network, &network);
    };
    read(&safetensors(&tensors), "safetensors");
    read(&zip(&tensors, &[]), "PyTorch zip");
    read(&legacy(&tensors, &[]), "PyTorch legacy pickle");
    for wrapper in super::weights::WRAPPERS {
        read(
            &legacy(&tensors, &["model", wrapper]),
            "PyTorch legacy pickle",
        );
    }
    for tensor in &mut tensors {
        tensor.name.insert_str(0, "module.");
    }
    read(&zip(&tensors, &["state_dict"]), "PyTorch zip");
}

#[test]
fn the_better_of_two_sets_of_weights_is_taken() {
    let (plain, averaged) = (RRDB.network(4, 1), RRDB.network(4, 2));
    let names = rrdb_names(Architecture::Bsrgan, 2);
    let sets = [
        ("params", saved(&plain, &names)),
        ("params_ema", saved(&averaged, &names)),
    ];
    let model = Model::read(&writer::zip_of_sets(&sets)).unwrap();
    assert_same(&model.network, &averaged);
}

#[test]
fn compact_is_the_network_it_was_made_of() {
    let shape = Shape::Compact {
        channels: 5,
        convs: 3,
    };
    for scale in [2, 4] {
        let network = shape.network(scale, 4);
        let names: Vec<String> = (0..5).map(|i| format!("body.{}", 2 * i)).collect();
        let mut tensors = saved(&network, &names);
        for (i, layer) in network.layers.iter().enumerate() {
            if let Activation::Prelu(slopes) = &layer.activation {
                tensors.push(Saved::new(
                    format!("body.{}.weight", 2 * i + 1),
                    vec![5],
                    slopes,
                ));
            }
        }
        let model = Model::read(&zip(&tensors, &["params"])).unwrap();
        assert_eq!(model.architecture, Architecture::Compact);
        assert_same(&model.network, &network);
    }
}

/// SPAN's tensors at 4 channels; `scale` is the upsampler's.
fn span(scale: usize) -> Vec<Saved> {
    let mut random = Random(6);
    let mut tensors = Vec::new();
    let mut conv = |name: String, out: usize, read: usize, side: usize| {
        let (weights, bias) = random.conv(out, read, side, 1.0);
        tensors.push(Saved::new(
            format!("{name}.weight"),
            vec![out, read, side, side],
            &weights,
        ));
        tensors.push(Saved::new(format!("{name}.bias"), vec![out], &bias));
    };
    let blocks = (1..=6).flat_map(|b| (1..=3).map(move |c| format!("block_{b}.c{c}_r")));
    let inner = blocks.chain(["conv_2".to_owned()]).map(|name| (name, 4));
    for (name, read) in inner.chain([("conv_1".to_owned(), 3)]) {
        conv(format!("{name}.sk"), 4, read, 1);
        conv(format!("{name}.conv.0"), 2 * read, read, 1);
        conv(format!("{name}.conv.1"), 8, 2 * read, 3);
        conv(format!("{name}.conv.2"), 4, 8, 1);
        conv(format!("{name}.eval_conv"), 4, read, 3);
    }
    conv("conv_cat".to_owned(), 4, 16, 1);
    conv("upsampler.0".to_owned(), 3 * scale * scale, 4, 3);
    tensors
}

#[test]
fn spans_merged_kernel_is_made_of_its_parts_and_not_taken_from_the_file() {
    let tensors = span(2);
    let model = Model::read(&legacy(&tensors, &[])).unwrap();
    assert_eq!(model.architecture, Architecture::Span);
    assert_eq!(model.network.mean, [0.4488, 0.4371, 0.4040]);
    let of = |name: &str| &tensors.iter().find(|t| t.name == name).unwrap().values;
    let part = |part: &str| of(&format!("block_1.c1_r.{part}"));
    let layer = &model.network.layers[1];
    for (o, i, tap) in (0..4 * 4 * 9).map(|n| (n / 36, n / 9 % 4, n % 9)) {
        let mut sum = 0.0;
        for (a, b) in (0..8).flat_map(|a| (0..8).map(move |b| (a, b))) {
            let chain =
                part("conv.2.weight")[o * 8 + b] * part("conv.1.weight")[(b * 8 + a) * 9 + tap];
            sum += chain * part("conv.0.weight")[a * 4 + i];
        }
        if tap == 4 {
            sum += part("sk.weight")[o * 4 + i];
        }
        let given = layer.weights[(o * 4 + i) * 9 + tap];
        assert!((given - sum).abs() < 1e-6, "{given} is not {sum}");
    }
}

#[test]
fn half_and_double_precision_and_strides_are_read() {
    let network = RRDB.network(4, 3);
    let mut tensors = saved(&network, &rrdb_names(Architecture::EsrganNew, 2));
    for (tensor, kind) in tensors
        .iter_mut()
        .zip(["Double", "BFloat16", "Half"].into_iter().cycle())
    {
        tensor.kind = kind;
        // What three mantissa bits hold, every type holds.
        tensor
            .values
            .iter_mut()
            .for_each(|value| *value = (*value * 8.0).round() / 8.0);
    }
    // Convolutions that were saved with their channels last.
    for tensor in tensors.iter_mut().filter(|tensor| tensor.shape.len() == 4) {
        tensor.channels_last = true;
    }
    let model = Model::read(&zip(&tensors, &[])).unwrap();
    for (tensor, layer) in tensors.chunks_exact(2).zip(&model.network.layers) {
        assert!(tensor[0].values == layer.weights && tensor[1].values == layer.bias);
    }
}

/// What programs write that make files for running only: the training branches are gone.
#[test]
fn span_of_merged_kernels_alone_is_the_network_of_these_kernels() {
    let mut tensors = span(4);
    let is_branch = |name: &str| name.contains(".sk.") || name.contains(".conv.");
    tensors.retain(|tensor| !is_branch(&tensor.name));
    let model = Model::read(&zip(&tensors, &[])).unwrap();
    assert_eq!(
        (model.architecture, model.network.scale()),
        (Architecture::Span, 4)
    );
    let of = |name: &str| &tensors.iter().find(|t| t.name == name).unwrap().values;
    for (layer, name) in [(1, "block_1.c1_r"), (18, "block_6.c3_r"), (19, "conv_2")] {
        let layer = &model.network.layers[layer];
        assert_eq!(&layer.weights, of(&format!("{name}.eval_conv.weight")));
        assert_eq!(&layer.bias, of(&format!("{name}.eval_conv.bias")));
    }
}

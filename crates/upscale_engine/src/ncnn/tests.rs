//! Pairs of files as ncnn's own programs write them, made here of a network: read back to that very network, in the
//! form that converters write and in the one that its optimizer makes of that; and refused one damage after another.

mod hostile;
mod writer;

use self::writer::{Form, Store, Writer};
use super::{join_ncnn, read};
use crate::architecture::Architecture;
use crate::model::Model;
use crate::network::{Layer, Network};
use crate::shapes::Shape;

pub(super) const RRDB: Shape = Shape::Rrdb {
    channels: 6,
    growth: 4,
    blocks: 2,
};
const COMPACT: Shape = Shape::Compact {
    channels: 5,
    convs: 3,
};

fn written(network: &Network, form: Form, store: Store) -> Vec<u8> {
    let (text, numbers) = Writer::write(network, form, store);
    join_ncnn(text.as_bytes(), &numbers)
}

#[track_caller]
fn assert_same(given: &Network, expected: &Network) {
    let shape = |network: &Network| {
        (
            (network.scale, network.base, network.unshuffle),
            network.mean,
            network.maps.clone(),
            network.factors.clone(),
            network.sections.clone(),
        )
    };
    assert_eq!(shape(given), shape(expected));
    let parts = |layer: &Layer| {
        let layer = layer.clone();
        (
            layer.inputs,
            layer.weights,
            layer.bias,
            layer.activation,
            layer.combine,
        )
    };
    for (index, (one, other)) in given.layers.iter().zip(&expected.layers).enumerate() {
        assert!(parts(one) == parts(other), "layer {index}");
    }
}

/// SPAN's own layers: the taps without the bicubic base, with the mean taken off the picture.
fn span(scale: usize) -> Network {
    let shape = Shape::Span {
        channels: 6,
        blocks: 3,
    };
    let mut network = shape.network(scale, 4);
    network.base = crate::network::Base::Zero;
    network.mean = [0.4488, 0.4371, 0.4040];
    network
}

#[test]
fn the_three_families_are_the_networks_they_were_made_of() {
    let mut networks = vec![(Architecture::Span, span(2)), (Architecture::Span, span(4))];
    for scale in [2, 4] {
        networks.push((Architecture::Compact, COMPACT.network(scale, 2)));
        networks.push((Architecture::Esrgan, RRDB.network(scale, 3)));
    }
    for (architecture, network) in networks {
        for form in [Form::Converted, Form::Optimized] {
            let model = Model::read(&written(&network, form, Store::F32)).unwrap();
            assert_eq!(model.architecture, architecture, "{form:?}");
            assert_eq!(model.container, "ncnn (.param and .bin)");
            assert_same(&model.network, &network);
        }
    }
}

#[test]
fn numbers_of_16_bits_are_read_with_what_fills_them_up() {
    // Channels whose count is odd: the numbers of a layer end within four bytes.
    let mut network = COMPACT.network(2, 2);
    for layer in &mut network.layers {
        // What half precision holds.
        let halves = layer.weights.iter_mut();
        halves.for_each(|w| *w = half::f16::from_f32(*w).to_f32());
    }
    let model = Model::read(&written(&network, Form::Optimized, Store::F16)).unwrap();
    assert_same(&model.network, &network);
}

/// A sum that no convolution can take in, for both of its parts are read elsewhere too: layers of its own.
#[test]
fn steps_that_no_convolution_takes_in_become_layers_of_their_own() {
    let text = "7767517\n11 14\n\
        Input in 0 1 data\n\
        Convolution a 1 1 data a 0=3 1=3 4=1 5=1 6=81\n\
        Split s 1 3 a a0 a1 a2\n\
        Convolution b 1 1 a0 b 0=3 1=3 4=1 5=1 6=81\n\
        Split t 1 2 b b0 b1\n\
        BinaryOp sum 2 1 a1 b0 sum 0=0\n\
        BinaryOp half 1 1 b1 half 0=2 1=1 2=0.5\n\
        Eltwise more 2 1 half a2 more 0=1 -23301=2,2.0,3.0\n\
        BinaryOp all 2 1 sum more all 0=1\n\
        Convolution c 1 1 all c 0=12 1=3 4=1 5=0 6=324\n\
        PixelShuffle p 1 1 c out 0=2\n";
    let mut numbers = Vec::new();
    for (count, bias) in [(81, 3), (81, 3), (324, 0)] {
        numbers.extend_from_slice(&[0; 4]);
        let values = (0..count + bias).map(|i| (i % 7) as f32 * 0.02 - 0.05);
        numbers.extend(values.flat_map(f32::to_le_bytes));
    }
    let (architecture, network) = read(&join_ncnn(text.as_bytes(), &numbers)).unwrap();
    assert_eq!(architecture, Architecture::Convolutions);
    let pixels = (0..5 * 4 * 3).map(|i| (i % 11) as f32 / 11.0).collect();
    let source = upscale_core::Pixels::new(5, 4, 3, pixels).unwrap();
    let given = crate::reference::upscale(&network, &source, &|| false);
    // sum - more = (a + b) - (2 * 0.5 * b + 3 * a) = -2 a
    let mut plain = Network::empty("plain", 2, crate::network::Base::Zero);
    let layer = |layer: &Layer| (layer.weights.clone(), layer.bias.clone());
    let none = crate::network::Activation::None;
    let a = plain.push(&[0], layer(&network.layers[0]), none.clone(), &[]);
    let (mut weights, bias) = layer(network.layers.last().unwrap());
    weights.iter_mut().for_each(|w| *w *= -2.0);
    plain.push(&[a], (weights, bias), none, &[]);
    let expected = crate::reference::upscale(&plain, &source, &|| false);
    for (given, expected) in given.iter().zip(&expected) {
        assert!((given - expected).abs() < 1e-6, "{given} {expected}");
    }
}

/// ESRGAN has a section for every residual block: what a service's memory is counted on.
#[test]
fn a_deep_network_is_cut_where_few_maps_are_read_across() {
    let shape = Shape::Rrdb {
        channels: 4,
        growth: 2,
        blocks: 6,
    };
    let network = shape.network(4, 1);
    let (_, given) = read(&written(&network, Form::Optimized, Store::F32)).unwrap();
    assert_eq!(given.sections, network.sections);
    assert_eq!(given.sections.len(), 7);
}

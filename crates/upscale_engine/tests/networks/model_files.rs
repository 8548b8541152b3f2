//! Weight files: what is read, and how a hostile one is refused.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a test's own functions may panic"
)]

use std::collections::HashMap;

use safetensors::tensor::{Dtype, TensorView, serialize};
use upscale_engine::Network;

type Tensors = Vec<(String, Vec<usize>, Vec<u8>)>;

/// The tensors of a network of 4 channels, 1 block, scale 2, all weights 0.
fn tensors() -> Tensors {
    let mut all = Tensors::new();
    let mut conv = |name: &str, shape: [usize; 4]| {
        let count: usize = shape.iter().product();
        all.push((format!("{name}.weight"), shape.to_vec(), vec![0; count * 4]));
        all.push((
            format!("{name}.bias"),
            vec![shape[0]],
            vec![0; shape[0] * 4],
        ));
    };
    conv("head", [4, 3, 3, 3]);
    for part in 1..=3 {
        conv(&format!("blocks.0.conv{part}"), [4, 4, 3, 3]);
    }
    conv("tail", [4, 4, 3, 3]);
    conv("fuse", [4, 16, 1, 1]);
    conv("up", [12, 4, 3, 3]);
    all
}

fn metadata() -> HashMap<String, String> {
    let fields = [
        ("format", "upscale-1"),
        ("arch", "residual"),
        ("activation", "relu"),
        ("channels", "4"),
        ("blocks", "1"),
        ("scale", "2"),
        ("input_scale", "1"),
        ("name", "tiny"),
    ];
    let pairs = fields.map(|(key, value)| (key.to_owned(), value.to_owned()));
    HashMap::from(pairs)
}

fn file(tensors: &Tensors, metadata: HashMap<String, String>) -> Vec<u8> {
    let views = tensors.iter().map(|(name, shape, data)| {
        let view = TensorView::new(Dtype::F32, shape.clone(), data).expect("shape fits data");
        (name.clone(), view)
    });
    serialize(views.collect::<Vec<_>>(), Some(metadata)).expect("serializes")
}

fn refusal(bytes: &[u8]) -> String {
    let error = Network::read(bytes).expect_err("must be refused");
    error.to_string()
}

#[test]
fn an_honest_file_is_read() {
    let network = Network::read(&file(&tensors(), metadata())).expect("an honest file");
    assert_eq!((network.name(), network.scale()), ("tiny", 2));
    // 3x3: 3 -> 4, four 4 -> 4, 4 -> 12; 1x1: 16 -> 4.
    assert_eq!(network.macs_per_pixel(), 9 * (12 + 4 * 16 + 48) + 64);
}

#[test]
fn every_wrong_metadata_field_is_refused_by_name() {
    for (field, value) in [
        ("format", "upscale-2"),
        ("arch", "transformer"),
        ("activation", "gelu"),
        ("channels", "0"),
        ("channels", "99999999999999999999"),
        ("blocks", "65"),
        ("scale", "3"),
        ("input_scale", "NaN"),
    ] {
        let mut fields = metadata();
        fields.insert(field.to_owned(), value.to_owned());
        let reported = refusal(&file(&tensors(), fields));
        assert!(reported.contains(field), "{field}={value}: {reported}");
    }
    let mut fields = metadata();
    fields.remove("name");
    assert!(refusal(&file(&tensors(), fields)).contains("name"));
}

#[test]
fn shapes_that_belie_the_metadata_are_refused() {
    let mut fields = metadata();
    fields.insert("channels".to_owned(), "8".to_owned());
    assert!(refusal(&file(&tensors(), fields)).contains("shape"));
    let mut fields = metadata();
    fields.insert("blocks".to_owned(), "2".to_owned());
    assert!(refusal(&file(&tensors(), fields)).contains("14 tensors"));
}

#[test]
fn a_condition_needs_its_own_four_tensors_and_a_network_with_blocks() {
    let mut fields = metadata();
    fields.insert("condition".to_owned(), "jpeg-4".to_owned());
    assert!(refusal(&file(&tensors(), fields.clone())).contains("this shape has 18"));
    let mut all = tensors();
    for (name, shape) in [("cond.0", [32, 4]), ("cond.2", [24, 32])] {
        let bytes = |count: usize| vec![0; count * 4];
        all.push((
            format!("{name}.weight"),
            shape.to_vec(),
            bytes(shape[0] * shape[1]),
        ));
        all.push((format!("{name}.bias"), vec![shape[0]], bytes(shape[0])));
    }
    Network::read(&file(&all, fields.clone())).expect("an honest file");
    assert!(refusal(&file(&all, metadata())).contains("this shape has 14"));
    all[16].1 = vec![32, 24];
    assert!(refusal(&file(&all, fields.clone())).contains("cond.2.weight has shape"));
    fields.insert("condition".to_owned(), "jpeg-5".to_owned());
    assert!(refusal(&file(&all, fields.clone())).contains("condition is"));
    fields.insert("condition".to_owned(), "source-6".to_owned());
    assert!(refusal(&file(&all, fields.clone())).contains("cond.0.weight has shape"));
    fields.insert("condition".to_owned(), "jpeg-4".to_owned());
    fields.insert("arch".to_owned(), "compact".to_owned());
    fields.insert("activation".to_owned(), "prelu".to_owned());
    assert!(refusal(&file(&all, fields)).contains("arch is"));
}

#[test]
fn a_missing_tensor_and_a_value_out_of_range_are_refused() {
    let mut renamed = tensors();
    renamed[0].0 = "heat.weight".to_owned();
    assert!(refusal(&file(&renamed, metadata())).contains("head.weight"));
    for value in [f32::NAN, f32::INFINITY, -2e6] {
        let mut poisoned = tensors();
        poisoned[2].2[..4].copy_from_slice(&value.to_le_bytes());
        assert!(refusal(&file(&poisoned, metadata())).contains("within 1e6"));
    }
}

#[test]
fn lying_headers_are_refused_before_anything_is_allocated() {
    let honest = file(&tensors(), metadata());
    for header in [u64::MAX, 1 << 40, (256 << 10) + 1] {
        let mut lying = honest.clone();
        lying[..8].copy_from_slice(&header.to_le_bytes());
        assert!(refusal(&lying).contains("header"));
    }
    for cut in (0..honest.len()).step_by(97) {
        refusal(&honest[..cut]);
    }
    assert!(refusal(&vec![0; (64 << 20) + 1]).contains("bytes, at most"));
}

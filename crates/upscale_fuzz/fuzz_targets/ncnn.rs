//! A pair of ncnn's files of anything at all: a network within the limits, or an error. The text comes first, then a byte
//! of zero, then the numbers: a fuzzer finds its way in a text, and would lose it behind a length. Seeds: the pairs of
//! `crates/upscale_engine/tests/ncnn`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use upscale_engine::{Model, join_ncnn};

fuzz_target!(|bytes: &[u8]| {
    let end = bytes.iter().position(|&byte| byte == 0);
    let (text, numbers) = bytes.split_at(end.unwrap_or(bytes.len()));
    let numbers = numbers.get(1..).unwrap_or_default();
    let Ok(model) = Model::read(&join_ncnn(text, numbers)) else {
        return;
    };
    assert!([1, 2, 4].contains(&model.network.scale()));
    assert!(model.network.parameters() > 0);
});

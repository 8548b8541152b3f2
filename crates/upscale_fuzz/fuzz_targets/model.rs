//! A whole model file of anything at all: a network within the limits, or an error. Seeds: files that
//! `training/tests/torch_files.py` writes, zip archives without CRC-32 (`torch.serialization.set_crc32_options(False)`):
//! a fuzzer changes bytes and not their sums, and would get no further.

#![no_main]

use libfuzzer_sys::fuzz_target;
use upscale_engine::Model;

fuzz_target!(|bytes: &[u8]| {
    let Ok(model) = Model::read(bytes) else {
        return;
    };
    assert!([1, 2, 4].contains(&model.network.scale()));
    assert!(model.network.parameters() > 0);
});

//! A whole file of anything at all: a picture of the announced size with samples in `[0, 1]`, or an error.

#![no_main]

use libfuzzer_sys::fuzz_target;

/// Small, so that the fuzzer spends its time on structure and not on pixels.
const PIXELS_MAX: u64 = 65_536;

fuzz_target!(|bytes: &[u8]| {
    let Ok(source) = upscale_image::decode(bytes, PIXELS_MAX) else {
        return;
    };
    let pixels = source.color.width() as u64 * source.color.height() as u64;
    assert!(pixels > 0 && pixels <= PIXELS_MAX);
    for plane in [Some(&source.color), source.alpha.as_ref()]
        .into_iter()
        .flatten()
    {
        assert!(
            plane
                .samples()
                .iter()
                .all(|sample| (0.0..=1.0).contains(sample))
        );
    }
});

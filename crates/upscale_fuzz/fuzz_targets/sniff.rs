//! Magic bytes and headers of anything at all: an answer, never a panic, and both agree on the format.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let format = upscale_image::sniff(bytes);
    if let Ok(header) = upscale_image::read_header(bytes) {
        assert_eq!(format, Ok(header.format));
        assert!(header.width > 0 && header.height > 0);
    }
});

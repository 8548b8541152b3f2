//! What a parent can know of a PNG without decoding it: signature, header, the chain of chunks to its last
//! byte. Chunk layout and header fields: PNG specification (third edition), sections 5.2, 5.3 and 11.2.1.

use upscale_core::limits::THUMBNAIL_SIDE_MAX;

use crate::frame::{Facts, Job};

const SIGNATURE: [u8; 8] = *b"\x89PNG\r\n\x1a\n";
/// Length, type and checksum of a chunk, without its data.
const CHUNK_FRAME_BYTES: usize = 12;
const HEADER_BYTES: usize = 13;

/// Whether the bytes are one whole PNG of the size that the child reported and the order allows.
///
/// # Errors
/// What is wrong, in words for the logs.
pub(crate) fn check_png(png: &[u8], facts: &Facts, job: &Job) -> Result<(), String> {
    check_facts(facts, job)?;
    let chunks = png
        .strip_prefix(&SIGNATURE)
        .ok_or("the result does not begin as a PNG")?;
    let (header, rest) = next_chunk(chunks)?;
    check_header(&header, facts)?;
    check_chain(rest)
}

/// Whether the bytes are one whole PNG of a thumbnail's size; that there is none is right as well.
///
/// # Errors
/// What is wrong, in words for the logs.
pub(crate) fn check_thumbnail(png: &[u8]) -> Result<(), String> {
    if png.is_empty() {
        return Ok(());
    }
    let chunks = png
        .strip_prefix(&SIGNATURE)
        .ok_or("the thumbnail does not begin as a PNG")?;
    let (header, rest) = next_chunk(chunks)?;
    let side = |at: usize| {
        let bytes = header.data.get(at..at + 4)?.try_into().ok()?;
        Some(u32::from_be_bytes(bytes))
    };
    let is_small = |at| side(at).is_some_and(|side| (1..=THUMBNAIL_SIDE_MAX).contains(&side));
    if header.kind != *b"IHDR" || header.data.len() != HEADER_BYTES || !is_small(0) || !is_small(4)
    {
        return Err(format!("the thumbnail's header is {:02x?}", header.data));
    }
    check_chain(rest)
}

fn check_facts(facts: &Facts, job: &Job) -> Result<(), String> {
    let pixels = u64::from(facts.source_width) * u64::from(facts.source_height);
    if pixels == 0 || pixels > job.source_pixels_max {
        return Err(format!(
            "the source is said to be {} x {}, at most {} pixels were ordered",
            facts.source_width, facts.source_height, job.source_pixels_max
        ));
    }
    let factor = job.parameters.scale.factor() as u64;
    let scaled = [facts.source_width, facts.source_height].map(|side| u64::from(side) * factor);
    if scaled != [u64::from(facts.width), u64::from(facts.height)] {
        return Err(format!(
            "the result is said to be {} x {}, not {} x {}",
            facts.width, facts.height, scaled[0], scaled[1]
        ));
    }
    if facts.focus_permille.iter().any(|part| *part > 1_000) {
        return Err(format!(
            "the focus is said to be {:?}",
            facts.focus_permille
        ));
    }
    Ok(())
}

fn check_header(header: &Chunk<'_>, facts: &Facts) -> Result<(), String> {
    if header.kind != *b"IHDR" || header.data.len() != HEADER_BYTES {
        return Err("the result has no header".to_owned());
    }
    let (sides, rest) = header.data.split_at(8);
    let stated = [facts.width.to_be_bytes(), facts.height.to_be_bytes()].concat();
    if sides != stated {
        return Err(format!(
            "the result's header says {sides:02x?}, the child said {} x {}",
            facts.width, facts.height
        ));
    }
    // Depth and colour type as the specification pairs them; deflate, adaptive filters, not interlaced.
    match rest {
        [1 | 2 | 4 | 8 | 16, 0, 0, 0, 0]
        | [1 | 2 | 4 | 8, 3, 0, 0, 0]
        | [8 | 16, 2 | 4 | 6, 0, 0, 0] => Ok(()),
        _ => Err(format!("the result's header ends in {rest:02x?}")),
    }
}

/// Image data is there, and the end is the end.
fn check_chain(mut rest: &[u8]) -> Result<(), String> {
    let mut has_data = false;
    loop {
        let (chunk, after) = next_chunk(rest)?;
        match &chunk.kind {
            b"IEND" if !chunk.data.is_empty() || !after.is_empty() => {
                return Err(format!("{} bytes follow the result's end", after.len()));
            }
            b"IEND" if has_data => return Ok(()),
            b"IEND" => return Err("the result has no image data".to_owned()),
            b"IHDR" => return Err("the result has a second header".to_owned()),
            b"IDAT" => has_data |= !chunk.data.is_empty(),
            _ => {}
        }
        rest = after;
    }
}

struct Chunk<'a> {
    kind: [u8; 4],
    data: &'a [u8],
}

fn next_chunk(bytes: &[u8]) -> Result<(Chunk<'_>, &[u8]), String> {
    let cut_off = || format!("the result breaks off {} bytes into a chunk", bytes.len());
    let (&length, rest) = bytes.split_first_chunk::<4>().ok_or_else(cut_off)?;
    let (&kind, rest) = rest.split_first_chunk::<4>().ok_or_else(cut_off)?;
    let length = u32::from_be_bytes(length) as usize;
    if rest.len() < length || bytes.len() - length < CHUNK_FRAME_BYTES {
        return Err(cut_off());
    }
    let (data, checksum_and_after) = rest.split_at(length);
    Ok((Chunk { kind, data }, &checksum_and_after[4..]))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;
    use upscale_core::{Look, Parameters, Scale};

    use super::*;
    use upscale_image::Format;

    use crate::frame::{DeviceUse, Spent};

    const JOB: Job = Job {
        parameters: Parameters::at(Scale::X2),
        look: Look::Faithful,
        threads: 1,
        source_pixels_max: 1_500_000,
        result_bytes_max: 1 << 20,
        memory_bytes_max: 0,
        required: crate::sandbox::Parts::NONE,
        cpu_seconds_max: 0,
    };
    const FACTS: Facts = Facts {
        source_width: 3,
        source_height: 5,
        width: 6,
        height: 10,
        source_format: Format::Jpeg,
        by_brought_model: false,
        by_reference: false,
        device: DeviceUse::None,
        focus_permille: [500; 2],
        spent: Spent {
            decode: Duration::ZERO,
            network: Duration::ZERO,
            check: Duration::ZERO,
            encode: Duration::ZERO,
        },
        memory_bytes: 0,
    };
    const RGB8: [u8; 5] = [8, 2, 0, 0, 0];

    fn chunk(kind: &[u8; 4], data: &[u8]) -> Vec<u8> {
        let length = (data.len() as u32).to_be_bytes();
        [&length, kind.as_slice(), data, &[0; 4]].concat()
    }

    fn header(width: u32, height: u32, rest: [u8; 5]) -> Vec<u8> {
        let data = [&width.to_be_bytes(), &height.to_be_bytes(), rest.as_slice()].concat();
        chunk(b"IHDR", &data)
    }

    fn png(chunks: &[Vec<u8>]) -> Vec<u8> {
        [SIGNATURE.to_vec(), chunks.concat()].concat()
    }

    fn sound() -> Vec<u8> {
        png(&[
            header(6, 10, RGB8),
            chunk(b"sRGB", &[0]),
            chunk(b"IDAT", b"data"),
            chunk(b"IEND", b""),
        ])
    }

    #[test]
    fn a_whole_png_of_the_right_size_passes() {
        assert_eq!(check_png(&sound(), &FACTS, &JOB), Ok(()));
    }

    #[test]
    fn a_png_cut_or_extended_anywhere_does_not() {
        let whole = sound();
        for end in 0..whole.len() {
            assert!(check_png(&whole[..end], &FACTS, &JOB).is_err(), "{end}");
        }
        let longer = [whole, vec![0]].concat();
        assert!(check_png(&longer, &FACTS, &JOB).is_err());
    }

    #[test]
    fn a_header_that_says_something_else_does_not_pass() {
        let end = [chunk(b"IDAT", b"data"), chunk(b"IEND", b"")].concat();
        for (width, height, rest) in [
            (6, 11, RGB8),
            (10, 6, RGB8),
            (0, 0, RGB8),
            (6, 10, [3, 2, 0, 0, 0]),
            (6, 10, [4, 2, 0, 0, 0]),
            (6, 10, [16, 3, 0, 0, 0]),
            (6, 10, [8, 5, 0, 0, 0]),
            (6, 10, [8, 2, 1, 0, 0]),
            (6, 10, [8, 2, 0, 1, 0]),
            (6, 10, [8, 2, 0, 0, 1]),
        ] {
            let bytes = png(&[header(width, height, rest), end.clone()]);
            assert!(check_png(&bytes, &FACTS, &JOB).is_err(), "{rest:?}");
        }
    }

    #[test]
    fn a_chain_without_data_with_two_heads_or_with_a_full_end_does_not_pass() {
        let (head, data, end) = (
            header(6, 10, RGB8),
            chunk(b"IDAT", b"data"),
            chunk(b"IEND", b""),
        );
        for chunks in [
            vec![head.clone(), end.clone()],
            vec![head.clone(), chunk(b"IDAT", b""), end.clone()],
            vec![head.clone(), head.clone(), data.clone(), end.clone()],
            vec![data.clone(), head.clone(), end.clone()],
            vec![head.clone(), data.clone(), chunk(b"IEND", b"x")],
            vec![head, data, end.clone(), end],
        ] {
            assert!(check_png(&png(&chunks), &FACTS, &JOB).is_err());
        }
    }

    #[test]
    fn facts_that_the_order_does_not_allow_do_not_pass() {
        let too_many = Facts {
            source_width: 1_500_001,
            source_height: 1,
            width: 3_000_002,
            height: 2,
            ..FACTS
        };
        let no_rows = Facts {
            source_height: 0,
            height: 0,
            ..FACTS
        };
        let not_twice = Facts { width: 12, ..FACTS };
        for facts in [too_many, no_rows, not_twice] {
            assert!(check_png(&sound(), &facts, &JOB).is_err(), "{facts:?}");
        }
    }

    proptest! {
        #[test]
        fn garbage_is_refused(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            prop_assert!(check_png(&bytes, &FACTS, &JOB).is_err());
            let started = png(&[header(6, 10, RGB8), bytes]);
            // Twelve zero bytes and the like make chunks, but none of them is an end.
            prop_assert!(check_png(&started, &FACTS, &JOB).is_err());
        }
    }

    #[test]
    fn a_thumbnail_is_small_and_whole_or_absent() {
        let of = |width, height| {
            png(&[
                header(width, height, RGB8),
                chunk(b"IDAT", b"data"),
                chunk(b"IEND", b""),
            ])
        };
        assert_eq!(check_thumbnail(b""), Ok(()));
        assert_eq!(check_thumbnail(&of(160, 1)), Ok(()));
        for wrong in [of(161, 1), of(1, 161), of(0, 1)] {
            assert!(check_thumbnail(&wrong).is_err());
        }
        let whole = of(20, 20);
        for end in 1..whole.len() {
            assert!(check_thumbnail(&whole[..end]).is_err(), "{end} bytes");
        }
        let lost = Facts {
            focus_permille: [1_001, 0],
            ..FACTS
        };
        assert!(check_png(&sound(), &lost, &JOB).is_err());
    }
}

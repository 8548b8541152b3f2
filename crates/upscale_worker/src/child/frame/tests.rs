//! What the frames promise: exact round trips, and nothing but an error for anything else.

use proptest::prelude::*;

use super::*;

const RESULT_BYTES_MAX: u64 = 4 * 1024 * 1024;

fn order() -> Order {
    Order {
        parameters: Parameters {
            face_enhance: true,
            ..Parameters::at(Scale::X4)
        },
        threads: 3,
        source_pixels_max: 750_000,
        result_bytes_max: RESULT_BYTES_MAX,
        memory_bytes_max: 1 << 30,
        cpu_seconds_max: 100,
    }
}

fn facts() -> Facts {
    Facts {
        source_width: 3,
        source_height: 5,
        width: 6,
        height: 10,
        source_format: SourceFormat::WebP,
        by_reference: true,
        spent: Spent {
            decode_micros: 1,
            network_micros: 2,
            check_micros: 3,
            encode_micros: u32::MAX,
            memory_bytes: 5 << 40,
        },
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread();
    { runtime }.build().unwrap().block_on(future)
}

fn written(order: &Order, source: &[u8]) -> Vec<u8> {
    let mut bytes = io::Cursor::new(Vec::new());
    block_on(write_order(&mut bytes, order, source)).unwrap();
    bytes.into_inner()
}

fn read(mut bytes: &[u8]) -> (io::Result<Answer>, u16, usize) {
    let mut progress = 0;
    let answer = block_on(read_answer(&mut bytes, RESULT_BYTES_MAX, &mut progress));
    (answer, progress, bytes.len())
}

#[test]
fn an_order_arrives_as_it_was_given() {
    let bytes = written(&order(), b"source");
    let (given, source) = read_order(&mut bytes.as_slice()).unwrap();
    assert_eq!((given, source.as_slice()), (order(), b"source".as_slice()));
}

#[test]
fn an_order_cut_anywhere_is_no_order() {
    let bytes = written(&order(), b"source");
    for end in 0..bytes.len() {
        let error = read_order(&mut &bytes[..end]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{end} bytes");
    }
}

#[test]
fn an_order_of_more_than_twenty_mebibytes_or_without_threads_is_refused() {
    let too_long = order().to_bytes(SOURCE_BYTES_MAX as u32 + 1);
    let error = read_order(&mut too_long.as_slice()).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    let no_threads = Order {
        threads: 0,
        ..order()
    };
    assert!(read_order(&mut no_threads.to_bytes(0).as_slice()).is_err());
}

#[test]
fn progress_then_a_result_arrive_as_they_were_sent() {
    let png = vec![7; 2 * PIECE_BYTES as usize + 5];
    let answer = Answer::Done {
        facts: facts(),
        png,
    };
    let mut bytes = Vec::new();
    write_progress(&mut bytes, 10).unwrap();
    write_progress(&mut bytes, 65_535).unwrap();
    write_answer(&mut bytes, &answer).unwrap();
    bytes.extend_from_slice(b"rest");
    let (read, progress, left) = read(&bytes);
    assert_eq!(
        (read.unwrap(), progress, left),
        (answer, 1_000, b"rest".len())
    );
}

#[test]
fn messages_are_cut_at_a_character_and_cannot_forge_a_line() {
    let mut bytes = Vec::new();
    let long = format!("a\nb{}", "é".repeat(600));
    write_answer(&mut bytes, &Answer::Refused(long)).unwrap();
    let (answer, ..) = read(&bytes);
    let Answer::Refused(message) = answer.unwrap() else {
        panic!("not a refusal");
    };
    assert!(message.starts_with("a b") && message.len() <= MESSAGE_BYTES_MAX);
    assert!(message.ends_with('é'));
}

#[test]
fn lengths_that_cannot_be_are_refused_before_a_byte_is_read_for_them() {
    for (kind, length) in [
        (DONE, FACTS_BYTES as u32 - 1),
        (DONE, FACTS_BYTES as u32 + RESULT_BYTES_MAX as u32 + 1),
        (DONE, u32::MAX),
        (REFUSED, MESSAGE_BYTES_MAX as u32 + 1),
        (BROKE, u32::MAX),
        (PROGRESS, 0),
        (PROGRESS, 3),
        (0, 0),
        (UNFAITHFUL, MESSAGE_BYTES_MAX as u32 + 1),
        (6, 0),
    ] {
        let (answer, ..) = read(&head(kind, length));
        let error = answer.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{kind} {length}");
    }
}

#[test]
fn progress_without_end_is_cut_off() {
    let mut bytes = Vec::new();
    for _ in 0..=PROGRESS_FRAMES_MAX {
        write_progress(&mut bytes, 1).unwrap();
    }
    write_answer(&mut bytes, &Answer::Broke(String::new())).unwrap();
    assert!(read(&bytes).0.is_err());
}

proptest! {
    #[test]
    fn garbage_is_never_more_than_garbage(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        drop(read_order(&mut bytes.as_slice()));
        let (_, progress, _) = read(&bytes);
        prop_assert!(progress <= 1_000);
    }

    /// Any bytes behind a sound head: the parser reads what the head says or fails, and never hangs.
    #[test]
    fn a_frame_is_read_to_its_end_or_not_at_all(
        kind in 0_u8..7,
        length in prop_oneof![0_u32..64, any::<u32>()],
        payload in prop::collection::vec(any::<u8>(), 0..64),
    ) {
        let mut bytes = head(kind, length).to_vec();
        bytes.extend_from_slice(&payload);
        let (answer, _, left) = read(&bytes);
        if answer.is_ok() {
            prop_assert_eq!(left, payload.len() - length as usize);
        }
    }

    #[test]
    fn an_answer_cut_anywhere_is_no_answer(
        png in prop::collection::vec(any::<u8>(), 0..64),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = Vec::new();
        write_answer(&mut bytes, &Answer::Done { facts: facts(), png }).unwrap();
        let (answer, ..) = read(&bytes[..cut.index(bytes.len())]);
        prop_assert_eq!(answer.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn one_flipped_byte_never_makes_an_order_that_breaks_its_rules(
        at in 0..ORDER_BYTES,
        with in 1_u8..,
    ) {
        let mut bytes = written(&order(), b"source");
        bytes[at] ^= with;
        if let Ok((given, source)) = read_order(&mut bytes.as_slice()) {
            prop_assert!(given.threads > 0 && source.len() <= 6);
        }
    }
}

//! What the frames promise: exact round trips, and nothing but an error for anything else.

use proptest::prelude::*;
use upscale_core::Scale;

use super::*;

const RESULT_BYTES_MAX: u64 = 4 * 1024 * 1024;

fn job() -> Job {
    Job {
        parameters: Parameters {
            face_enhance: true,
            ..Parameters::at(Scale::X4)
        },
        look: Look::Natural,
        threads: 3,
        source_pixels_max: 750_000,
        result_bytes_max: RESULT_BYTES_MAX,
        memory_bytes_max: 1 << 30,
        cpu_seconds_max: 100,
        required: Parts::REQUIRED,
    }
}

fn facts() -> Facts {
    Facts {
        source_width: 3,
        source_height: 5,
        width: 6,
        height: 10,
        source_format: Format::WebP,
        by_brought_model: true,
        by_reference: true,
        device: DeviceUse::Failed,
        focus_permille: [1, 1_000],
        spent: Spent {
            decode: Duration::from_nanos(1),
            network: Duration::from_secs(2),
            check: Duration::ZERO,
            encode: Duration::MAX,
        },
        memory_bytes: 5 << 40,
    }
}

/// As a child does: the job, then the source.
fn read_all(mut bytes: &[u8]) -> io::Result<(Job, Vec<u8>)> {
    let (job, source_bytes) = read_job(&mut bytes)?;
    Ok((job, read_source(&mut bytes, source_bytes)?))
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread();
    { runtime }.build().unwrap().block_on(future)
}

fn written(job: &Job, source: &[u8]) -> Vec<u8> {
    let mut bytes = io::Cursor::new(Vec::new());
    block_on(write_job(&mut bytes, job, source)).unwrap();
    bytes.into_inner()
}

/// A job that promises a source of so many bytes.
fn promising(job: Job, source_bytes: u32) -> Vec<u8> {
    let frame = to_frame(&Head { job, source_bytes }).unwrap();
    [MAGIC.as_slice(), &frame].concat()
}

fn read(mut bytes: &[u8]) -> (io::Result<Answer>, u16, usize) {
    let mut progress = 0;
    let answer = block_on(read_answer(&mut bytes, RESULT_BYTES_MAX, &mut progress));
    (answer, progress, bytes.len())
}

#[test]
fn a_job_arrives_as_it_was_given() {
    for scale in Scale::ALL {
        let given = Job {
            parameters: Parameters::at(scale),
            ..job()
        };
        let bytes = written(&given, b"source");
        let (arrived, source) = read_all(&bytes).unwrap();
        assert_eq!((arrived, source.as_slice()), (given, b"source".as_slice()));
    }
}

#[test]
fn a_job_cut_anywhere_is_no_job() {
    let bytes = written(&job(), b"source");
    for end in 0..bytes.len() {
        let error = read_all(&bytes[..end]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{end} bytes");
    }
}

#[test]
fn a_job_of_another_version_is_refused_before_it_is_read() {
    let mut bytes = written(&job(), b"source");
    bytes[3] = 2;
    let error = read_all(&bytes).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
}

#[test]
fn a_job_of_more_than_twenty_mebibytes_or_without_threads_is_refused() {
    let too_long = promising(job(), SOURCE_BYTES_MAX as u32 + 1);
    let error = read_all(&too_long).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    let no_threads = Job {
        threads: 0,
        ..job()
    };
    assert!(read_all(&promising(no_threads, 0)).is_err());
}

#[test]
fn every_format_and_progress_then_a_result_arrive_as_they_were_sent() {
    for source_format in [Format::Jpeg, Format::Png, Format::WebP] {
        let facts = Facts {
            source_format,
            ..facts()
        };
        let png = vec![7; 2 * PIECE_BYTES as usize + 5];
        let answer = Answer::Done {
            facts,
            png,
            thumbnail: vec![9; 70],
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
    let long = "a".repeat(MESSAGE_BYTES_MAX + 1);
    let reports = [
        Report::Done(facts(), RESULT_BYTES_MAX + 1, 0),
        Report::Done(facts(), u64::MAX, 0),
        Report::Done(facts(), 1, THUMBNAIL_BYTES_MAX + 1),
        Report::Refused(long.clone()),
        Report::Broke(long.clone()),
        Report::Unfaithful(long),
    ];
    let frames = reports.map(|report| to_frame(&report).unwrap());
    let longer = [&[3_u8, 0, 0, 0][..], &[0, 1, 9]].concat();
    let lengths = [0, FRAME_BYTES_MAX as u32 + 1, u32::MAX].map(|n| n.to_le_bytes().to_vec());
    for bytes in frames.into_iter().chain(lengths).chain([longer]) {
        let (answer, ..) = read(&bytes);
        let error = answer.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{bytes:?}");
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
        drop(read_all(&bytes));
        let (_, progress, _) = read(&bytes);
        prop_assert!(progress <= 1_000);
    }

    /// Any bytes behind a sound length: the parser reads what the head says or fails, and never hangs.
    #[test]
    fn a_frame_is_read_to_its_end_or_not_at_all(
        kind in 0_u8..6,
        length in prop_oneof![0_u32..64, any::<u32>()],
        payload in prop::collection::vec(any::<u8>(), 0..64),
    ) {
        let mut bytes = length.to_le_bytes().to_vec();
        bytes.push(kind);
        bytes.extend_from_slice(&payload);
        let (answer, _, left) = read(&bytes);
        if let Ok(Answer::Refused(_) | Answer::Broke(_) | Answer::Unfaithful(_)) = answer {
            prop_assert_eq!(left, payload.len() + 1 - length as usize);
        }
    }

    #[test]
    fn an_answer_cut_anywhere_is_no_answer(
        png in prop::collection::vec(any::<u8>(), 0..64),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = Vec::new();
        let answer = Answer::Done {
            facts: facts(),
            png,
            thumbnail: vec![9; 3],
        };
        write_answer(&mut bytes, &answer).unwrap();
        let (answer, ..) = read(&bytes[..cut.index(bytes.len())]);
        prop_assert_eq!(answer.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn one_flipped_byte_never_makes_a_job_that_breaks_its_rules(
        at in any::<prop::sample::Index>(),
        with in 1_u8..,
    ) {
        let mut bytes = written(&job(), b"source");
        let end = bytes.len() - b"source".len();
        bytes[at.index(end)] ^= with;
        if let Ok((given, source)) = read_all(&bytes) {
            prop_assert!(given.threads > 0 && source.len() <= 6);
        }
    }
}

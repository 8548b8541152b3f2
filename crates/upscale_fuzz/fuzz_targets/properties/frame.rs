//! What the child's frames promise for any bytes at all; the fuzz target `frame` and a bounded run in the worker's tests
//! hold them to it.

use std::{
    pin::pin,
    task::{Context, Poll, Waker},
};

use upscale_pipeline::{Answer, read_answer, read_job, read_source, write_answer};

/// Small, so that a promise of more is met often.
const RESULT_BYTES_MAX: u64 = 4_096;
/// The contract's cap of a source.
const SOURCE_BYTES_MAX: usize = 20 * 1024 * 1024;

/// Both directions of the same bytes.
pub(crate) fn check(bytes: &[u8]) {
    check_answer(bytes);
    check_job(bytes);
}

fn check_answer(bytes: &[u8]) {
    let (answer, progress) = read(bytes);
    assert!(progress <= 1_000);
    match answer {
        Some(Answer::Done {
            facts,
            png,
            thumbnail,
        }) => {
            assert!(png.len() as u64 <= RESULT_BYTES_MAX);
            assert!(thumbnail.len() <= upscale_core::limits::THUMBNAIL_BYTES_MAX as usize);
            let mut again = Vec::new();
            let answer = Answer::Done {
                facts,
                png,
                thumbnail,
            };
            assert!(write_answer(&mut again, &answer).is_ok());
            assert_eq!(read(&again).0, Some(answer));
        }
        Some(Answer::Refused(message) | Answer::Broke(message) | Answer::Unfaithful(message)) => {
            assert!(!message.contains(char::is_control), "a line can be forged");
            assert!(message.len() <= 1_024);
        }
        None => {}
    }
}

/// A slice is always ready, so one poll is the whole reading: waiting would be a hang.
fn read(mut bytes: &[u8]) -> (Option<Answer>, u16) {
    let mut progress = 0;
    let polled = {
        let reading = pin!(read_answer(&mut bytes, RESULT_BYTES_MAX, &mut progress));
        reading.poll(&mut Context::from_waker(Waker::noop()))
    };
    let Poll::Ready(answer) = polled else {
        panic!("the parser waits for more than there is");
    };
    (answer.ok(), progress)
}

fn check_job(mut bytes: &[u8]) {
    if let Ok((job, source_bytes)) = read_job(&mut bytes) {
        assert!(job.threads > 0);
        assert!(source_bytes as usize <= SOURCE_BYTES_MAX);
        if let Ok(source) = read_source(&mut bytes, source_bytes) {
            assert_eq!(source.len(), source_bytes as usize);
        }
    }
}

//! How many lines a second the log gets of refusals. A flood of them would fill the disk and hide what else happens, and
//! the hundredth line of a kind says nothing that the first did not: a count of those left out says how many there were.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

const SECOND: Duration = Duration::from_secs(1);

/// Lines of one kind within one second, and how many more there would have been.
struct Written {
    since: Instant,
    lines: u32,
    left_out: u64,
}

/// Samples the lines of one listener or of one process' requests.
pub(crate) struct RefusalLog {
    lines_per_second: u32,
    /// By kind: error codes and a few fixed words, so never more than some fifty.
    kinds: Mutex<HashMap<&'static str, Written>>,
}

impl RefusalLog {
    pub(crate) fn new(lines_per_second: u32) -> Self {
        Self {
            lines_per_second,
            kinds: Mutex::default(),
        }
    }

    /// Whether a line of this kind is to be written now. The count of those that were not follows within a second.
    pub(crate) fn may_write(self: &Arc<Self>, kind: &'static str) -> bool {
        let is_first_left_out = {
            let mut kinds = self.lock();
            let now = Instant::now();
            let written = kinds.entry(kind).or_insert(Written {
                since: now,
                lines: 0,
                left_out: 0,
            });
            if now.duration_since(written.since) >= SECOND {
                tell(kind, written.left_out);
                *written = Written {
                    since: now,
                    lines: 0,
                    left_out: 0,
                };
            }
            if written.lines < self.lines_per_second {
                written.lines += 1;
                return true;
            }
            written.left_out += 1;
            written.left_out == 1
        };
        if is_first_left_out {
            self.tell_later(kind);
        }
        false
    }

    /// Without a runtime the next line of the kind tells.
    fn tell_later(self: &Arc<Self>, kind: &'static str) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let log = Arc::clone(self);
        runtime.spawn(async move {
            tokio::time::sleep(SECOND).await;
            let mut kinds = log.lock();
            if let Some(written) = kinds.get_mut(kind) {
                tell(kind, std::mem::take(&mut written.left_out));
            }
        });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<&'static str, Written>> {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn tell(kind: &'static str, left_out: u64) {
    if left_out > 0 {
        tracing::warn!(kind, left_out, "refusals left out of the log");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access_log::tests::{Written, subscriber};

    #[test]
    fn each_kind_has_its_lines_and_the_rest_is_counted() {
        let log = Arc::new(RefusalLog::new(3));
        let written = |kind| (0..1_000).filter(|_| log.may_write(kind)).count();
        assert_eq!((written("one"), written("other")), (3, 3));
        assert_eq!(log.lock()["one"].left_out, 997);
        let a_second_ago = Instant::now().checked_sub(SECOND).unwrap();
        log.lock()
            .values_mut()
            .for_each(|kind| kind.since = a_second_ago);
        assert!(log.may_write("one"));
        let kinds = log.lock();
        assert_eq!((kinds["one"].lines, kinds["one"].left_out), (1, 0));
    }

    #[tokio::test]
    async fn how_many_were_left_out_is_told_within_a_second_or_so() {
        let written = Written::default();
        let _here = tracing::subscriber::set_default(subscriber(&written));
        let log = Arc::new(RefusalLog::new(3));
        assert_eq!((0..100).filter(|_| log.may_write("flood")).count(), 3);
        let text = loop {
            tokio::time::sleep(SECOND / 10).await;
            let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
            if !text.is_empty() {
                break text;
            }
        };
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.contains(r#""kind":"flood","left_out":97"#), "{text}");
    }
}

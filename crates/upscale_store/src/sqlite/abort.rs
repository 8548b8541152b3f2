//! What a panic of one of the store's threads comes to. Without it every later request would be answered 503 forever, by a
//! process that looks alive.

use std::{process, thread};

/// Held by a thread for as long as it runs: when the thread panics, the process ends at once, for its supervisor to start it
/// anew. What was committed is on the disk, and callers whose answer is lost ask again under their keys.
pub(super) struct AbortOnPanic;

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        if thread::panicking() {
            tracing::error!(
                "a thread of the database panicked: the process ends, to be started anew"
            );
            process::abort();
        }
    }
}

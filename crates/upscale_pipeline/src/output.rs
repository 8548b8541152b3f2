//! What a process that we started says on standard error: the first of it is kept, the rest read and dropped, so that a
//! babbler is never stopped by a full pipe.

use tokio::{io::AsyncReadExt, process::ChildStderr};

/// The first lines say why a process ended.
const BYTES_MAX: usize = 8 * 1024;

/// A process' standard error and what came of it so far.
#[derive(Debug)]
pub(crate) struct Output {
    stderr: Option<ChildStderr>,
    bytes: Vec<u8>,
}

impl Output {
    pub(crate) fn new(stderr: Option<ChildStderr>) -> Self {
        Self {
            stderr,
            bytes: Vec::new(),
        }
    }

    /// Reads to the end.
    pub(crate) async fn capture(&mut self) {
        let Some(stderr) = &mut self.stderr else {
            return;
        };
        let mut piece = [0; 4_096];
        while let Ok(length @ 1..) = stderr.read(&mut piece).await {
            let room = BYTES_MAX.saturating_sub(self.bytes.len());
            self.bytes.extend_from_slice(&piece[..length.min(room)]);
        }
    }

    /// Reads, and never ends: what is waited for beside it does.
    pub(crate) async fn listen<T>(&mut self) -> T {
        self.capture().await;
        std::future::pending().await
    }

    /// Untrusted: to be shown escaped.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

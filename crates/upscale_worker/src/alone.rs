//! Children side by side, and one alone: one that the kernel killed when memory was out is tried once more with no other
//! beside it. Its picture is not blamed for what the sum of all took. A picture whose attempts ended with their process
//! again and again runs alone from the start: should it be the cause, no other is interrupted with it.

use tokio::sync::RwLock;
use upscale_pipeline::{CheckedResult, ChildEnd, ChildOptions, Job};

/// All children of one worker.
#[derive(Debug)]
pub(crate) struct Company {
    pub(crate) child: ChildOptions,
    /// Read by anyone who runs a child beside others, written by anyone who runs one alone. Fair: who waits to be alone is not
    /// overtaken.
    beside: RwLock<()>,
}

impl Company {
    pub(crate) fn new(child: ChildOptions) -> Self {
        Self {
            child,
            beside: RwLock::new(()),
        }
    }

    /// Runs one child to its end, beside others where `beside` says so, and a second one alone after one that another
    /// process killed.
    ///
    /// # Errors
    /// [`ChildEnd`]; killed means killed while it was alone.
    pub(crate) async fn upscale(
        &self,
        job: &Job,
        source: &[u8],
        beside: bool,
    ) -> Result<CheckedResult, ChildEnd> {
        if beside {
            let ended = {
                let _beside = self.beside.read().await;
                self.child.upscale(job, source).await
            };
            let Err(ChildEnd::Killed(_)) = ended else {
                return ended;
            };
            tracing::warn!(
                "a child was killed, as when memory is out: its image is tried again alone"
            );
        }
        let _alone = self.beside.write().await;
        self.child.upscale(job, source).await
    }
}

//! Places at the processor. A turn holds one while it works; a source that dribbles must not hold it, or a handful of
//! slow hosts would keep everybody's images waiting and let the measured pace say that the machine is slow.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::Instant,
};

/// All slots of one worker.
#[derive(Debug)]
pub(crate) struct Slots(Arc<Semaphore>);

impl Slots {
    pub(crate) fn new(count: u32) -> Self {
        Self(Arc::new(Semaphore::new(count.max(1) as usize)))
    }

    /// Resolves when one is free; somebody else may be faster to take it.
    pub(crate) async fn one_free(&self) {
        // Nobody closes the semaphore, so there is always a permit.
        let _permit = self.0.acquire().await;
    }

    /// Those that are free now, at most so many.
    pub(crate) fn take_free(&self, most: usize) -> Vec<Slot> {
        let free = (0..most).map_while(|_| Arc::clone(&self.0).try_acquire_owned().ok());
        free.map(|permit| Slot::new(&self.0, Some(permit)))
            .collect()
    }

    /// Waits for one, first come first served.
    pub(crate) async fn take(&self) -> Slot {
        let mut slot = Slot::new(&self.0, None);
        slot.take().await;
        slot
    }
}

/// One turn's slot, held or lent back.
#[derive(Debug)]
pub(crate) struct Slot {
    all: Arc<Semaphore>,
    permit: Option<OwnedSemaphorePermit>,
    since: Instant,
    held_before: Duration,
}

impl Slot {
    fn new(all: &Arc<Semaphore>, permit: Option<OwnedSemaphorePermit>) -> Self {
        Self {
            all: Arc::clone(all),
            permit,
            since: Instant::now(),
            held_before: Duration::ZERO,
        }
    }

    /// Waits until it is held.
    pub(crate) async fn take(&mut self) {
        if self.permit.is_none() {
            self.permit = Arc::clone(&self.all).acquire_owned().await.ok();
            self.since = Instant::now();
        }
    }

    /// Lets others have it until it is taken again.
    pub(crate) fn give_back(&mut self) {
        self.held_before = self.held();
        self.permit = None;
    }

    /// How long it was held so far, in all.
    pub(crate) fn held(&self) -> Duration {
        match self.permit {
            Some(_) => self.held_before + self.since.elapsed(),
            None => self.held_before,
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{advance, timeout};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_slot_that_is_lent_back_serves_another_and_its_time_does_not_run() {
        let slots = Slots::new(1);
        let mut first = slots.take().await;
        advance(Duration::from_secs(3)).await;
        assert!(slots.take_free(4).is_empty());
        first.give_back();
        let second = slots.take_free(4);
        assert_eq!(second.len(), 1);
        advance(Duration::from_secs(10)).await;
        assert!(timeout(Duration::from_secs(1), first.take()).await.is_err());
        drop(second);
        first.take().await;
        advance(Duration::from_secs(2)).await;
        assert_eq!(first.held(), Duration::from_secs(5));
        assert!(
            timeout(Duration::from_secs(1), slots.one_free())
                .await
                .is_err()
        );
    }
}

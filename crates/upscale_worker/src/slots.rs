//! Slots at the processor. An attempt holds one while it works; a source that dribbles must not hold it, or a handful of
//! slow hosts would keep everyone's images waiting and let the measured pace say that the machine is slow. While an
//! image is computed it holds its share of those that no one wants: what it holds is what it has threads for.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout},
};
use upscale_core::{slots_of_image, threads_of_slots};

/// All slots of one worker.
#[derive(Debug)]
pub(crate) struct Slots(Arc<Pool>);

#[derive(Debug)]
struct Pool {
    count: u32,
    permits: Arc<Semaphore>,
    /// Attempts that hold one or more.
    images: AtomicU32,
}

impl Slots {
    pub(crate) fn new(count: u32) -> Self {
        let count = count.max(1);
        Self(Arc::new(Pool {
            count,
            permits: Arc::new(Semaphore::new(count as usize)),
            images: AtomicU32::new(0),
        }))
    }

    /// Resolves when one is free; someone else may be faster to take it.
    pub(crate) async fn one_free(&self) {
        // No one closes the semaphore, so there is always a permit.
        let _permit = self.0.permits.acquire().await;
    }

    /// Those that are free now, at most so many.
    pub(crate) fn take_free(&self, most: usize) -> Vec<Slot> {
        let permits = || Arc::clone(&self.0.permits).try_acquire_owned().ok();
        let free = (0..most).map_while(|_| permits());
        free.map(|permit| {
            let mut slot = Slot::new(&self.0);
            slot.hold(Some(permit));
            slot
        })
        .collect()
    }

    /// Waits for one, first come first served.
    pub(crate) async fn take(&self) -> Slot {
        let mut slot = Slot::new(&self.0);
        slot.take().await;
        slot
    }
}

/// One attempt's slot, held or lent back, and those that it holds beside its own.
#[derive(Debug)]
pub(crate) struct Slot {
    all: Arc<Pool>,
    /// All slots that are held; none while lent back.
    permits: Option<OwnedSemaphorePermit>,
    since: Instant,
    held_before: Duration,
}

impl Slot {
    fn new(all: &Arc<Pool>) -> Self {
        Self {
            all: Arc::clone(all),
            permits: None,
            since: Instant::now(),
            held_before: Duration::ZERO,
        }
    }

    /// Waits until it is held.
    pub(crate) async fn take(&mut self) {
        if self.permits.is_none() {
            let permit = Arc::clone(&self.all.permits).acquire_owned().await;
            self.hold(permit.ok());
        }
    }

    /// Lets others have it until it is taken again.
    pub(crate) fn give_back(&mut self) {
        self.hold(None);
    }

    /// Holds its share of the slots that are free, too; gives the threads that they are worth on so many cores. Claiming
    /// holds free slots for a moment while it asks the store: who widens in that moment gets fewer than there are, which
    /// costs nothing but time.
    pub(crate) fn widen(&mut self, cores: u32) -> u32 {
        self.note_time();
        let free = u32::try_from(self.all.permits.available_permits()).unwrap_or(u32::MAX);
        let images = self.all.images.load(Ordering::Relaxed);
        let more = slots_of_image(self.all.count, images, free) - 1;
        let more = Arc::clone(&self.all.permits).try_acquire_many_owned(more);
        if let (Some(own), Ok(more)) = (&mut self.permits, more) {
            own.merge(more);
        }
        threads_of_slots(cores, self.all.count, self.count())
    }

    /// Runs `work` to its end with all that it holds, but not for longer than `longest`: work that hangs must not keep a
    /// whole worker from everyone until a clock ends it. From then on others are claimed beside it, threads or not.
    pub(crate) async fn wide_for<T>(
        &mut self,
        longest: Duration,
        work: impl Future<Output = T>,
    ) -> T {
        let mut work = pin!(work);
        let done = timeout(longest, &mut work).await;
        self.narrow();
        match done {
            Ok(done) => done,
            Err(_) => work.await,
        }
    }

    /// Lets others have all but its own.
    fn narrow(&mut self) {
        self.note_time();
        if let Some(permits) = &mut self.permits {
            drop(permits.split(permits.num_permits().saturating_sub(1)));
        }
    }

    /// Slot-seconds so far: for how long each slot was held, added up.
    pub(crate) fn held(&self) -> Duration {
        self.held_before + self.since.elapsed() * self.count()
    }

    fn count(&self) -> u32 {
        let permits = self.permits.as_ref();
        let count = permits.map_or(0, OwnedSemaphorePermit::num_permits);
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    fn note_time(&mut self) {
        self.held_before = self.held();
        self.since = Instant::now();
    }

    fn hold(&mut self, permits: Option<OwnedSemaphorePermit>) {
        self.note_time();
        match (self.permits.is_some(), permits.is_some()) {
            (false, true) => self.all.images.fetch_add(1, Ordering::Relaxed),
            (true, false) => self.all.images.fetch_sub(1, Ordering::Relaxed),
            _ => 0,
        };
        self.permits = permits;
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.hold(None);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{advance, sleep};

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

    #[tokio::test(start_paused = true)]
    async fn an_image_alone_has_all_cores_and_two_have_one_each() {
        let slots = Slots::new(2);
        let mut first = slots.take().await;
        assert_eq!(first.widen(2), 2);
        // Nothing is claimed beside it: another worker may have time for it.
        assert!(slots.take_free(4).is_empty());
        advance(Duration::from_secs(3)).await;
        first.narrow();
        assert_eq!(first.held(), Duration::from_secs(6));
        let mut second = slots.take().await;
        assert_eq!((first.widen(2), second.widen(2)), (1, 1));
        advance(Duration::from_secs(2)).await;
        assert_eq!(first.held(), Duration::from_secs(8));
        drop(first);
        assert_eq!(second.widen(2), 2);
        drop(second);
        assert_eq!(slots.take_free(4).len(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn an_image_that_hangs_keeps_its_own_slot_only() {
        let slots = Slots::new(3);
        let mut first = slots.take().await;
        assert_eq!(first.widen(3), 3);
        let hangs = first.wide_for(Duration::from_secs(10), sleep(Duration::from_secs(120)));
        let others = async {
            sleep(Duration::from_secs(9)).await;
            assert!(slots.take_free(3).is_empty());
            sleep(Duration::from_secs(2)).await;
            slots.take_free(3).len()
        };
        let ((), free) = tokio::join!(hangs, others);
        assert_eq!(free, 2);
        assert_eq!(first.held(), Duration::from_secs(3 * 10 + 110));
    }

    #[tokio::test]
    async fn images_under_way_share_what_is_left() {
        let slots = Slots::new(8);
        let mut attempts = slots.take_free(2);
        let threads: Vec<u32> = attempts.iter_mut().map(|slot| slot.widen(16)).collect();
        assert_eq!(threads, [8, 8]);
        // The third comes when one ends, and leaves the other's share alone.
        attempts.pop();
        let mut third = slots.take().await;
        assert_eq!(third.widen(16), 8);
        assert!(slots.take_free(1).is_empty());
    }
}

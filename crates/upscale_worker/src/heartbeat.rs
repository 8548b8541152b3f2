//! Keeps a claim alive beside the work. Ends only when the claim cannot be trusted any more.

use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout_at};
use upscale_store::{FenceOutcome, StoreError};

/// How often, and how long the store may be silent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pulse {
    /// Between two heartbeats.
    pub(crate) every: Duration,
    /// Between two tries while the store does not answer.
    pub(crate) retry_every: Duration,
    /// After this long without an answer the claim is given up: the lease minus a margin for the child
    /// to die in, so that two workers never work at one task.
    pub(crate) silence_max: Duration,
}

/// Renews the lease by `beat` until it is lost; says why it ended. `claimed` is the moment of the claim.
pub(crate) async fn keep_claim<Acknowledged: Future<Output = Result<FenceOutcome, StoreError>>>(
    beat: impl Fn() -> Acknowledged,
    pulse: Pulse,
    claimed: Instant,
) -> &'static str {
    let mut acknowledged = claimed;
    let mut next = claimed + pulse.every;
    loop {
        let give_up = acknowledged + pulse.silence_max;
        sleep_until(next.min(give_up)).await;
        let asked = Instant::now();
        match timeout_at(give_up, beat()).await {
            Ok(Ok(FenceOutcome::Done)) => {
                // The lease runs from when the store acknowledged it, which is no earlier than this.
                acknowledged = asked;
                next = asked + pulse.every;
            }
            Ok(Ok(FenceOutcome::Lost)) => return "another attempt has it, or it has ended",
            Ok(Err(error)) if Instant::now() < give_up => {
                tracing::warn!(%error, "a heartbeat was not acknowledged");
                next = Instant::now() + pulse.retry_every;
            }
            Ok(Err(_)) | Err(_) => return "the store was silent for almost a lease",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const PULSE: Pulse = Pulse {
        every: Duration::from_secs(15),
        retry_every: Duration::from_secs(1),
        silence_max: Duration::from_secs(50),
    };

    /// The reply to the n-th heartbeat, and after how long.
    async fn until_lost(
        replies: impl Fn(u32) -> (Duration, Result<FenceOutcome, StoreError>),
    ) -> (u32, Duration) {
        let (beats, start) = (Cell::new(0), Instant::now());
        let beat = || {
            beats.set(beats.get() + 1);
            let (after, reply) = replies(beats.get());
            async move {
                tokio::time::sleep(after).await;
                reply
            }
        };
        keep_claim(beat, PULSE, start).await;
        (beats.get(), start.elapsed())
    }

    fn broken() -> Result<FenceOutcome, StoreError> {
        Err(StoreError::Unavailable("cut off".to_owned()))
    }

    #[tokio::test(start_paused = true)]
    async fn a_claim_beats_every_fifteen_seconds_until_it_is_lost() {
        let replies = |beat| match beat {
            5 => (Duration::ZERO, Ok(FenceOutcome::Lost)),
            _ => (Duration::ZERO, Ok(FenceOutcome::Done)),
        };
        assert_eq!(until_lost(replies).await, (5, Duration::from_secs(75)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_fails_is_asked_every_second_and_given_up_before_the_lease_ends() {
        let (beats, after) = until_lost(|_| (Duration::ZERO, broken())).await;
        assert_eq!((beats, after), (36, Duration::from_secs(50)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_hangs_is_given_up_as_soon() {
        let replies = |beat| match beat {
            1 => (Duration::from_secs(4), Ok(FenceOutcome::Done)),
            _ => (Duration::from_secs(3_600), broken()),
        };
        // The lease counts from the question that was answered, at 15 s, not from the answer.
        assert_eq!(until_lost(replies).await, (2, Duration::from_secs(65)));
    }

    #[tokio::test(start_paused = true)]
    async fn an_outage_shorter_than_the_lease_is_survived() {
        let replies = |beat| match beat {
            1..=30 => (Duration::ZERO, broken()),
            31 | 32 => (Duration::ZERO, Ok(FenceOutcome::Done)),
            _ => (Duration::ZERO, Ok(FenceOutcome::Lost)),
        };
        assert_eq!(until_lost(replies).await, (33, Duration::from_secs(75)));
    }
}

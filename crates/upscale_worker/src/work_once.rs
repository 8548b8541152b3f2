//! One attempt at a task: its claim is kept alive while its image is processed, then settled, retried, released or
//! forgotten. Each report to the store carries the number of the attempt, so a late one changes nothing.

use std::{pin::pin, time::Duration};

use metrics::counter;
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout},
};
use upscale_core::{
    AttemptFailure, FailureMessage, NextStep, ResultFile, TraceId, after_failure, random_bytes,
};
use upscale_store::{Claim, FenceOutcome, Settlement, Spent, StoreError};

use crate::{
    AttemptError, Worker,
    fetch::DownloadPermit,
    heartbeat::{Pulse, keep_claim},
    process::{Attempt, Stage},
    slots::Slot,
    stages::StageWatch,
};

/// Between two reports of an outcome that the store did not acknowledge.
const REPORT_AGAIN: Duration = Duration::from_millis(500);
/// A retry this close to the deadline would not get anywhere.
const USEFUL: Duration = Duration::from_secs(1);

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptEnd {
    /// Charged, with a result.
    Succeeded,
    /// Failed for good and refunded.
    Failed,
    /// Given back, to be tried again after a delay.
    RetryLater,
    /// Given back unharmed, because the worker stops.
    Released,
    /// The claim was lost, or the store never acknowledged the end; another attempt finishes.
    Lost,
}

impl AttemptEnd {
    fn name(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::RetryLater => "retry_later",
            Self::Released => "released",
            Self::Lost => "lost",
        }
    }
}

/// What is reported to the store at the end of an attempt.
#[derive(Debug, Clone)]
enum Report {
    Settle(Settlement),
    RetryLater(AttemptFailure, u64),
    Release,
}

impl Worker {
    /// Works at one claim to its end. When `release` becomes true (or its sender is gone), the child is
    /// killed and the claim given back; once the result is ready it is settled all the same.
    pub async fn work_once(&self, claim: &Claim, release: watch::Receiver<bool>) -> AttemptEnd {
        let slot = self.slots.take().await;
        let permit = self.tools.fetcher.begin(claim.account_id);
        self.work_in(slot, permit, claim, release).await
    }

    /// As [`Worker::work_once`], in a slot that is held already; without a permit to download the claim is given back,
    /// and another of this account is not made before one is free.
    pub(crate) async fn work_in(
        &self,
        slot: Slot,
        permit: Option<DownloadPermit>,
        claim: &Claim,
        release: watch::Receiver<bool>,
    ) -> AttemptEnd {
        let watch = StageWatch::of(claim);
        let end = match permit {
            Some(permit) => self.attempt(slot, permit, claim, release, &watch).await,
            None => {
                drop(slot);
                let spent = Spent::default();
                self.report_until_acknowledged(claim, &Report::Release, spent)
                    .await
            }
        };
        counter!("upscale_attempts_total", "end" => end.name()).increment(1);
        watch.attempt_ended(end.name());
        end
    }

    async fn attempt(
        &self,
        slot: Slot,
        permit: DownloadPermit,
        claim: &Claim,
        release: watch::Receiver<bool>,
        watch: &StageWatch<'_>,
    ) -> AttemptEnd {
        watch.waited();
        let started = watch.started();
        let mut attempt = Attempt::new(slot, watch);
        let beat = || self.store.tasks().heartbeat(&claim.task_id, claim.attempt);
        let mut heart = pin!(keep_claim(beat, self.pulse(), started));
        let ended = tokio::select! {
            biased;
            why = &mut heart => return forget(claim, why),
            () = released(release) => None,
            ended = self.process_in_time(claim, permit, &mut attempt) => Some(ended),
        };
        let report = match ended {
            None => Report::Release,
            Some(Ok(file)) => Report::Settle(Settlement::Succeeded(file)),
            Some(Err(error)) => self.report_after(claim, error),
        };
        // The pace of a slot: what a slow source took beside it says nothing about the next image.
        let spent = Spent {
            slot_seconds: attempt.slot.held().as_secs_f64(),
            stages: Some(attempt.stages),
        };
        let seconds = started.elapsed().as_secs_f64();
        let reporting = Instant::now();
        let end = tokio::select! {
            biased;
            end = self.report_until_acknowledged(claim, &report, spent) => end,
            why = &mut heart => return forget(claim, why),
        };
        watch.ended("settle", reporting, &Ok(()));
        tracing::info!(
            task = claim.task_id.as_str(),
            trace_id = TraceId::of(&claim.task_id).hex(),
            account = claim.account_id.as_str(),
            request = claim.request_id.as_str(),
            attempt = claim.attempt,
            seconds,
            ?end,
            "an attempt ended"
        );
        end
    }

    /// Everything is cut when the deadline nears: the customer has an answer in time.
    async fn process_in_time(
        &self,
        claim: &Claim,
        permit: DownloadPermit,
        attempt: &mut Attempt<'_>,
    ) -> Result<ResultFile, AttemptError> {
        let work = attempt.process(claim, permit, &self.tools, self.options.cores);
        let cut = timeout(self.time_left(claim), work).await;
        cut.unwrap_or_else(|_| {
            let stage = match attempt.stage {
                Stage::Downloading => attempt.progress.words(),
                Stage::WaitingForSlot => "it was waiting for a free slot".to_owned(),
                Stage::Upscaling => "it was still being upscaled".to_owned(),
                Stage::Storing => "the result was still being stored".to_owned(),
            };
            Err(AttemptError::permanent(format!(
                "The image could not be processed within {} seconds: {stage}.",
                self.store.options().deadline_seconds
            )))
        })
    }

    fn time_left(&self, claim: &Claim) -> Duration {
        let micros = claim.deadline_at.micros() - self.store.now().micros();
        Duration::from_micros(u64::try_from(micros).unwrap_or(0))
            .saturating_sub(self.options.deadline_margin)
    }

    fn pulse(&self) -> Pulse {
        let lease = Duration::from_secs(self.store.options().lease_seconds.unsigned_abs());
        Pulse {
            every: self.options.heartbeat_every,
            retry_every: self.options.heartbeat_every.min(Duration::from_secs(1)),
            silence_max: lease.saturating_sub(self.options.lease_margin),
        }
    }

    fn report_after(&self, claim: &Claim, error: AttemptError) -> Report {
        tracing::info!(
            task = claim.task_id.as_str(),
            attempt = claim.attempt,
            failure = ?error.failure,
            %error,
            "an attempt failed"
        );
        counter!("upscale_attempt_failures_total", "failure" => error.kind()).increment(1);
        let failures = claim.failures(error.failure, self.store.now());
        let asked = error.retry_after.unwrap_or_default().as_millis();
        let asked = u64::try_from(asked).unwrap_or(u64::MAX);
        let step = after_failure(error.failure, failures, asked, random_unit());
        match step {
            NextStep::RetryAfterMillis(millis)
                if Duration::from_millis(millis) + USEFUL < self.time_left(claim) =>
            {
                Report::RetryLater(error.failure, millis)
            }
            _ => Report::Settle(Settlement::Failed(FailureMessage::new(&error.message))),
        }
    }

    /// Until the store acknowledges it: after an error the outcome is unknown, and a second report settles that.
    /// A result is never removed here: "lost" may be the answer to the second report of what was done the
    /// first time.
    async fn report_until_acknowledged(
        &self,
        claim: &Claim,
        report: &Report,
        spent: Spent,
    ) -> AttemptEnd {
        loop {
            match self.report(claim, report, spent).await {
                Ok(FenceOutcome::Done) => return report.end(),
                Ok(FenceOutcome::Lost) => {
                    return forget(claim, "another attempt has it, or it has ended");
                }
                Err(StoreError::Unavailable(reason) | StoreError::OutcomeUnknown(reason)) => {
                    tracing::warn!(
                        task = claim.task_id.as_str(),
                        reason,
                        "the end of an attempt was not acknowledged"
                    );
                    sleep(REPORT_AGAIN).await;
                }
                Err(error @ (StoreError::Refused(_) | StoreError::Corrupt(_))) => {
                    tracing::error!(
                        task = claim.task_id.as_str(),
                        %error,
                        "an attempt cannot be ended"
                    );
                    return AttemptEnd::Lost;
                }
            }
        }
    }

    async fn report(
        &self,
        claim: &Claim,
        report: &Report,
        spent: Spent,
    ) -> Result<FenceOutcome, StoreError> {
        let (task, attempt) = (&claim.task_id, claim.attempt);
        match report {
            Report::Settle(settlement) => {
                self.store
                    .tasks()
                    .settle(task, attempt, settlement.clone(), spent)
                    .await
            }
            Report::RetryLater(failure, millis) => {
                self.store
                    .tasks()
                    .retry_later(task, attempt, *failure, *millis)
                    .await
            }
            Report::Release => self.store.tasks().release(task, attempt).await,
        }
    }
}

impl Report {
    fn end(&self) -> AttemptEnd {
        match self {
            Self::Settle(Settlement::Succeeded(_)) => AttemptEnd::Succeeded,
            Self::Settle(Settlement::Failed(_)) => AttemptEnd::Failed,
            Self::RetryLater(..) => AttemptEnd::RetryLater,
            Self::Release => AttemptEnd::Released,
        }
    }
}

fn forget(claim: &Claim, why: &str) -> AttemptEnd {
    tracing::warn!(
        task = claim.task_id.as_str(),
        attempt = claim.attempt,
        why,
        "a claim was lost"
    );
    AttemptEnd::Lost
}

async fn released(mut release: watch::Receiver<bool>) {
    // Without a sender no one could drain this attempt any more.
    let _ = release.wait_for(|release| *release).await;
}

/// Uniform in [0, 1): 53 random bits. Without randomness the middle, which spreads nothing and harms nothing.
fn random_unit() -> f64 {
    random_bytes().map_or(0.5, |bytes: [u8; 8]| {
        (u64::from_le_bytes(bytes) >> 11) as f64 / (1_u64 << 53) as f64
    })
}

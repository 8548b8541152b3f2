//! What an attempt spends its time on, counted and traced under the same names: a histogram for all attempts, and spans of
//! this task's trace that hang from the attempt's own.

use std::time::Duration;

use metrics::histogram;
use tokio::time::Instant;
use upscale_core::{Clock, Fact, Span, SpanId, SpanKind, Timestamp, record_span};
use upscale_pipeline::CheckedResult;
use upscale_store::Claim;

use crate::AttemptError;

/// The clock beside one attempt's stages. Cheap to make; nothing is kept where no one listens.
pub(crate) struct StageWatch<'a> {
    claim: &'a Claim,
    attempt: SpanId,
    started: Instant,
}

impl<'a> StageWatch<'a> {
    /// Starts the clock of an attempt at this claim.
    pub(crate) fn of(claim: &'a Claim) -> Self {
        Self {
            claim,
            attempt: SpanId::new(),
            started: Instant::now(),
        }
    }

    /// When the attempt began.
    pub(crate) fn started(&self) -> Instant {
        self.started
    }

    /// From the task's acceptance to this claim, both by the store's clock.
    pub(crate) fn waited(&self) {
        let (created, claimed) = (self.claim.created_at, self.claim.claimed_at);
        let waited = claimed.micros() - created.micros();
        count(
            "wait",
            Duration::from_micros(u64::try_from(waited).unwrap_or(0)),
        );
        let task = &self.claim.task_id;
        record_span(|| Span::between(task, "wait", SpanKind::Part, created, claimed));
    }

    /// A stage is over: counted when it went well, traced either way. What it took, in microseconds.
    pub(crate) fn ended<T>(
        &self,
        stage: &'static str,
        since: Instant,
        ended: &Result<T, AttemptError>,
    ) -> i64 {
        let took = since.elapsed();
        if ended.is_ok() {
            count(stage, took);
        }
        record_span(|| {
            let mut span = self.part(stage, took);
            span.failure = ended.as_ref().err().map(|error| error.kind().to_owned());
            span
        });
        micros(took)
    }

    /// The child is over and, when it did its image, says what it spent. Rows stream through its stages, so each of the
    /// four is a sum; they are laid end to end in the order in which a row meets them. What it took, in microseconds.
    pub(crate) fn child_ended(
        &self,
        since: Instant,
        ended: &Result<CheckedResult, AttemptError>,
    ) -> i64 {
        let Ok(CheckedResult { facts, .. }) = ended else {
            return self.ended("child", since, ended);
        };
        let (took, spent) = (since.elapsed(), &facts.spent);
        count("child", took);
        let stages = [
            ("decode", spent.decode),
            ("network", spent.network),
            ("check", spent.check),
            ("encode", spent.encode),
        ];
        for (stage, took) in stages {
            count(stage, took);
        }
        let child = SpanId::new();
        let mut from = before_now(took);
        for (stage, took) in stages {
            let until = Timestamp::from_micros(from.micros().saturating_add(micros(took)));
            record_span(|| {
                Span::between(&self.claim.task_id, stage, SpanKind::Part, from, until)
                    .part_of(child)
            });
            from = until;
        }
        record_span(|| {
            let mut span = self.part("child", took);
            span.id = child;
            span
        });
        micros(took)
    }

    /// The attempt itself is over.
    pub(crate) fn attempt_ended(&self, end: &'static str) {
        let took = self.started.elapsed();
        count("attempt", took);
        record_span(|| {
            let claim = self.claim;
            let word = |text: &str| Fact::Word(text.to_owned());
            let factor = i64::try_from(claim.parameters.scale.factor()).unwrap_or(0);
            let mut span = Span::ending_now(&claim.task_id, "attempt", SpanKind::Attempt, took)
                .with("upscale.request", word(claim.request_id.as_str()))
                .with("upscale.account", word(claim.account_id.as_str()))
                .with("upscale.attempt", Fact::Number(claim.attempt))
                .with("upscale.scale", Fact::Number(factor))
                .with("upscale.end", word(end));
            span.id = self.attempt;
            span.failure = (!matches!(end, "succeeded" | "released")).then(|| end.to_owned());
            span
        });
    }

    fn part(&self, stage: &'static str, took: Duration) -> Span {
        Span::ending_now(&self.claim.task_id, stage, SpanKind::Part, took).part_of(self.attempt)
    }
}

fn before_now(took: Duration) -> Timestamp {
    Timestamp::from_micros(Clock::System.now().micros().saturating_sub(micros(took)))
}

fn micros(took: Duration) -> i64 {
    i64::try_from(took.as_micros()).unwrap_or(i64::MAX)
}

fn count(stage: &'static str, took: Duration) {
    histogram!("upscale_stage_seconds", "stage" => stage).record(took);
}

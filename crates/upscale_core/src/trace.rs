//! What became of a task, as intervals on one trace: rooms record them by name and know nothing of who listens, as
//! they count. The trace's id is the task's own 128 bits, so that every process joins the same one without
//! telling the next, and a second life of a task after a crash joins it too. Nothing is kept when no one listens.

use std::{
    borrow::Cow,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use crate::{Clock, TaskId, Timestamp, random_bytes};

/// Names a span within its trace; never 0, which means "none" (W3C Trace Context, section 3.2.2.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId(u64);

/// 128 bits that name a trace; never 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId(u128);

/// What stands in a span beside its name and its times. Ids of ours and words of closed lists alone: what a
/// customer sent must never get here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fact {
    /// An id, or a word of a closed list.
    Word(String),
    /// A count, without a unit.
    Number(i64),
}

/// What kind of interval it was, as tracing tools draw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// A request answered.
    Request,
    /// One attempt of a worker at a task.
    Attempt,
    /// A part of either.
    Part,
}

/// One interval of a task's life, over when it is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// The task's trace.
    pub trace: TraceId,
    /// Its own name within the trace.
    pub id: SpanId,
    /// The span that it is a part of; none for the create, from which everything hangs.
    pub parent: Option<SpanId>,
    /// What it was, from a closed list.
    pub name: Cow<'static, str>,
    /// What tracing tools draw it as.
    pub kind: SpanKind,
    /// When it began, by the system's clock.
    pub started: Timestamp,
    /// When it ended, ≥ `started`.
    pub ended: Timestamp,
    /// What else is known.
    pub facts: Vec<(&'static str, Fact)>,
    /// Why it failed, as a word of a closed list; none when it did not.
    pub failure: Option<String>,
    /// The caller's own trace, which is another one: shown beside it, never joined.
    pub link: Option<TraceParent>,
}

/// What a caller says of its own trace: the header `traceparent` of W3C Trace Context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceParent {
    /// Identifier of the caller's trace, 128 bits.
    pub trace: TraceId,
    /// Its span that called.
    pub span: SpanId,
}

impl TraceId {
    /// The trace of a task.
    #[must_use]
    pub fn of(task: &TaskId) -> Self {
        Self(task.bits().max(1))
    }

    /// As tracing tools take it.
    #[must_use]
    pub const fn bits(self) -> u128 {
        self.0
    }

    /// As tracing tools show it: 32 hexadecimal digits.
    #[must_use]
    pub fn hex(self) -> String {
        format!("{:032x}", self.0)
    }
}

impl SpanId {
    /// The first span of a task's trace, its create: every process can name it as the parent.
    #[must_use]
    pub fn root_of(trace: TraceId) -> Self {
        Self((trace.0 as u64).max(1))
    }

    /// A new one; without randomness a count, which is as good within one trace of one process.
    #[must_use]
    pub fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(1);
        let random = random_bytes().map(u64::from_be_bytes);
        Self(
            random
                .unwrap_or_else(|_| COUNT.fetch_add(1, Ordering::Relaxed))
                .max(1),
        )
    }

    /// As tracing tools take it.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }
}

impl Default for SpanId {
    fn default() -> Self {
        Self::new()
    }
}

impl TraceParent {
    /// Version 00 of the header, lower case as it must be: `00-<32 hex>-<16 hex>-<2 hex>`; none for anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let version = parts.next()?;
        let trace = hex_digits(parts.next()?, 32)?;
        let span = hex_digits(parts.next()?, 16)?;
        hex_digits(parts.next()?, 2)?;
        if version != "00" || parts.next().is_some() || trace == 0 || span == 0 {
            return None;
        }
        Some(Self {
            trace: TraceId(trace),
            span: SpanId(u64::try_from(span).ok()?),
        })
    }
}

fn hex_digits(text: &str, digits: usize) -> Option<u128> {
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if text.len() != digits || !text.bytes().all(is_hex) {
        return None;
    }
    u128::from_str_radix(text, 16).ok()
}

impl Span {
    /// A part of a task's trace that took this long and is over now.
    #[must_use]
    pub fn ending_now(
        task: &TaskId,
        name: impl Into<Cow<'static, str>>,
        kind: SpanKind,
        took: Duration,
    ) -> Self {
        let ended = Clock::System.now();
        let took = i64::try_from(took.as_micros()).unwrap_or(i64::MAX);
        let started = Timestamp::from_micros(ended.micros().saturating_sub(took));
        Self::between(task, name, kind, started, ended)
    }

    /// A part of a task's trace from one moment to another; at least no time at all, for clocks step.
    #[must_use]
    pub fn between(
        task: &TaskId,
        name: impl Into<Cow<'static, str>>,
        kind: SpanKind,
        started: Timestamp,
        ended: Timestamp,
    ) -> Self {
        let trace = TraceId::of(task);
        Self {
            trace,
            id: SpanId::new(),
            parent: Some(SpanId::root_of(trace)),
            name: name.into(),
            kind,
            started,
            ended: ended.max(started),
            facts: vec![("upscale.task", Fact::Word(task.as_str().to_owned()))],
            failure: None,
            link: None,
        }
    }

    /// With a fact more.
    #[must_use]
    pub fn with(mut self, name: &'static str, fact: Fact) -> Self {
        self.facts.push((name, fact));
        self
    }

    /// As a part of another span than the create.
    #[must_use]
    pub fn part_of(mut self, parent: SpanId) -> Self {
        self.parent = Some(parent);
        self
    }
}

type Listener = Box<dyn Fn(Span) + Send + Sync>;
static LISTENER: OnceLock<Listener> = OnceLock::new();

/// Hands every span to the listener from now on. It is called where the work is done, so it must not wait.
/// False when someone listens already.
pub fn listen_to_spans(listener: impl Fn(Span) + Send + Sync + 'static) -> bool {
    LISTENER.set(Box::new(listener)).is_ok()
}

/// Records what `make` says, which is not asked when no one listens.
pub fn record_span(make: impl FnOnce() -> Span) {
    if let Some(listener) = LISTENER.get() {
        listener(make());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_names_its_trace_and_the_trace_its_first_span() {
        let one = TaskId::parse("ups_00000000000000000000000001").unwrap();
        assert_eq!(TraceId::of(&one).hex(), format!("{:032x}", 1));
        let last = TaskId::parse("ups_7zzzzzzzzzzzzzzzzzzzzzzzzz").unwrap();
        assert_eq!(TraceId::of(&last).bits(), u128::MAX);
        assert_eq!(SpanId::root_of(TraceId::of(&last)).bits(), u64::MAX);
        let random = TaskId::random().unwrap();
        assert_ne!(TraceId::of(&random), TraceId::of(&one));
        assert_eq!(TraceId::of(&random), TraceId::of(&random.clone()));
    }

    #[test]
    fn zero_is_no_name_of_anything() {
        let zero = TaskId::parse("ups_00000000000000000000000000").unwrap();
        assert_eq!(TraceId::of(&zero).bits(), 1);
        assert_eq!(SpanId::root_of(TraceId::of(&zero)).bits(), 1);
        assert_ne!(SpanId::new(), SpanId::new());
    }

    #[test]
    fn a_callers_trace_is_believed_when_it_is_one_and_dropped_otherwise() {
        let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
        let good = format!("00-{trace}-00f067aa0ba902b7-01");
        let parsed = TraceParent::parse(&good).unwrap();
        assert_eq!(parsed.trace.hex(), trace);
        assert_eq!(parsed.span.bits(), 0x00f0_67aa_0ba9_02b7);
        for bad in [
            String::new(),
            good.to_uppercase(),
            good.replacen("00", "01", 1),
            good.replacen("00", "ff", 1),
            format!("{good}-00"),
            good[..54].to_owned(),
            good.replace(trace, &"0".repeat(32)),
            good.replace("00f067aa0ba902b7", &"0".repeat(16)),
            good.replace("4b", "+b"),
            good.replace('-', "_"),
        ] {
            assert_eq!(TraceParent::parse(&bad), None, "{bad}");
        }
    }

    #[test]
    fn a_clock_that_steps_back_makes_no_span_that_ends_before_it_starts() {
        let task = TaskId::random().unwrap();
        let at = Timestamp::from_micros;
        let span = Span::between(&task, "wait", SpanKind::Part, at(5), at(3));
        assert_eq!((span.started, span.ended), (at(5), at(5)));
        let took = Span::ending_now(&task, "put", SpanKind::Part, Duration::from_millis(3));
        assert_eq!(took.ended.micros() - took.started.micros(), 3_000);
    }
}

//! OpenTelemetry: what the rooms record of a task's life goes to a collector in batches, from a thread of its own.
//! Off unless an address is given. A collector that is slow, wrong or gone costs spans and nothing else: the queue
//! is bounded, every request has its time, and what was lost is counted.

mod post;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, ensure};
use metrics::counter;
use opentelemetry::{
    InstrumentationScope, KeyValue,
    trace::{self as otel, SpanContext, Status, TraceFlags, TraceState},
};
use opentelemetry_otlp::{SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::{
    Resource,
    trace::{
        BatchConfigBuilder, BatchSpanProcessor, SpanData, SpanEvents, SpanLinks, SpanProcessor,
    },
};
use upscale_core::{Fact, Span, SpanId, SpanKind, Timestamp, TraceId, random_token};

use self::post::{Counted, Post};
use crate::args::ProcessArgs;

/// Spans that may wait for the collector; one more is dropped. A task has a dozen.
const WAITING_MAX: usize = 8_192;
/// Standard variables that name a collector.
const ENDPOINT_VARIABLES: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
];
/// How long the end of the process waits for the last batch.
const LAST_BATCH: Duration = Duration::from_secs(2);

/// Sends spans for as long as the process lives.
pub(crate) struct Traces(Arc<Queue>);

/// Starts sending; none when no collector is named.
///
/// # Errors
/// When the address or a variable of OpenTelemetry's is not one.
pub(crate) fn start(args: &ProcessArgs) -> anyhow::Result<Option<Traces>> {
    if !is_wanted(args) {
        return Ok(None);
    }
    let waiting = Arc::new(AtomicUsize::new(0));
    let mut exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(Post::new()?);
    if let Some(endpoint) = &args.otlp_endpoint {
        exporter = exporter.with_endpoint(format!("{}/v1/traces", endpoint.trim_end_matches('/')));
    }
    let exporter = exporter.build().context("traces cannot be sent")?;
    let config = BatchConfigBuilder::default().with_max_queue_size(WAITING_MAX);
    let mut batches = BatchSpanProcessor::builder(Counted::new(exporter, Arc::clone(&waiting)))
        .with_batch_config(config.build())
        .build();
    batches.set_resource(&resource());
    let queue = Arc::new(Queue {
        batches,
        waiting,
        share: args.trace_share,
    });
    let listener = Arc::clone(&queue);
    let is_first = upscale_core::listen_to_spans(move |span| listener.take(span));
    ensure!(is_first, "traces were started twice");
    Ok(Some(Traces(queue)))
}

impl Traces {
    /// Sends what waits, as far as that goes quickly.
    pub(crate) fn stop(self) {
        if self.0.batches.shutdown_with_timeout(LAST_BATCH).is_err() {
            tracing::warn!("the last traces were not sent");
        }
    }
}

fn is_wanted(args: &ProcessArgs) -> bool {
    let says = |name: &str, value: &str| {
        std::env::var(name).is_ok_and(|found| found.eq_ignore_ascii_case(value))
    };
    let is_named = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_off = says("OTEL_SDK_DISABLED", "true") || says("OTEL_TRACES_EXPORTER", "none");
    args.otlp_endpoint.is_some() || (!is_off && ENDPOINT_VARIABLES.iter().any(is_named))
}

/// Who we are: OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES first, as everywhere.
fn resource() -> Resource {
    let mut about = vec![KeyValue::new("service.version", env!("CARGO_PKG_VERSION"))];
    if let Ok(instance) = random_token() {
        about.push(KeyValue::new("service.instance.id", instance));
    }
    let ours = Resource::builder_empty()
        .with_service_name("upscale")
        .with_attributes(about)
        .build();
    let theirs = Resource::builder().build();
    let is_named = |key: &str, value: &str| key != "service.name" || !value.starts_with("unknown");
    let named = theirs
        .iter()
        .filter(|(key, value)| is_named(key.as_str(), &value.as_str()))
        .map(|(key, value)| KeyValue::new(key.clone(), value.clone()));
    let ours = ours
        .iter()
        .map(|(key, value)| KeyValue::new(key.clone(), value.clone()));
    Resource::builder_empty()
        .with_attributes(ours.chain(named).collect::<Vec<_>>())
        .build()
}

/// What waits for the collector.
struct Queue {
    batches: BatchSpanProcessor,
    /// Spans that were taken and not yet sent or given up.
    waiting: Arc<AtomicUsize>,
    share: f64,
}

impl Queue {
    /// Called where the work is done: counts, copies and goes.
    fn take(&self, span: Span) {
        if !is_chosen(span.trace, self.share) {
            return;
        }
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= WAITING_MAX {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            counter!("upscale_spans_total", "end" => "dropped").increment(1);
            return;
        }
        self.batches.on_end(to_otel(span));
    }
}

/// By the trace's low bits, which are random: the same answer in every process.
fn is_chosen(trace: TraceId, share: f64) -> bool {
    (trace.bits() as u64) as f64 / 2.0_f64.powi(64) < share || share >= 1.0
}

fn to_otel(span: Span) -> SpanData {
    let failure = span.failure.clone();
    let link = span
        .link
        .map(|link| otel::Link::new(context(link.trace, link.span, true), Vec::new(), 0));
    let mut links = SpanLinks::default();
    links.links = link.into_iter().collect();
    let facts = span.facts.into_iter().map(|(name, fact)| match fact {
        Fact::Word(word) => KeyValue::new(name, word),
        Fact::Number(number) => KeyValue::new(name, number),
    });
    let failed = failure
        .clone()
        .map(|failure| KeyValue::new("error.type", failure));
    SpanData {
        span_context: context(span.trace, span.id, false),
        parent_span_id: span
            .parent
            .map_or(otel::SpanId::INVALID, |id| otel::SpanId::from(id.bits())),
        parent_span_is_remote: span.parent == Some(SpanId::root_of(span.trace)),
        span_kind: match span.kind {
            SpanKind::Request => otel::SpanKind::Server,
            SpanKind::Attempt => otel::SpanKind::Consumer,
            SpanKind::Part => otel::SpanKind::Internal,
        },
        name: span.name,
        start_time: system_time(span.started),
        end_time: system_time(span.ended),
        attributes: facts.chain(failed).collect(),
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links,
        status: failure.map_or(Status::Unset, Status::error),
        instrumentation_scope: InstrumentationScope::builder("upscale").build(),
    }
}

fn context(trace: TraceId, span: SpanId, is_remote: bool) -> SpanContext {
    SpanContext::new(
        otel::TraceId::from(trace.bits()),
        otel::SpanId::from(span.bits()),
        TraceFlags::SAMPLED,
        is_remote,
        TraceState::NONE,
    )
}

fn system_time(at: Timestamp) -> SystemTime {
    UNIX_EPOCH + Duration::from_micros(u64::try_from(at.micros()).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use upscale_core::TaskId;

    use super::*;

    #[test]
    fn a_share_of_the_tasks_is_chosen_by_their_ids_alone() {
        let traces: Vec<_> = (0..4_000)
            .map(|_| TraceId::of(&TaskId::random().unwrap()))
            .collect();
        let chosen = |share| {
            traces
                .iter()
                .filter(|trace| is_chosen(**trace, share))
                .count()
        };
        assert_eq!((chosen(0.0), chosen(1.0)), (0, 4_000));
        // Six standard deviations of a fair choice.
        assert!((chosen(0.25) as f64 - 1_000.0).abs() < 6.0 * 27.4);
    }

    #[test]
    fn a_span_keeps_its_ids_its_times_and_why_it_failed() {
        let task = TaskId::random().unwrap();
        let mut span = Span::ending_now(&task, "store", SpanKind::Part, Duration::from_millis(2));
        span.failure = Some("transient".to_owned());
        let (trace, started) = (span.trace, span.started);
        let sent = to_otel(span);
        assert_eq!(sent.span_context.trace_id().to_string(), trace.hex());
        assert_eq!(sent.parent_span_id.to_string(), trace.hex()[16..]);
        assert_eq!(sent.start_time, system_time(started));
        assert_eq!(sent.status, Status::error("transient"));
        assert!(
            sent.attributes
                .contains(&KeyValue::new("error.type", "transient"))
        );
        assert!(sent.span_context.is_sampled());
    }
}

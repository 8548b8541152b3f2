//! OpenTelemetry: what a collector sees of one task, that it sees nothing of a customer's, that it sees nothing at all
//! unless asked, and that a collector which fails harms no one.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::any_value::Value,
    trace::v1::{Span, span::SpanKind, status::StatusCode},
};
use prost::Message;
use tempfile::TempDir;

use crate::harness::{
    World,
    client::{order, send},
    image_host::Behaviour,
};

/// What a caller's own tracing sends along.
const CALLER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
/// Everything that may stand in a span beside names and times.
const ALLOWED: [&str; 12] = [
    "upscale.task",
    "upscale.account",
    "upscale.request",
    "upscale.attempt",
    "upscale.scale",
    "upscale.end",
    "upscale.code",
    "http.request.method",
    "http.route",
    "http.response.status_code",
    "error.type",
    "service.name",
];

/// A collector of OTLP over HTTP on loopback.
struct Collector {
    url: String,
    seen: Arc<Mutex<Vec<ExportTraceServiceRequest>>>,
}

impl Collector {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let keep = Arc::clone(&seen);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let keep = Arc::clone(&keep);
                thread::spawn(move || collect(stream, &keep));
            }
        });
        Self { url, seen }
    }

    fn spans(&self) -> Vec<Span> {
        let seen = self.seen.lock().unwrap();
        let resources = seen.iter().flat_map(|request| &request.resource_spans);
        let scopes = resources.flat_map(|resource| &resource.scope_spans);
        scopes.flat_map(|scope| scope.spans.clone()).collect()
    }

    /// The spans of one task's trace.
    fn trace(&self, task: &str) -> Vec<Span> {
        let mut spans = self.spans();
        spans.retain(|span| word(span, "upscale.task") == task);
        spans
    }

    /// All that arrived, as text.
    fn text(&self) -> String {
        format!("{:?}", self.seen.lock().unwrap())
    }
}

/// Answers one connection's requests until it ends.
fn collect(stream: TcpStream, keep: &Mutex<Vec<ExportTraceServiceRequest>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).unwrap_or(0) == 0 {
                return;
            }
        }
        assert!(head.starts_with("POST /v1/traces "), "{head}");
        let head = head.to_lowercase();
        assert!(head.contains("content-type: application/x-protobuf"));
        let length = head.split("content-length:").nth(1).unwrap();
        let length = length.lines().next().unwrap().trim().parse().unwrap();
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let request = ExportTraceServiceRequest::decode(body.as_slice()).unwrap();
        keep.lock().unwrap().push(request);
        let answer =
            b"HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n";
        if (&stream).write_all(answer).is_err() {
            return;
        }
    }
}

fn fact(span: &Span, name: &str) -> Option<Value> {
    let fact = span.attributes.iter().find(|fact| fact.key == name)?;
    fact.value.clone()?.value
}

fn word(span: &Span, name: &str) -> String {
    match fact(span, name) {
        Some(Value::StringValue(word)) => word,
        _ => String::new(),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A world whose service sends its spans there, at once.
fn traced(flags: &[&str], variables: &[(&str, &str)]) -> World {
    let owned = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
    let mut variables: Vec<_> = variables.iter().map(owned).collect();
    variables.push(("OTEL_BSP_SCHEDULE_DELAY".to_owned(), "50".to_owned()));
    let mut world = World::prepare_in(TempDir::new().unwrap(), flags, variables);
    world.serve_again();
    world
}

fn named<'a>(spans: &'a [Span], name: &str) -> Vec<&'a Span> {
    spans.iter().filter(|span| span.name == name).collect()
}

/// Every parent is there, within the same trace; the only span without one is the create.
fn check_tree(spans: &[Span]) {
    let traces: BTreeSet<_> = spans.iter().map(|span| hex(&span.trace_id)).collect();
    assert_eq!(traces.len(), 1, "{traces:?}");
    let ids: BTreeMap<_, _> = spans
        .iter()
        .map(|span| (span.span_id.clone(), span))
        .collect();
    assert_eq!(ids.len(), spans.len(), "two spans of one name");
    let roots: Vec<_> = spans
        .iter()
        .filter(|span| span.parent_span_id.is_empty())
        .collect();
    assert_eq!(roots.len(), 1, "{roots:?}");
    assert_eq!(roots[0].name, "POST /api/v1/upscales");
    for span in spans.iter().filter(|span| !span.parent_span_id.is_empty()) {
        assert!(
            ids.contains_key(&span.parent_span_id),
            "{} has no parent",
            span.name
        );
        assert!(span.end_time_unix_nano >= span.start_time_unix_nano);
    }
}

#[test]
fn one_task_is_one_trace_from_the_create_through_the_worker_to_the_reads() {
    let collector = Collector::start();
    let mut world = traced(&["--otlp-endpoint", &collector.url], &[]);
    let customer = world.customer("5");
    let url = world.picture("/secret-path.png", 24, 16);
    let body = order(&url, 2);
    let headers = [
        ("content-type", "application/json"),
        ("idempotency-key", "traced-key-1"),
        ("traceparent", CALLER),
        ("tracestate", "vendor=a-secret-of-the-callers"),
    ];
    world
        .recorder
        .keep_secret("Idempotency-Key", "traced-key-1");
    let created = customer.create_raw(&headers, body.to_string().as_bytes());
    let id = created.expect(202, "").id();
    customer.wait(&id);
    customer.create("traced-key-1", &body).expect(202, "");
    world.finish();

    let spans = collector.trace(&id);
    check_tree(&spans);
    let names: BTreeSet<_> = spans.iter().map(|span| span.name.as_str()).collect();
    let expected = [
        "POST /api/v1/upscales",
        "wait",
        "attempt",
        "download",
        "child",
        "decode",
        "network",
        "check",
        "encode",
        "store",
        "settle",
        "GET /api/v1/upscales/{id}",
        "GET /r/{file}",
    ];
    assert_eq!(names, expected.into_iter().collect());

    let attempt = named(&spans, "attempt")[0];
    assert_eq!(attempt.kind(), SpanKind::Consumer);
    assert_eq!(word(attempt, "upscale.end"), "succeeded");
    for stage in ["download", "child", "store", "settle"] {
        assert_eq!(named(&spans, stage)[0].parent_span_id, attempt.span_id);
    }
    let child = named(&spans, "child")[0];
    for stage in ["decode", "network", "check", "encode"] {
        assert_eq!(named(&spans, stage)[0].parent_span_id, child.span_id);
    }
    let creates = named(&spans, "POST /api/v1/upscales");
    assert_eq!(creates.len(), 2, "the replay of the same create");
    let first = creates
        .iter()
        .find(|span| span.parent_span_id.is_empty())
        .unwrap();
    assert_eq!(
        hex(&first.span_id),
        hex(&first.trace_id)[16..],
        "every process can name it"
    );
    assert_eq!(
        fact(first, "http.response.status_code"),
        Some(Value::IntValue(202))
    );
    assert_eq!(hex(&first.links[0].trace_id), CALLER[3..35]);
    assert_eq!(hex(&first.links[0].span_id), CALLER[36..52]);
    let log = world.logs();
    assert!(log.contains(&format!("\"trace_id\":\"{}\"", hex(&first.trace_id))));
}

#[test]
fn nothing_of_a_customers_is_in_a_span_and_a_failure_says_its_kind() {
    let collector = Collector::start();
    let mut world = traced(&["--otlp-endpoint", &collector.url], &[]);
    let customer = world.customer("5");
    let url = world.picture("/secret-path.png", 16, 16);
    customer.upscale("traced-key-1", &order(&url, 4));
    let page = world.serve_so("/secret-page.png", Behaviour::Page, (1, 1));
    let failed = customer.create("traced-key-2", &order(&page, 2)).id();
    customer.wait(&failed);
    // What belongs to no task leaves no span.
    customer
        .with_key("usk_live_wrong")
        .read("ups_00000000000000000000000000");
    world.finish();

    let text = collector.text();
    assert!(text.contains(&failed), "the search can find");
    assert_eq!(world.recorder.leaks(&text), Vec::<&str>::new());
    for secret in [
        "secret-path",
        "secret-page",
        "canary",
        "signature",
        "127.0.0.1",
    ] {
        assert!(!text.contains(secret), "{secret} is in a span");
    }
    let keys: BTreeSet<_> = collector
        .spans()
        .iter()
        .flat_map(|span| span.attributes.clone())
        .map(|fact| fact.key)
        .collect();
    let unknown: Vec<_> = keys
        .iter()
        .filter(|key| !ALLOWED.contains(&key.as_str()))
        .collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    assert!(!text.contains("00000000000000000000000000"));

    let spans = collector.trace(&failed);
    check_tree(&spans);
    let child = named(&spans, "child")[0];
    assert_eq!(child.status.clone().unwrap().code(), StatusCode::Error);
    assert_eq!(word(child, "error.type"), "permanent");
    assert_eq!(word(named(&spans, "attempt")[0], "upscale.end"), "failed");
    let service = text.contains("service.name") && text.contains("StringValue(\"upscale\")");
    assert!(service, "it says who it is");
}

#[test]
fn nothing_is_sent_unless_a_collector_is_named_by_flag_or_by_the_standard_variable() {
    let collector = Collector::start();
    let named = [("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url.as_str())];
    let off = [named[0], ("OTEL_SDK_DISABLED", "true")];
    for (flags, variables, is_sent) in [
        (&[][..], &[][..], false),
        (&[], &off, false),
        (&["--trace-share", "0"], &named, false),
        (&[], &named, true),
    ] {
        let mut world = traced(flags, variables);
        let customer = world.customer("1");
        let url = world.picture("/a.png", 8, 8);
        customer.upscale("traced-key-1", &order(&url, 2));
        world.finish();
        assert_eq!(
            !collector.spans().is_empty(),
            is_sent,
            "{flags:?} {variables:?}"
        );
    }
}

/// How many spans ended so, by the service's own count.
fn counted(world: &World, end: &str) -> f64 {
    let url = format!("{}/metrics", world.serve().metrics.as_ref().unwrap());
    let text = send("GET", &url, &[], None).unwrap().body;
    let series = format!("upscale_spans_total{{end=\"{end}\"}} ");
    let text = String::from_utf8(text).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(&series));
    line.unwrap().parse().unwrap()
}

#[test]
fn a_collector_that_is_gone_or_says_nothing_costs_spans_and_nothing_else() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let gone = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = |listener: &TcpListener| format!("http://{}", listener.local_addr().unwrap());
    let (silent_url, gone_url) = (address(&silent), address(&gone));
    drop(gone);
    for (url, fails_at_once) in [(gone_url, true), (silent_url, false)] {
        let flags = ["--otlp-endpoint", &url, "--metrics-listen", "127.0.0.1:0"];
        let mut world = traced(&flags, &[]);
        let customer = world.customer("5");
        let picture = world.picture("/a.png", 8, 8);
        customer.upscale("traced-key-1", &order(&picture, 2));
        let begun = Instant::now();
        while fails_at_once && counted(&world, "failed") == 0.0 {
            assert!(begun.elapsed() < Duration::from_secs(60), "never given up");
            thread::sleep(Duration::from_millis(50));
        }
        assert_eq!(counted(&world, "sent"), 0.0);
        customer.upscale("traced-key-2", &order(&picture, 2));
        world.finish();
        assert!(!fails_at_once || world.logs().contains("traces cannot be sent"));
    }
}

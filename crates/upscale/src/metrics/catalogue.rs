//! Every metric there is: name, kind, help, labels and all values a label may have. Rooms count by name; what is not
//! in this table is a fault that `tests/contract/metrics.rs` finds, and so is a label from outside its list. The table
//! for people is `docs/metrics.md`, held against this one.

use self::Kind::{Counter, Gauge, Histogram};

/// How a metric behaves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    /// Only grows.
    Counter,
    /// Is what it is now.
    Gauge,
    /// Counts by these upper bounds.
    Histogram(&'static [f64]),
}

/// One metric.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Metric {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) help: &'static str,
    /// Labels, each with the values it may have.
    pub(crate) labels: &'static [(&'static str, &'static [&'static str])],
}

const REQUEST_SECONDS: &[f64] = &[
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0,
];
const STAGE_SECONDS: &[f64] = &[
    0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 270.0,
];
const CHILD_BYTES: &[f64] = &[
    32e6, 64e6, 128e6, 192e6, 256e6, 384e6, 512e6, 768e6, 1_024e6, 1_536e6,
];

const ROUTES: &[&str] = &[
    "/api/v1/upscales",
    "/api/v1/upscales/{id}",
    "/openapi.json",
    "/healthz",
    "/readyz",
    "/webhooks/stripe",
    "/r/{file}",
    // Every page of the console: its paths stand in the log alone.
    "console",
    // And of the operators' console.
    "admin",
    "unmatched",
];
const METHODS: &[&str] = &[
    "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "other",
];
const STATUSES: &[&str] = &[
    "200", "201", "202", "206", "303", "304", "400", "401", "402", "403", "404", "405", "409",
    "410", "416", "421", "422", "429", "431", "500", "503", "504", "none",
];
const KERNELS: &[&str] = &["amx", "avx512", "avx2", "neon", "portable", "reference"];
const INVARIANTS: &[&str] = &[
    "I1", "I2", "I3", "I4", "I5", "I6", "I7", "I8", "I9", "I10", "I11", "I12", "I13", "I14",
];

const fn counter(name: &'static str, help: &'static str) -> Metric {
    metric(name, Counter, help)
}

const fn gauge(name: &'static str, help: &'static str) -> Metric {
    metric(name, Gauge, help)
}

const fn metric(name: &'static str, kind: Kind, help: &'static str) -> Metric {
    Metric {
        name,
        kind,
        help,
        labels: &[],
    }
}

impl Metric {
    const fn by(self, labels: &'static [(&'static str, &'static [&'static str])]) -> Self {
        Self { labels, ..self }
    }
}

/// All of them, in the order of `docs/metrics.md`.
pub(crate) const METRICS: &[Metric] = &[
    // The front.
    counter(
        "upscale_requests_total",
        "Requests by route, method and status; status none: the client went away",
    )
    .by(&[("route", ROUTES), ("method", METHODS), ("status", STATUSES)]),
    metric(
        "upscale_request_seconds",
        Histogram(REQUEST_SECONDS),
        "Seconds until an answer's head is ready, without those that the caller asked it to be held",
    )
    .by(&[("route", ROUTES)]),
    counter("upscale_creates_total", "Creates by what the store said").by(&[(
        "outcome",
        &[
            "created",
            "replayed",
            "conflict",
            "active_tasks",
            "daily_tasks",
            "credits",
            "capacity",
            "unknown",
        ],
    )]),
    counter(
        "upscale_limits_hit_total",
        "Refusals by the limit that was reached",
    )
    .by(&[(
        "limit",
        &[
            "create_requests",
            "requests",
            "active_tasks",
            "daily_tasks",
            "capacity",
            "connections",
            "connections_of_address",
            "answers_public",
            "answers_keyed",
            "answers_operators",
            "answers_downloads",
            "waiting",
            "waiting_of_address",
            "bodies_unknown",
            "bodies_keyed",
            "bodies_operators",
            "sign_in",
            "pages",
        ],
    )]),
    gauge(
        "upscale_requests_held",
        "Requests held until their task is over, as they asked",
    ),
    counter(
        "upscale_waiting_looks_total",
        "Looks at the tasks that requests are held for: one query for all of them",
    ),
    gauge("upscale_connections", "Open connections of all listeners"),
    counter(
        "upscale_connections_closed_total",
        "Connections closed by us: overdue, or others needed the permit",
    ),
    counter("upscale_sent_bytes_total", "Bytes of answers' bodies"),
    // The queue.
    gauge("upscale_queue_jobs", "Jobs in the queue: waiting, or claimed by a worker").by(&[("state", &["waiting", "claimed"])]),
    gauge("upscale_queue_oldest_seconds", "Seconds since the oldest open job was ordered; 0 when none is open"),
    gauge(
        "upscale_worker_slots",
        "Images that live workers take at a time",
    ),
    gauge("upscale_job_seconds", "Seconds that a job takes, as measured"),
    gauge(
        "upscale_admission_seconds",
        "Seconds until a task accepted now would be finished, as admission expects",
    ),
    // Work.
    counter("upscale_attempts_total", "Attempts at images by how they ended").by(&[(
        "end",
        &["succeeded", "failed", "retry_later", "released", "lost"],
    )]),
    counter("upscale_attempt_failures_total", "Failed attempts by kind")
        .by(&[("failure", &["permanent", "transient", "crash", "busy"])]),
    counter(
        "upscale_store_retries_total",
        "Results that could not be stored at once and are tried again",
    ),
    metric(
        "upscale_stage_seconds",
        Histogram(STAGE_SECONDS),
        "Seconds of one attempt in each stage",
    )
    .by(&[(
        "stage",
        &[
            "wait", "download", "child", "decode", "network", "check", "encode", "store", "settle",
            "attempt",
        ],
    )]),
    counter("upscale_child_ends_total", "Children by how they ended").by(&[(
        "cause",
        &[
            "done",
            "refused",
            "broke",
            "unfit",
            "not_started",
            "wall_clock",
            "cancelled",
            "protocol",
            "exit",
            "forbidden_call",
            "abort",
            "cpu_limit",
            "killed",
            "weak_sandbox",
            "signal",
        ],
    )]),
    metric(
        "upscale_child_memory_bytes",
        Histogram(CHILD_BYTES),
        "Largest resident memory of each child that made a result",
    ),
    counter(
        "upscale_output_check_total",
        "Results by the fallback level at which they passed the output check; none: failed at both",
    )
    .by(&[("path", &["fast", "plain", "none"])]),
    gauge("upscale_device_up", "1 while the GPU's process takes pictures"),
    gauge(
        "upscale_device_buffer_bytes",
        "The GPU's largest buffer; its name and driver stand in the log and in `doctor`",
    ),
    counter(
        "upscale_device_pictures_total",
        "Results by what made them where a GPU is configured; cpu: not worth handing over, fallback: the CPU after the GPU",
    )
    .by(&[("path", &["device", "cpu", "fallback"])]),
    counter(
        "upscale_device_restarts_total",
        "Ends of the GPU's process, after each of which it is started again",
    ),
    counter("upscale_source_bytes_total", "Bytes of downloaded sources"),
    counter("upscale_result_bytes_total", "Bytes of stored results"),
    // Money.
    counter(
        "upscale_refunds_total",
        "Failed tasks whose credits this process returned",
    ),
    counter(
        "upscale_payment_events_total",
        "Calls of the payment webhook by what they changed, or why they were refused",
    )
    .by(&[(
        "outcome",
        &[
            "credited",
            "refused",
            "taken_back",
            "reinstated",
            "noted",
            "repeated",
            "unsigned",
            "stale",
            "forged",
            "unusable",
        ],
    )]),
    counter(
        "upscale_mails_total",
        "Mails of the console by outcome; `unknown`: no user has the address, `dropped`: too many were waiting",
    )
    .by(&[("outcome", &["sent", "failed", "dropped", "unknown"])]),
    gauge(
        "upscale_ledger_breaches",
        "Breaches that the last audit found, by invariant",
    )
    .by(&[("invariant", INVARIANTS)]),
    gauge("upscale_audit_seconds", "Seconds that the last audit took"),
    counter("upscale_audits_total", "Audits that came to an end"),
    counter(
        "upscale_maintenance_failures_total",
        "Maintenance tasks that failed",
    )
    .by(&[(
        "task",
        &[
            "reap",
            "refund",
            "clock",
            "sweep",
            "audit",
            "audit_files",
            "old_transactions",
            "dead_owners",
        ],
    )]),
    gauge(
        "upscale_deletion_pause_seconds",
        "Seconds the service has still to run before anything is deleted, after its clock stepped; or 0",
    ),
    gauge(
        "upscale_database_oldest_transaction_seconds",
        "Seconds that the oldest transaction has been open in PostgreSQL, where that is over a minute; or 0",
    ),
    // The process.
    gauge(
        "upscale_build_info",
        "Always 1; the labels say which version and kernels run",
    )
    .by(&[
        ("version", &[env!("CARGO_PKG_VERSION")]),
        ("kernels", KERNELS),
    ]),
    gauge(
        "upscale_sandbox_missing",
        "1 where the machine lacks this part of the children's sandbox",
    )
    .by(&[(
        "part",
        &[
            "own user",
            "death signal",
            "no_new_privs",
            "landlock",
            "landlock network",
            "landlock scopes",
            "seccomp",
            "oom score",
        ],
    )]),
    gauge(
        "upscale_engine_ready",
        "1 when the golden image is correct at start, or no images are made in this process",
    ),
    gauge(
        "upscale_store_up",
        "1 when the store answered this scrape; without it the queue's gauges are old",
    ),
    gauge(
        "upscale_storage_up",
        "1 when results could be stored at the last try, or this process has no API to try it for",
    ),
    counter(
        "upscale_spans_total",
        "Spans of traces by what became of them; none where traces are off",
    )
    .by(&[("end", &["sent", "failed", "dropped"])]),
    counter(
        "process_cpu_seconds_total",
        "Processor time of this process in whole seconds, without the children that work on images",
    ),
    gauge(
        "process_resident_memory_bytes",
        "Resident memory of this process, without the children that work on images",
    ),
    gauge(
        "process_virtual_memory_bytes",
        "Virtual memory of this process",
    ),
    gauge("process_open_fds", "Open file descriptors of this process"),
    gauge(
        "process_max_fds",
        "File descriptors that this process may have open",
    ),
    gauge(
        "process_start_time_seconds",
        "When this process started, seconds since the Unix epoch",
    ),
];

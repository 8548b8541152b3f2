//! `/metrics`: what it says after a few tasks, that it says nothing else, and nothing of any customer.

use std::{
    collections::{BTreeMap, BTreeSet},
    thread,
    time::{Duration, Instant},
};

use crate::harness::{
    World,
    client::{order, send},
    image_host::Behaviour,
};

/// Every sample by its name and labels, as the text format writes them.
pub(crate) fn scrape(world: &World) -> (String, BTreeMap<String, f64>) {
    let url = format!("{}/metrics", world.serve().metrics.as_ref().unwrap());
    let answer = send("GET", &url, &[], None).unwrap();
    assert_eq!(answer.status, 200);
    assert!(answer.header("content-type").starts_with("text/plain"));
    let text = String::from_utf8(answer.body).unwrap();
    let lines = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    let sample = |line: &str| {
        let (series, value) = line.rsplit_once(' ').unwrap();
        (series.to_owned(), value.parse().unwrap())
    };
    let samples = lines.map(sample).collect();
    (text, samples)
}

/// As soon as the golden image is done: it is four children of its own.
fn once_ready(world: &World) -> BTreeMap<String, f64> {
    let begun = Instant::now();
    loop {
        let (_, samples) = scrape(world);
        if samples["upscale_engine_ready"] == 1.0 {
            return samples;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "never ready");
        thread::sleep(Duration::from_millis(20));
    }
}

/// The metric of a series: a histogram's parts belong to one.
fn metric(series: &str) -> String {
    let name = series.split('{').next().unwrap();
    let part = ["_bucket", "_sum", "_count"]
        .iter()
        .find_map(|end| name.strip_suffix(end));
    part.unwrap_or(name).to_owned()
}

fn documented() -> BTreeSet<String> {
    let page = include_str!("../../../../docs/metrics.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.map(|row| row.split('`').next().unwrap().to_owned())
        .collect()
}

#[test]
fn every_documented_metric_is_there_and_counts_what_happened() {
    let world = World::start_with(&["--metrics-listen", "127.0.0.1:0"]);
    let customer = world.customer("5");
    let url = world.picture("/a.png", 24, 16);
    customer.upscale("metrics-key-1", &order(&url, 2));
    customer.create("metrics-key-1", &order(&url, 2));
    let page = world.serve_so("/page.png", Behaviour::Page, (1, 1));
    customer.fail("metrics-key-2", &order(&page, 2));
    customer
        .with_key("usk_live_wrong")
        .read("ups_00000000000000000000000000");

    let samples = once_ready(&world);
    let found: BTreeSet<String> = samples.keys().map(|series| metric(series)).collect();
    assert_eq!(found, documented());
    for (series, expected) in [
        ("upscale_attempts_total{end=\"succeeded\"}", 1.0),
        ("upscale_attempts_total{end=\"failed\"}", 1.0),
        ("upscale_attempt_failures_total{failure=\"permanent\"}", 1.0),
        ("upscale_child_ends_total{cause=\"done\"}", 5.0),
        ("upscale_child_ends_total{cause=\"refused\"}", 1.0),
        ("upscale_output_check_total{path=\"fast\"}", 1.0),
        ("upscale_output_check_total{path=\"none\"}", 0.0),
        ("upscale_refunds_total", 1.0),
        ("upscale_creates_total{outcome=\"created\"}", 2.0),
        ("upscale_creates_total{outcome=\"replayed\"}", 1.0),
        ("upscale_ledger_breaches{invariant=\"I1\"}", 0.0),
        ("upscale_engine_ready", 1.0),
        ("upscale_store_up", 1.0),
        ("upscale_storage_up", 1.0),
        ("upscale_queue_jobs{state=\"waiting\"}", 0.0),
        ("upscale_stage_seconds_count{stage=\"encode\"}", 1.0),
        (
            "upscale_requests_total{route=\"/api/v1/upscales\",method=\"POST\",status=\"202\"}",
            3.0,
        ),
        (
            "upscale_requests_total{route=\"/api/v1/upscales/{id}\",method=\"GET\",status=\"401\"}",
            1.0,
        ),
    ] {
        assert_eq!(samples.get(series), Some(&expected), "{series}");
    }
    for series in [
        "process_resident_memory_bytes",
        "process_virtual_memory_bytes",
        "process_open_fds",
        "process_max_fds",
        "process_start_time_seconds",
        "upscale_worker_slots",
        "upscale_child_memory_bytes_sum",
        "upscale_source_bytes_total",
        "upscale_result_bytes_total",
        "upscale_sent_bytes_total",
    ] {
        assert!(samples[series] > 0.0, "{series}");
    }
}

#[test]
fn whatever_is_asked_for_adds_no_label_and_nothing_of_a_customer_is_in_one() {
    let world = World::start_with(&["--metrics-listen", "127.0.0.1:0"]);
    let customer = world.customer("5");
    let url = world.picture("/secret-path.png", 16, 16);
    let id = customer.upscale("metrics-key-1", &order(&url, 2)).id();
    let ask = |path: &str, method: &str| customer.send(method, path, &[], None);
    ask("/first", "GET");
    ask("/first", "BREW");
    let (_, before) = scrape(&world);
    for number in 0..20 {
        ask(&format!("/path-{number}?query={number}"), "GET");
        ask(&format!("/path-{number}"), &format!("BREW{number}"));
    }
    let (text, after) = scrape(&world);
    let names = |samples: &BTreeMap<String, f64>| samples.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&before), names(&after));
    assert_eq!(world.recorder.leaks(&text), Vec::<&str>::new());
    for secret in [
        &id,
        &customer.account,
        "secret-path",
        "path-1",
        "BREW",
        "127.0.0.1",
    ] {
        assert!(!text.contains(secret), "{secret} is in the metrics");
    }
}

#[test]
fn without_the_flag_there_is_no_listener_and_the_api_has_no_metrics() {
    let world = World::start();
    assert_eq!(world.serve().metrics, None);
    let visitor = world.visitor();
    assert_eq!(visitor.send("GET", "/metrics", &[], None).status, 404);
}

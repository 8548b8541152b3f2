//! `/metrics`: what all rooms counted, for Prometheus, on a listener of its own, beside the probes. Nothing is kept when it is off.

mod catalogue;
mod process;

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use anyhow::Context;
use axum::{
    Router,
    http::{StatusCode, header},
    routing::get,
};
use metrics::{counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use upscale_api::ApiState;
use upscale_core::{QueueFacts, predicted_seconds};
use upscale_engine::KernelSet;
use upscale_store::Store;

use self::catalogue::{Kind, METRICS, Metric};

/// The text format's version that Prometheus asks for.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Starts counting; once, before anything else counts.
///
/// # Errors
/// When counting was started before.
pub(crate) fn start(kernels: Option<KernelSet>) -> anyhow::Result<PrometheusHandle> {
    let mut builder = PrometheusBuilder::new();
    for metric in METRICS {
        if let Kind::Histogram(bounds) = metric.kind {
            let name = Matcher::Full(metric.name.to_owned());
            builder = builder.set_buckets_for_metric(name, bounds)?;
        }
    }
    let handle = builder
        .install_recorder()
        .context("metrics were started twice")?;
    METRICS.iter().for_each(introduce);
    let kernels = kernels.unwrap_or_else(KernelSet::best).name();
    gauge!("upscale_build_info", "version" => env!("CARGO_PKG_VERSION"), "kernels" => kernels)
        .set(1.0);
    process::note_start();
    Ok(handle)
}

/// Says what it is, and that it is zero so far: a rate over a counter that appears with its first event misses it.
fn introduce(metric: &Metric) {
    let &Metric {
        name,
        kind,
        help,
        labels,
    } = metric;
    match kind {
        Kind::Counter => describe_counter!(name, help),
        Kind::Gauge => describe_gauge!(name, help),
        Kind::Histogram(_) => describe_histogram!(name, help),
    }
    match (kind, labels) {
        (Kind::Counter, []) => counter!(name).absolute(0),
        (Kind::Gauge, []) => gauge!(name).set(0.0),
        (Kind::Histogram(_), []) => drop(histogram!(name)),
        (kind, [(label, values)]) => values.iter().for_each(|value| match kind {
            Kind::Counter => counter!(name, *label => *value).absolute(0),
            Kind::Gauge => gauge!(name, *label => *value).set(0.0),
            Kind::Histogram(_) => drop(histogram!(name, *label => *value)),
        }),
        // Several labels would be thousands of series that never come to be.
        _ => {}
    }
}

/// Who says whether this process can do its part.
#[derive(Clone)]
pub(crate) enum Readiness {
    /// The API, as on its own listener.
    Api(ApiState),
    /// A worker: it has started, and can write what comes of its work.
    Worker {
        store: Store,
        has_started: Arc<AtomicBool>,
    },
}

impl Readiness {
    async fn check(&self) -> Result<(), String> {
        match self {
            Self::Api(state) => state.check_ready().await,
            Self::Worker { has_started, .. } if !has_started.load(Ordering::Relaxed) => {
                Err("the golden image is not done".to_owned())
            }
            Self::Worker { store, .. } => {
                let writable = store.check_writable().await;
                writable.map_err(|error| error.to_string())
            }
        }
    }
}

/// The metrics, and the probes of a process that may have no other listener.
pub(crate) fn router(handle: PrometheusHandle, store: Store, readiness: Readiness) -> Router {
    let scrape = move || {
        let (handle, store) = (handle.clone(), store.clone());
        async move {
            look_around(&store).await;
            handle.run_upkeep();
            ([(header::CONTENT_TYPE, TEXT)], handle.render())
        }
    };
    let readyz = move || {
        let readiness = readiness.clone();
        async move {
            match readiness.check().await {
                Ok(()) => (StatusCode::OK, "ready\n".to_owned()),
                Err(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
            }
        }
    };
    Router::new()
        .route("/metrics", get(scrape))
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(readyz))
}

/// What is not counted as it happens, but looked at when someone asks.
async fn look_around(store: &Store) {
    process::look();
    let glance = store.tasks().queue_glance().await;
    gauge!("upscale_store_up").set(f64::from(u8::from(glance.is_ok())));
    let Ok(glance) = glance else { return };
    gauge!("upscale_queue_jobs", "state" => "waiting").set(glance.waiting);
    gauge!("upscale_queue_jobs", "state" => "claimed").set(glance.claimed);
    gauge!("upscale_queue_oldest_seconds").set(glance.oldest_seconds as f64);
    gauge!("upscale_worker_slots").set(glance.live_slots);
    gauge!("upscale_job_seconds").set(glance.seconds_per_job);
    let next = QueueFacts {
        open_jobs: glance.waiting + glance.claimed,
        live_slots: glance.live_slots,
        seconds_per_job: glance.seconds_per_job,
        deadline_seconds: store.options().deadline_seconds,
    };
    gauge!("upscale_admission_seconds").set(predicted_seconds(next));
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    use super::*;

    fn names() -> BTreeSet<String> {
        METRICS
            .iter()
            .map(|metric| metric.name.to_owned())
            .collect()
    }

    /// Every `"upscale_…"` and `"process_…"` that follows a counting macro in the sources of the rooms.
    fn counted() -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        let mut open = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("..")];
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(folder).unwrap().flatten() {
                let (path, name) = (entry.path(), entry.file_name());
                if path.is_dir() && name != "tests" && name != "target" {
                    open.push(path);
                } else if path.extension().is_some_and(|kind| kind == "rs") {
                    found.extend(counted_in(&fs::read_to_string(&path).unwrap()));
                }
            }
        }
        found
    }

    fn counted_in(source: &str) -> Vec<String> {
        let names = ["counter!(", "gauge!(", "histogram!("].map(|macro_name| {
            let calls = source.split(macro_name).skip(1);
            let quoted = calls.filter_map(|rest| rest.trim_start().strip_prefix('"'));
            let names = quoted.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned()));
            let names =
                names.filter(|name| name.starts_with("upscale_") || name.starts_with("process_"));
            names.collect::<Vec<_>>()
        });
        names.concat()
    }

    #[test]
    fn everything_counted_is_in_the_table_and_the_table_holds_nothing_else() {
        assert_eq!(counted(), names());
    }

    /// Label and values of every `name{label="one|two"}` in a text.
    fn selectors(text: &str) -> Vec<(&str, &str, Vec<&str>)> {
        let open = text.split('{').zip(text.split('{').skip(1));
        let found = open.filter_map(|(before, after)| {
            let name = before.rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let name = name.into_iter().next()?;
            let label_end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')?;
            let (label, rest) = after.split_at(label_end);
            let values = rest.trim_start_matches(['=', '~', '!']).strip_prefix('"')?;
            Some((name, label, values.split('"').next()?.split('|').collect()))
        });
        found
            .filter(|(name, ..)| name.starts_with("upscale_"))
            .collect()
    }

    #[test]
    fn what_alerts_and_pages_select_by_is_a_value_that_the_label_can_have() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut seen = 0;
        for file in [
            "packages/prometheus/alerts.yaml",
            "docs/metrics.md",
            "docs/traces.md",
        ] {
            let text = fs::read_to_string(root.join(file)).unwrap();
            for (name, label, values) in selectors(&text) {
                let metric = METRICS.iter().find(|metric| metric.name == name);
                let metric = metric.unwrap_or_else(|| panic!("{file}: {name}"));
                let known = metric.labels.iter().find(|(known, _)| *known == label);
                let (_, known) = known.unwrap_or_else(|| panic!("{file}: {name}{{{label}}}"));
                // A class of statuses, which are numbers.
                for value in values.iter().filter(|value| !value.ends_with("..")) {
                    assert!(known.contains(value), "{file}: {name}{{{label}={value:?}}}");
                    seen += 1;
                }
            }
        }
        assert!(seen > 6, "only {seen} values found");
    }

    #[test]
    fn the_page_for_people_has_every_metric_as_the_table_has_it_and_no_other() {
        let page =
            fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md"))
                .unwrap();
        let rows: Vec<&str> = page
            .lines()
            .filter(|line| line.starts_with("| `"))
            .collect();
        assert_eq!(rows, METRICS.iter().map(row).collect::<Vec<_>>());
    }

    /// As the page's tables have it.
    fn row(metric: &Metric) -> String {
        let kind = match metric.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram(_) => "histogram",
        };
        let labels = metric.labels.iter().map(|(label, _)| format!("`{label}`"));
        let labels: Vec<String> = labels.collect();
        let Metric { name, help, .. } = metric;
        format!("| `{name}` | {kind} | {} | {help} |", labels.join(" "))
    }

    /// <https://prometheus.io/docs/practices/naming/>; promtool looks further, in `checks/packages.sh`.
    #[test]
    fn counters_end_in_total_and_nothing_else_does() {
        for metric in METRICS {
            let is_counter = metric.kind == Kind::Counter;
            assert_eq!(metric.name.ends_with("_total"), is_counter, "{metric:?}");
        }
    }
}

//! What the packages name must exist: metrics in the catalogue, `UPSCALE_` variables among the flags, commands.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

/// Every word of these characters that begins so.
fn words(text: &str, prefix: &str) -> BTreeSet<String> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .filter(|word| word.starts_with(prefix) && word.len() > prefix.len())
        .map(str::to_owned)
        .collect()
}

/// Every series of ours that a query names.
fn series(query: &str) -> BTreeSet<String> {
    &words(query, "upscale_") | &words(query, "process_")
}

/// The metric behind a series' name: a histogram has three.
fn metric(series: &str) -> &str {
    ["_bucket", "_sum", "_count"]
        .iter()
        .find_map(|suffix| series.strip_suffix(suffix))
        .unwrap_or(series)
}

#[test]
fn every_metric_that_dashboard_and_alerts_name_exists() {
    let known: BTreeSet<String> = read("docs/metrics.md")
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .map(str::to_owned)
        .collect();
    assert!(known.len() > 20, "{known:?}");
    let dashboard: Value = serde_json::from_str(&read("packages/grafana/upscale.json")).unwrap();
    let mut shown = BTreeSet::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        let queries = panel["targets"].as_array().into_iter().flatten();
        for query in queries.map(|query| query["expr"].as_str().unwrap()) {
            shown.extend(series(query));
        }
    }
    let rules = read("packages/prometheus/alerts.yaml");
    let expressions: String = rules
        .lines()
        .filter(|line| line.contains("expr:"))
        .collect();
    let watched = series(&expressions);
    assert!(
        shown.len() > 20 && watched.len() > 8,
        "{shown:?} {watched:?}"
    );
    let unknown: Vec<_> = shown
        .union(&watched)
        .filter(|name| !known.contains(metric(name)))
        .collect();
    assert!(unknown.is_empty(), "no such metrics: {unknown:?}");
    let unseen: Vec<_> = known
        .iter()
        .filter(|name| !shown.iter().any(|series| metric(series) == name.as_str()))
        .collect();
    assert!(unseen.is_empty(), "the dashboard leaves out {unseen:?}");
}

/// promtool runs them (`checks/prometheus.sh`); an alert without a test would pass there.
#[test]
fn every_alert_is_tested_both_ways() {
    let rules = read("packages/prometheus/alerts.yaml");
    let alerts: Vec<&str> = rules
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- alert: "))
        .collect();
    assert!(alerts.len() > 15, "{alerts:?}");
    let tests = read("packages/prometheus/alerts_test.yaml");
    for alert in alerts {
        let silent = format!("alertname: {alert}, exp_alerts: [] }}");
        let fires = format!("alertname: {alert}\n        exp_alerts:\n          - exp_labels:");
        assert!(tests.contains(&silent), "{alert} may ring at any time");
        assert!(tests.contains(&fires), "{alert} may never ring");
    }
}

#[test]
fn every_variable_that_the_packages_set_is_a_flag() {
    let mut flags = BTreeSet::new();
    for role in ["serve", "api", "worker"] {
        let output = Command::new(env!("CARGO_BIN_EXE_upscale"))
            .args([role, "--help"])
            .output();
        flags.extend(words(
            &String::from_utf8(output.unwrap().stdout).unwrap(),
            "UPSCALE_",
        ));
    }
    assert!(flags.contains("UPSCALE_LISTEN"), "{flags:?}");
    // Not flags: what compose asks its own operator for.
    let own = "UPSCALE_DATABASE_PASSWORD";
    for path in [
        "packages/docker/Dockerfile",
        "packages/docker/compose.yaml",
        "packages/docker/compose.fleet.yaml",
        "packages/systemd/upscale.env",
        "packages/helm/upscale/templates/_names.tpl",
        "packages/helm/upscale/templates/api.yaml",
        "packages/helm/upscale/templates/worker.yaml",
    ] {
        let unknown: Vec<_> = words(&read(path), "UPSCALE_")
            .into_iter()
            .filter(|name| name != own && !flags.contains(name))
            .collect();
        assert!(unknown.is_empty(), "{path}: no such flags: {unknown:?}");
    }
}

#[test]
fn the_image_runs_one_binary_as_an_unprivileged_user() {
    let file = read("packages/docker/Dockerfile");
    let lines: Vec<&str> = file.lines().filter(|line| !line.starts_with('#')).collect();
    let last_stage = lines
        .iter()
        .rposition(|line| line.starts_with("FROM "))
        .unwrap();
    assert_eq!(lines[last_stage], "FROM scratch");
    assert!(
        lines[last_stage..]
            .iter()
            .all(|line| !line.starts_with("RUN"))
    );
    assert!(
        lines.iter().any(|line| line.starts_with("HEALTHCHECK ")
            && line.ends_with(r#"CMD ["/upscale", "health"]"#))
    );
    assert!(lines.contains(&"USER 65532:65532"));
    assert!(lines.contains(&r#"ENTRYPOINT ["/upscale"]"#));
    assert!(file.contains("cargo build --release --locked"));
}

/// No package tells clients an address of a machine's inside, and each gives a process longer to end than it may drain.
#[test]
fn every_package_leaves_result_links_to_the_base_url_and_time_to_stop() {
    let drain = 25;
    for unit in ["upscale", "upscale-api", "upscale-worker"] {
        let text = read(&format!("packages/systemd/{unit}.service"));
        let seconds = text
            .lines()
            .find_map(|line| line.strip_prefix("TimeoutStopSec="))
            .unwrap();
        assert!(seconds.parse::<u32>().unwrap() >= drain + 10, "{unit}");
        assert!(!text.contains("\nIPAddressDeny="), "{unit}");
    }
    for path in [
        "packages/docker/Dockerfile",
        "packages/docker/compose.yaml",
        "packages/docker/compose.fleet.yaml",
        "packages/helm/upscale/templates/api.yaml",
    ] {
        assert!(!read(path).contains("UPSCALE_RESULTS_LISTEN"), "{path}");
    }
    let image = Command::new(env!("CARGO_BIN_EXE_upscale"))
        .args(["serve", "--data", "/nowhere/at/all"])
        .env("UPSCALE_LISTEN", "0.0.0.0:8080")
        .output()
        .unwrap();
    let words = String::from_utf8(image.stderr).unwrap();
    assert!(
        words.contains("--base-url"),
        "the image without one: {words}"
    );
}

#[test]
fn no_package_opts_out_of_the_sandbox_and_none_ends_with_a_child() {
    let units = [
        "packages/systemd/upscale.service",
        "packages/systemd/upscale-worker.service",
    ];
    for unit in units {
        let unit_text = read(unit);
        let calls = unit_text
            .lines()
            .find_map(|line| line.strip_prefix("SystemCallFilter="))
            .unwrap();
        for needed in ["@system-service", "seccomp", "landlock_restrict_self"] {
            assert!(
                calls.split(' ').any(|call| call == needed),
                "{unit}: {needed}"
            );
        }
        assert!(unit_text.contains("\nOOMPolicy=continue\n"), "{unit}");
    }
    let others = [
        "packages/systemd/upscale.env",
        "packages/docker/Dockerfile",
        "packages/docker/compose.yaml",
        "packages/docker/compose.fleet.yaml",
        "packages/helm/upscale/values.yaml",
        "packages/helm/upscale/templates/worker.yaml",
    ];
    for path in units.into_iter().chain(others) {
        let text = read(path).to_lowercase().replace('_', "-");
        for opted_out in [
            "allow-weak-sandbox",
            "seccomp=unconfined",
            "type: unconfined",
        ] {
            assert!(!text.contains(opted_out), "{path}: {opted_out}");
        }
    }
}

//! `upscale doctor` on a machine that is well, and on parts that are not.

use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{operator::Operator, serve::upscale};

/// The report and the exit status; nothing outside is asked, for tests touch no network.
fn doctor(arguments: &[&str], environment: &[(&str, &str)]) -> (Value, Option<i32>) {
    let output = upscale()
        .args(["doctor", "--json", "--outside", "localhost"])
        .args(arguments)
        .envs(environment.iter().copied())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let error = String::from_utf8_lossy(&output.stderr);
    let report = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}{error}"));
    (report, output.status.code())
}

fn health<'a>(report: &'a Value, part: &str) -> (&'a str, &'a str) {
    let parts = report["parts"].as_array().unwrap();
    let found = parts.iter().find(|found| found["part"] == part);
    let found = found.unwrap_or_else(|| panic!("no {part} in {report}"));
    (
        found["health"].as_str().unwrap(),
        found["words"].as_str().unwrap(),
    )
}

#[test]
fn a_machine_that_is_well_is_told_so_part_by_part() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    Operator::new(data.clone(), Vec::new()).create_account("someone");
    let (report, status) = doctor(&["--data", data.to_str().unwrap()], &[]);
    assert_eq!(
        (status, &report["ok"]),
        (Some(0), &Value::Bool(true)),
        "{report}"
    );
    for part in ["version", "engine", "store", "disk"] {
        assert_eq!(health(&report, part).0, "good", "{report}");
    }
    assert!(health(&report, "processor").1.contains("kernels"));
    assert!(
        health(&report, "store").1.contains("0 jobs wait"),
        "{report}"
    );
}

#[test]
fn what_is_wrong_is_bad_and_ends_with_1() {
    let (report, status) = doctor(&["--data", "/nowhere/at/all"], &[]);
    assert_eq!((status, &report["ok"]), (Some(1), &Value::Bool(false)));
    assert_eq!(health(&report, "store").0, "bad");
    assert_eq!(health(&report, "disk").0, "bad");
    let (report, status) = doctor(&[], &[("UPSCALE_CPU", "abacus")]);
    assert_eq!(status, Some(1), "{report}");
    let (how, words) = health(&report, "processor");
    assert!(how == "bad" && words.contains("abacus"), "{report}");
    assert_eq!(
        health(&report, "engine").0,
        "bad",
        "the child cannot start either"
    );
}

//! A service whose secrets are sealed, through the real binary: it works as before, and does not start without its key.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Output,
};

use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{World, client::order, operator::Operator, serve::upscale};

/// A file of keys, one of each digit.
fn key_file(folder: &Path, digits: &str) -> PathBuf {
    let lines: String = digits
        .chars()
        .map(|digit| format!("{}\n", digit.to_string().repeat(64)))
        .collect();
    let path = folder.join(format!("{digits}.key"));
    fs::write(&path, lines).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path
}

/// A command on this directory, with the file of a key or without.
fn run(arguments: &[&str], data: &Path, key: Option<&Path>) -> Output {
    let mut command = upscale();
    command.args(arguments).arg("--data").arg(data);
    if let Some(key) = key {
        command.env("UPSCALE_SECRET_KEY_FILE", key);
    }
    command.output().unwrap()
}

/// What `doctor` says of the secrets.
fn secrets(data: &Path, key: Option<&Path>) -> (String, String) {
    let asked = ["doctor", "--json", "--outside", "localhost"];
    let output = run(&asked, data, key);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let parts = report["parts"].as_array().unwrap();
    let found = parts.iter().find(|part| part["part"] == "secrets").unwrap();
    let text = |name: &str| found[name].as_str().unwrap().to_owned();
    (text("health"), text("words"))
}

#[test]
fn a_service_with_a_key_delivers_as_before_and_does_not_start_without_it() {
    let folder = TempDir::new().unwrap();
    let (key, other) = (key_file(folder.path(), "1"), key_file(folder.path(), "2"));
    let flags = ["--secret-key-file", key.to_str().unwrap()];
    let mut world = World::prepare(&flags);
    world.serve_again();
    let customer = world.customer("1");
    let url = world.picture("/small.png", 9, 7);
    let ended = customer.upscale("first-key", &order(&url, 2));
    let link = ended.result_url();
    assert_eq!(customer.fetch("GET", &link, &[]).status, 200);
    let (health, words) = secrets(&world.data(), Some(&key));
    assert_eq!(
        (health.as_str(), words.as_str()),
        ("good", "1 in the database, sealed")
    );
    world.finish();

    let listen = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--results-listen",
        "127.0.0.1:0",
    ];
    for (key, words) in [
        (None, "name the file of their key with --secret-key-file"),
        (
            Some(other.as_path()),
            "which --secret-key-file does not hold",
        ),
    ] {
        let refused = run(&listen, &world.data(), key);
        let reported = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(1), "{reported}");
        assert!(reported.contains(words), "{reported}");
        let (health, found) = secrets(&world.data(), key);
        assert!(health == "bad" && found.contains(words), "{found}");
        let rotated = run(&["key", "rotate-signing"], &world.data(), key);
        assert!(!rotated.status.success(), "{rotated:?}");
        let listed = run(&["account", "list"], &world.data(), key);
        assert!(listed.status.success(), "what needs no secret needs no key");
    }
}

#[test]
fn doctor_says_what_lies_in_plain_text_and_which_key_everyone_reads() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    Operator::new(data.clone(), Vec::new()).create_account("someone");
    let (health, words) = secrets(&data, None);
    assert!(
        health == "fair" && words.contains("--secret-key-file"),
        "{words}"
    );
    let key = key_file(folder.path(), "1");
    let (health, words) = secrets(&data, Some(&key));
    assert!(
        health == "fair" && words.contains("1 are in plain text"),
        "{words}"
    );
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let (health, words) = secrets(&data, Some(&key));
    assert!(health == "fair" && words.contains("chmod 600"), "{words}");
    fs::write(&key, "a password").unwrap();
    let refused = run(&["account", "list"], &data, Some(&key));
    let reported = String::from_utf8_lossy(&refused.stderr);
    assert!(
        reported.contains("line 1 is not a key") && !reported.contains("a password"),
        "{reported}"
    );
}

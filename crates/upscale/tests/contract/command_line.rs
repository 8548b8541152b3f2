//! The manners of the command line: where data are by default, what a terminal is shown, that a failure is said once and
//! before the work.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use serde_json::Value;
use tempfile::TempDir;

use crate::harness::serve::upscale;

/// A bound against hanging, not a promise of speed.
const WAIT_MAX: Duration = Duration::from_secs(90);

/// The binary in the home of someone who has set nothing.
fn at_home(home: &Path) -> Command {
    let mut command = upscale();
    command
        .env("HOME", home)
        .env_remove("XDG_DATA_HOME")
        .env_remove("NO_COLOR");
    command
}

#[test]
fn data_are_at_home_by_default_and_every_command_finds_them_there() {
    let home = TempDir::new().unwrap();
    let missing = at_home(home.path())
        .args(["account", "list"])
        .output()
        .unwrap();
    let place = home.path().join(".local/share/upscale");
    let words = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert_eq!(missing.status.code(), Some(1));
    assert!(
        words.contains(&format!(
            "data directory {} does not exist",
            place.display()
        )),
        "{words}"
    );
    let made = at_home(home.path())
        .args(["quickstart", "--json"])
        .output()
        .unwrap();
    let made: Value = serde_json::from_slice(&made.stdout).unwrap();
    let listed = at_home(home.path())
        .args(["account", "list", "--json"])
        .output()
        .unwrap();
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let account = made["account"]["id"]
        .as_str()
        .or(made["account"].as_str())
        .unwrap();
    assert!(listed.contains(account), "{listed}");
    assert!(place.join("upscale.db").exists());
    let elsewhere = home.path().join("xdg");
    let listed = at_home(home.path())
        .args(["account", "list"])
        .env("XDG_DATA_HOME", &elsewhere)
        .output()
        .unwrap();
    let words = String::from_utf8_lossy(&listed.stderr).into_owned();
    assert!(words.contains("xdg/upscale"), "{words}");
}

/// `serve` on a terminal of its own, which `script` makes; what it showed until it was ready, and after Ctrl-C.
fn on_a_terminal(home: &Path, environment: &[(&str, &str)]) -> String {
    // Without `exec` a shell may stay and hear Ctrl-C as well: dash does, and where SHELL is unset `script` starts that.
    let line = format!(
        "exec {} serve --listen 127.0.0.1:0 --metrics-listen 127.0.0.1:0",
        env!("CARGO_BIN_EXE_upscale")
    );
    let mut script = Command::new("script");
    script.args([
        "--quiet",
        "--return",
        "--flush",
        "--command",
        &line,
        "/dev/null",
    ]);
    script.env("HOME", home).env("TERM", "xterm-256color");
    script
        .env_remove("XDG_DATA_HOME")
        .env_remove("NO_COLOR")
        .envs(environment.iter().copied());
    let mut script = script
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(script.stdout.take().unwrap());
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in output.split(b'\n').map_while(Result::ok) {
            let _ = sender.send(String::from_utf8_lossy(&line).into_owned());
        }
    });
    let mut shown = String::new();
    let mut is_stopped = false;
    while let Ok(line) = lines.recv_timeout(WAIT_MAX) {
        shown += &line;
        shown.push('\n');
        if shown.contains("quickstart") && !is_stopped {
            is_stopped = true;
            script.stdin.as_mut().unwrap().write_all(b"\x03").unwrap();
        }
    }
    assert!(script.wait().unwrap().success(), "{shown}");
    shown
}

#[test]
fn a_terminal_is_shown_every_address_and_colours_unless_they_are_not_wanted() {
    let home = TempDir::new().unwrap();
    let shown = on_a_terminal(home.path(), &[]);
    for expected in [
        "is ready. Ctrl-C stops it.",
        "/api/v1/upscales",
        "/metrics",
        ".local/share/upscale",
    ] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
    assert!(!shown.contains("\"event\""), "{shown}");
    assert!(shown.contains('\u{1b}'), "{shown}");
    let plain = on_a_terminal(home.path(), &[("NO_COLOR", "1")]);
    assert!(
        plain.contains("is ready.") && !plain.contains('\u{1b}'),
        "{plain}"
    );
}

#[test]
fn a_failure_is_said_once_and_in_one_line() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let folder = TempDir::new().unwrap();
    for format in ["json", "pretty"] {
        let failed = upscale()
            .args([
                "serve",
                "--listen",
                &address,
                "--log-format",
                format,
                "--data",
            ])
            .arg(folder.path())
            .output()
            .unwrap();
        let words = String::from_utf8_lossy(&failed.stderr).into_owned();
        assert_eq!(failed.status.code(), Some(1));
        assert!(failed.stdout.is_empty());
        assert_eq!(words.matches("cannot listen on").count(), 1, "{words}");
        assert!(
            words.contains(&format!("upscale: cannot listen on {address}: ")),
            "{words}"
        );
        assert!(
            !words.contains("Error {") && !words.contains("Caused by"),
            "{words}"
        );
    }
}

#[test]
fn where_a_result_cannot_be_written_nothing_is_asked_for() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, b"in the way").unwrap();
    // Nothing answers at this address: a command that does not ask does not notice.
    let wait = upscale()
        .args([
            "wait",
            "ups_1",
            "--api",
            "http://127.0.0.1:9",
            "--api-key",
            "k",
            "--out",
        ])
        .arg(file.join("result.png"))
        .output()
        .unwrap();
    let words = String::from_utf8_lossy(&wait.stderr).into_owned();
    assert_eq!(wait.status.code(), Some(1));
    assert!(words.contains(&file.display().to_string()), "{words}");
}

//! TLS by the service itself, asked by curl: API, result files and console; a certificate that is replaced while it runs.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use rcgen::{CertifiedKey, generate_simple_self_signed};
use tempfile::TempDir;

use crate::harness::serve::{Serve, log_path, upscale, wait_for};

const API: &str = "api.example.test";
const CONSOLE: &str = "console.example.test";

struct Files {
    folder: TempDir,
}

impl Files {
    fn new() -> Self {
        let files = Self {
            folder: TempDir::new().unwrap(),
        };
        files.renew();
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Another certificate and key in place of those that are there.
    fn renew(&self) {
        let names = [API, CONSOLE].map(str::to_owned);
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names).unwrap();
        fs::write(self.path("tls.crt"), cert.pem()).unwrap();
        fs::write(self.path("tls.key"), signing_key.serialize_pem()).unwrap();
    }

    /// What curl is to trust: the certificate as it is now.
    fn keep_root(&self, name: &str) -> PathBuf {
        fs::copy(self.path("tls.crt"), self.path(name)).unwrap();
        self.path(name)
    }

    fn flags(&self) -> Vec<String> {
        let path = |name: &str| self.path(name).to_str().unwrap().to_owned();
        [
            "--workers".to_owned(),
            "0".to_owned(),
            "--tls-cert".to_owned(),
            path("tls.crt"),
            "--tls-key".to_owned(),
            path("tls.key"),
        ]
        .to_vec()
    }
}

/// curl, which trusts this root alone, at the name of the certificate.
fn curl(root: &Path, url: &str, name: &str, path: &str, more: &[&str]) -> Output {
    let port = url.rsplit(':').next().unwrap();
    Command::new("curl")
        .args([
            "--silent",
            "--show-error",
            "--include",
            "--max-time",
            "30",
            "--cacert",
        ])
        .arg(root)
        .args(["--resolve", &format!("{name}:{port}:127.0.0.1")])
        .args(more)
        .arg(format!("https://{name}:{port}{path}"))
        .output()
        .unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn api_results_and_console_are_served_over_tls_and_a_new_certificate_is_taken_while_they_run() {
    let files = Files::new();
    let root = files.keep_root("first.pem");
    let mut flags = files.flags();
    flags.extend(
        [
            "--results-listen",
            "127.0.0.1:0",
            "--console-listen",
            "127.0.0.1:0",
            "--console-url",
            "https://console.example.test",
        ]
        .map(str::to_owned),
    );
    let log = log_path(files.folder.path(), 0);
    let serve = Serve::start(&files.path("data"), &flags, &log);
    let console = serve.console.clone().unwrap();
    for (url, name, path, expected) in [
        (&serve.api, API, "/readyz", "HTTP/1.1 200"),
        (&serve.results, API, "/healthz", "HTTP/1.1 200"),
        (&console, CONSOLE, "/sign-in", "HTTP/1.1 200"),
    ] {
        assert!(url.starts_with("https://"), "{url}");
        let answer = text(&curl(&root, url, name, path, &["--http2"]));
        assert!(answer.starts_with(expected), "{answer}");
        let old = ["--tls-max", "1.1"];
        assert!(!curl(&root, url, name, path, &old).status.success());
    }
    let page = text(&curl(&root, &console, CONSOLE, "/sign-in", &[])).to_lowercase();
    assert!(page.contains("strict-transport-security"), "{page}");
    let health = |flags: &[String]| {
        let listen = serve.api.replace("https://", "");
        let mut command = upscale();
        command.args(["health", "--listen", &listen]).args(flags);
        command.output().unwrap().status.code()
    };
    assert_eq!(health(&files.flags()[2..4]), Some(0));
    assert_eq!(health(&[]), Some(1), "it speaks TLS alone");

    // A pair that does not fit, as between two writes of a renewal: the one before stays.
    fs::copy(files.path("tls.key"), files.path("good.key")).unwrap();
    fs::write(files.path("tls.key"), "nonsense").unwrap();
    let is_logged = |what: &str| fs::read_to_string(&log).unwrap().contains(what);
    wait_for("the log", || is_logged("was not replaced"));
    let asks = |root: &Path| {
        curl(root, &serve.api, API, "/healthz", &[])
            .status
            .success()
    };
    assert!(asks(&root));
    files.renew();
    let second = files.keep_root("second.pem");
    wait_for("the new certificate", || asks(&second));
    assert!(!asks(&root));
    assert!(is_logged("the TLS certificate was replaced"));
    assert!(!is_logged("PRIVATE KEY"));
    assert_eq!(serve.stop().code(), Some(0));
}

#[test]
fn files_that_cannot_be_served_with_stop_the_start_in_words() {
    let files = Files::new();
    let other = Files::new();
    let run = |flags: &[&str]| {
        let mut command = upscale();
        command.args(["serve", "--listen", "127.0.0.1:0", "--data"]);
        command.arg(files.path("data")).args(flags);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{flags:?}");
        assert!(!files.path("data").exists(), "nothing was touched");
        String::from_utf8(output.stderr).unwrap()
    };
    let path = |files: &Files, name: &str| files.path(name).to_str().unwrap().to_owned();
    let (certificate, key) = (path(&files, "tls.crt"), path(&files, "tls.key"));
    for (flags, expected) in [
        (&["--tls-cert", certificate.as_str()][..], "--tls-key"),
        (&["--tls-key", &key], "--tls-cert"),
        (
            &[
                "--tls-cert",
                &certificate,
                "--tls-key",
                &path(&other, "tls.key"),
            ],
            "is not the one of the first certificate",
        ),
        (
            &[
                "--tls-cert",
                &certificate,
                "--tls-key",
                &path(&files, "missing"),
            ],
            "missing: No such file",
        ),
        (
            &["--tls-cert", &key, "--tls-key", &key],
            "holds no certificate",
        ),
        (
            &[
                "--tls-cert",
                &certificate,
                "--tls-key",
                &key,
                "--console-listen",
            ],
            "--console-url",
        ),
    ] {
        let words = run(flags);
        assert!(words.contains(expected), "{flags:?}: {words}");
    }
}

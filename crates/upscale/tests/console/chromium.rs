//! Chromium and its driver: found, started on a fresh profile with nothing of its own to say to the internet, and
//! photographed.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
};

use fantoccini::{Client, ClientBuilder};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::run;

/// Where the pictures go: for people, and for anyone who runs the suite to keep.
fn gallery() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/console")
}

/// Installed, not running.
pub(crate) struct Chromium;

/// A driver that runs, and what its browsers are started with.
pub(crate) struct Running {
    driver: Child,
    address: String,
    arguments: Vec<String>,
}

impl Chromium {
    /// None, said aloud, where Chromium is not installed; `test.sh` installs it and sets CI, and then that is a failure.
    pub(crate) fn find() -> Option<Self> {
        let is_there = Command::new("chromedriver")
            .arg("--version")
            .output()
            .is_ok()
            && Command::new("chromium").arg("--version").output().is_ok();
        if is_there {
            return Some(Self);
        }
        assert!(
            std::env::var_os("CI").is_none(),
            "chromium or chromedriver is not installed"
        );
        eprintln!("left out: the console in Chromium (chromium or chromedriver is not installed)");
        None
    }

    /// `rule` says where the image host's name leads.
    pub(crate) async fn start(self, rule: &str, profile: &Path) -> Running {
        let (driver, port) = start_driver().await;
        let mut arguments: Vec<String> = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            // Pages that scroll smoothly move what the driver has aimed at.
            "--force-prefers-reduced-motion",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-dev-shm-usage",
            // The image host's certificate comes from a root of this one test.
            "--ignore-certificate-errors",
            "--window-size=1280,900",
        ]
        .map(str::to_owned)
        .into();
        arguments.push(format!("--host-resolver-rules={rule}"));
        arguments.push(format!("--user-data-dir={}", profile.display()));
        Running {
            driver,
            address: format!("http://127.0.0.1:{port}"),
            arguments,
        }
    }
}

impl Running {
    pub(crate) async fn browser(&self) -> Client {
        let options = json!({ "args": self.arguments, "binary": "/usr/bin/chromium" });
        let mut capabilities = serde_json::Map::new();
        capabilities.insert("goog:chromeOptions".to_owned(), options);
        let mut builder =
            ClientBuilder::new(hyper_util::client::legacy::connect::HttpConnector::new());
        builder.capabilities(capabilities);
        builder.connect(&self.address).await.unwrap()
    }

    /// Ends the browser, then its driver.
    pub(crate) async fn stop(mut self, browser: Client) {
        browser.close().await.unwrap();
        self.driver.kill().unwrap();
        self.driver.wait().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// The driver and the port that it listens at. It takes the same port for IPv4 and IPv6, and ends at once where someone has
/// one of the two: it is started again then.
async fn start_driver() -> (Child, u16) {
    for _ in 0..5 {
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let port = said_port(driver.stdout.take().unwrap());
        let port = tokio::time::timeout(std::time::Duration::from_secs(60), port);
        match port.await.expect("chromedriver says its port") {
            Ok(port) => return (driver, port),
            Err(_) => drop(driver.wait().unwrap()),
        }
    }
    panic!("chromedriver ended five times without a port");
}

/// The port in what the driver writes; the receiver fails where the driver ends without one.
fn said_port(output: ChildStdout) -> oneshot::Receiver<u16> {
    let (sender, port) = oneshot::channel();
    std::thread::spawn(move || {
        let mut sender = Some(sender);
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            let found = line
                .rsplit_once("on port ")
                .and_then(|(_, port)| port.trim_end_matches('.').parse::<u16>().ok())
                // Its first line repeats the port that was asked for, which is none.
                .filter(|port| *port > 0);
            if let Some(port) = found
                && let Some(sender) = sender.take()
            {
                let _ = sender.send(port);
            }
        }
    });
    port
}

/// What the window shows now.
pub(crate) async fn screenshot(browser: &Client, name: &str) {
    fs::create_dir_all(gallery()).unwrap();
    let picture = browser.screenshot().await.unwrap();
    fs::write(gallery().join(format!("{name}.png")), picture).unwrap();
}

/// The top of the page as the book shows it, light, of this size; at most so many bytes. Written to `docs/pictures` when the
/// run is asked to; a run that is not asked compares nothing, for fonts differ from machine to machine.
pub(crate) async fn picture(
    browser: &Client,
    name: &str,
    (width, height): (u32, u32),
    bytes_max: usize,
) {
    let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
    devtools(browser, "Emulation.setDeviceMetricsOverride", size).await;
    let without_bars = json!({ "hidden": true });
    devtools(browser, "Emulation.setScrollbarsHidden", without_bars).await;
    run(browser, TO_THE_TOP).await;
    run(browser, PAINTED).await;
    let picture = browser.screenshot().await.unwrap();
    assert!(
        picture.len() <= bytes_max,
        "{name}: {} bytes",
        picture.len()
    );
    devtools(browser, "Emulation.clearDeviceMetricsOverride", json!({})).await;
    fs::create_dir_all(gallery()).unwrap();
    fs::write(gallery().join(format!("{name}.png")), &picture).unwrap();
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/pictures");
    let kept = kept.join(format!("{name}.png"));
    if std::env::var_os("UPSCALE_BLESS").is_some() {
        fs::write(&kept, &picture).unwrap();
    }
    assert!(
        kept.is_file(),
        "{name} is not in docs/pictures: UPSCALE_BLESS=1 writes it"
    );
}

/// Without a field that blinks.
const TO_THE_TOP: &str = "document.activeElement?.blur(); window.scrollTo(0, 0)";
/// After a change of size a page is laid out at once and painted two frames later.
const PAINTED: &str = "return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))";

/// The whole page in light, in dark, and on a small screen in both.
pub(crate) async fn photograph(browser: &Client, name: &str) {
    fs::create_dir_all(gallery()).unwrap();
    for (kind, scheme, width) in [
        ("light", "light", 1280),
        ("dark", "dark", 1280),
        ("narrow", "light", 390),
        ("narrow-dark", "dark", 390),
    ] {
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        devtools(browser, "Emulation.setEmulatedMedia", media).await;
        let size = |height: i64| json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        devtools(browser, "Emulation.setDeviceMetricsOverride", size(900)).await;
        run(browser, "window.scrollTo(0, 0)").await;
        let wide =
            "return document.documentElement.scrollWidth > document.documentElement.clientWidth";
        let overflows = run(browser, wide).await;
        assert_eq!(
            overflows,
            Value::Bool(false),
            "{name}, {kind}: wider than the screen"
        );
        let height = run(browser, "return document.documentElement.scrollHeight").await;
        let height = height.as_i64().unwrap().clamp(400, 6_000);
        devtools(browser, "Emulation.setDeviceMetricsOverride", size(height)).await;
        run(browser, PAINTED).await;
        let picture = browser.screenshot().await.unwrap();
        fs::write(gallery().join(format!("{name}-{kind}.png")), picture).unwrap();
    }
    devtools(browser, "Emulation.clearDeviceMetricsOverride", json!({})).await;
    devtools(
        browser,
        "Emulation.setEmulatedMedia",
        json!({ "features": [] }),
    )
    .await;
}

pub(crate) async fn devtools(browser: &Client, command: &str, parameters: Value) {
    browser
        .issue_cmd(Devtools {
            command: command.to_owned(),
            parameters,
        })
        .await
        .unwrap();
}

/// Chromium's own command beside WebDriver's.
#[derive(Debug)]
struct Devtools {
    command: String,
    parameters: Value,
}

impl fantoccini::wd::WebDriverCompatibleCommand for Devtools {
    fn endpoint(
        &self,
        base: &url::Url,
        session: Option<&str>,
    ) -> Result<url::Url, url::ParseError> {
        base.join(&format!(
            "session/{}/goog/cdp/execute",
            session.unwrap_or_default()
        ))
    }

    fn method_and_body(&self, _: &url::Url) -> (http::Method, Option<String>) {
        let body = json!({ "cmd": self.command, "params": self.parameters });
        (http::Method::POST, Some(body.to_string()))
    }
}

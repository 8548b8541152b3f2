//! `upscale submit`, `status` and `wait` against the real service: batches, kills in the middle, what is paid.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{
    image_host::{Behaviour, ImageHost},
    operator::Operator,
    pictures::Picture,
    serve::{Serve, upscale},
};

/// A service, an image host and one paying account, without the recorder: here the command line is the customer.
struct Shop {
    folder: TempDir,
    host: ImageHost,
    operator: Operator,
    serve: Serve,
    account: String,
    key: String,
}

impl Shop {
    fn open(credits: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let host = ImageHost::start(folder.path());
        let data = folder.path().join("data");
        let serve = Serve::start(&data, &host.flags(), &folder.path().join("log"));
        let operator = Operator::new(data, Vec::new());
        let account = operator.create_account("a batch");
        operator.credit(&account, credits, "payment-1");
        let key = operator.create_key(&account, None).key;
        Self {
            folder,
            host,
            operator,
            serve,
            account,
            key,
        }
    }

    fn picture(&self, path: &str) -> String {
        let bytes = Picture::render(24, 16, 3).encoded_for(path);
        self.host.set(path, Behaviour::File(bytes))
    }

    fn held(&self, path: &str) -> String {
        let bytes = Picture::render(24, 16, 3).encoded_for(path);
        self.host.set(path, Behaviour::Held(bytes))
    }

    fn out(&self) -> PathBuf {
        self.folder.path().join("out")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = upscale();
        command
            .args(arguments)
            .args(["--api", &self.serve.api])
            .env("UPSCALE_API_KEY", &self.key);
        command
    }

    fn submit(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(&["submit", "--json"]);
        command.arg("--out").arg(self.out()).args(arguments);
        command
    }

    /// Reserves, charges and refunds of the account.
    fn booked(&self) -> [usize; 3] {
        let transfers = self.operator.transfers(&self.account);
        let count = |kind: &str| transfers.iter().filter(|(found, _)| found == kind).count();
        [count("reserve"), count("charge"), count("refund")]
    }

    fn close(self) {
        assert_eq!(self.operator.audit_breaches(), Vec::<String>::new());
        let log = fs::read_to_string(self.folder.path().join("log")).unwrap();
        assert!(!log.contains(&self.key), "the key is in the log");
        assert_eq!(self.serve.stop().code(), Some(0));
    }
}

fn json(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}{}", error(output)))
}

fn error(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn size(path: &Path) -> (u32, u32) {
    let picture = Picture::from_png(&fs::read(path).unwrap()).unwrap();
    (picture.width, picture.height)
}

#[test]
fn a_batch_brings_what_can_be_had_says_what_cannot_and_goes_on_later() {
    let shop = Shop::open("10");
    let (first, second) = (shop.picture("/a/one.png"), shop.picture("/a/two.jpg"));
    let gone = shop.host.set("/a/gone.png", Behaviour::Status(404));
    let list = shop.folder.path().join("list.txt");
    fs::write(
        &list,
        format!("# three\n{first}\n{second}\n{gone}\n{first}\n"),
    )
    .unwrap();
    let list = list.to_str().unwrap();
    let output = shop.submit(&["--list", list]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", error(&output));
    let report = json(&output);
    assert_eq!(
        (&report["done"], &report["left"]),
        (&2.into(), &0.into()),
        "{report}"
    );
    assert_eq!(report["failed"][0]["image_url"], gone);
    assert_eq!(size(&shop.out().join("one-2x.png")), (48, 32));
    assert_eq!(size(&shop.out().join("two-2x.png")), (48, 32));
    assert_eq!(shop.booked(), [3, 2, 1]);

    let bytes = Picture::render(24, 16, 3).png();
    shop.host.set("/a/gone.png", Behaviour::File(bytes));
    let output = shop.submit(&["--list", list]).output().unwrap();
    let report = json(&output);
    assert_eq!(output.status.code(), Some(0), "{report}");
    assert_eq!(
        (&report["done"], &report["done_before"]),
        (&1.into(), &2.into())
    );
    assert_eq!(shop.booked(), [4, 3, 1]);
    shop.close();
}

/// A started batch whose journal has this many accepted orders.
fn kill_after_accepting(mut child: Child, journal: &Path, orders: usize) {
    let started = Instant::now();
    let accepted = || {
        let text = fs::read_to_string(journal).unwrap_or_default();
        text.matches("\"accepted\"").count()
    };
    while accepted() < orders {
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "{} accepted",
            accepted()
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_killed_batch_goes_on_and_pays_nothing_twice() {
    let shop = Shop::open("10");
    let table = shop.folder.path().join("table.csv");
    let urls: Vec<String> = (0..4).map(|n| shop.held(&format!("/b/{n}.png"))).collect();
    let rows: String = urls.iter().map(|url| format!("{url},4\n")).collect();
    fs::write(&table, format!("image_url,scale\n{rows}")).unwrap();
    let arguments = ["--csv", table.to_str().unwrap(), "--concurrency", "2"];
    let journal = shop.out().join("upscale-journal.jsonl");
    for orders in [1, 2] {
        let mut command = shop.submit(&arguments);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        kill_after_accepting(command.spawn().unwrap(), &journal, orders);
    }
    shop.host.open_gate();
    let output = shop.submit(&arguments).output().unwrap();
    let report = json(&output);
    assert_eq!(output.status.code(), Some(0), "{report} {}", error(&output));
    assert_eq!(report["done"], 4, "{report}");
    assert_eq!(size(&shop.out().join("3-4x.png")), (96, 64));
    assert_eq!(
        shop.booked(),
        [4, 4, 0],
        "{}",
        fs::read_to_string(&journal).unwrap()
    );
    shop.close();
}

#[test]
fn a_batch_that_is_out_of_credits_stops_and_says_so() {
    let shop = Shop::open("2");
    let urls: Vec<String> = (0..5)
        .map(|n| shop.picture(&format!("/c/{n}.png")))
        .collect();
    let arguments: Vec<&str> = urls.iter().map(String::as_str).collect();
    let output = shop
        .submit(&arguments)
        .args(["--concurrency", "1"])
        .output()
        .unwrap();
    let report = json(&output);
    assert_eq!(output.status.code(), Some(1), "{report}");
    assert_eq!(
        (&report["done"], &report["left"]),
        (&2.into(), &2.into()),
        "{report}"
    );
    let why = report["failed"][0]["error"].as_str().unwrap();
    assert!(why.contains("insufficient_credits"), "{why}");
    assert_eq!(shop.booked(), [2, 2, 0]);
    shop.close();
}

#[test]
fn one_task_is_read_and_waited_for() {
    let shop = Shop::open("10");
    let url = shop.picture("/d/one.png");
    let output = shop.submit(&[&url]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", error(&output));
    let journal = fs::read_to_string(shop.out().join("upscale-journal.jsonl")).unwrap();
    let id = journal
        .split('"')
        .find(|word| word.starts_with("ups_"))
        .unwrap();
    let task = json(&shop.command(&["status", id, "--json"]).output().unwrap());
    assert_eq!(
        (&task["status"], &task["credits_charged"]),
        (&"succeeded".into(), &0.7.into())
    );
    let saved = shop.folder.path().join("again.png");
    let arguments = ["wait", id, "--out", saved.to_str().unwrap()];
    assert!(shop.command(&arguments).output().unwrap().status.success());
    assert_eq!(
        fs::read(&saved).unwrap(),
        fs::read(shop.out().join("one-2x.png")).unwrap()
    );
    let unknown = shop
        .command(&["status", "ups_00000000000000000000000000"])
        .output()
        .unwrap();
    assert_eq!(unknown.status.code(), Some(1));
    assert!(
        error(&unknown).contains("task_not_found"),
        "{}",
        error(&unknown)
    );
    let refused = upscale()
        .args(["status", id, "--api", &shop.serve.api])
        .output()
        .unwrap();
    assert_eq!(
        refused.status.code(),
        Some(2),
        "a key is needed: {}",
        error(&refused)
    );
    shop.close();
}

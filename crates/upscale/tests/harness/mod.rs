//! A whole world around one service: its data directory, the operator, an image host, customers. When it ends, the
//! world is judged: every task over, the ledger and the queue clean, nothing secret in a log.

pub mod bucket;
pub mod child;
pub mod client;
#[allow(clippy::print_stdout, reason = "what was measured is said")]
#[path = "../../../upscale_store/tests/figure/mod.rs"]
pub mod figure;
pub mod image_host;
pub mod mail_server;
pub mod model;
pub mod operator;
pub mod pictures;
#[path = "../../../upscale_store/tests/postgres_server/mod.rs"]
pub mod postgres_server;
pub mod recorder;
pub mod serve;

use std::{
    collections::BTreeMap,
    fs,
    path::PathBuf,
    process::Command,
    sync::{Arc, Mutex},
};

use sha2::{Digest, Sha256};
use tempfile::TempDir;

use self::{
    bucket::Bucket,
    client::{Client, send},
    image_host::{Behaviour, ImageHost},
    operator::{Operator, thousandths},
    pictures::Picture,
    recorder::{Accepted, Recorder},
    serve::{Serve, log_path, tail, upscale},
};
use crate::history::{Balance, Download, Rules, Transfer, check};

/// Everything a test needs; dropping it judges it.
pub struct World {
    folder: TempDir,
    flags: Vec<String>,
    /// In the environment of every process of the service.
    variables: Vec<(String, String)>,
    pub host: ImageHost,
    pub operator: Operator,
    pub recorder: Arc<Recorder>,
    serve: Option<Serve>,
    starts: usize,
    base: Arc<Mutex<String>>,
    purchases: Mutex<Vec<(String, i64)>>,
    pub rules: Rules,
}

impl World {
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// With further flags for `serve`.
    pub fn start_with(flags: &[&str]) -> Self {
        let mut world = Self::prepare(flags);
        world.serve_again();
        world
    }

    /// With its results in a bucket, which must outlive it.
    pub fn start_in_bucket(flags: &[&str]) -> (Bucket, Self) {
        let folder = TempDir::new().unwrap();
        let bucket = Bucket::start(folder.path());
        let mut world = Self::prepare_in(folder, flags, bucket.place());
        world.serve_again();
        (bucket, world)
    }

    /// A data directory that nothing has touched yet.
    pub fn prepare(flags: &[&str]) -> Self {
        Self::prepare_in(TempDir::new().unwrap(), flags, Vec::new())
    }

    /// In this folder, with these variables in the environment of every process.
    pub fn prepare_in(folder: TempDir, flags: &[&str], variables: Vec<(String, String)>) -> Self {
        let host = ImageHost::start(folder.path());
        let mut all = host.flags();
        all.extend(flags.iter().map(|&flag| flag.to_owned()));
        let recorder = Arc::new(Recorder::default());
        for (_, value) in variables.iter().filter(|(name, _)| name.contains("SECRET")) {
            recorder.keep_secret("secret of the storage", value);
        }
        Self {
            operator: Operator::new(folder.path().join("data"), variables.clone()),
            variables,
            folder,
            flags: all,
            host,
            recorder,
            serve: None,
            starts: 0,
            base: Arc::default(),
            purchases: Mutex::default(),
            rules: Rules::default(),
        }
    }

    /// Further flags for the next starts.
    pub fn flags(&mut self, flags: &[&str]) {
        self.flags.extend(flags.iter().map(|&flag| flag.to_owned()));
    }

    /// Starts `serve` on the same data directory, on new ports.
    pub fn serve_again(&mut self) {
        assert!(self.serve.is_none(), "it runs already");
        let (command, log) = self.command();
        let serve = Serve::start_as(command, &self.data(), &self.flags, &log);
        self.base.lock().unwrap().clone_from(&serve.api);
        self.serve = Some(serve);
    }

    /// The binary in this world's environment, and where its standard error goes.
    pub fn command(&mut self) -> (Command, PathBuf) {
        let log = log_path(self.folder.path(), self.starts);
        self.starts += 1;
        let mut command = upscale();
        command.envs(self.variables.clone());
        (command, log)
    }

    /// A further process on the same data directory, reached by no one who is not told its address.
    pub fn serve_beside(&mut self, mut command: Command, flags: &[&str]) -> Serve {
        let log = log_path(self.folder.path(), self.starts);
        self.starts += 1;
        let mut all = self.flags.clone();
        all.extend(flags.iter().map(|&flag| flag.to_owned()));
        command.envs(self.variables.clone());
        Serve::start_as(command, &self.data(), &all, &log)
    }

    /// From now on customers talk to this address.
    pub fn direct_customers_to(&self, api: &str) {
        api.clone_into(&mut self.base.lock().unwrap());
    }

    pub fn serve(&self) -> &Serve {
        self.serve.as_ref().expect("serve runs")
    }

    /// Takes it out, to be killed or stopped.
    pub fn take_serve(&mut self) -> Serve {
        self.serve.take().expect("serve runs")
    }

    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// For files that belong to a test alone.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A purchase, counted for the final balance.
    pub fn credit(&self, account: &str, credits: &str, reference: &str) {
        self.operator.credit(account, credits, reference);
        let amount = (credits.parse::<f64>().unwrap() * 1_000.0).round() as i64;
        self.purchases
            .lock()
            .unwrap()
            .push((account.to_owned(), amount));
    }

    /// A purchase that came another way, counted for the final balance.
    pub fn bought(&self, account: &str, thousandths: i64) {
        let mut purchases = self.purchases.lock().unwrap();
        purchases.push((account.to_owned(), thousandths));
    }

    /// A customer with this many credits and one key that may do everything.
    pub fn customer(&self, credits: &str) -> Client {
        let customer = self.visitor();
        self.credit(
            &customer.account,
            credits,
            &format!("first purchase of {}", customer.account),
        );
        customer
    }

    /// An account that never paid, with one key.
    pub fn visitor(&self) -> Client {
        let account = self.operator.create_account("a customer of the tests");
        self.purchases.lock().unwrap().push((account.clone(), 0));
        let key = self.operator.create_key(&account, None);
        self.client(&account, &key.key)
    }

    pub fn client(&self, account: &str, key: &str) -> Client {
        Client::new(
            account,
            key,
            Arc::clone(&self.base),
            Arc::clone(&self.recorder),
        )
    }

    /// Serves a rendered picture in the format of its name; the URL carries a query that no log may hold.
    pub fn picture(&self, path: &str, width: u32, height: u32) -> String {
        let picture = Picture::render(width, height, 1);
        self.serve_bytes(path, picture.encoded_for(path), (width, height))
    }

    /// Serves a file of a picture of this size.
    pub fn serve_bytes(&self, path: &str, bytes: Vec<u8>, size: (u32, u32)) -> String {
        self.serve_so(path, Behaviour::File(bytes), size)
    }

    pub fn serve_so(&self, path: &str, behaviour: Behaviour, size: (u32, u32)) -> String {
        let query = format!("token=canary-{}-of-the-query", path.trim_matches('/'));
        self.recorder.keep_secret("query of an image URL", &query);
        let url = format!("{}?{query}", self.host.set(path, behaviour));
        self.recorder.set_size(&url, size);
        url
    }

    /// Ends the world as dropping it does; tests that look at it afterwards call it themselves.
    pub fn finish(&mut self) {
        if self.serve.is_none() {
            self.serve_again();
        }
        self.host.open_gate();
        // One key for each account: fifty work at a time, and many a world has more tasks.
        let mut readers: BTreeMap<String, Client> = BTreeMap::new();
        for task in self.recorder.accepted() {
            let reader = readers
                .entry(task.account.clone())
                .or_insert_with_key(|account| self.reader(account));
            self.finish_task(&task, reader);
        }
        self.record_balances();
        let breaches = self.operator.audit_breaches();
        self.recorder.history().audit_breaches = breaches;
        let status = self.take_serve().stop();
        assert_eq!(
            status.code(),
            Some(0),
            "SIGTERM ends serve with 0:\n{}",
            self.last_log()
        );
        // Once more with nothing running: the shutdown itself must leave all in order.
        assert_eq!(self.operator.audit_breaches(), Vec::<String>::new());
        self.judge();
    }

    /// With a key of the account made for that.
    fn reader(&self, account: &str) -> Client {
        let key = self.operator.create_key(account, Some("read"));
        self.client(account, &key.key)
    }

    /// Waits until it is over and fetches what came of it.
    fn finish_task(&self, task: &Accepted, reader: &Client) {
        let ended = reader.wait(&task.id);
        if ended.json()["status"] != "succeeded" {
            return;
        }
        let Some(expected) = self.recorder.expected_size(&task.parameters) else {
            panic!("{} succeeded from a source that is no picture", task.id);
        };
        let found = self.download(&ended.result_url());
        let id = task.id.clone();
        self.recorder.history().downloads.push(Download {
            id,
            expected,
            found,
        });
    }

    fn download(&self, url: &str) -> Result<(u32, u32), String> {
        let get = |url: &str| send("GET", url, &[], None).ok_or("the result host gave no answer");
        let mut answer = get(url)?;
        // A bucket's ETag is its own.
        let is_elsewhere = answer.status == 307;
        if is_elsewhere {
            answer = get(answer.header("location"))?;
        }
        if answer.status != 200 {
            return Err(format!("the result host said {}", answer.status));
        }
        let sha256: String = Sha256::digest(&answer.body)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let tag = answer.header("etag");
        if !is_elsewhere && tag != format!("\"{sha256}\"") {
            return Err(format!("its ETag is not its SHA-256: {tag}"));
        }
        Picture::from_png(&answer.body).map(|picture| (picture.width, picture.height))
    }

    fn record_balances(&self) {
        let mut purchased: Vec<(String, i64)> = Vec::new();
        for (account, amount) in self.purchases.lock().unwrap().iter() {
            match purchased.iter_mut().find(|(known, _)| known == account) {
                Some((_, sum)) => *sum += amount,
                None => purchased.push((account.clone(), *amount)),
            }
        }
        for (account, purchased) in purchased {
            let shown = self.operator.show(&account);
            let amount = |name: &str| thousandths(&shown[name]);
            let (available, reserved, charged) =
                (amount("available"), amount("reserved"), amount("charged"));
            for (kind, task) in self.operator.transfers(&account) {
                let account = account.clone();
                self.recorder.history().transfers.push(Transfer {
                    account,
                    kind,
                    task,
                });
            }
            let balance = Balance {
                account,
                purchased,
                available,
                reserved,
                charged,
            };
            self.recorder.history().balances.push(balance);
        }
    }

    /// Nothing the contract forbids was seen, and nothing secret was logged.
    fn judge(&self) {
        // Before anything is said of them: what explains a violation is in the logs.
        let logs = self.logs();
        self.recorder.keep_for_search(&logs);
        let violations = check(&self.recorder.history(), &self.rules);
        let shown: Vec<_> = violations.iter().take(20).collect();
        assert!(
            violations.is_empty(),
            "{} violations: {shown:#?}",
            violations.len()
        );
        let leaks = self.recorder.leaks(&logs);
        assert!(leaks.is_empty(), "the logs hold: {leaks:?}");
    }

    /// Standard error of every start.
    pub fn logs(&self) -> String {
        let logs = (0..self.starts).map(|number| log_path(self.folder.path(), number));
        logs.map(|log| fs::read_to_string(log).unwrap()).collect()
    }

    fn last_log(&self) -> String {
        tail(&log_path(self.folder.path(), self.starts.saturating_sub(1)))
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the last lines of serve's log:\n{}", self.last_log());
        } else if self.starts > 0 && self.recorder.history().balances.is_empty() {
            self.finish();
        }
    }
}

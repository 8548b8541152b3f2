//! A whole service on loopback and honest customers of it: keyed reads, creates, downloads and probes, each on a connection
//! of its own. A request counts as refused when anything but its own answer comes, or nothing.

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{Router, body::Bytes};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::Semaphore,
    task::JoinSet,
};
use upscale_api::{
    ApiLimits, ApiState, ConsoleOptions, ConsoleState, ServeLimits, SessionError, Stripe,
    api_router, console_router, listen, results_router, serve,
};
use upscale_core::{Clock, Credits, Currency, Package, Permission, ResultFile, random_token};
use upscale_store::{Results, Settlement, Spent, Store, StoreOptions};

use super::attack::connect;

pub(crate) type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// Honest requests under way at a time.
const AT_A_TIME: usize = 16;
/// Anyone who has no answer by then was refused.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// Creates of one account: as many tasks as may be active.
const CREATES_PER_ACCOUNT: usize = 20;

/// Three listeners and what honest customers ask of them.
pub(crate) struct World {
    pub(crate) api: SocketAddr,
    pub(crate) console: SocketAddr,
    pub(crate) results: SocketAddr,
    store: Store,
    task: String,
    download: String,
}

impl World {
    pub(crate) async fn start(directory: &Path) -> Result<Self, AnyError> {
        let options = StoreOptions {
            // No one works here, and everything is to be accepted.
            deadline_seconds: 10_000_000,
            ..StoreOptions::default()
        };
        let store = Store::open_sqlite(directory, Clock::System, options).await?;
        let results = Results::local(&directory.join("results"))?;
        let any = || listen(SocketAddr::from(([127, 0, 0, 1], 0)));
        let (api, files, pages) = (any()?, any()?, any()?);
        let mut world = Self {
            api: api.local_addr()?,
            console: pages.local_addr()?,
            results: files.local_addr()?,
            store: store.clone(),
            task: String::new(),
            download: String::new(),
        };
        let limits = ApiLimits {
            reads_per_second: 100_000,
            ..ApiLimits::default()
        };
        let files_url = format!("http://{}", world.results);
        let state = ApiState::new(store, results.clone(), "http://a", &files_url, limits);
        let state = state.with_stripe(stripe()?);
        let console = ConsoleState::new(state.clone(), ConsoleOptions::default());
        let go = |listener, router: Router| {
            let limits = ServeLimits::default();
            tokio::spawn(serve(listener, router, limits, std::future::pending()));
        };
        go(api, api_router(state.clone()));
        go(files, results_router(state));
        go(pages, console_router(console));
        world.make_a_result(&results).await?;
        Ok(world)
    }

    /// A paid account's key.
    pub(crate) async fn key(&self) -> Result<String, AnyError> {
        let account = self.store.accounts().create("honest").await?.id;
        let credits = Credits::parse("100")?;
        let reference = format!("a payment of {account}");
        self.store
            .accounts()
            .credit(&account, credits, &reference)
            .await?;
        let key = self
            .store
            .accounts()
            .create_key(&account, Permission::All, "")
            .await?;
        Ok(key.made().ok_or("no account")?.1.reveal().to_owned())
    }

    async fn make_a_result(&mut self, results: &Results) -> Result<(), AnyError> {
        let key = self.key().await?;
        let create = Asking::create(self.api, &key, 0);
        create.send(Ipv4Addr::LOCALHOST).await?;
        let claim = self.store.tasks().claim("honest", 1, &[]).await?.remove(0);
        let file = ResultFile {
            name: random_token()?,
            sha256: "0".repeat(64),
            size_bytes: 20_000,
            width: 2,
            height: 2,
            preview: None,
            look: None,
        };
        results
            .put(&file.name, Bytes::from(vec![7; 20_000]))
            .await?;
        let settlement = Settlement::Succeeded(file);
        let settled =
            self.store
                .tasks()
                .settle(&claim.task_id, claim.attempt, settlement, Spent::slot(1.0));
        settled.await?;
        let read = Asking::read(self.api, &key, claim.task_id.as_str());
        let answer = read.send(Ipv4Addr::LOCALHOST).await?;
        let at = answer.find("/r/").ok_or("no result's URL")?;
        self.download = answer[at..]
            .split('"')
            .next()
            .unwrap_or_default()
            .to_owned();
        self.task = format!("{} {key}", claim.task_id);
        Ok(())
    }

    /// A quarter of each: reads, creates, downloads, probes; from this address.
    pub(crate) async fn ask(&self, count: usize, from: Ipv4Addr) -> Result<Report, AnyError> {
        let mut report = Report::default();
        let (task, key) = self.task.split_once(' ').ok_or("no task")?;
        let (mut creating, permits) = (String::new(), Arc::new(Semaphore::new(AT_A_TIME)));
        let mut asked = JoinSet::new();
        for number in 0..count {
            let asking = match number % 4 {
                0 => Asking::read(self.api, key, task),
                1 => {
                    if (number / 4).is_multiple_of(CREATES_PER_ACCOUNT) {
                        creating = self.key().await?;
                    }
                    Asking::create(self.api, &creating, number)
                }
                2 => Asking::download(self.results, &self.download),
                _ => Asking::probe(self.api),
            };
            let permit = Arc::clone(&permits).acquire_owned().await?;
            asked.spawn(async move {
                let started = Instant::now();
                let answer = tokio::time::timeout(WAIT_MAX, asking.send(from)).await;
                drop(permit);
                let answer = answer.map_err(AnyError::from).and_then(|answer| answer);
                (asking.what, answer.map(|_| started.elapsed()))
            });
        }
        while let Some(done) = asked.join_next().await {
            let (what, answer) = done?;
            report.add(what, answer);
        }
        report.times.sort_unstable();
        Ok(report)
    }
}

/// So that the webhook is there.
fn stripe() -> Result<Stripe, AnyError> {
    let package = Package {
        name: "hundred".to_owned(),
        credits: Credits::parse("100")?,
        price: 1_000,
        currency: Currency::parse("usd")?,
    };
    Ok(Stripe {
        packages: Arc::from([package]),
        webhook_secrets: Arc::from(["whsec_of_no_one".to_owned()]),
        is_live: false,
        checkout_origin: Arc::from("https://checkout.example"),
        open_session: Arc::new(|_| {
            Box::pin(async { Err(SessionError("no one there".to_owned())) })
        }),
    })
}

/// One honest request and the status that it is to have.
struct Asking {
    what: &'static str,
    to: SocketAddr,
    bytes: String,
    status: u16,
}

impl Asking {
    fn read(api: SocketAddr, key: &str, task: &str) -> Self {
        let lines = format!("Authorization: Bearer {key}\r\n");
        Self::of(
            "read",
            api,
            &format!("GET /api/v1/upscales/{task}"),
            &lines,
            "",
            200,
        )
    }

    fn create(api: SocketAddr, key: &str, number: usize) -> Self {
        let lines = format!(
            "Authorization: Bearer {key}\r\nContent-Type: application/json\r\nIdempotency-Key: honest-{number}\r\n"
        );
        let body = r#"{"image_url":"https://images.example.org/a.png"}"#;
        Self::of("create", api, "POST /api/v1/upscales", &lines, body, 202)
    }

    fn download(results: SocketAddr, path: &str) -> Self {
        Self::of("download", results, &format!("GET {path}"), "", "", 200)
    }

    fn probe(api: SocketAddr) -> Self {
        Self::of("readyz", api, "GET /readyz", "", "", 200)
    }

    fn of(
        what: &'static str,
        to: SocketAddr,
        first: &str,
        lines: &str,
        body: &str,
        status: u16,
    ) -> Self {
        let length = body.len();
        let bytes = format!(
            "{first} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{lines}Content-Length: {length}\r\n\r\n{body}"
        );
        Self {
            what,
            to,
            bytes,
            status,
        }
    }

    async fn send(&self, from: Ipv4Addr) -> Result<String, AnyError> {
        let mut stream = connect(self.to, from).await?;
        stream.write_all(self.bytes.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        match answer.starts_with(&format!("HTTP/1.1 {}", self.status)) {
            true => Ok(answer),
            false => Err(answer.lines().next().unwrap_or("closed").to_owned().into()),
        }
    }
}

/// What became of honest requests.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// Of those that were answered, sorted.
    pub(crate) times: Vec<Duration>,
    /// What was asked and what came instead, with how often.
    pub(crate) refused: BTreeMap<(&'static str, String), usize>,
}

impl Report {
    fn add(&mut self, what: &'static str, answer: Result<Duration, AnyError>) {
        match answer {
            Ok(time) => self.times.push(time),
            Err(error) => *self.refused.entry((what, error.to_string())).or_default() += 1,
        }
    }
}

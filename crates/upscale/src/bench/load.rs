//! Load on an API: as many connections as asked, each sending its next request when the last is answered, until
//! the time is over. What is kept is how long each answer took.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, bail, ensure};
use reqwest::{Client, RequestBuilder, StatusCode};
use serde::Serialize;
use tokio::runtime::Runtime;

/// One request may take this long.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// What a run of requests measured.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Pace {
    pub(crate) requests: usize,
    pub(crate) per_second: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
}

/// A connection of its own that is kept open, driven by the thread that waits for it.
pub(crate) struct Connection {
    pub(crate) client: Client,
    runtime: Runtime,
}

impl Connection {
    fn new() -> anyhow::Result<Self> {
        // Where results are in a bucket it is set already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("the runtime did not start")?;
        let client = Client::builder().timeout(WAIT_MAX).http1_only().build()?;
        Ok(Self { client, runtime })
    }

    /// The whole answer.
    pub(crate) fn send(&self, request: RequestBuilder) -> anyhow::Result<(StatusCode, String)> {
        self.runtime.block_on(async {
            let answer = request.send().await?;
            Ok((answer.status(), answer.text().await?))
        })
    }
}

/// Runs `request(connection, round)` on every connection until the time is over or a connection has no more to ask
/// (`None`); an error of any ends the measurement.
pub(crate) fn measure(
    connections: usize,
    time: Duration,
    request: impl Fn(&Connection, usize, usize) -> anyhow::Result<Option<()>> + Sync,
) -> anyhow::Result<Pace> {
    let started = Instant::now();
    let run = |number: usize| -> anyhow::Result<Vec<Duration>> {
        let connection = Connection::new()?;
        let mut took = Vec::new();
        for round in 0.. {
            let asked = Instant::now();
            if started.elapsed() >= time || request(&connection, number, round)?.is_none() {
                break;
            }
            took.push(asked.elapsed());
        }
        Ok(took)
    };
    let all = thread::scope(|scope| -> anyhow::Result<Vec<Duration>> {
        let running: Vec<_> = (0..connections)
            .map(|n| scope.spawn(move || run(n)))
            .collect();
        let mut all = Vec::new();
        for connection in running {
            match connection.join() {
                Ok(took) => all.extend(took?),
                Err(_) => bail!("a connection broke"),
            }
        }
        Ok(all)
    })?;
    pace(all, started.elapsed())
}

fn pace(mut took: Vec<Duration>, elapsed: Duration) -> anyhow::Result<Pace> {
    ensure!(!took.is_empty(), "no request was answered");
    took.sort_unstable();
    let percentile =
        |share: f64| took[((took.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    Ok(Pace {
        requests: took.len(),
        per_second: took.len() as f64 / elapsed.as_secs_f64(),
        p50_ms: percentile(0.5),
        p99_ms: percentile(0.99),
    })
}

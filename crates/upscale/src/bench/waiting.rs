//! `upscale bench waiting`: requests that a real `serve` holds until their tasks are over. Printed are the queries and the
//! threads that they cost, beside the same service at rest, and how soon after its task's end each is answered. No image is
//! processed: the tasks are ended by this process, as a worker on another machine ends them.

use std::{
    collections::HashMap,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};
use tokio::{task::JoinSet, time::sleep};
use upscale_core::{Clock, FailureMessage, ResultFile, TaskId, random_token};
use upscale_store::{Settlement, Spent, Store, StoreOptions};

use super::api::{TASKS_PER_ACCOUNT, prepare, resident_bytes};
use crate::{args::BenchWaitingArgs, data::block_on, open_files, output, running::Running};

/// The work of the one task whose whole way is measured, and what a waiting customer may see of it.
const WORK: Duration = Duration::from_millis(500);
const WORK_SEEN_WITHIN_MS: f64 = 700.0;
/// Held for longer than all of this takes.
const PREFER: (&str, &str) = ("prefer", "wait=30");
const HELD: &str = "upscale_requests_held";
const LOOKS: &str = "upscale_waiting_looks_total";

/// Measures and prints.
pub(crate) fn bench_waiting(args: &BenchWaitingArgs) -> anyhow::Result<()> {
    open_files::check()?;
    // Where results are in a bucket it is set already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let folder = tempfile::tempdir().context("no directory for the benchmark's data")?;
    let data = folder.path().join("data");
    // One address stands for many: what each may hold is not what is measured.
    let flags = "--workers 0 --log warn --trusted-proxy 127.0.0.1 --metrics-listen 127.0.0.1:0";
    let flags: Vec<_> = flags.split(' ').map(AsRef::as_ref).collect();
    let service = Running::start(&data, &flags)?;
    let measured = block_on(measure(&service, &data, args))?;
    service.stop()?;
    print(args, &measured)
}

/// Figures of one measurement; arrays are before and during the wait.
struct Measured {
    threads: [u64; 2],
    resident_bytes: [u64; 2],
    looks: f64,
    looked_for: Duration,
    /// From the commit of each task's end to its waiter's answer, sorted.
    news: Vec<Duration>,
    /// Of one create that was held over [`WORK`].
    whole_way: Duration,
}

/// Who asks whom.
struct Crowd<'a> {
    service: &'a Running,
    client: Client,
    store: Store,
    keys: Vec<String>,
}

async fn measure(
    service: &Running,
    data: &Path,
    args: &BenchWaitingArgs,
) -> anyhow::Result<Measured> {
    let waiters = args.waiters as usize;
    let crowd = Crowd {
        service,
        client: Client::builder().http1_only().build()?,
        // One more than wait, for the one whose whole way is measured.
        keys: prepare(data, waiters.div_ceil(TASKS_PER_ACCOUNT) + 1).await?,
        store: Store::open_sqlite(data, Clock::System, StoreOptions::default()).await?,
    };
    let ids = crowd.create_all(waiters).await?;
    let at_rest = (threads(service.pid()), resident_bytes(service.pid()));
    let mut held = crowd.hold_all(&ids);
    crowd.until_held(waiters).await?;
    let (looks, began) = (crowd.metric(LOOKS).await?, Instant::now());
    sleep(Duration::from_secs(args.seconds.into())).await;
    let (looks, looked_for) = (crowd.metric(LOOKS).await? - looks, began.elapsed());
    let meanwhile = (threads(service.pid()), resident_bytes(service.pid()));
    let ended = crowd.end_all(waiters).await?;
    let mut news = Vec::with_capacity(waiters);
    while let Some(answered) = held.join_next().await {
        let (id, at) = answered??;
        let ended_at = ended
            .get(&id)
            .context("a task was answered that none ended")?;
        news.push(at.saturating_duration_since(*ended_at));
    }
    news.sort_unstable();
    Ok(Measured {
        threads: [at_rest.0, meanwhile.0],
        resident_bytes: [at_rest.1, meanwhile.1],
        looks,
        looked_for,
        news,
        whole_way: crowd.whole_way().await?,
    })
}

impl Crowd<'_> {
    /// Of the account whose turn it is, from an address of its own.
    fn request(&self, number: usize, request: RequestBuilder) -> RequestBuilder {
        let account = number / TASKS_PER_ACCOUNT;
        let key = self.keys.get(account).map_or("", String::as_str);
        let address = format!("10.0.{}.{}", account / 200, account % 200 + 1);
        let request = request.header("x-forwarded-for", address);
        request.header("authorization", format!("Bearer {key}"))
    }

    fn create(&self, number: usize) -> RequestBuilder {
        let name = format!("bench-waiting-{number}");
        let url = format!("https://images.upscale-demo.org/{name}.png");
        let request = self
            .client
            .post(format!("{}/api/v1/upscales", self.service.api));
        self.request(number, request)
            .header("content-type", "application/json")
            .header("idempotency-key", name)
            .body(json!({ "image_url": url }).to_string())
    }

    async fn create_all(&self, count: usize) -> anyhow::Result<Vec<String>> {
        let mut ids = Vec::with_capacity(count);
        for number in 0..count {
            ids.push(id_of(&answer(self.create(number)).await?)?);
        }
        Ok(ids)
    }

    /// Each resolves to its task and the moment of its answer.
    fn hold_all(&self, ids: &[String]) -> JoinSet<anyhow::Result<(String, Instant)>> {
        let mut held = JoinSet::new();
        for (number, id) in ids.iter().enumerate() {
            let url = format!("{}/api/v1/upscales/{id}", self.service.api);
            let request = self.request(number, self.client.get(url));
            let request = request.header(PREFER.0, PREFER.1);
            held.spawn(async move {
                let task = answer(request).await?;
                ensure!(task["status"] == "failed", "{task}");
                Ok((id_of(&task)?, Instant::now()))
            });
        }
        held
    }

    async fn until_held(&self, count: usize) -> anyhow::Result<()> {
        let began = Instant::now();
        while self.metric(HELD).await? < count as f64 {
            ensure!(
                began.elapsed() < Duration::from_secs(20),
                "not all {count} requests are held"
            );
            sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    /// Ends every task; when each end was durable.
    async fn end_all(&self, count: usize) -> anyhow::Result<HashMap<String, Instant>> {
        let mut ended = HashMap::with_capacity(count);
        while ended.len() < count {
            for (task, attempt) in self.claim(64).await? {
                let failed = Settlement::Failed(FailureMessage::new("The benchmark is over"));
                self.settle(&task, attempt, failed).await?;
                ended.insert(task.to_string(), Instant::now());
            }
        }
        Ok(ended)
    }

    /// One create that is held until its result is there, half a second of work after it was claimed.
    async fn whole_way(&self) -> anyhow::Result<Duration> {
        let request = self.create((self.keys.len() - 1) * TASKS_PER_ACCOUNT);
        let request = request.header(PREFER.0, PREFER.1);
        let began = Instant::now();
        let asked = tokio::spawn(answer(request));
        let (task, attempt) = loop {
            if let Some(claimed) = self.claim(1).await?.pop() {
                break claimed;
            }
            sleep(Duration::from_millis(1)).await;
        };
        sleep(WORK).await;
        let file = ResultFile {
            name: random_token().context("the operating system provided no random bytes")?,
            sha256: "0".repeat(64),
            size_bytes: 1,
            width: 2,
            height: 2,
            preview: None,
            look: None,
        };
        self.settle(&task, attempt, Settlement::Succeeded(file))
            .await?;
        let task = asked.await??;
        ensure!(task["status"] == "succeeded", "{task}");
        Ok(began.elapsed())
    }

    async fn claim(&self, count: u32) -> anyhow::Result<Vec<(TaskId, i64)>> {
        let claims = self.store.tasks().claim("worker_bench", count, &[]).await?;
        let named = claims
            .into_iter()
            .map(|claim| (claim.task_id, claim.attempt));
        Ok(named.collect())
    }

    async fn settle(&self, task: &TaskId, attempt: i64, end: Settlement) -> anyhow::Result<()> {
        let spent = Spent::slot(WORK.as_secs_f64());
        self.store.tasks().settle(task, attempt, end, spent).await?;
        Ok(())
    }

    async fn metric(&self, name: &str) -> anyhow::Result<f64> {
        let metrics = self.service.metrics.as_deref();
        let url = format!("{}/metrics", metrics.context("no metrics are served")?);
        let text = self.client.get(url).send().await?.text().await?;
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        Ok(line.map_or(Ok(0.0), |number| number.trim().parse())?)
    }
}

async fn answer(request: RequestBuilder) -> anyhow::Result<Value> {
    let answer = request.send().await?;
    let (status, text) = (answer.status(), answer.text().await?);
    ensure!(status.is_success(), "answered {status}: {text}");
    Ok(serde_json::from_str(&text)?)
}

fn id_of(task: &Value) -> anyhow::Result<String> {
    Ok(task["id"]
        .as_str()
        .context("the task has no id")?
        .to_owned())
}

/// What Linux says of a process; 0 elsewhere.
fn threads(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("Threads:"));
    line.and_then(|count| count.trim().parse().ok())
        .unwrap_or(0)
}

fn print(args: &BenchWaitingArgs, measured: &Measured) -> anyhow::Result<()> {
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let percentile = |share: f64| {
        let place = (measured.news.len().saturating_sub(1) as f64 * share) as usize;
        measured.news.get(place).copied().map_or(0.0, ms)
    };
    let (p50, p99) = (percentile(0.5), percentile(0.99));
    let seconds = measured.looked_for.as_secs_f64();
    let looks_per_second = measured.looks / seconds;
    let per_waiter = looks_per_second / f64::from(args.waiters);
    let whole_way = ms(measured.whole_way);
    let [rest, held] = measured.threads;
    let bytes = measured.resident_bytes;
    if args.json {
        return output::json(&json!({
            "waiters": args.waiters, "threads_at_rest": rest, "threads_held": held,
            "queries": measured.looks, "seconds": seconds, "queries_per_second_and_waiter": per_waiter,
            "resident_bytes_at_rest": bytes[0], "resident_bytes_held": bytes[1],
            "news_p50_ms": p50, "news_p99_ms": p99, "work_ms": ms(WORK), "whole_way_ms": whole_way,
        }));
    }
    let row = |name: &str, value: String| vec![name.to_owned(), value];
    output::table(
        &["WHAT", "MEASURED"],
        &[
            row("requests held", args.waiters.to_string()),
            row(
                "threads",
                format!("{rest} at rest, {held} with all of them held"),
            ),
            row(
                "queries",
                format!(
                    "{} in {seconds:.1} s: {looks_per_second:.1} a second for all, {per_waiter:.4} for each",
                    measured.looks
                ),
            ),
            row(
                "memory",
                format!(
                    "{} MB at rest, {} MB held",
                    bytes[0] / 1_000_000,
                    bytes[1] / 1_000_000
                ),
            ),
            row(
                "answered",
                format!("{p50:.0} ms after the end (p50), {p99:.0} ms (p99)"),
            ),
            row(
                "0.5 s of work",
                format!(
                    "{whole_way:.0} ms from create to result, {:.2} of the {WORK_SEEN_WITHIN_MS:.0} ms wished for; the first poll comes after 3,000",
                    whole_way / WORK_SEEN_WITHIN_MS
                ),
            ),
        ],
    )
}

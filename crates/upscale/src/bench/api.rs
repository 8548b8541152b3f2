//! `upscale bench api`: creates and reads per second of a real `serve` over loopback, next to the syncs per second
//! of the same disk in the same run. No image is processed; the process that waits for them is this one.

use std::{
    fs::File,
    io::{Seek, SeekFrom, Write},
    path::Path,
    sync::Mutex,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use upscale_core::{
    Clock, Credits, Permission,
    limits::{ACTIVE_TASKS_MAX, CREATE_REQUESTS_PER_MINUTE},
};
use upscale_store::{Store, StoreOptions};

use super::load::{Connection, Pace, measure};
use crate::{args::BenchApiArgs, data::block_on, output, running::Running};

/// Creates of one account: its active tasks are not processed here, and its minute allows more.
pub(super) const TASKS_PER_ACCOUNT: usize = if ACTIVE_TASKS_MAX < CREATE_REQUESTS_PER_MINUTE {
    ACTIVE_TASKS_MAX as usize
} else {
    CREATE_REQUESTS_PER_MINUTE as usize
};
/// More creates a second than this are not measured: there are no accounts for them.
const CREATES_PER_SECOND_MAX: usize = 4_000;
/// Slots that this process claims to have, so that no create is refused for want of workers.
const SLOTS: u32 = 1_000_000;
/// Customers prepared at a time: they share the syncs of the disk.
const PREPARED_AT_A_TIME: usize = 64;
/// How long the disk is measured, before and after the requests.
const SYNC_TIME: Duration = Duration::from_secs(1);
/// A commit of the store writes a few pages of this size to its log.
const PAGE_BYTES: usize = 4_096;

/// Measures and prints.
pub(crate) fn bench_api(args: &BenchApiArgs) -> anyhow::Result<()> {
    let folder = match &args.data {
        Some(directory) => tempfile::tempdir_in(directory),
        None => tempfile::tempdir(),
    };
    let folder = folder.context("no directory for the benchmark's data")?;
    let data = folder.path().join("data");
    let (time, connections) = (
        Duration::from_secs(args.seconds.into()),
        args.connections as usize,
    );
    let syncs_before = measure_syncs(folder.path())?;
    let service = Running::start(
        &data,
        &["--workers", "0", "--log", "warn"].map(AsRef::as_ref),
    )?;
    let accounts =
        connections.max(args.seconds as usize * CREATES_PER_SECOND_MAX / TASKS_PER_ACCOUNT);
    let keys = block_on(prepare(&data, accounts))?;
    let made = Mutex::new(Vec::new());
    let creates = measure(connections, time, |connection, number, round| {
        let Some(key) = keys.get(round / TASKS_PER_ACCOUNT * connections + number) else {
            return Ok(None);
        };
        let id = create(
            connection,
            &service.api,
            key,
            &format!("bench-{number}-{round}"),
        )?;
        let mut made = made
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        made.push((id, key));
        Ok(Some(()))
    })?;
    let made = made
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let reads = measure(connections, time, |connection, number, round| {
        let (id, key) = &made[(number + round * connections) % made.len()];
        read(connection, &service.api, key, id).map(Some)
    })?;
    let memory_bytes = resident_bytes(service.pid());
    service.stop()?;
    let syncs_per_second = (syncs_before + measure_syncs(folder.path())?) / 2.0;
    print(args.json, creates, reads, syncs_per_second, memory_bytes)
}

/// Appends a page and syncs it, again and again.
fn measure_syncs(folder: &Path) -> anyhow::Result<f64> {
    let mut file = File::create(folder.join("syncs"))?;
    let page = [0x5a; PAGE_BYTES];
    file.write_all(&vec![0; 256 * PAGE_BYTES])?;
    file.sync_all()?;
    let started = Instant::now();
    let mut syncs = 0u32;
    while started.elapsed() < SYNC_TIME {
        file.seek(SeekFrom::Start(u64::from(syncs % 256) * PAGE_BYTES as u64))?;
        file.write_all(&page)?;
        file.sync_data()?;
        syncs += 1;
    }
    Ok(f64::from(syncs) / started.elapsed().as_secs_f64())
}

/// Accounts with credits and a key each, and a worker with slots enough.
pub(super) async fn prepare(data: &Path, accounts: usize) -> anyhow::Result<Vec<String>> {
    let store = Store::open_sqlite(data, Clock::System, StoreOptions::default()).await?;
    let mut keys = Vec::with_capacity(accounts);
    let mut making = JoinSet::new();
    for number in 0..accounts {
        if making.len() == PREPARED_AT_A_TIME {
            keys.extend(making.join_next().await.transpose()?.transpose()?);
        }
        making.spawn(customer(store.clone(), number));
    }
    while let Some(key) = making.join_next().await {
        keys.push(key??);
    }
    store.tasks().report_worker("worker_bench", SLOTS).await?;
    Ok(keys)
}

async fn customer(store: Store, number: usize) -> anyhow::Result<String> {
    let account = store.accounts().create("bench").await?.id;
    let credits = Credits::from_thousandths(1_000_000);
    store
        .accounts()
        .credit(&account, credits, &format!("bench-{number}"))
        .await?;
    let made = store
        .accounts()
        .create_key(&account, Permission::All, "")
        .await?;
    let (_, key) = made.made().context("the account does not exist")?;
    Ok(key.reveal().to_owned())
}

fn create(
    connection: &Connection,
    api: &str,
    key: &str,
    idempotency_key: &str,
) -> anyhow::Result<String> {
    let body =
        json!({ "image_url": format!("https://images.upscale-demo.org/{idempotency_key}.png") });
    let request = connection
        .client
        .post(format!("{api}/api/v1/upscales"))
        .header("Authorization", format!("Bearer {key}"))
        .header("Content-Type", "application/json")
        .header("Idempotency-Key", idempotency_key)
        .body(body.to_string());
    let (status, text) = connection.send(request)?;
    ensure!(status == 202, "a create was answered {status}: {text}");
    let task: Value = serde_json::from_str(&text)?;
    Ok(task["id"]
        .as_str()
        .context("the task has no id")?
        .to_owned())
}

fn read(connection: &Connection, api: &str, key: &str, id: &str) -> anyhow::Result<()> {
    let request = connection
        .client
        .get(format!("{api}/api/v1/upscales/{id}"))
        .header("Authorization", format!("Bearer {key}"));
    let (status, text) = connection.send(request)?;
    ensure!(status == 200, "a read was answered {status}: {text}");
    Ok(())
}

/// What Linux says a process holds in memory; 0 elsewhere.
pub(super) fn resident_bytes(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1_024
}

fn print(
    as_json: bool,
    creates: Pace,
    reads: Pace,
    syncs_per_second: f64,
    memory_bytes: u64,
) -> anyhow::Result<()> {
    let per_sync = creates.per_second / syncs_per_second;
    if as_json {
        return output::json(&json!({
            "creates": creates,
            "reads": reads,
            "syncs_per_second": syncs_per_second,
            "creates_per_sync": per_sync,
            "serve_resident_bytes": memory_bytes,
        }));
    }
    let row = |name: &str, pace: Pace| {
        let number = |value: f64| format!("{value:.1}");
        vec![
            name.to_owned(),
            number(pace.per_second),
            number(pace.p50_ms),
            number(pace.p99_ms),
            pace.requests.to_string(),
        ]
    };
    output::table(
        &["WHAT", "PER SECOND", "P50 MS", "P99 MS", "REQUESTS"],
        &[row("creates", creates), row("reads", reads)],
    )?;
    output::line(&format!(
        "The disk syncs {syncs_per_second:.0} times a second: {per_sync:.2} creates a sync. `serve` holds {} MB after it.",
        memory_bytes / 1_000_000
    ))
}

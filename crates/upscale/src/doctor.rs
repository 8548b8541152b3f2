//! `upscale doctor`: whether this machine can run the service, part by part, in plain words. Takes the flags of `serve`,
//! so that it looks at what `serve` would use.

use std::{
    io::Write, net::ToSocketAddrs, path::Path, process::ExitCode, time::Duration, time::Instant,
};

use anyhow::Context;
use rustix::{fs::statvfs, system::uname};
use serde::Serialize;
use upscale_core::Clock;
use upscale_engine::KernelSet;
use upscale_pipeline::kernels;

use crate::{
    args::{DeviceChoice, DoctorArgs},
    bucket::bucket,
    data::{block_on, is_in_use, open_existing_store},
    golden, gpu, open_files, output,
    secret_keys::is_exposed,
    slots::slots,
    threads::threads,
    work::{load_models, probe_sandbox, required_parts, worker_options},
};

/// Results of one busy hour at 4x are some tens of gigabytes; below this a machine is about to be full.
const FREE_BYTES_MIN: u64 = 2 << 30;
/// Syncs to take the median of.
const SYNCS: usize = 15;
/// A sync that takes longer makes every create slow: 20 at once share one.
const SYNC_SLOW: Duration = Duration::from_millis(50);
/// Signed links and leases live for a minute and more; a clock that is further off is wrong.
const CLOCK_SECONDS_MAX: i64 = 5;
/// For a name, and for an answer from outside.
const OUTSIDE_TIMEOUT: Duration = Duration::from_secs(5);

/// How one part is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Health {
    Good,
    /// It works, but look at it.
    Fair,
    /// `serve` will not start, or not do its work.
    Bad,
}

#[derive(Debug, Serialize)]
struct Finding {
    part: &'static str,
    health: Health,
    words: String,
}

/// Looks at every part. Exit status 1 when one is bad.
pub(crate) fn doctor(args: &DoctorArgs) -> anyhow::Result<ExitCode> {
    let mut findings = vec![version(), processor()];
    block_on(async {
        findings.push(engine(args).await);
        findings.push(gpu(args));
        findings.push(sandbox(args).await);
        findings.push(images(args));
        findings.push(store(args).await);
        findings.extend(secrets(args).await);
        findings.extend(storage(args).await);
        Ok(())
    })?;
    findings.push(disk(args));
    findings.push(files());
    findings.push(names(&args.outside));
    findings.push(outside(&args.outside));
    let is_well = findings.iter().all(|found| found.health != Health::Bad);
    if args.json {
        output::json(&serde_json::json!({ "ok": is_well, "parts": findings }))?;
    } else {
        show(&findings)?;
    }
    Ok(if is_well {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn show(findings: &[Finding]) -> anyhow::Result<()> {
    let rows: Vec<Vec<String>> = findings
        .iter()
        .map(|found| {
            let health = match found.health {
                Health::Good => "good",
                Health::Fair => "FAIR",
                Health::Bad => "BAD",
            };
            vec![
                health.to_owned(),
                found.part.to_owned(),
                found.words.clone(),
            ]
        })
        .collect();
    output::table(&["", "PART", "WHAT WAS FOUND"], &rows)
}

fn good(part: &'static str, words: impl Into<String>) -> Finding {
    let (health, words) = (Health::Good, words.into());
    Finding {
        part,
        health,
        words,
    }
}

fn fair(part: &'static str, words: impl Into<String>) -> Finding {
    let (health, words) = (Health::Fair, words.into());
    Finding {
        part,
        health,
        words,
    }
}

fn bad(part: &'static str, words: impl Into<String>) -> Finding {
    let (health, words) = (Health::Bad, words.into());
    Finding {
        part,
        health,
        words,
    }
}

fn version() -> Finding {
    let system = uname();
    let kernel = system.release().to_string_lossy().into_owned();
    good(
        "version",
        format!(
            "upscale {}, Linux {kernel}, {}",
            env!("CARGO_PKG_VERSION"),
            std::env::consts::ARCH
        ),
    )
}

fn processor() -> Finding {
    let available: Vec<&str> = KernelSet::ALL
        .into_iter()
        .filter(|set| set.is_available())
        .map(KernelSet::name)
        .collect();
    let cores = threads(None);
    let words = |set: KernelSet| {
        format!(
            "{cores} cores; kernels {} of {}",
            set.name(),
            available.join(", ")
        )
    };
    match kernels::from_environment() {
        Err(error) => bad("processor", error.to_string()),
        Ok(Some(set)) if !set.is_available() => bad(
            "processor",
            format!(
                "{}={}, but this CPU has only {}",
                kernels::VARIABLE,
                set.name(),
                available.join(", ")
            ),
        ),
        Ok(Some(set)) if set != KernelSet::best() => fair(
            "processor",
            format!(
                "{}, as {} says; {} would be faster",
                words(set),
                kernels::VARIABLE,
                KernelSet::best().name()
            ),
        ),
        Ok(_) if KernelSet::best() == KernelSet::Portable => fair(
            "processor",
            format!(
                "{}: no vector unit that we know, images take long",
                words(KernelSet::Portable)
            ),
        ),
        Ok(_) => good("processor", words(KernelSet::best())),
    }
}

/// The golden image, as `serve` tries it before it calls itself ready.
async fn engine(args: &DoctorArgs) -> Finding {
    let begun = Instant::now();
    let tried = async {
        let models = load_models(&args.work).await?;
        let worker = worker_options(&args.work, &args.process, &models, None)?;
        match worker {
            None => Ok(false),
            Some(worker) => golden::check(&worker.child).await.map(|()| true),
        }
    };
    match tried.await {
        Ok(true) => good(
            "engine",
            format!(
                "the golden image is correct, {} ms",
                begun.elapsed().as_millis()
            ),
        ),
        Ok(false) => fair("engine", "--workers 0: this process would upscale nothing"),
        Err(error) => bad("engine", format!("{error:#}")),
    }
}

/// The GPUs, and whether the one that is to be used works.
fn gpu(args: &DoctorArgs) -> Finding {
    let found: Vec<String> = gpu::found().into_iter().map(|one| one.words()).collect();
    let found = match found.is_empty() {
        true => "none: no Vulkan driver offers any".to_owned(),
        false => found.join("; "),
    };
    match (args.work.device, gpu::open(args.work.device, threads(None))) {
        (_, Ok(None)) => good("gpu", format!("{found}; not used, as --device says")),
        (_, Ok(Some(opened))) => good("gpu", format!("{found}; {}", opened.words)),
        (DeviceChoice::Auto, Err(why)) => good("gpu", format!("{found}; the CPU computes: {why}")),
        (_, Err(why)) => fair("gpu", format!("{found}; the CPU computes: {why}")),
    }
}

/// Which parts of the children's sandbox hold, and which this machine lacks.
async fn sandbox(args: &DoctorArgs) -> Finding {
    let report = match probe_sandbox(&args.work).await {
        Ok(report) => report,
        Err(error) => return bad("sandbox", format!("{error:#}")),
    };
    let holds = format!("images are decoded under {}", report.holding().join(", "));
    if report.missing.is_empty() {
        return good("sandbox", holds);
    }
    let missing: Vec<String> = report.missing.iter().map(ToString::to_string).collect();
    let words = format!("{holds}; this machine lacks {}", missing.join(", "));
    match report.lacks(required_parts(&args.work)) {
        Some(_) => bad(
            "sandbox",
            format!("{words}: nothing starts without --allow-weak-sandbox"),
        ),
        None => fair("sandbox", words),
    }
}

/// How many images at a time, and why so many.
fn images(args: &DoctorArgs) -> Finding {
    let slots = slots(&args.work, 0);
    let words = format!("{} at a time: {}", slots.count, slots.why);
    if slots.is_too_many {
        fair("images", format!("{words}: memory may run out"))
    } else {
        good("images", words)
    }
}

/// The database: there, writable, and of one mind with our clock.
async fn store(args: &DoctorArgs) -> Finding {
    if !is_in_use(&args.location) {
        let words = "not checked: `serve` has created none yet; for another one, pass --data DIR or --database URL";
        return fair("store", words);
    }
    let looked = async {
        let begun = Instant::now();
        let store = open_existing_store(&args.location).await?;
        store
            .check_writable()
            .await
            .context("nothing can be written")?;
        let glance = store.tasks().queue_glance().await?;
        let off = store.now().seconds_since(Clock::System.now()).abs();
        anyhow::ensure!(
            off <= CLOCK_SECONDS_MAX,
            "its clock differs from this machine's by {off} s"
        );
        let words = format!(
            "opened and written in {} ms; {} jobs wait, {} are worked on by {} slots",
            begun.elapsed().as_millis(),
            glance.waiting,
            glance.claimed,
            glance.live_slots
        );
        Ok((words, store.deletion_pause_seconds().await?))
    };
    match looked.await {
        Ok((words, 0)) => good("store", words),
        Ok((words, pause)) => fair(
            "store",
            format!(
                "{words}; its clock stepped, or it was off for long: nothing is deleted until it has run for {pause} s more"
            ),
        ),
        Err(error) => bad("store", format!("{error:#}")),
    }
}

/// Whether who reads the database, or a copy of it, can pass second factors and sign links. Nothing where the database
/// does not open: that was said.
async fn secrets(args: &DoctorArgs) -> Option<Finding> {
    if !is_in_use(&args.location) {
        return None;
    }
    let store = open_existing_store(&args.location).await.ok()?;
    let report = match store.secrets_report().await {
        Ok(report) => report,
        Err(error) => return Some(bad("secrets", error.to_string())),
    };
    if let Some(why) = report.unreadable {
        return Some(bad("secrets", why));
    }
    Some(match &args.location.secret_key_file {
        None => fair(
            "secrets",
            "second factors and result links lie in plain text in the database and its backups: --secret-key-file",
        ),
        Some(path) if is_exposed(path) => fair(
            "secrets",
            format!(
                "every user of this machine can read {}: chmod 600",
                path.display()
            ),
        ),
        Some(_) if report.plain > 0 => fair(
            "secrets",
            format!(
                "{} are in plain text until `serve` or `api` starts with this key",
                report.plain
            ),
        ),
        Some(_) => good(
            "secrets",
            format!("{} in the database, sealed", report.sealed),
        ),
    })
}

/// The bucket, where there is one: everything `storage check` tries.
async fn storage(args: &DoctorArgs) -> Option<Finding> {
    let results = match bucket(&args.location.storage).transpose()? {
        Ok(results) => results,
        Err(error) => return Some(bad("storage", format!("{error:#}"))),
    };
    let steps = match results.check().await {
        Ok(steps) => steps,
        Err(error) => return Some(bad("storage", error.to_string())),
    };
    let problem = steps
        .iter()
        .find_map(|step| Some(format!("{}: {}", step.what, step.problem.as_ref()?)));
    Some(match problem {
        Some(problem) => bad("storage", problem),
        None => good("storage", "the bucket works"),
    })
}

/// Files and connections that this process may have open.
fn files() -> Finding {
    match open_files::check() {
        Ok(granted) => good("files", format!("{granted} may be open at a time")),
        Err(error) => bad("files", error.to_string()),
    }
}

fn disk(args: &DoctorArgs) -> Finding {
    let directory = match args.location.data.as_deref() {
        None => return good("disk", "none is needed: no --data"),
        Some(directory) if is_in_use(&args.location) => directory,
        Some(directory) => {
            let words = format!("not checked: {} does not exist yet", directory.display());
            return fair("disk", words);
        }
    };
    let looked = || -> anyhow::Result<(u64, Duration)> {
        let space = statvfs(directory)?;
        Ok((space.f_bavail * space.f_frsize, median_sync(directory)?))
    };
    match looked().with_context(|| directory.display().to_string()) {
        Err(error) => bad("disk", format!("{error:#}")),
        Ok((free, sync)) => {
            let words = format!(
                "{} GB free, a sync takes {:.1} ms",
                free >> 30,
                sync.as_secs_f64() * 1_000.0
            );
            match () {
                () if free < FREE_BYTES_MIN => {
                    bad("disk", format!("{words}: too little space for results"))
                }
                () if sync > SYNC_SLOW => fair("disk", format!("{words}: creates will be slow")),
                () => good("disk", words),
            }
        }
    }
}

/// Of a small write, as every commit does one.
fn median_sync(directory: &Path) -> anyhow::Result<Duration> {
    let mut file = tempfile::tempfile_in(directory)?;
    let mut times = Vec::new();
    for _ in 0..SYNCS {
        file.write_all(&[0; 4_096])?;
        let begun = Instant::now();
        file.sync_data()?;
        times.push(begun.elapsed());
    }
    times.sort_unstable();
    Ok(times[SYNCS / 2])
}

/// Whether names of the internet can be resolved: every image starts with that.
fn names(outside: &str) -> Finding {
    let (sender, receiver) = std::sync::mpsc::channel();
    let name = outside.to_owned();
    // The system's resolver cannot be given up; its thread ends with the process.
    std::thread::spawn(move || sender.send((name.as_str(), 443).to_socket_addrs()));
    match receiver.recv_timeout(OUTSIDE_TIMEOUT) {
        Ok(Ok(addresses)) => good(
            "names",
            format!("{outside} has {} addresses", addresses.count()),
        ),
        Ok(Err(error)) => fair(
            "names",
            format!(
                "{outside} cannot be resolved ({error}): images of the internet cannot be fetched"
            ),
        ),
        Err(_) => fair(
            "names",
            format!(
                "no answer for {outside} within {OUTSIDE_TIMEOUT:?}: images of the internet cannot be fetched"
            ),
        ),
    }
}

/// Whether HTTP gets out, and what time it is there.
fn outside(host: &str) -> Finding {
    match block_on(ask_outside(host)) {
        Err(error) => fair(
            "outside",
            format!(
                "{host} cannot be reached ({error:#}): images of the internet cannot be fetched"
            ),
        ),
        Ok(response) => {
            let date = response.headers().get("Date");
            let there = date.and_then(|date| httpdate::parse_http_date(date.to_str().ok()?).ok());
            let there = there.and_then(|date| date.duration_since(std::time::UNIX_EPOCH).ok());
            let Some(there) = there.and_then(|there| i64::try_from(there.as_secs()).ok()) else {
                return good(
                    "outside",
                    format!("{host} answers, but does not send its time"),
                );
            };
            let off = Clock::System.now().unix_seconds() - there;
            if off.abs() > CLOCK_SECONDS_MAX {
                return bad(
                    "outside",
                    format!(
                        "{host} answers, but this machine's clock is {off} s off: links and leases will be wrong"
                    ),
                );
            }
            good("outside", format!("{host} answers, and the clocks agree"))
        }
    }
}

async fn ask_outside(host: &str) -> anyhow::Result<reqwest::Response> {
    // Where results are in a bucket it is set already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder()
        .timeout(OUTSIDE_TIMEOUT)
        .build()?;
    let asked = client.head(format!("http://{host}/")).send().await;
    Ok(asked.map_err(reqwest::Error::without_url)?)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_directory_that_is_not_there_has_no_sync() {
        assert!(median_sync(Path::new("/nowhere/at/all")).is_err());
        let folder = tempfile::tempdir().unwrap();
        assert!(median_sync(folder.path()).unwrap() < Duration::from_secs(60));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

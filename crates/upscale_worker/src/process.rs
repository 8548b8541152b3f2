//! One attempt at one task, in three verbs: download, upscale, put. What follows success or failure is
//! decided elsewhere.

use std::{pin::pin, time::Duration};

use bytes::Bytes;
use metrics::{counter, histogram};
use sha2::{Digest, Sha256};
use tokio::{
    sync::Semaphore,
    task::spawn_blocking,
    time::{Instant, sleep, timeout},
};
use upscale_core::{
    Preview, ResultFile, Sample, hex, limits::INTERRUPTIONS_BEFORE_ALONE, random_token,
};
use upscale_pipeline::{CheckedResult, ChildEnd, Job};
use upscale_store::{Claim, Results, Stages};

use crate::{
    AttemptError, Fetcher,
    alone::Company,
    fetch::{DownloadPermit, Progress, QUICK_DOWNLOAD, Source},
    slots::Slot,
    stages::StageWatch,
};

/// An image holds slots beside its own for this long at most; the largest legal ones take half of it on two cores.
const ALONE_MAX: Duration = Duration::from_secs(10);

/// Before a result that could not be stored is stored again: doubled each time, up to the second.
const STORE_AGAIN: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(5)];

/// A thumbnail that is not stored by then is left out.
const THUMBNAIL_MAX: Duration = Duration::from_secs(3);

/// What an attempt is at, so that a cut one can say where it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Downloading,
    WaitingForSlot,
    Upscaling,
    Storing,
}

/// One attempt under way.
pub(crate) struct Attempt<'a> {
    pub(crate) slot: Slot,
    pub(crate) stage: Stage,
    /// Of its download.
    pub(crate) progress: Progress,
    /// What its stages took so far.
    pub(crate) stages: Stages,
    watch: &'a StageWatch<'a>,
}

/// What attempts share.
#[derive(Debug)]
pub(crate) struct Tools {
    pub(crate) fetcher: Fetcher,
    pub(crate) company: Company,
    pub(crate) results: Results,
    /// Results in hand whose slots are free for others already. As many as slots: while nothing can be stored, the rest
    /// wait in their slots, and nothing more is claimed.
    pub(crate) storing: Semaphore,
}

impl<'a> Attempt<'a> {
    pub(crate) fn new(slot: Slot, watch: &'a StageWatch<'a>) -> Self {
        Self {
            slot,
            watch,
            stage: Stage::Downloading,
            progress: Progress::default(),
            stages: Stages::default(),
        }
    }

    /// From a claim to a durable result file under a name of its own: no two attempts write the same file, so
    /// one that lost its claim can only leave an orphan.
    pub(crate) async fn process(
        &mut self,
        claim: &Claim,
        permit: DownloadPermit,
        tools: &Tools,
        cores: Option<u32>,
    ) -> Result<ResultFile, AttemptError> {
        let started = Instant::now();
        let source = self.download(claim, permit, &tools.fetcher).await;
        self.stages.download_micros = self.watch.ended("download", started, &source);
        let source = source?;
        self.stage = Stage::WaitingForSlot;
        self.slot.take().await;
        self.stage = Stage::Upscaling;
        let upscaled = self.upscale(claim, &source, tools, cores).await;
        drop(source);
        let upscaled = upscaled?;
        self.stage = Stage::Storing;
        // No one closes the semaphore, so there is always a permit.
        let _permits = tools.storing.acquire().await;
        self.slot.give_back();
        let started = Instant::now();
        let stored = store(claim, upscaled, &tools.results).await;
        self.stages.storing_micros = self.watch.ended("store", started, &stored);
        stored
    }

    /// While sources of the account come quickly, a slot is held for as long as that takes: who claims a job is ready
    /// for it. An unknown account's source, or one that takes longer, must not keep a slot from others.
    async fn download(
        &mut self,
        claim: &Claim,
        permit: DownloadPermit,
        fetcher: &Fetcher,
    ) -> Result<Source, AttemptError> {
        let hold = match fetcher.is_quick(claim.account_id) {
            true => QUICK_DOWNLOAD,
            false => Duration::ZERO,
        };
        if let Some(sample) = Sample::of(&claim.source_url) {
            return Ok(Source::at_hand(sample.bytes));
        }
        let mut download = pin!(fetcher.download_by(permit, &claim.source_url, &self.progress));
        let source = tokio::select! {
            biased;
            source = &mut download => source,
            () = sleep(hold) => {
                self.slot.give_back();
                download.await
            }
        }?;
        counter!("upscale_source_bytes_total").increment(source.bytes().len() as u64);
        Ok(source)
    }

    async fn upscale(
        &mut self,
        claim: &Claim,
        source: &Source,
        tools: &Tools,
        cores: Option<u32>,
    ) -> Result<CheckedResult, AttemptError> {
        let mut job = tools.company.child.job(claim.parameters);
        if let Some(cores) = cores {
            job.threads = u16::try_from(self.slot.widen(cores)).unwrap_or(u16::MAX);
        }
        let started = Instant::now();
        let beside = claim.interruptions < INTERRUPTIONS_BEFORE_ALONE;
        let upscaled = tools.company.upscale(&job, source.bytes(), beside);
        let upscaled = self.slot.wide_for(ALONE_MAX, upscaled).await;
        if matches!(upscaled, Err(ChildEnd::Refused(_))) {
            tools.fetcher.source_was_refused(claim.account_id);
        }
        let upscaled = upscaled.map_err(AttemptError::from);
        self.stages.picture_micros = self.watch.child_ended(started, &upscaled);
        if let Ok(upscaled) = &upscaled {
            log_facts(claim, &job, upscaled);
        }
        upscaled
    }
}

/// Stores what is in hand, again and again until it is stored: the work behind it is not done twice because a disk or a
/// bucket is away for a while. The task's deadline ends it.
async fn store(
    claim: &Claim,
    upscaled: CheckedResult,
    results: &Results,
) -> Result<ResultFile, AttemptError> {
    let cannot_store = |error: String| {
        AttemptError::transient("The result could not be stored.").with_detail(error)
    };
    let name = random_token().map_err(|error| cannot_store(error.to_string()))?;
    let CheckedResult {
        facts,
        png,
        thumbnail,
        look,
    } = upscaled;
    let png = Bytes::from(png);
    // A hundred megabytes take a tenth of a second: not on a thread that answers requests.
    let hashed = png.clone();
    let hashed = spawn_blocking(move || hex(&Sha256::digest(&hashed))).await;
    let file = ResultFile {
        sha256: hashed.map_err(|error| cannot_store(error.to_string()))?,
        size_bytes: png.len() as u64,
        width: facts.width,
        height: facts.height,
        preview: Some(Preview {
            thumbnail_bytes: store_thumbnail(claim, results, &name, thumbnail).await,
            focus_permille: facts.focus_permille,
        }),
        look,
        name,
    };
    let [mut pause, longest] = STORE_AGAIN;
    while let Err(error) = results.put(&file.name, png.clone()).await {
        counter!("upscale_store_retries_total").increment(1);
        tracing::warn!(task = claim.task_id.as_str(), %error, "a result could not be stored yet");
        sleep(pause).await;
        pause = (pause * 2).min(longest);
    }
    counter!("upscale_result_bytes_total").increment(file.size_bytes);
    Ok(file)
}

/// Tried once: a task does not wait, and does not fail, for a picture of its picture. How many bytes were stored.
async fn store_thumbnail(claim: &Claim, results: &Results, name: &str, bytes: Vec<u8>) -> u32 {
    let size = u32::try_from(bytes.len()).unwrap_or(0);
    if size == 0 {
        return 0;
    }
    let put = timeout(THUMBNAIL_MAX, results.put_thumbnail(name, bytes.into())).await;
    match put {
        Ok(Ok(())) => return size,
        Ok(Err(error)) => {
            tracing::info!(task = claim.task_id.as_str(), %error, "a thumbnail was not stored");
        }
        Err(_) => {
            tracing::info!(
                task = claim.task_id.as_str(),
                "a thumbnail took too long to store"
            );
        }
    }
    0
}

fn log_facts(claim: &Claim, job: &Job, upscaled: &CheckedResult) {
    let facts = &upscaled.facts;
    histogram!("upscale_child_memory_bytes").record(facts.memory_bytes as f64);
    let path = if facts.by_reference { "plain" } else { "fast" };
    counter!("upscale_output_check_total", "path" => path).increment(1);
    tracing::debug!(
        task = claim.task_id.as_str(),
        threads = job.threads,
        source_format = ?facts.source_format,
        source_width = facts.source_width,
        source_height = facts.source_height,
        result_bytes = upscaled.png.len(),
        "upscaled"
    );
    if facts.by_reference {
        tracing::warn!(
            task = claim.task_id.as_str(),
            "the output check refused what the fast kernels made; the plain ones made the result"
        );
    }
}

//! One attempt at one task, in three verbs: download, upscale, put. What follows success or failure is
//! decided elsewhere.

use std::{pin::pin, time::Duration};

use bytes::Bytes;
use metrics::{counter, histogram};
use sha2::{Digest, Sha256};
use tokio::time::{Instant, sleep};
use upscale_core::{ResultFile, hex, random_token};
use upscale_pipeline::{CheckedResult, Job};
use upscale_store::{Claim, Results, Stages};

use crate::{AttemptError, Fetcher, alone::Company, slots::Slot, stages::StageWatch};

/// A download that takes longer lends its slot to others; nearly all take less.
const QUICK_DOWNLOAD: Duration = Duration::from_secs(3);
/// An image holds slots beside its own for this long at most; the largest legal ones take half of it on two cores.
const ALONE_MAX: Duration = Duration::from_secs(10);

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
    /// What its stages took so far.
    pub(crate) stages: Stages,
    watch: &'a StageWatch<'a>,
}

impl<'a> Attempt<'a> {
    pub(crate) fn new(slot: Slot, watch: &'a StageWatch<'a>) -> Self {
        Self {
            slot,
            watch,
            stage: Stage::Downloading,
            stages: Stages::default(),
        }
    }

    /// From a claim to a durable result file under a name of its own: no two attempts write the same file, so
    /// one that lost its claim can only leave an orphan.
    pub(crate) async fn process(
        &mut self,
        claim: &Claim,
        fetcher: &Fetcher,
        company: &Company,
        cores: Option<u32>,
        results: &Results,
    ) -> Result<ResultFile, AttemptError> {
        let started = Instant::now();
        let source = self.download(claim, fetcher).await;
        self.stages.download_micros = self.watch.ended("download", started, &source);
        let source = source?;
        self.stage = Stage::WaitingForSlot;
        self.slot.take().await;
        self.stage = Stage::Upscaling;
        let mut job = company.child.job(claim.parameters);
        if let Some(cores) = cores {
            job.threads = u16::try_from(self.slot.widen(cores)).unwrap_or(u16::MAX);
        }
        let started = Instant::now();
        let upscaled = self
            .slot
            .wide_for(ALONE_MAX, company.upscale(&job, &source))
            .await
            .map_err(AttemptError::from);
        drop(source);
        self.stages.picture_micros = self.watch.child_ended(started, &upscaled);
        let upscaled = upscaled?;
        log_facts(claim, &job, &upscaled);
        self.stage = Stage::Storing;
        let started = Instant::now();
        let stored = put(upscaled, results).await;
        self.stages.storing_micros = self.watch.ended("store", started, &stored);
        stored
    }

    async fn download(&mut self, claim: &Claim, fetcher: &Fetcher) -> Result<Bytes, AttemptError> {
        let mut download = pin!(fetcher.download(&claim.account_id, &claim.source_url));
        let source = tokio::select! {
            biased;
            source = &mut download => source,
            () = sleep(QUICK_DOWNLOAD) => {
                self.slot.give_back();
                download.await
            }
        }?;
        counter!("upscale_source_bytes_total").increment(source.len() as u64);
        Ok(source)
    }
}

async fn put(upscaled: CheckedResult, results: &Results) -> Result<ResultFile, AttemptError> {
    let cannot_store = |error: String| {
        AttemptError::transient("The result could not be stored.").with_detail(error)
    };
    let name = random_token().map_err(|error| cannot_store(error.to_string()))?;
    let CheckedResult { facts, png } = upscaled;
    // A hundred megabytes take a tenth of a second: not on a thread that answers requests.
    let hashed = tokio::task::spawn_blocking(move || (hex(&Sha256::digest(&png)), png)).await;
    let (sha256, png) = hashed.map_err(|error| cannot_store(error.to_string()))?;
    let file = ResultFile {
        sha256,
        size_bytes: png.len() as u64,
        width: facts.width,
        height: facts.height,
        name,
    };
    let stored = results.put(&file.name, png.into()).await;
    stored.map_err(|error| cannot_store(error.to_string()))?;
    counter!("upscale_result_bytes_total").increment(file.size_bytes);
    Ok(file)
}

fn log_facts(claim: &Claim, job: &Job, upscaled: &CheckedResult) {
    let facts = &upscaled.facts;
    histogram!("upscale_child_memory_bytes").record(facts.memory_bytes as f64);
    let rung = if facts.by_reference { "plain" } else { "fast" };
    counter!("upscale_output_check_total", "rung" => rung).increment(1);
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

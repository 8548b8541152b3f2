//! One attempt at one task, in three verbs: download, upscale, put. What follows success or failure is
//! decided elsewhere.

use sha2::{Digest, Sha256};
use upscale_core::{ResultFile, hex, random_token};
use upscale_store::{Claim, Results};

use crate::{AttemptError, ChildOptions, Fetcher, child::Upscaled};

/// From a claim to a durable result file under a name of its own: no two attempts write the same file, so
/// one that lost its claim can only leave an orphan.
pub(crate) async fn process(
    claim: &Claim,
    fetcher: &Fetcher,
    child: &ChildOptions,
    results: &Results,
) -> Result<ResultFile, AttemptError> {
    let source = fetcher
        .download(&claim.account_id, &claim.source_url)
        .await?;
    let order = child.order(claim.scale, claim.face_enhance);
    let upscaled = child.upscale(&order, &source).await?;
    drop(source);
    log_facts(claim, &upscaled);
    put(upscaled, results).await
}

async fn put(upscaled: Upscaled, results: &Results) -> Result<ResultFile, AttemptError> {
    let cannot_store = |error: String| {
        AttemptError::transient("The result could not be stored.").with_detail(error)
    };
    let name = random_token().map_err(|error| cannot_store(error.to_string()))?;
    let Upscaled { facts, png } = upscaled;
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
    Ok(file)
}

fn log_facts(claim: &Claim, upscaled: &Upscaled) {
    let facts = &upscaled.facts;
    tracing::debug!(
        task = claim.task_id.as_str(),
        source_format = ?facts.source_format,
        source_width = facts.source_width,
        source_height = facts.source_height,
        result_bytes = upscaled.png.len(),
        "upscaled"
    );
    if facts.by_reference {
        tracing::warn!(
            task = claim.task_id.as_str(),
            "the fast path failed the output check; the reference path made the result"
        );
    }
}

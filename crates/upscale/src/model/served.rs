//! The models of `serve`: checked at the start, then handed to every child.

use std::{ffi::OsString, path::Path, process::Stdio, time::Duration};

use anyhow::{Context, bail};
use serde::Deserialize;
use tokio::{process::Command, time::timeout};
use upscale_core::{Parameters, Scale, limits};

use super::{
    brought::{Brought, check_scale},
    sealed::Sealed,
};
use crate::args::{Commercial, ServedModels};

/// A verification runs a network twice on 117 pixels, twice on 2,880 and twice on 9,216: seconds, on a machine on its knees
/// minutes.
const VERIFY_TIMEOUT: Duration = Duration::from_secs(300);
/// Below this the output check will refuse most results.
const CONSISTENCY_DB_LOW: f64 = 20.0;
/// Bytes a parameter takes in a child: in the file's copy, in the network, and twice in the padded plan.
const BYTES_PER_PARAMETER: u64 = 16;
/// A restored picture, whole: three 32-bit numbers for each pixel of the largest source.
const RESTORED_BYTES: u64 = 12 * limits::SOURCE_PIXELS_MAX;

/// The models that children run in place of our own networks.
#[derive(Debug, Default)]
pub(crate) struct Served {
    models: Vec<SealedModel>,
    /// What they add to a child's memory at most.
    pub(crate) bytes: u64,
}

/// One of them, for the processes that run it.
#[derive(Debug)]
struct SealedModel {
    /// How many times it enlarges: once, twice, four times.
    factor: usize,
    file: Sealed,
    /// What [`upscale_engine::Network::find_ranges`] found: else each child would find it, at the cost of 5,760 pixels.
    ranges: Option<Sealed>,
}

/// What `upscale model verify --json` prints, as far as it matters here.
#[derive(Debug, Deserialize)]
struct Report {
    model: Found,
    verified: Measured,
    ranges: Option<Vec<u8>>,
}

#[derive(Debug, Deserialize)]
struct Found {
    architecture: String,
    scale: usize,
    parameters: u64,
}

#[derive(Debug, Deserialize)]
struct Measured {
    kernels: String,
    kernel_error: f32,
    consistency_db: f64,
    seconds_per_megapixel: f64,
    seconds_largest: f64,
    map_bytes_largest: u64,
}

impl Served {
    /// Reads, seals and verifies the models that the flags name, each in a process of its own. An image will have
    /// `threads` and `wall_clock`.
    ///
    /// # Errors
    /// Whatever speaks against one of them: `serve` does not start with it.
    pub(crate) async fn load(
        args: &ServedModels,
        program: &Path,
        threads: usize,
        wall_clock: Duration,
    ) -> anyhow::Result<Self> {
        let mut served = Self::default();
        let (mut restoring, mut enlarging, mut restoring_seconds) = (0, 0, 0.0);
        let flags = [
            (1, &args.files.model_1x),
            (2, &args.files.model_2x),
            (4, &args.files.model_4x),
        ];
        for (factor, path) in flags {
            let Some(path) = path else { continue };
            let brought = Brought::open(path)?;
            check_licence(path, &brought, args.allow_non_commercial)?;
            let file = Sealed::new(&brought.bytes)?;
            let file_bytes = brought.size as u64;
            drop(brought);
            let mut report = verify(program, &file, threads)
                .await
                .with_context(|| path.display().to_string())?;
            check_scale(&path.display().to_string(), report.model.scale, factor)?;
            let numbers = BYTES_PER_PARAMETER * report.model.parameters;
            let bytes = file_bytes + numbers + report.verified.map_bytes_largest;
            match Scale::from_factor(factor as i64) {
                Some(scale) => {
                    enlarging = bytes.max(enlarging);
                    report.verified.seconds_largest += restoring_seconds * megapixels(scale);
                }
                None => {
                    restoring = bytes + RESTORED_BYTES;
                    restoring_seconds = report.verified.seconds_per_megapixel;
                }
            }
            tell(path, &report, wall_clock);
            let ranges = report.ranges.as_deref().map(Sealed::new).transpose()?;
            served.models.push(SealedModel {
                factor,
                file,
                ranges,
            });
        }
        served.bytes = restoring + enlarging;
        Ok(served)
    }

    /// What every child is told about them.
    pub(crate) fn child_arguments(&self) -> Vec<OsString> {
        self.models.iter().flat_map(SealedModel::flags).collect()
    }
}

impl SealedModel {
    fn flags(&self) -> Vec<OsString> {
        let flag = |name: &str, sealed: &Sealed| -> [OsString; 2] {
            let flag = format!("--{name}-{}x", self.factor);
            [flag.into(), sealed.path().into_os_string()]
        };
        let ranges = self.ranges.iter().flat_map(|one| flag("ranges", one));
        flag("model", &self.file)
            .into_iter()
            .chain(ranges)
            .collect()
    }
}

/// Of the largest source.
fn megapixels(scale: Scale) -> f64 {
    limits::source_pixels_max(Parameters::at(scale)) as f64 / 1e6
}

/// Anyone who pays for a result must not be given what may not be sold.
fn check_licence(path: &Path, brought: &Brought, allowed: bool) -> anyhow::Result<()> {
    let shown = path.display();
    match brought.commercial() {
        Commercial::Yes => Ok(()),
        _ if allowed => {
            tracing::warn!(model = %shown, "served although no card says that commercial use is allowed");
            Ok(())
        }
        Commercial::No => bail!(
            "{shown}: its card does not allow commercial use; --allow-non-commercial serves it anyway"
        ),
        Commercial::Unclear => bail!(
            "{shown}: no card says that its licence allows commercial use; write one with `upscale model card`, \
             or serve it anyway with --allow-non-commercial"
        ),
    }
}

/// Runs `upscale model verify` on the sealed bytes, with as many threads as an image will have.
async fn verify(program: &Path, sealed: &Sealed, threads: usize) -> anyhow::Result<Report> {
    let mut command = Command::new(program);
    command
        .args(["model", "verify", "--json", "--ranges", "--threads"])
        .arg(threads.to_string())
        .arg(sealed.path())
        .stdin(Stdio::null());
    let output = timeout(VERIFY_TIMEOUT, command.kill_on_drop(true).output())
        .await
        .with_context(|| format!("the model was not verified within {VERIFY_TIMEOUT:?}"))?
        .context("the model's verification did not start")?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        let reported: Option<serde_json::Value> = serde_json::from_str(words.trim()).ok();
        let reported =
            reported.and_then(|answer| Some(answer["error"]["message"].as_str()?.to_owned()));
        bail!(
            reported.unwrap_or_else(|| format!(
                "the verification ended with {}: {words}",
                output.status
            ))
        );
    }
    serde_json::from_slice(&output.stdout).context("the model's verification said nothing")
}

fn tell(path: &Path, report: &Report, wall_clock: Duration) {
    let Measured {
        kernels,
        kernel_error,
        consistency_db,
        seconds_largest,
        map_bytes_largest,
        ..
    } = &report.verified;
    let model = path.display().to_string();
    tracing::info!(
        model,
        architecture = report.model.architecture,
        kernels,
        kernel_error,
        consistency_db,
        seconds_largest,
        map_bytes_largest,
        "{}",
        match report.model.scale {
            1 => "a model restores pictures before they are upscaled",
            _ => "a model is served in place of our network",
        }
    );
    if *seconds_largest > wall_clock.as_secs_f64() {
        let limit = wall_clock.as_secs();
        tracing::warn!(
            model,
            seconds_largest,
            limit,
            "the largest pictures will exceed the time limit"
        );
    }
    if *consistency_db < CONSISTENCY_DB_LOW {
        tracing::warn!(
            model,
            consistency_db,
            "its results are far from their sources; the output check will refuse many"
        );
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::SealedModels;

    #[derive(Parser)]
    struct Child {
        #[command(flatten)]
        models: SealedModels,
    }

    #[test]
    fn a_child_finds_every_model_and_the_ranges_that_were_found() {
        let sealed = |bytes: &[u8]| Sealed::new(bytes).unwrap();
        let model = |factor, ranges| SealedModel {
            factor,
            file: sealed(&[factor as u8]),
            ranges,
        };
        let models = vec![model(1, None), model(4, Some(sealed(b"ranges")))];
        let served = Served { models, bytes: 0 };
        let arguments = [OsString::from("child")].into_iter();
        let child = Child::parse_from(arguments.chain(served.child_arguments()));
        let paths = child.models.paths();
        let [one, four] = [paths.x1, paths.x4].map(Option::unwrap);
        assert!(paths.x2.is_none() && one.ranges.is_none());
        let read = |path: &Path| std::fs::read(path).unwrap();
        assert_eq!([read(&one.file), read(&four.file)], [[1], [4]]);
        assert_eq!(read(&four.ranges.unwrap()), b"ranges");
    }
}

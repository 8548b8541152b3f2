//! `upscale model …`: what model files are, whether they run here, and the cards beside them. How `file` and `serve`
//! come by a model is `model/brought.rs`'s.

mod brought;
mod card;
mod sealed;
mod served;
mod verify;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, bail};
use serde::Serialize;
use upscale_core::Scale;
use upscale_engine::{Engine, EngineOptions, Network};
use upscale_pipeline::{
    kernels,
    sandbox::{self, Entry},
};

pub(crate) use self::served::Served;
use self::{
    brought::Brought,
    card::Card,
    verify::{Verified, verify},
};
use crate::{
    args::{Commercial, ModelCommand},
    output,
    threads::threads,
    whole_file::{read_bounded, write_whole},
};

/// Names of files that are taken for models.
const ENDINGS: [&str; 3] = ["pth", "safetensors", "param"];

/// Runs a `model` command.
pub(crate) fn model(command: &ModelCommand) -> anyhow::Result<()> {
    match command {
        ModelCommand::List { folder, json } => list(folder.as_deref(), *json),
        ModelCommand::Inspect { file, json } => inspect(file, *json),
        ModelCommand::Verify {
            file,
            golden,
            threads: asked,
            json,
            ranges,
        } => {
            let golden = golden.as_deref();
            verify_file(file, golden, threads(*asked), (*json, *ranges))
        }
        ModelCommand::Card {
            file,
            licence,
            source,
            commercial,
        } => {
            let source = source.clone();
            write_card(file, licence.clone(), source, *commercial)
        }
    }
}

/// A model in a line.
#[derive(Debug, Serialize)]
pub(crate) struct Facts {
    pub(crate) file: String,
    pub(crate) container: String,
    pub(crate) architecture: String,
    pub(crate) scale: usize,
    pub(crate) parameters: usize,
    /// Multiply-accumulates for a source pixel.
    pub(crate) macs_per_pixel: usize,
    /// How far, in source pixels, an output pixel sees.
    pub(crate) receptive_field: usize,
    pub(crate) licence: String,
    pub(crate) commercial: Commercial,
}

impl Facts {
    fn of_network(network: &Network, file: &str) -> Self {
        Self {
            file: file.to_owned(),
            container: "in this program".to_owned(),
            architecture: "Upscale".to_owned(),
            scale: network.scale(),
            parameters: network.parameters(),
            macs_per_pixel: network.macs_per_pixel(),
            receptive_field: network.reach(),
            licence: "Apache-2.0".to_owned(),
            commercial: Commercial::Yes,
        }
    }

    fn of_file(brought: &Brought) -> anyhow::Result<Self> {
        let model = brought.model()?;
        let card = brought.card.as_ref();
        Ok(Self {
            container: model.container.to_owned(),
            architecture: model.architecture.name().to_owned(),
            licence: card.map_or_else(|| "no card".to_owned(), |card| card.licence.clone()),
            commercial: brought.commercial(),
            ..Self::of_network(&model.network, &brought.name())
        })
    }

    fn cells(&self) -> Vec<String> {
        vec![
            self.file.clone(),
            self.architecture.clone(),
            format!("{}x", self.scale),
            format!("{:.2} M", self.parameters as f64 / 1e6),
            format!("{:.0} K", self.macs_per_pixel as f64 / 1e3),
            format!("{} px", self.receptive_field),
            self.licence.clone(),
            self.commercial.name().to_owned(),
        ]
    }
}

/// A file of a folder that is no model that runs here.
#[derive(Debug, Serialize)]
struct Refused {
    file: String,
    reason: String,
}

fn list(folder: Option<&Path>, json: bool) -> anyhow::Result<()> {
    let engine = Engine::shipped(EngineOptions::default())?;
    let shipped = Scale::ALL.map(|scale| engine.network(scale));
    let mut facts: Vec<Facts> = shipped
        .iter()
        .map(|network| Facts::of_network(network, network.name()))
        .collect();
    let mut refused = Vec::new();
    for path in folder.map(model_files).transpose()?.unwrap_or_default() {
        match Brought::open(&path).and_then(|brought| Facts::of_file(&brought)) {
            Ok(one) => facts.push(one),
            Err(error) => refused.push(Refused {
                file: path.display().to_string(),
                reason: format!("{:#}", error.root_cause()),
            }),
        }
    }
    if json {
        return output::json(&serde_json::json!({ "models": facts, "refused": refused }));
    }
    let rows: Vec<Vec<String>> = facts.iter().map(Facts::cells).collect();
    output::table(
        &[
            "FILE",
            "NETWORK",
            "SCALE",
            "NUMBERS",
            "MULTIPLIES/PX",
            "SEES",
            "LICENCE",
            "COMMERCIAL",
        ],
        &rows,
    )?;
    for Refused { file, reason } in &refused {
        output::line(&format!("{file}: {reason}"))?;
    }
    Ok(())
}

fn model_files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let shown = || folder.display().to_string();
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).with_context(shown)? {
        let path = entry.with_context(shown)?.path();
        let ending = path
            .extension()
            .map(|ending| ending.to_string_lossy().to_ascii_lowercase());
        if ending.is_some_and(|ending| ENDINGS.contains(&ending.as_str())) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn inspect(file: &Path, json: bool) -> anyhow::Result<()> {
    let brought = Brought::open(file)?;
    let facts = Facts::of_file(&brought)?;
    if json {
        return output::json(&serde_json::json!({
            "model": facts,
            "bytes": brought.size,
            "sha256": brought.sha256,
            "card": brought.card,
        }));
    }
    let (source, card) = match &brought.card {
        Some(card) => (
            card.source.clone(),
            Card::path(&brought.path).display().to_string(),
        ),
        None => (
            "not known".to_owned(),
            "none; `upscale model card` writes it".to_owned(),
        ),
    };
    let rows = [
        ("file", format!("{}, {} bytes", facts.file, brought.size)),
        ("sha256", brought.sha256.clone()),
        ("container", facts.container),
        ("network", facts.architecture),
        ("scale", format!("{}x", facts.scale)),
        ("numbers", facts.parameters.to_string()),
        (
            "multiplies",
            format!("{} for a source pixel", facts.macs_per_pixel),
        ),
        (
            "sees",
            format!("{} source pixels to each side", facts.receptive_field),
        ),
        ("licence", facts.licence),
        ("commercial", facts.commercial.name().to_owned()),
        ("source", source),
        ("card", card),
    ];
    let rows = rows.map(|(name, value)| vec![name.to_owned(), value]);
    output::table(&["WHAT", "FOUND"], &rows)
}

/// Everything is read first; then the process enters the sandbox that children decode images in.
fn verify_file(
    file: &Path,
    golden: Option<&Path>,
    threads: usize,
    (json, with_ranges): (bool, bool),
) -> anyhow::Result<()> {
    let kernels = kernels::from_environment()?;
    let brought = Brought::open(file)?;
    let golden = golden
        .map(|path| read_bounded(path, verify::GOLDEN_BYTES_MAX, ""))
        .transpose()?;
    // What this machine lacks of the sandbox is `serve`'s to tell.
    let _report = sandbox::enter(&Entry::default())?;
    let facts = Facts::of_file(&brought)?;
    let mut network = brought.model()?.network;
    let ranges = with_ranges.then(|| network.find_ranges(kernels)).flatten();
    if let Some(found) = &ranges {
        network = network.with_ranges(found)?;
    }
    let network = Arc::new(network);
    let verified =
        verify(&network, kernels, threads, golden.as_deref()).with_context(|| brought.name())?;
    if json {
        let mut printed = serde_json::json!({ "model": facts, "verified": verified });
        if with_ranges {
            printed["ranges"] = serde_json::json!(ranges);
        }
        return output::json(&printed);
    }
    let golden = verified.golden_error.map_or_else(
        || "no golden pair was given".to_owned(),
        |error| format!("{error:.1e} at most from the golden pair"),
    );
    let rows = [
        ("model", format!("{}, {}x", facts.architecture, facts.scale)),
        (
            "kernels",
            format!(
                "{}, {:.1e} at most from the definition",
                verified.kernels, verified.kernel_error
            ),
        ),
        ("golden", golden),
        (
            "consistency",
            format!(
                "{:.1} dB between the shrunk result and the source",
                verified.consistency_db
            ),
        ),
        (
            "time",
            format!(
                "{:.1} s a megapixel on {threads} threads, {:.0} s for the largest source of {} megapixels",
                verified.seconds_per_megapixel,
                verified.seconds_largest,
                verified.megapixels_largest
            ),
        ),
        ("deadline", deadline(&verified)),
        (
            "memory",
            format!(
                "{} MB of maps for the largest source",
                verified.map_bytes_largest / 1_000_000
            ),
        ),
    ];
    let rows = rows.map(|(name, value)| vec![name.to_owned(), value]);
    output::table(&["WHAT", "FOUND"], &rows)
}

/// Whether the largest source is done in time.
fn deadline(verified: &Verified) -> String {
    let word = if verified.is_within_deadline {
        "within"
    } else {
        "beyond"
    };
    let seconds = verified.deadline_seconds;
    format!("{word} the {seconds:.0} s that the service gives an image")
}

fn write_card(
    file: &Path,
    licence: String,
    source: String,
    commercial: Commercial,
) -> anyhow::Result<()> {
    let brought = Brought::without_card(file)?;
    let model = brought.model()?;
    if licence.trim().is_empty() || source.trim().is_empty() {
        bail!("a card needs a licence and a source; write `unknown` if you do not know");
    }
    let card = Card {
        file: brought.name(),
        sha256: brought.sha256,
        licence,
        source,
        commercial,
        architecture: model.architecture.name().to_owned(),
        scale: model.network.scale(),
        receptive_field: model.network.reach(),
    };
    let path = Card::path(&brought.path);
    write_whole(&path, card.to_toml()?.as_bytes())?;
    output::line(&path.display().to_string())
}

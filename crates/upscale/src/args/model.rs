//! The flags and commands of models that people bring with them.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use serde::{Deserialize, Serialize};
use upscale_pipeline::{ModelPath, ModelPaths};

/// Models in place of the networks that ship, for `serve`.
#[derive(Debug, Args)]
pub(crate) struct ServedModels {
    #[command(flatten)]
    pub(crate) files: ModelFiles,
    /// Serve models whose card does not say `commercial = "yes"`.
    #[arg(long)]
    pub(crate) allow_non_commercial: bool,
}

/// Their files.
#[derive(Debug, Args)]
pub(crate) struct ModelFiles {
    /// Model file of 1x to restore pictures with before they are upscaled.
    #[arg(long, value_name = "FILE")]
    pub(crate) model_1x: Option<PathBuf>,
    /// Model file (.pth, .safetensors, or .param with its .bin) to upscale 2x with, in place of our own network.
    #[arg(long, value_name = "FILE")]
    pub(crate) model_2x: Option<PathBuf>,
    /// Model file (.pth, .safetensors, or .param with its .bin) to upscale 4x with, in place of our own network.
    #[arg(long, value_name = "FILE")]
    pub(crate) model_4x: Option<PathBuf>,
}

/// The same, sealed, for the processes that `serve` starts, and what it found of each.
#[derive(Debug, Args)]
pub(crate) struct SealedModels {
    #[command(flatten)]
    files: ModelFiles,
    /// Ranges of the 1x model's numbers.
    #[arg(long, value_name = "FILE", requires = "model_1x")]
    ranges_1x: Option<PathBuf>,
    /// Ranges of the 2x model's numbers.
    #[arg(long, value_name = "FILE", requires = "model_2x")]
    ranges_2x: Option<PathBuf>,
    /// Ranges of the 4x model's numbers.
    #[arg(long, value_name = "FILE", requires = "model_4x")]
    ranges_4x: Option<PathBuf>,
}

impl SealedModels {
    pub(crate) fn paths(&self) -> ModelPaths {
        let path = |file: &Option<PathBuf>, ranges: &Option<PathBuf>| {
            let (file, ranges) = (file.clone()?, ranges.clone());
            Some(ModelPath { file, ranges })
        };
        ModelPaths {
            x1: path(&self.files.model_1x, &self.ranges_1x),
            x2: path(&self.files.model_2x, &self.ranges_2x),
            x4: path(&self.files.model_4x, &self.ranges_4x),
        }
    }
}

/// A model in place of the networks that ship, for `file`.
#[derive(Debug, Args)]
pub(crate) struct FileModel {
    /// Model file of 1x to restore the picture with before it is upscaled.
    #[arg(long, value_name = "FILE")]
    pub(crate) model_1x: Option<PathBuf>,
    /// Model file (.pth, .safetensors, or .param with its .bin) to upscale with, in place of our own network.
    #[arg(long, value_name = "FILE")]
    pub(crate) model: Option<PathBuf>,
    /// Use a model although its card says `commercial = "no"`.
    #[arg(long)]
    pub(crate) allow_non_commercial: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ModelCommand {
    /// Show the networks that ship and the model files of a folder.
    List {
        /// Folder of .pth, .safetensors and .param files.
        folder: Option<PathBuf>,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Show what a model file is: network, scale, size, cost, licence.
    Inspect {
        /// Model file.
        file: PathBuf,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Run a model file on a small picture and hold the result against the definition of its network.
    Verify {
        /// Model file.
        file: PathBuf,
        /// File of the tensors `input` and `output`, made by the model's own program, to compare with.
        #[arg(long, value_name = "FILE")]
        golden: Option<PathBuf>,
        /// Threads; by default one per core. `serve` verifies with as many as an image gets.
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
        threads: Option<u32>,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
        /// Add the ranges of its numbers to the JSON object, as bytes, for the processes that `serve` starts.
        #[arg(long, hide = true, requires = "json")]
        ranges: bool,
    },
    /// Write the card of a model file, FILE.card.toml: what `serve` wants to know before it earns money with it.
    Card {
        /// Model file.
        file: PathBuf,
        /// Licence, such as `CC-BY-4.0`.
        #[arg(long, value_name = "LICENCE")]
        licence: String,
        /// Where it comes from, usually an address.
        #[arg(long, value_name = "TEXT")]
        source: String,
        /// Whether the licence allows commercial use.
        #[arg(long, value_enum)]
        commercial: Commercial,
    },
}

/// Whether a licence allows commercial use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Commercial {
    Yes,
    No,
    Unclear,
}

impl Commercial {
    /// As on the card.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::Unclear => "unclear",
        }
    }
}

impl ModelCommand {
    pub(crate) fn is_json(&self) -> bool {
        match self {
            Self::List { json, .. } | Self::Inspect { json, .. } | Self::Verify { json, .. } => {
                *json
            }
            Self::Card { .. } => false,
        }
    }
}

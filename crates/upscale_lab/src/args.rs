//! The command line of the laboratory.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use upscale_core::Scale;
use upscale_engine::EngineOptions;

/// Measures what the networks and the pipeline do to pictures.
#[derive(Debug, Parser)]
#[command(name = "upscale-lab", version)]
pub(crate) struct Line {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Shrink clean pictures, enlarge them again, print how alike the results are.
    Eval(EvalArgs),
    /// What the largest images take of a processor, stage by stage; the PNG encoder's share beside its limit.
    Stages(StagesArgs),
    /// A file from bytes to bytes, next to the network alone on the same picture.
    Whole(WholeArgs),
    /// What pictures of all shapes take beside the square of as many pixels.
    Shapes(ShapesArgs),
    /// What squares from an icon to the largest take, and how much of that is their pixels'.
    Sizes(SizesArgs),
    /// What a picture takes with 1 to 32 threads, beside one thread.
    Threads(ThreadsArgs),
    /// One picture of `shapes` or `sizes`.
    #[command(hide = true)]
    Shape(ShapeArgs),
    /// Draw README's picture: a scene like a photograph, damaged, enlarged by bicubic and by the service. Takes a minute.
    Photograph {
        /// The PNG to write.
        file: PathBuf,
    },
    /// Draw what the looks make of a rendered scene and of a drawn one. Takes a minute.
    Looks {
        /// Where the two PNGs go.
        folder: PathBuf,
    },
    /// Draw the two sample pictures of the service.
    Samples {
        /// Where they go.
        folder: PathBuf,
    },
}

#[derive(Debug, Args)]
pub(crate) struct EvalArgs {
    /// Folders of PNG, JPEG or WebP pictures; each is shrunk and enlarged again.
    #[arg(required_unless_present_any = ["gates", "page"], value_name = "FOLDER")]
    pub(crate) folders: Vec<PathBuf>,
    /// 2, 4 or both.
    #[arg(long, value_enum, default_value_t = EvalScale::Both)]
    pub(crate) scale: EvalScale,
    /// As `upscale file --quality max`: the mean of all eight orientations.
    #[arg(long, conflicts_with = "page")]
    pub(crate) max: bool,
    /// Threads; by default one per core.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) threads: Option<u32>,
    /// Print one JSON object with every picture's figures.
    #[arg(long, conflicts_with = "means")]
    pub(crate) json: bool,
    /// Print the means alone.
    #[arg(long)]
    pub(crate) means: bool,
    /// Also drawn pictures, JPEGs, and what the networks make of what they are told; then every gate.
    #[arg(long)]
    pub(crate) gates: bool,
    /// As --gates, and write the page and its pictures here.
    #[arg(long, value_name = "DIR")]
    pub(crate) page: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EvalScale {
    #[value(name = "2")]
    X2,
    #[value(name = "4")]
    X4,
    Both,
}

#[derive(Debug, Args)]
pub(crate) struct StagesArgs {
    /// Measured runs of each picture; the one of least time is shown.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) runs: u32,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ShapesArgs {
    /// Pixels of every picture; by default, and at most, as many as the contract takes at each scale.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) pixels: Option<u64>,
    /// Beside the square only pictures whose longer side has so many of the shorter.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) ratio: Option<u64>,
    /// Pictures of nothing but noise, 16 bits a sample, with alpha: the largest files.
    #[arg(long)]
    pub(crate) noise: bool,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SizesArgs {
    /// 2 or 4.
    #[arg(long, default_value = "4", value_parser = parse_scale)]
    pub(crate) scale: Scale,
    /// Runs of each size; the one of least time is shown.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) runs: u32,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ThreadsArgs {
    /// Side of the square picture, in pixels.
    #[arg(long, default_value_t = 384, value_name = "N", value_parser = parse_side)]
    pub(crate) side: usize,
    /// Runs with each number of threads.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) runs: u32,
    /// Print one JSON array.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A side from 1 to 2,048.
fn parse_side(text: &str) -> Result<usize, String> {
    let side = text.parse().ok().filter(|side| (1..=2_048).contains(side));
    side.ok_or_else(|| format!("{text} is no number from 1 to 2048"))
}

#[derive(Debug, Args)]
pub(crate) struct ShapeArgs {
    /// Picture to upscale.
    pub(crate) file: PathBuf,
    /// 2 or 4.
    #[arg(long, value_parser = parse_scale)]
    pub(crate) scale: Scale,
}

#[derive(Debug, Args)]
pub(crate) struct WholeArgs {
    /// Picture to upscale (JPEG, PNG or WebP), within the service's size.
    pub(crate) file: PathBuf,
    /// 2 or 4; by default 2.
    #[arg(long, value_parser = parse_scale)]
    pub(crate) scale: Option<Scale>,
    /// Threads; by default one per core.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) threads: Option<u32>,
    /// Rounds of both.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) runs: u32,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// One of the two scales.
fn parse_scale(text: &str) -> Result<Scale, String> {
    let factor = text.parse().ok();
    let scale = factor.and_then(Scale::from_factor);
    scale.ok_or_else(|| format!("{text} is neither 2 nor 4"))
}

/// As many as were asked for, or one per core.
pub(crate) fn threads(asked: Option<u32>) -> usize {
    let asked = asked.and_then(|threads| usize::try_from(threads).ok());
    asked.unwrap_or_else(|| EngineOptions::default().threads)
}

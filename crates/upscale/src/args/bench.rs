//! The flags of `bench`.

use std::{path::PathBuf, str::FromStr};

use clap::{Args, Subcommand, ValueEnum};

use super::{device::DeviceChoice, parse::PictureSize};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct BenchArgs {
    #[command(flatten)]
    pub(crate) engine: BenchEngineArgs,
    #[command(subcommand)]
    pub(crate) command: Option<BenchCommand>,
}

#[derive(Debug, Args)]
pub(crate) struct BenchEngineArgs {
    /// `f`, `s`, `x`, `span` (`s` with gates), `compact`, `rrdb`, all with random weights, or a model file of anyone's.
    #[arg(long, value_name = "NAME|FILE", default_value = "f")]
    pub(crate) network: String,
    /// Size of the source in pixels.
    #[arg(long, value_name = "WxH", default_value = "256x256", value_parser = PictureSize::from_str)]
    pub(crate) size: PictureSize,
    /// Threads; by default one per core.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) threads: Option<u32>,
    /// How exact the arithmetic has to be.
    #[arg(long, value_enum, default_value_t = BenchPrecision::Exact)]
    pub(crate) precision: BenchPrecision,
    /// What computes: `cpu`, `gpu:0` (or another number), or `auto`, the GPU where that is faster.
    #[arg(long, value_name = "auto|cpu|gpu:N", default_value_t = DeviceChoice::Cpu)]
    pub(crate) device: DeviceChoice,
    /// Measured runs.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) runs: u32,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// Creates and reads per second over loopback, next to what the disk syncs in the same run.
    Api(BenchApiArgs),
    /// Requests held at once by `Prefer: wait`: what they cost in queries, threads and memory, and how soon they hear.
    Waiting(BenchWaitingArgs),
    /// One picture by 1 to 32 threads, and several at once, beside one thread: what more cores are worth here.
    Scale(BenchScaleArgs),
}

#[derive(Debug, Args)]
pub(crate) struct BenchScaleArgs {
    /// As for `bench`.
    #[arg(long, value_name = "NAME|FILE", default_value = "s")]
    pub(crate) network: String,
    /// Size of the source in pixels.
    #[arg(long, value_name = "WxH", default_value = "384x384", value_parser = PictureSize::from_str)]
    pub(crate) size: PictureSize,
    /// Measured runs of each picture.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) runs: u32,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BenchWaitingArgs {
    /// Requests held at a time.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=2_000))]
    pub(crate) waiters: u32,
    /// Seconds for which all of them are held.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=20))]
    pub(crate) seconds: u32,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BenchApiArgs {
    /// Directory on the disk to measure; a temporary one inside it is used and removed.
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Seconds of creates, and of reads.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=60))]
    pub(crate) seconds: u32,
    /// Connections at a time.
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) connections: u32,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BenchPrecision {
    /// 32-bit floating point throughout.
    Exact,
    /// 16-bit integers where the CPU multiplies them faster and the network stands it.
    Fast,
}

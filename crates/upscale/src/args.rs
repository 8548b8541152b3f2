//! The command line: every command and flag, and nothing else. `--help` prints these comments and is the
//! reference; each long flag is also an `UPSCALE_…` variable and a name in the file of `--config`, see `config.rs`.

mod bench;
mod customer;
mod device;
mod location;
mod model;
mod operator;
mod parse;
mod roles;
mod user;

use std::{path::PathBuf, str::FromStr};

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use upscale_core::{Credits, Look, Permission, Scale};
use upscale_image::Format;

use self::parse::{parse_name, parse_permission, parse_scale};
pub(crate) use self::{
    bench::{
        BenchApiArgs, BenchArgs, BenchCommand, BenchEngineArgs, BenchPrecision, BenchScaleArgs,
        BenchWaitingArgs,
    },
    customer::{CallArgs, StatusArgs, SubmitArgs, WaitArgs},
    device::{DeviceChoice, GpuArgs},
    location::{DataArgs, LocationArgs, StorageArgs},
    model::{Commercial, FileModel, ModelCommand, SealedModels, ServedModels},
    operator::{AccountCommand, ActionArgs, LedgerCommand, LimitArgs, TaskCommand},
    parse::{AdminAddress, OneLimit, PictureSize},
    roles::{
        AdminArgs, DoctorArgs, FrontArgs, HealthArgs, LogFormat, ProcessArgs, Role, StripeArgs,
        WorkArgs,
    },
    user::{LinkArgs, UserCommand},
};
use crate::parameters::ParameterFlags;

const EXAMPLES: &str = "Examples:
  upscale file photo.jpg --scale 4                    writes photo-4x.png
  upscale demo --open                                 the whole service at work, then a page
  upscale serve                                       the service, on this machine
  upscale quickstart                                  an account with credits and a key
  upscale submit --list addresses.txt --out results   many images through the API

`upscale COMMAND --help` shows details.";
const FILE_EXAMPLES: &str = "Examples:
  upscale file photo.jpg                            writes photo-2x.png beside it
  upscale file photo.jpg poster.webp --scale 4
  upscale file photos -o upscaled -r --skip-existing
  upscale file photo.jpg -o small.jpg --resize 1920x1080
  upscale file - --format jpeg < in.png > out.jpg";
const SUBMIT_EXAMPLES: &str = "Examples:
  export UPSCALE_API=https://api.example.com UPSCALE_API_KEY=usk_live_…
  upscale submit https://images.example.com/photo.jpg --scale 4
  upscale submit --list addresses.txt --out results --concurrency 8";

/// Upscales images by 2x or 4x: an asynchronous REST service, a command for files, and what their operator needs.
#[derive(Debug, Parser)]
#[command(name = "upscale", version, max_term_width = 100, after_help = EXAMPLES)]
pub(crate) struct Cli {
    /// TOML file with flags by their names, such as `listen = "0.0.0.0:8080"`. A flag wins over its variable,
    /// a variable over the file, the file over the default.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the service: API, result files and workers in one process.
    Serve {
        #[command(flatten)]
        location: LocationArgs,
        #[command(flatten)]
        front: Box<FrontArgs>,
        #[command(flatten)]
        work: Box<WorkArgs>,
        #[command(flatten)]
        process: Box<ProcessArgs>,
        /// Let another `serve` with this flag work on the same directory; without it a second one is refused.
        #[arg(long)]
        share_data: bool,
    },
    /// Run the API and the result files alone; `worker` processes do the work.
    Api {
        #[command(flatten)]
        location: LocationArgs,
        #[command(flatten)]
        front: Box<FrontArgs>,
        #[command(flatten)]
        process: Box<ProcessArgs>,
    },
    /// Run workers alone, for `api` processes on the same data.
    Worker {
        #[command(flatten)]
        location: LocationArgs,
        #[command(flatten)]
        work: Box<WorkArgs>,
        #[command(flatten)]
        process: Box<ProcessArgs>,
    },
    /// Create an account with credits and a key.
    Quickstart(QuickstartArgs),
    /// Create, credit, adjust, limit and inspect accounts; works while `serve` runs.
    #[command(subcommand)]
    Account(AccountCommand),
    /// Create, rotate and revoke API keys; works while `serve` runs.
    #[command(subcommand)]
    Key(KeyCommand),
    /// Inspect any account's tasks; retry a stuck refund.
    #[command(subcommand)]
    Task(TaskCommand),
    /// Read the ledger: an account's lines, the sums of all, whether it balances.
    #[command(subcommand)]
    Ledger(LedgerCommand),
    /// Manage users of the console and their passwords; works while it runs.
    #[command(subcommand)]
    User(UserCommand),
    /// Check whether the service on this machine is ready; exit status 1 if not. For containers.
    Health(HealthArgs),
    /// Check this machine: CPU, sandbox, store, disk, name resolution, network; exit status 1 if a check fails.
    Doctor(Box<DoctorArgs>),
    /// Check every invariant of ledger, tasks and files; exit status 1 if one is broken.
    Audit(DataArgs),
    /// Copy the data directory's database while the service runs, and audit the copy.
    Backup(BackupArgs),
    /// Test the bucket for results.
    #[command(subcommand)]
    Storage(StorageCommand),
    /// Upscale files and folders on this machine, without the service.
    #[command(after_help = FILE_EXAMPLES)]
    File(FileArgs),
    /// Inspect and verify model files, write their cards.
    #[command(subcommand)]
    Model(ModelCommand),
    /// Show the whole service at work: server, image host, customer, two pictures.
    Demo(DemoArgs),
    /// Upscale many images by URL through the API; a killed run continues where it stopped.
    #[command(after_help = SUBMIT_EXAMPLES)]
    Submit(Box<SubmitArgs>),
    /// Read one task through the API.
    Status(StatusArgs),
    /// Wait for the end of one task and download its result.
    Wait(WaitArgs),
    /// Measure the speed of a network, of the API with `bench api`.
    Bench(BenchArgs),
    /// Print shell completions.
    Completions {
        /// Shell to print completions for.
        #[arg(value_enum)]
        shell: Shell,
    },
    /// Write manual pages, one per command.
    Man {
        /// Where to; made where absent.
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
    /// One image from standard input to standard output; started by the worker, once per image.
    #[command(hide = true)]
    Child(ChildArgs),
    /// Children's pictures on a GPU; started by the worker, over whose socket it hears of them.
    #[command(hide = true)]
    Gpu(GpuArgs),
}

impl Command {
    /// Whether the caller is a program and wants its errors as JSON, too.
    pub(crate) fn is_json(&self) -> bool {
        match self {
            Self::Quickstart(args) => args.data.json,
            Self::Account(command) => command.data().json,
            Self::Key(command) => command.data().json,
            Self::Task(command) => command.data().json,
            Self::Ledger(command) => command.data().json,
            Self::User(command) => command.data().json,
            Self::Audit(args) => args.json,
            Self::Backup(args) => args.json,
            Self::Storage(StorageCommand::Check(args)) => args.json,
            Self::Doctor(args) => args.json,
            Self::Submit(args) => args.call.json,
            Self::Status(args) => args.call.json,
            Self::Wait(args) => args.call.json,
            Self::Model(command) => command.is_json(),
            Self::Bench(args) => match &args.command {
                Some(BenchCommand::Api(api)) => api.json,
                Some(BenchCommand::Scale(scale)) => scale.json,
                Some(BenchCommand::Waiting(waiting)) => waiting.json,
                None => args.engine.json,
            },
            Self::Serve { .. }
            | Self::Api { .. }
            | Self::Worker { .. }
            | Self::Health(_)
            | Self::File(_)
            | Self::Demo(_)
            | Self::Completions { .. }
            | Self::Man { .. }
            | Self::Child(_)
            | Self::Gpu(_) => false,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct BackupArgs {
    /// Directory of the database to copy; by default the one of `serve`.
    #[arg(long, value_name = "DIR")]
    pub(crate) data: PathBuf,
    /// Directory to copy into; made where absent, and it must hold no database. To restore, serve it.
    #[arg(value_name = "OUT")]
    pub(crate) out: PathBuf,
    /// Copy the result files as well.
    #[arg(long)]
    pub(crate) results: bool,
    /// Print one JSON object instead of a sentence.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum StorageCommand {
    /// Write, read, list, link and remove a small file, and say what does not work; exit status 1 then.
    Check(StorageCheckArgs),
}

#[derive(Debug, Args)]
pub(crate) struct StorageCheckArgs {
    #[command(flatten)]
    pub(crate) storage: StorageArgs,
    /// Print one JSON object instead of a line a step.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ChildArgs {
    /// Only say which parts of the sandbox hold on this machine.
    #[arg(long)]
    pub(crate) probe: bool,
    /// User to become.
    #[arg(long, value_name = "UID")]
    pub(crate) sandbox_uid: Option<u32>,
    /// Process that starts this one.
    #[arg(long, value_name = "PID")]
    pub(crate) parent: Option<u32>,
    /// A device's end of a socket comes before the job.
    #[arg(long)]
    pub(crate) device_end: bool,
    #[command(flatten)]
    pub(crate) models: SealedModels,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Create an API key; its secret is shown once.
    Create {
        /// The account's id, `acc_…`.
        account: String,
        /// Whether it may read tasks, create them, or both.
        #[arg(long, value_name = "read|write|all", default_value = "all", value_parser = parse_permission)]
        permission: Permission,
        /// What you call it, up to 100 characters.
        #[arg(long, value_parser = parse_name)]
        name: Option<String>,
        #[command(flatten)]
        data: DataArgs,
    },
    /// Show an account's keys without their secrets: those that work first, then the revoked, each the newest first.
    List {
        /// The account's id, `acc_…`.
        account: String,
        /// Keys shown at most.
        #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
        limit: u32,
        #[command(flatten)]
        data: DataArgs,
    },
    /// Replace a key by a new one; its secret is shown once.
    Rotate {
        /// The old key's id, `key_…`.
        key: String,
        /// Seconds that the old key still works.
        #[arg(long, value_name = "SECONDS", default_value_t = 0, value_parser = clap::value_parser!(i64).range(0..=2_592_000))]
        overlap: i64,
        #[command(flatten)]
        data: DataArgs,
    },
    /// Sign result URLs with a new secret from now on; URLs handed out before work until they expire.
    RotateSigning {
        /// Refuse URLs handed out before, within 10 seconds: for a secret that leaked.
        #[arg(long)]
        refuse_old_links: bool,
        #[command(flatten)]
        data: DataArgs,
    },
    /// Revoke a key.
    Revoke {
        /// The key's id, `key_…`.
        key: String,
        #[command(flatten)]
        data: DataArgs,
    },
}

impl KeyCommand {
    pub(crate) fn data(&self) -> &DataArgs {
        match self {
            Self::Create { data, .. }
            | Self::List { data, .. }
            | Self::Rotate { data, .. }
            | Self::RotateSigning { data, .. }
            | Self::Revoke { data, .. } => data,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct FileArgs {
    /// Pictures (JPEG, PNG, WebP), folders of them, or `-` for standard input. The second of two is the output where
    /// `--out` names none.
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Where results go: a file that ends in .png, .jpg or .webp, a folder, or `-` for standard output. By default beside
    /// the source, as `photo-4x.png`.
    #[arg(short, long, value_name = "FILE|DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Read folders in folders, too.
    #[arg(short, long)]
    pub(crate) recursive: bool,
    /// Skip pictures whose result already exists.
    #[arg(long, conflicts_with = "overwrite")]
    pub(crate) skip_existing: bool,
    /// Replace results that are there already; each appears whole or not at all.
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Format of results that no file name gives one.
    #[arg(long, value_enum)]
    pub(crate) format: Option<OutputFormat>,
    /// Quality of JPEG results, 1 to 100.
    #[arg(long, value_name = "N", default_value_t = 92, value_parser = clap::value_parser!(u8).range(1..=100))]
    pub(crate) quality_jpeg: u8,
    /// Bring the result to this size in pixels, in 8 bits, after it was upscaled.
    #[arg(long, value_name = "WxH", value_parser = PictureSize::from_str)]
    pub(crate) resize: Option<PictureSize>,
    /// 2 or 4; by default 2, or what the model does.
    #[arg(short, long, value_parser = parse_scale)]
    pub(crate) scale: Option<Scale>,
    #[command(flatten)]
    pub(crate) model: FileModel,
    #[command(flatten)]
    pub(crate) parameters: ParameterFlags,
    /// How the result looks where the source leaves it open: `faithful`, `natural` or `crisp`.
    #[arg(short, long, value_name = "LOOK", default_value_t = Look::default())]
    pub(crate) look: Look,
    /// `max` takes eight times as long: the mean of the picture's eight orientations.
    #[arg(short, long, value_enum, default_value_t = Quality::Standard)]
    pub(crate) quality: Quality,
    /// What computes: `cpu`, `gpu:0` (or another number), or `auto`, the GPU where that is faster.
    #[arg(long, value_name = "auto|cpu|gpu:N", default_value_t = DeviceChoice::Cpu)]
    pub(crate) device: DeviceChoice,
    /// Threads; by default one per core.
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) threads: Option<u32>,
    /// Largest input, in pixels; by default what fits into three quarters of this machine's memory.
    #[arg(long, value_name = "PIXELS", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub(crate) pixels_max: Option<u64>,
    /// Say where the time went, and the largest memory.
    #[arg(long)]
    pub(crate) timings: bool,
}

/// What `upscale file` writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// Without loss, with all that the source had.
    Png,
    /// With loss, 8 bits, no transparency.
    Jpeg,
    /// Without loss, 8 bits.
    Webp,
}

impl From<OutputFormat> for Format {
    fn from(format: OutputFormat) -> Self {
        match format {
            OutputFormat::Png => Self::Png,
            OutputFormat::Jpeg => Self::Jpeg,
            OutputFormat::Webp => Self::WebP,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct QuickstartArgs {
    /// What you call the account, 1 to 100 characters.
    #[arg(long, value_name = "TEXT", default_value = "Quick start", value_parser = parse_name)]
    pub(crate) name: String,
    /// Its first credits.
    #[arg(long, value_name = "CREDITS", default_value = "100", value_parser = Credits::parse)]
    pub(crate) credit: Credits,
    #[command(flatten)]
    pub(crate) data: DataArgs,
}

/// How much time a picture may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Quality {
    /// The network once, as in the service.
    Standard,
    /// The network on all eight orientations of the picture.
    Max,
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Pictures to upscale (JPEG, PNG, WebP); without any, two that the demo draws itself.
    pub(crate) images: Vec<PathBuf>,
    /// Where the results and the before/after picture are written; made where absent.
    #[arg(long, value_name = "DIR", default_value = "upscale-demo")]
    pub(crate) out: PathBuf,
    /// Show the page in a browser when it is there.
    #[arg(long)]
    pub(crate) open: bool,
    /// Order nothing: print where the service is, a key and the pictures' addresses as one line of JSON, and stay until
    /// standard input ends: a place to try a client against.
    #[arg(long)]
    pub(crate) hold: bool,
}

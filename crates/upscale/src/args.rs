//! The command line: every command and flag, and nothing else. `--help` prints these comments and is the
//! reference; each long flag is also an `UPSCALE_…` variable and a name in the file of `--config`, see `config.rs`.

mod customer;
mod parse;

use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    str::FromStr,
};

use clap::{Args, Parser, Subcommand, ValueEnum};
use upscale_api::{FAILING_AUTH_PER_MINUTE, READS_PER_SECOND};
use upscale_core::{
    Credits, Permission, Scale,
    limits::{
        DEADLINE_SECONDS, LEASE_SECONDS, RECORD_RETENTION_DAYS, RESULT_RETENTION_HOURS,
        RESULT_RETENTION_HOURS_MIN,
    },
};
use upscale_worker::{IpNet, Ipv6Net};

use self::parse::{
    parse_name, parse_permission, parse_png_path, parse_public_url, parse_reference, parse_scale,
};
pub(crate) use self::{
    customer::{CallArgs, StatusArgs, SubmitArgs, WaitArgs},
    parse::PictureSize,
};

/// Upscales images by 2x or 4x: an asynchronous REST service, a command for files, and what their operator needs.
#[derive(Debug, Parser)]
#[command(name = "upscale", version, max_term_width = 100)]
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
    Serve(Box<ServeArgs>),
    /// Make, credit and inspect accounts, while `serve` runs or not.
    #[command(subcommand)]
    Account(AccountCommand),
    /// Make, rotate and revoke API keys, while `serve` runs or not.
    #[command(subcommand)]
    Key(KeyCommand),
    /// Check every invariant of money, tasks and files; exit status 1 when one is broken.
    Audit(DataArgs),
    /// Upscale one file here and now, by the same path as the service.
    File(FileArgs),
    /// Show the whole service at work: a server, an image host, a customer, two pictures.
    Demo(DemoArgs),
    /// Upscale many images by their addresses through the API; a killed run goes on where it stopped.
    Submit(Box<SubmitArgs>),
    /// Read one task through the API.
    Status(StatusArgs),
    /// Wait for the end of one task and download its result.
    Wait(WaitArgs),
    /// Measure the quality against bicubic and Lanczos3 on folders of pictures.
    Eval(EvalArgs),
    /// Measure the speed of a network, or of the API with `bench api`.
    Bench(BenchArgs),
    /// One image from standard input to standard output; started by the worker, once per image.
    #[command(hide = true)]
    Child(ChildArgs),
}

impl Command {
    /// Whether the caller is a program and wants its errors as JSON, too.
    pub(crate) fn is_json(&self) -> bool {
        match self {
            Self::Account(command) => command.data().json,
            Self::Key(command) => command.data().json,
            Self::Audit(args) => args.json,
            Self::Submit(args) => args.call.json,
            Self::Status(args) => args.call.json,
            Self::Wait(args) => args.call.json,
            Self::Eval(args) => args.json,
            Self::Bench(args) => match &args.command {
                Some(BenchCommand::Api(api)) => api.json,
                None => args.engine.json,
            },
            Self::Serve(_) | Self::File(_) | Self::Demo(_) | Self::Child(_) => false,
        }
    }
}

/// What all commands on a data directory take.
#[derive(Debug, Clone, Args)]
pub(crate) struct DataArgs {
    /// Directory of the database and the result files.
    #[arg(long, value_name = "DIR")]
    pub(crate) data: PathBuf,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Directory of the database and the result files; made where absent.
    #[arg(long, value_name = "DIR")]
    pub(crate) data: PathBuf,
    /// Where the API listens; port 0 picks a free one.
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:8080")]
    pub(crate) listen: SocketAddr,
    /// Where result files are served; port 0 picks a free one.
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:8081")]
    pub(crate) results_listen: SocketAddr,
    /// Where `/metrics` is served for Prometheus, without a key: keep it inside; off by default.
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) metrics_listen: Option<SocketAddr>,
    /// The API as clients reach it, such as `https://api.example.com`; by default where it listens.
    #[arg(long, value_name = "URL", value_parser = parse_public_url)]
    pub(crate) base_url: Option<String>,
    /// The result files as clients reach them; by default where they are served.
    #[arg(long, value_name = "URL", value_parser = parse_public_url)]
    pub(crate) result_url: Option<String>,
    /// Images processed at a time; by default one per core. 0 leaves the work to other processes.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1024))]
    pub(crate) workers: Option<u32>,
    /// Threads for one image; by default the cores divided by the workers.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) threads: Option<u32>,
    /// Further root certificates (PEM) to trust for image URLs; repeatable.
    #[arg(long, value_name = "FILE", value_delimiter = ',')]
    pub(crate) source_ca: Vec<PathBuf>,
    /// Fetch images of this host name from this address, even a private one; repeatable.
    #[arg(long, value_name = "NAME:443=ADDR:PORT", value_delimiter = ',')]
    pub(crate) source_connect_to: Vec<String>,
    /// Never fetch images from these addresses, beside those that are not public; repeatable.
    #[arg(long, value_name = "CIDR", value_delimiter = ',')]
    pub(crate) source_deny: Vec<IpNet>,
    /// NAT64 prefix of this network: an address inside is judged by the IPv4 address it stands for; repeatable.
    #[arg(long, value_name = "PREFIX", value_delimiter = ',')]
    pub(crate) nat64_prefix: Vec<Ipv6Net>,
    /// Failing authentications a minute from one address before 429 takes the place of 401.
    #[arg(long, value_name = "N", default_value_t = FAILING_AUTH_PER_MINUTE, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) failing_auth_per_minute: u32,
    /// Reads a second of one account before 429; ten times as many at once.
    #[arg(long, value_name = "N", default_value_t = READS_PER_SECOND, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) reads_per_second: u32,
    /// Seconds after acceptance at which a task is failed and refunded if nothing else.
    #[arg(long, value_name = "SECONDS", default_value_t = DEADLINE_SECONDS, value_parser = clap::value_parser!(i64).range(1..=86_400))]
    pub(crate) deadline: i64,
    /// Seconds that a task stays with a process that gives no sign of life; then another takes it.
    #[arg(long, value_name = "SECONDS", default_value_t = LEASE_SECONDS, value_parser = clap::value_parser!(i64).range(2..=3_600))]
    pub(crate) lease: i64,
    /// Hours that result files are kept.
    #[arg(long, value_name = "HOURS", default_value_t = RESULT_RETENTION_HOURS, value_parser = clap::value_parser!(i64).range(RESULT_RETENTION_HOURS_MIN..=87_600))]
    pub(crate) result_retention: i64,
    /// Days that task records and their idempotency keys are kept.
    #[arg(long, value_name = "DAYS", default_value_t = RECORD_RETENTION_DAYS, value_parser = clap::value_parser!(i64).range(1..=3_650))]
    pub(crate) record_retention: i64,
    /// Seconds that requests and images under way have to end after SIGTERM.
    #[arg(long, value_name = "SECONDS", default_value_t = 25, value_parser = clap::value_parser!(u64).range(0..=3_600))]
    pub(crate) drain: u64,
    /// Proxies whose `X-Forwarded-For` is believed; repeatable.
    #[arg(long, value_name = "IP", value_delimiter = ',')]
    pub(crate) trusted_proxy: Vec<IpAddr>,
    /// Refuse to start where the kernel lacks a part of the sandbox that images are decoded in.
    #[arg(long)]
    pub(crate) require_sandbox: bool,
    /// A misdeed for every child to commit, for tests of the sandbox; in debug builds only.
    #[cfg(debug_assertions)]
    #[arg(long, hide = true, value_name = "NAME")]
    pub(crate) child_fault: Option<String>,
    /// What is logged to standard error: a level, or directives such as `info,upscale_worker=debug`.
    #[arg(long, value_name = "FILTER", default_value = "info")]
    pub(crate) log: String,
    /// How it is logged: by default readable on a terminal and JSON elsewhere.
    #[arg(long, value_enum, default_value_t = LogFormat::Auto)]
    pub(crate) log_format: LogFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    Auto,
    Json,
    Pretty,
}

#[derive(Debug, Args)]
pub(crate) struct ChildArgs {
    /// Only say what the sandbox lacks on this kernel.
    #[arg(long)]
    pub(crate) probe: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AccountCommand {
    /// Make an account; prints its id.
    Create {
        /// What you call it, 1 to 100 characters.
        #[arg(value_parser = parse_name)]
        name: String,
        #[command(flatten)]
        data: DataArgs,
    },
    /// Book a purchase; the first one opens API access.
    Credit {
        /// The account's id, `acc_…`.
        account: String,
        /// How many, such as 100 or 0.7.
        #[arg(value_parser = Credits::parse)]
        credits: Credits,
        /// The payment's own id: the same reference is credited once, however often this is called.
        #[arg(long, value_parser = parse_reference)]
        reference: String,
        #[command(flatten)]
        data: DataArgs,
    },
    /// Show an account and its balances.
    Show {
        /// The account's id, `acc_…`.
        account: String,
        #[command(flatten)]
        data: DataArgs,
    },
    /// Show all accounts, oldest first.
    List {
        #[command(flatten)]
        data: DataArgs,
    },
    /// Show an account's transfers, newest first.
    Ledger {
        /// The account's id, `acc_…`.
        account: String,
        /// Lines shown at most.
        #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
        limit: u32,
        #[command(flatten)]
        data: DataArgs,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Make an API key; its secret is shown this once.
    Create {
        /// The account's id, `acc_…`.
        account: String,
        /// Whether it may read tasks, create them, or both.
        #[arg(long, value_name = "read|write|all", default_value = "all", value_parser = parse_permission)]
        permission: Permission,
        #[command(flatten)]
        data: DataArgs,
    },
    /// Show an account's keys without their secrets.
    List {
        /// The account's id, `acc_…`.
        account: String,
        #[command(flatten)]
        data: DataArgs,
    },
    /// Make a new key in place of an old one; its secret is shown this once.
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
    /// Refuse a key from now on.
    Revoke {
        /// The key's id, `key_…`.
        key: String,
        #[command(flatten)]
        data: DataArgs,
    },
}

impl AccountCommand {
    pub(crate) fn data(&self) -> &DataArgs {
        match self {
            Self::Create { data, .. }
            | Self::Credit { data, .. }
            | Self::Show { data, .. }
            | Self::List { data }
            | Self::Ledger { data, .. } => data,
        }
    }
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
    /// JPEG, PNG or WebP file.
    pub(crate) input: PathBuf,
    /// PNG file to write, in place of one that is there; it appears whole or not at all.
    #[arg(value_parser = parse_png_path)]
    pub(crate) output: PathBuf,
    /// 2 or 4.
    #[arg(long, default_value = "2", value_parser = parse_scale)]
    pub(crate) scale: Scale,
    /// Improve faces; lowers the size cap.
    #[arg(long)]
    pub(crate) face_enhance: bool,
    /// Threads; by default one per core.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) threads: Option<u32>,
    /// Largest input, in pixels, in place of the service's cap for this scale.
    #[arg(long, value_name = "PIXELS", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub(crate) pixels_max: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Pictures to upscale (JPEG, PNG, WebP); without any, two that the demo draws itself.
    pub(crate) images: Vec<PathBuf>,
    /// Where the results and the before/after picture are written; made where absent.
    #[arg(long, value_name = "DIR", default_value = "upscale-demo")]
    pub(crate) out: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct EvalArgs {
    /// Folders of PNG, JPEG or WebP pictures; each is shrunk and enlarged again.
    #[arg(required = true, value_name = "FOLDER")]
    pub(crate) folders: Vec<PathBuf>,
    /// 2, 4 or both.
    #[arg(long, value_enum, default_value_t = EvalScale::Both)]
    pub(crate) scale: EvalScale,
    /// Threads; by default one per core.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) threads: Option<u32>,
    /// Print one JSON object with every picture's figures.
    #[arg(long, conflicts_with = "markdown")]
    pub(crate) json: bool,
    /// Print the means as a Markdown table.
    #[arg(long)]
    pub(crate) markdown: bool,
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
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct BenchArgs {
    #[command(flatten)]
    pub(crate) engine: BenchEngineArgs,
    #[command(subcommand)]
    pub(crate) command: Option<BenchCommand>,
}

#[derive(Debug, Args)]
pub(crate) struct BenchEngineArgs {
    /// `compact`, `f`, `s`, `x` (random weights) or a weight file.
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
}

//! The flags of the processes that run the service: the front (API and result files), the work, and the process itself. `serve` takes all of them, `api` and `worker` their part.

use std::{net::SocketAddr, path::PathBuf};

use clap::{Args, ValueEnum};
use upscale_api::{FAILING_AUTH_PER_MINUTE, READS_PER_SECOND, ResultDelivery, parse_trusted_proxy};
use upscale_core::{
    Look, Package,
    limits::{
        DEADLINE_SECONDS, LEASE_SECONDS, RECORD_RETENTION_DAYS, RESULT_RETENTION_HOURS,
        RESULT_RETENTION_HOURS_MIN,
    },
};
use upscale_pipeline::sandbox::UID_DEFAULT;
use upscale_worker::{IpNet, Ipv6Net};

use super::{
    device::DeviceChoice,
    location::LocationArgs,
    model::ServedModels,
    parse::{
        AdminAddress, parse_address, parse_mode, parse_package, parse_public_url, parse_share,
        parse_stripe_api,
    },
};

/// What one process does: the front, the work, or both.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Role<'a> {
    pub(crate) location: &'a LocationArgs,
    pub(crate) front: Option<&'a FrontArgs>,
    pub(crate) work: Option<&'a WorkArgs>,
    pub(crate) process: &'a ProcessArgs,
    /// Of `serve`: whether another one may work on its directory. `api` and `worker` are meant to be several.
    pub(crate) share_data: Option<bool>,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) location: LocationArgs,
    #[command(flatten)]
    pub(crate) work: WorkArgs,
    #[command(flatten)]
    pub(crate) process: ProcessArgs,
    /// Host that is looked up and asked for its time, to see whether the internet can be reached.
    #[arg(long, value_name = "HOST", default_value = "example.com")]
    pub(crate) outside: String,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
}

/// How files of a bucket reach customers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DeliveryArg {
    /// Through the service, which sends the headers of the contract.
    Proxy,
    /// From the bucket: the result link answers 307.
    Redirect,
}

impl From<DeliveryArg> for ResultDelivery {
    fn from(delivery: DeliveryArg) -> Self {
        match delivery {
            DeliveryArg::Proxy => Self::Proxy,
            DeliveryArg::Redirect => Self::Redirect,
        }
    }
}

/// Where the service of this machine is asked. In a container the variables of the service say so.
#[derive(Debug, Args)]
pub(crate) struct HealthArgs {
    /// Where its API listens.
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:8080")]
    pub(crate) listen: SocketAddr,
    /// Where its metrics are served: asked where no API listens, as in a worker.
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) metrics_listen: Option<SocketAddr>,
    /// Its certificate: the API is asked over TLS where there is one.
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_cert: Option<PathBuf>,
}

/// What customers reach.
#[derive(Debug, Args)]
pub(crate) struct FrontArgs {
    /// Where the API and result files are served; port 0 picks a free one.
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:8080")]
    pub(crate) listen: SocketAddr,
    /// A listener for result files alone, for a host name of their own; by default the API serves them.
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) results_listen: Option<SocketAddr>,
    /// The API as clients reach it, such as `https://api.example.com`; by default where it listens. Needed where it listens
    /// on all addresses.
    #[arg(long, value_name = "URL", value_parser = parse_public_url)]
    pub(crate) base_url: Option<String>,
    /// The result files as clients reach them, where that is not under `--base-url`. Needed with `--results-listen` and
    /// `--base-url`.
    #[arg(long, value_name = "URL", value_parser = parse_public_url)]
    pub(crate) result_url: Option<String>,
    /// How result files in a bucket reach customers: through the service, or past it by a redirect, for very many.
    #[arg(long, value_enum, default_value_t = DeliveryArg::Proxy)]
    pub(crate) result_delivery: DeliveryArg,
    /// Certificate chain (PEM) to serve the API, result files and the console over TLS; read again when it changes.
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Private key (PEM) of `--tls-cert`.
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Where the customers' console is served; without an address, at 127.0.0.1:8082. Off by default.
    #[arg(long, value_name = "ADDR:PORT", num_args = 0..=1, default_missing_value = "127.0.0.1:8082")]
    pub(crate) console_listen: Option<SocketAddr>,
    /// The console as people reach it, such as `https://console.example.com`, without a path; by default the host that
    /// they name. With https, cookies are sent over TLS alone.
    #[arg(long, value_name = "URL", value_parser = parse_public_url)]
    pub(crate) console_url: Option<String>,
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
    /// Failing authentications a minute from one address before 429 takes the place of 401.
    #[arg(long, value_name = "N", default_value_t = FAILING_AUTH_PER_MINUTE, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) failing_auth_per_minute: u32,
    /// Reads a second of one account before 429; ten times as many at once.
    #[arg(long, value_name = "N", default_value_t = READS_PER_SECOND, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) reads_per_second: u32,
    /// Proxies whose `X-Forwarded-For` is believed, each an address or a range such as `10.0.0.0/8`; repeatable.
    #[arg(long, value_name = "IP|CIDR", value_delimiter = ',', value_parser = parse_trusted_proxy)]
    pub(crate) trusted_proxy: Vec<IpNet>,
    #[command(flatten)]
    pub(crate) stripe: StripeArgs,
    #[command(flatten)]
    pub(crate) mail: MailArgs,
}

/// How forgotten passwords' links reach people. Without a mail server they do not, and `user reset-password` is the way.
#[derive(Debug, Clone, Args)]
pub(crate) struct MailArgs {
    /// Mail server for the console's mails: `smtps://user@mail.example.com`, or `smtp://…:587?tls=required`. Better
    /// given as UPSCALE_SMTP_URL where it holds a password: other users of the machine see a command line.
    #[arg(long, value_name = "URL", hide_env_values = true)]
    pub(crate) smtp_url: Option<String>,
    /// File with the mail server's password.
    #[arg(long, value_name = "FILE")]
    pub(crate) smtp_password_file: Option<PathBuf>,
    /// Sender of the console's mails, such as `Upscale <console@example.com>`.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) mail_from: Option<String>,
}

/// The operators' console: accounts, payments, tasks, the queue. Off by default.
#[derive(Debug, Clone, Args)]
pub(crate) struct AdminArgs {
    /// Where the operators' console is served: a socket's file, such as `unix:/run/upscale/admin.sock`, or a loopback
    /// address, which asks for a token.
    #[arg(long, value_name = "unix:FILE|ADDR:PORT", value_parser = parse_address)]
    pub(crate) admin_listen: Option<AdminAddress>,
    /// Permissions of the socket's file: 600 for its owner alone, 660 for its group, too.
    #[arg(long, value_name = "MODE", default_value = "600", value_parser = parse_mode)]
    pub(crate) admin_socket_mode: u32,
    /// File with the token that the operators' console asks for on a loopback address, at least 32 characters; by
    /// default the variable UPSCALE_ADMIN_TOKEN.
    #[arg(long, value_name = "FILE")]
    pub(crate) admin_token_file: Option<PathBuf>,
}

/// How credits are bought. Without Stripe's secret key they are not, and `account credit` is the way.
#[derive(Debug, Clone, Args)]
pub(crate) struct StripeArgs {
    /// File with Stripe's secret key (`sk_test_…`, `sk_live_…`); by default the variable UPSCALE_STRIPE_SECRET_KEY.
    #[arg(long, value_name = "FILE")]
    pub(crate) stripe_secret_key_file: Option<PathBuf>,
    /// File with the signing secrets of the webhook's endpoint (`whsec_…`), one a line, several while one is being
    /// replaced; by default the variable UPSCALE_STRIPE_WEBHOOK_SECRET, with commas between them.
    #[arg(long, value_name = "FILE")]
    pub(crate) stripe_webhook_secret_file: Option<PathBuf>,
    /// Stripe's API; another one for tests.
    #[arg(long, value_name = "URL", default_value = "https://api.stripe.com", value_parser = parse_stripe_api)]
    pub(crate) stripe_api: String,
    /// Where Stripe's payment pages are: another host where the account has a domain of its own for them.
    #[arg(long, value_name = "URL", default_value = "https://checkout.stripe.com", value_parser = parse_stripe_api)]
    pub(crate) stripe_checkout_url: String,
    /// What is for sale, `NAME=CREDITS:PRICE:CURRENCY`, such as `small=100:9.90:eur`; repeatable, shown in this order.
    #[arg(long, value_name = "PACKAGE", value_delimiter = ',', value_parser = parse_package)]
    pub(crate) package: Vec<Package>,
}

/// How images are worked on.
#[derive(Debug, Args)]
pub(crate) struct WorkArgs {
    /// Images processed at a time; by default one per core, and no more than memory allows. 0 leaves the work to other processes.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1024))]
    pub(crate) workers: Option<u32>,
    /// Threads for one image; by default all cores for an image alone, and equal shares where there are several.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) threads: Option<u32>,
    /// What computes: `cpu`, `gpu:0` (or another number of `doctor`'s list), or `auto`, the GPU where a short measurement
    /// finds that faster.
    #[arg(long, value_name = "auto|cpu|gpu:N", default_value_t = DeviceChoice::Auto)]
    pub(crate) device: DeviceChoice,
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
    /// Decode images even where this machine lacks a required part of the sandbox; by default nothing starts then.
    #[arg(long)]
    pub(crate) allow_weak_sandbox: bool,
    /// User and group that images are decoded as where the service runs as root.
    #[arg(long, value_name = "UID", default_value_t = UID_DEFAULT, value_parser = clap::value_parser!(u32).range(1..4_294_967_295))]
    pub(crate) sandbox_uid: u32,
    /// How results look where the source leaves it open: `faithful`, `natural` or `crisp`.
    #[arg(long, value_name = "LOOK", default_value_t = Look::default())]
    pub(crate) look: Look,
    #[command(flatten)]
    pub(crate) models: ServedModels,
    /// An injected fault for every child to commit, for tests of the sandbox; in debug builds only.
    #[cfg(debug_assertions)]
    #[arg(long, hide = true, value_name = "NAME")]
    pub(crate) child_fault: Option<String>,
}

/// What all processes of a service agree on, and how each ends and logs.
#[derive(Debug, Args)]
pub(crate) struct ProcessArgs {
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
    /// Seconds after SIGTERM in which requests are still taken, while `/readyz` answers 503: time for balancers to notice.
    #[arg(long, value_name = "SECONDS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=3_600))]
    pub(crate) drain_delay: u64,
    /// Where `/metrics` is served for Prometheus, without a key: keep it inside; off by default.
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) metrics_listen: Option<SocketAddr>,
    /// Collector of OpenTelemetry traces (OTLP over HTTP, protobuf), such as `http://127.0.0.1:4318`; off by default.
    /// The standard OTEL_EXPORTER_OTLP_ENDPOINT and its kin work as well.
    #[arg(long, value_name = "URL", hide_env_values = true, value_parser = parse_public_url)]
    pub(crate) otlp_endpoint: Option<String>,
    /// Share of tasks that are traced, from 0 to 1; the task's id decides, so that all processes agree.
    #[arg(long, value_name = "SHARE", default_value = "1", value_parser = parse_share)]
    pub(crate) trace_share: f64,
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

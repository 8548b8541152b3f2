//! Where a service's data is: what every command takes that reads or writes it.

use std::path::PathBuf;

use clap::Args;

use super::parse::parse_public_url;

/// What all commands on the service's data take.
#[derive(Debug, Clone, Args)]
pub(crate) struct DataArgs {
    #[command(flatten)]
    pub(crate) location: LocationArgs,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Where accounts, tasks and results are kept. Every process of a service names the same location.
#[derive(Debug, Clone, Args)]
pub(crate) struct LocationArgs {
    /// Directory of the database and the result files; `serve` and `account create` make it where absent. By default
    /// `$XDG_DATA_HOME/upscale` or `~/.local/share/upscale`, and none with `--database`.
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// PostgreSQL (15 or newer) in place of the directory's database, for processes on several machines:
    /// `postgres://user:password@host/database?sslmode=verify-full`. Better given as UPSCALE_DATABASE: other
    /// users of the machine see a command line.
    #[arg(long, value_name = "URL", hide_env_values = true)]
    pub(crate) database: Option<String>,
    /// Connections to PostgreSQL that this process opens at most.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) database_connections: u32,
    /// File with the key that seals the secrets in the database, those of second factors and of result links: 32 bytes in
    /// base64 or hex, the service's user alone reads it. Further lines hold older keys, which still open. Make one with
    /// `head -c 32 /dev/urandom | base64`; keep it apart from backups of the database.
    #[arg(long, value_name = "FILE")]
    pub(crate) secret_key_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) storage: StorageArgs,
}

/// A bucket for the result files.
#[derive(Debug, Clone, Args)]
pub(crate) struct StorageArgs {
    /// Bucket for the result files, `s3://bucket/prefix`, in place of a folder of the directory. Endpoint, region and
    /// credentials come from the variables of the AWS tools (AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID, …).
    #[arg(long, value_name = "URL")]
    pub(crate) storage: Option<String>,
    /// The bucket's storage as customers reach it, where the service itself uses another address.
    #[arg(long, value_name = "URL", value_parser = parse_public_url)]
    pub(crate) storage_public_url: Option<String>,
}

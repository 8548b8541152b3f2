//! The commands of those who call the API: `submit`, `status`, `wait`.

use std::path::PathBuf;

use clap::{Args, value_parser};
use upscale_core::Scale;

use super::parse::{parse_png_path, parse_public_url, parse_scale};
use crate::parameters::ParameterFlags;

/// Where the API is and who asks.
#[derive(Debug, Clone, Args)]
pub(crate) struct CallArgs {
    /// The service, such as `https://api.example.com`.
    #[arg(long, value_name = "URL", value_parser = parse_public_url)]
    pub(crate) api: String,
    /// API key. Better given as UPSCALE_API_KEY: others on this machine can read a command line.
    #[arg(long, value_name = "KEY", hide_env_values = true)]
    pub(crate) api_key: String,
    /// Further root certificate (PEM) to trust; repeatable.
    #[arg(long, value_name = "FILE", value_delimiter = ',')]
    pub(crate) api_ca: Vec<PathBuf>,
    /// Seconds to wait for one image, retries included; the service ends every task within 270.
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = value_parser!(u64).range(1..=3_600))]
    pub(crate) timeout: u64,
    /// Print JSON instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SubmitArgs {
    /// Public HTTPS addresses of images.
    #[arg(value_name = "URL")]
    pub(crate) urls: Vec<String>,
    /// File with an address a line, `-` for standard input; empty lines and those after `#` are passed over.
    #[arg(long, value_name = "FILE")]
    pub(crate) list: Option<PathBuf>,
    /// CSV file with a heading, `-` for standard input: a column `image_url`, and where they are there `file` (the
    /// result's name), `scale` and the other parameters by the API's names, such as `face_enhance` (true or false); what
    /// they say counts before the flags.
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    /// 2 or 4, where the CSV says nothing else.
    #[arg(long, default_value = "2", value_parser = parse_scale)]
    pub(crate) scale: Scale,
    #[command(flatten)]
    pub(crate) parameters: ParameterFlags,
    /// Where results and the journal are written; made where absent.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) out: PathBuf,
    /// Names of results below the directory: {name} is the address' last part without its suffix, {host}, {scale},
    /// and {index}, its place in the input.
    #[arg(long, value_name = "PATTERN", default_value = "{name}-{scale}x.png")]
    pub(crate) name: String,
    /// Images under way at a time; the service recommends 5 to 10 and allows 20.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = value_parser!(u16).range(1..=20))]
    pub(crate) concurrency: u16,
    #[command(flatten)]
    pub(crate) call: CallArgs,
}

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Task id, `ups_…`.
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) call: CallArgs,
}

#[derive(Debug, Args)]
pub(crate) struct WaitArgs {
    /// Task id, `ups_…`.
    pub(crate) id: String,
    /// PNG file to write the result to.
    #[arg(long, value_name = "FILE", value_parser = parse_png_path)]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) call: CallArgs,
}

//! Logs: one JSON object a line on standard error, or readable lines on a terminal.

use std::io::{self, IsTerminal};

use anyhow::Context;
use tracing_subscriber::{EnvFilter, layer::SubscriberExt, util::SubscriberInitExt};

use crate::args::LogFormat;

/// Migrations report at every start that there is nothing to do; the operator's own filter may ask for them.
const QUIET: &str = "refinery_core=warn";

/// Starts logging for the whole process; once.
///
/// # Errors
/// When the filter is not one.
pub(crate) fn start(filter: &str, format: LogFormat) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(format!("{QUIET},{filter}"))
        .with_context(|| format!("--log {filter}"))?;
    let is_json = match format {
        LogFormat::Auto => !io::stderr().is_terminal(),
        LogFormat::Json => true,
        LogFormat::Pretty => false,
    };
    let registry = tracing_subscriber::registry().with(filter);
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr);
    if is_json {
        registry.with(lines.json().flatten_event(true)).try_init()
    } else {
        let colours = io::stderr().is_terminal()
            && std::env::var_os("NO_COLOR").is_none_or(|word| word.is_empty());
        registry.with(lines.compact().with_ansi(colours)).try_init()
    }
    .context("logging was started twice")
}

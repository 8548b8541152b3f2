//! Standard output: lines, JSON, Markdown tables. A reader that has gone (a closed pipe) is no error.

use std::io::{self, ErrorKind, Write};

use anyhow::Context;
use serde::Serialize;

/// One line, and at once.
pub(crate) fn line(text: &str) -> anyhow::Result<()> {
    match writeln!(io::stdout(), "{text}") {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("standard output"),
    }
}

/// One JSON value on one line.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    line(&serde_json::to_string(value)?)
}

/// A table as Markdown has it, ready for a document.
pub(crate) fn table(names: &[&str], rows: &[Vec<String>]) -> anyhow::Result<()> {
    line(&format!("| {} |", names.join(" | ")))?;
    line(&format!("{}|", "|---".repeat(names.len())))?;
    rows.iter()
        .try_for_each(|row| line(&format!("| {} |", row.join(" | "))))
}

//! Standard output: lines, JSON objects, tables. A reader that has gone (a closed pipe) is no error.

use std::io::{self, ErrorKind, Write};

use anyhow::Context;
use serde::Serialize;

/// One line, and at once.
pub(crate) fn line(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    let written = writeln!(out, "{text}").and_then(|()| out.flush());
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("standard output"),
    }
}

/// One JSON value on one line.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    line(&serde_json::to_string(value)?)
}

/// Columns under their names, the last one as long as it likes.
pub(crate) fn table(names: &[&str], rows: &[Vec<String>]) -> anyhow::Result<()> {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        let longest = cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
        longest.max(names[column].len())
    };
    let widths: Vec<usize> = (0..names.len()).map(width).collect();
    let heads: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    for row in std::iter::once(&heads).chain(rows) {
        let cells = row
            .iter()
            .zip(&widths)
            .map(|(cell, &width)| format!("{cell:width$}"));
        line(cells.collect::<Vec<_>>().join("  ").trim_end())?;
    }
    Ok(())
}

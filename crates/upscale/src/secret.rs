//! Secrets of the configuration: from a file or the environment, never from the command line, where other users of the
//! machine would see them.

use std::path::Path;

use anyhow::Context;

/// From the file, where one is named; else from the environment. None when there is nothing in it.
///
/// # Errors
/// When the file cannot be read.
pub(crate) fn read(variable: &str, file: Option<&Path>) -> anyhow::Result<Option<String>> {
    let text = match file {
        Some(path) => Some(
            std::fs::read_to_string(path)
                .with_context(|| format!("the secret in {}", path.display()))?,
        ),
        None => std::env::var(variable).ok(),
    };
    let text = text.map(|text| text.trim().to_owned());
    Ok(text.filter(|text| !text.is_empty()))
}

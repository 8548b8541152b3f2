//! The card beside a model file, FILE.card.toml: which file it is about, whose it is, what may be done with it.

use std::{
    ffi::OsString,
    fs,
    io::{ErrorKind, Read},
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};

use crate::args::Commercial;

/// A card has ten lines.
const CARD_BYTES_MAX: u64 = 64 << 10;

/// What is known of a model file besides its bytes.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Card {
    /// The file's name.
    pub(crate) file: String,
    /// Of the file, in hexadecimal.
    pub(crate) sha256: String,
    pub(crate) licence: String,
    /// Where it comes from.
    pub(crate) source: String,
    pub(crate) commercial: Commercial,
    /// What kind of network it is.
    pub(crate) architecture: String,
    pub(crate) scale: usize,
    /// How far, in source pixels, an output pixel sees.
    pub(crate) receptive_field: usize,
}

impl Card {
    /// Where the card of a model file stands.
    pub(crate) fn path(file: &Path) -> PathBuf {
        let mut name = OsString::from(file);
        name.push(".card.toml");
        name.into()
    }

    /// The card beside a model file whose bytes have this sum; none where there is no card.
    ///
    /// # Errors
    /// When the card cannot be read, or is about other bytes.
    pub(crate) fn find(file: &Path, sha256: &str) -> anyhow::Result<Option<Self>> {
        let path = Self::path(file);
        let shown = || path.display().to_string();
        let opened = match fs::File::open(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened.with_context(shown)?,
        };
        let mut text = String::new();
        opened
            .take(CARD_BYTES_MAX)
            .read_to_string(&mut text)
            .with_context(shown)?;
        let card: Self = toml::from_str(&text).with_context(shown)?;
        if !card.sha256.eq_ignore_ascii_case(sha256) {
            bail!(
                "{} describes another file: its sha256 is {}, this one has {sha256}",
                path.display(),
                card.sha256
            );
        }
        Ok(Some(card))
    }

    /// The card's text, with a line about who wrote it.
    pub(crate) fn to_toml(&self) -> anyhow::Result<String> {
        Ok(format!(
            "# Model card, written by `upscale model card`.\n{}",
            toml::to_string(self)?
        ))
    }
}

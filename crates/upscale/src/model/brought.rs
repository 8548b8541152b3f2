//! A model file that someone brings: read whole within a limit, summed, held against its card.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, bail};
use sha2::{Digest, Sha256};
use upscale_core::{Scale, hex};
use upscale_engine::{Model, Network, join_ncnn};

use super::card::Card;
use crate::{
    args::{Commercial, FileModel},
    whole_file::read_bounded,
};

/// The engine refuses more; this is one step earlier, before the bytes are in memory.
const FILE_BYTES_MAX: u64 = 256 << 20;
const NCNN_TEXT_BYTES_MAX: u64 = 4 << 20;
/// Said after the limit.
const TOO_LONG: &str = ", more than any model that runs here";

/// A model file's bytes and what is known of them; of ncnn's two files both.
pub(crate) struct Brought {
    /// The file that the card is about; ncnn's text, whichever of the two was named.
    pub(crate) path: PathBuf,
    pub(crate) bytes: Vec<u8>,
    /// Of all files together, in bytes.
    pub(crate) size: usize,
    /// Of the file's bytes; of ncnn's text and then its numbers, as `cat X.param X.bin | sha256sum` gives it.
    pub(crate) sha256: String,
    pub(crate) card: Option<Card>,
}

impl Brought {
    /// Reads a model file and its card.
    ///
    /// # Errors
    /// When it cannot be read, is too long, or its card is about other bytes.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        let mut brought = Self::without_card(path)?;
        brought.card = Card::find(&brought.path, &brought.sha256)?;
        Ok(brought)
    }

    /// As [`Brought::open`], for anyone who writes the card.
    pub(crate) fn without_card(path: &Path) -> anyhow::Result<Self> {
        if let Some((text, numbers)) = ncnn_pair(path) {
            return Self::of_ncnn(text, &numbers);
        }
        let bytes = read_bounded(path, FILE_BYTES_MAX, TOO_LONG)?;
        Ok(Self {
            path: path.to_owned(),
            sha256: hex(&Sha256::digest(&bytes)),
            size: bytes.len(),
            bytes,
            card: None,
        })
    }

    fn of_ncnn(text: PathBuf, numbers: &Path) -> anyhow::Result<Self> {
        let words = read_bounded(&text, NCNN_TEXT_BYTES_MAX, TOO_LONG)?;
        let values = read_bounded(numbers, FILE_BYTES_MAX, TOO_LONG)
            .with_context(|| format!("{} needs its .bin file beside it", text.display()))?;
        let sum = Sha256::new().chain_update(&words).chain_update(&values);
        Ok(Self {
            path: text,
            sha256: hex(&sum.finalize()),
            size: words.len() + values.len(),
            bytes: join_ncnn(&words, &values),
            card: None,
        })
    }

    /// The file's own name.
    pub(crate) fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or(self.path.as_os_str());
        name.to_string_lossy().into_owned()
    }

    /// Whether its licence allows commercial use; without a card that is unclear.
    pub(crate) fn commercial(&self) -> Commercial {
        self.card
            .as_ref()
            .map_or(Commercial::Unclear, |card| card.commercial)
    }

    /// What the bytes are.
    ///
    /// # Errors
    /// When they are no model that runs here.
    pub(crate) fn model(&self) -> anyhow::Result<Model> {
        Model::read(&self.bytes).with_context(|| self.path.display().to_string())
    }
}

/// The two files of an ncnn model, if `path` is one of them. A `.bin` alone is another program's.
fn ncnn_pair(path: &Path) -> Option<(PathBuf, PathBuf)> {
    let ending = path.extension()?.to_str()?.to_ascii_lowercase();
    match ending.as_str() {
        "param" => Some((path.to_owned(), path.with_extension("bin"))),
        "bin" => {
            let text = path.with_extension("param");
            text.exists().then(|| (text, path.to_owned()))
        }
        _ => None,
    }
}

/// Whether a network enlarges as often as was asked for: another scale is never made out of its result.
///
/// # Errors
/// When it does not.
pub(crate) fn check_scale(shown: &str, given: usize, asked: usize) -> anyhow::Result<()> {
    if given != asked {
        bail!(
            "{shown} is a {given}x model, but {asked}x was requested; results are not resized afterwards"
        );
    }
    Ok(())
}

impl FileModel {
    /// The network of `--model` and the scale to run it at; `asked` is `--scale`.
    ///
    /// # Errors
    /// When there is a reason not to use the file.
    pub(crate) fn load(
        &self,
        asked: Option<Scale>,
    ) -> anyhow::Result<Option<(Arc<Network>, Scale)>> {
        let Some(path) = &self.model else {
            return Ok(None);
        };
        let network = self.network(path)?;
        let given = network.scale();
        let scale = asked.or_else(|| Scale::ALL.into_iter().find(|scale| scale.factor() == given));
        let scale = scale.with_context(|| format!("{} is a {given}x model", path.display()))?;
        check_scale(&path.display().to_string(), given, scale.factor())?;
        Ok(Some((network, scale)))
    }

    /// The network of `--model-1x`.
    ///
    /// # Errors
    /// When there is a reason not to use the file.
    pub(crate) fn load_restoring(&self) -> anyhow::Result<Option<Arc<Network>>> {
        let Some(path) = &self.model_1x else {
            return Ok(None);
        };
        let network = self.network(path)?;
        check_scale(&path.display().to_string(), network.scale(), 1)?;
        Ok(Some(network))
    }

    fn network(&self, path: &Path) -> anyhow::Result<Arc<Network>> {
        let brought = Brought::open(path)?;
        match brought.commercial() {
            Commercial::Yes => {}
            Commercial::No if !self.allow_non_commercial => bail!(
                "{}: its card does not allow commercial use; --allow-non-commercial uses it anyway",
                path.display()
            ),
            Commercial::No => {}
            Commercial::Unclear => eprintln!(
                "{}: no card says that its licence allows commercial use",
                path.display()
            ),
        }
        Ok(Arc::new(brought.model()?.network))
    }
}

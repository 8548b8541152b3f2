//! What the demo upscales: two pictures of its own or the user's files.

use std::{fs, path::PathBuf};

use anyhow::{Context, ensure};
use upscale_core::limits::SOURCE_BYTES_MAX;
use upscale_image::{Format, read_header};

/// A picture to upscale.
pub(crate) struct Picture {
    /// For the files that come of it.
    pub(crate) name: String,
    /// Where the image host has it.
    pub(crate) path: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) pixels: u64,
    /// Whether it is the demo's own, and nobody has it yet.
    pub(crate) is_drawn: bool,
}

/// The demo's own two: a harbour and a program's window, drawn for this project by `upscale-lab samples`.
const SAMPLES: [(&str, &[u8]); 2] = [
    ("harbour", include_bytes!("harbour.png")),
    ("panel", include_bytes!("panel.png")),
];

pub(crate) fn samples() -> anyhow::Result<Vec<Picture>> {
    let samples = SAMPLES.iter();
    samples
        .map(|(name, bytes)| picture((*name).to_owned(), bytes.to_vec(), true))
        .collect()
}

/// The user's.
pub(crate) fn given(paths: &[PathBuf]) -> anyhow::Result<Vec<Picture>> {
    let mut pictures: Vec<Picture> = Vec::new();
    for (number, path) in paths.iter().enumerate() {
        let shown = || path.display().to_string();
        let bytes = fs::read(path).with_context(shown)?;
        ensure!(
            bytes.len() as u64 <= SOURCE_BYTES_MAX,
            "{} has more than {SOURCE_BYTES_MAX} bytes",
            shown()
        );
        let stem = path
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned());
        // Two files of one name from two folders must not overwrite each other's results.
        let name = format!("{}-{}", number + 1, stem.unwrap_or_default());
        pictures.push(picture(name, bytes, false).with_context(shown)?);
    }
    Ok(pictures)
}

fn picture(name: String, bytes: Vec<u8>, is_drawn: bool) -> anyhow::Result<Picture> {
    let header = read_header(&bytes)?;
    let ending = match header.format {
        Format::Jpeg => "jpg",
        Format::Png => "png",
        Format::WebP => "webp",
    };
    // Any file name makes a URL this way.
    let plain: String = name
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || *c == '-')
        .collect();
    Ok(Picture {
        path: format!("/{plain}.{ending}"),
        name,
        pixels: u64::from(header.width) * u64::from(header.height),
        bytes,
        is_drawn,
    })
}

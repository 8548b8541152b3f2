//! What is evaluated: folders of pictures, and pictures that this program draws.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use upscale_image::{decode, raster::Rgb8};

use super::strokes::Strokes;
use crate::drawn;

/// Names of files that are looked at.
const ENDINGS: [&str; 4] = ["png", "jpg", "jpeg", "webp"];
/// The set of drawn pages of text, by name.
pub(crate) const TEXT: &str = "drawn text";
/// The drawn screenshot.
pub(crate) const SCREEN: &str = "drawn screen";

/// Pictures whose figures are averaged.
pub(crate) struct Set {
    pub(crate) name: String,
    pub(crate) pictures: Vec<Picture>,
}

/// A clean picture.
pub(crate) struct Picture {
    pub(crate) name: String,
    origin: Origin,
    /// Where it is nothing but strokes of one colour on another.
    pub(crate) strokes: Option<Strokes>,
}

enum Origin {
    File(PathBuf),
    Drawn(Rgb8),
}

impl Picture {
    /// The whole picture at 8 bits.
    pub(crate) fn read(&self) -> anyhow::Result<Rgb8> {
        match &self.origin {
            Origin::Drawn(picture) => Ok(picture.clone()),
            Origin::File(path) => {
                let shown = || path.display().to_string();
                let bytes = fs::read(path).with_context(shown)?;
                let source = decode(&bytes, super::PIXELS_MAX).with_context(shown)?;
                Ok(Rgb8::of_source(&source))
            }
        }
    }

    fn drawn(name: &str, picture: Rgb8) -> Self {
        Self {
            name: name.to_owned(),
            origin: Origin::Drawn(picture),
            strokes: None,
        }
    }
}

/// A scene, a screenshot and pages of text.
pub(crate) fn drawn_sets() -> Vec<Set> {
    let set = |name: &str, pictures| Set {
        name: name.to_owned(),
        pictures,
    };
    let pages = drawn::pages().into_iter().map(|page| Picture {
        strokes: Some(Strokes::new(page.ink, page.paper)),
        ..Picture::drawn(page.name, page.picture)
    });
    vec![
        set(
            "drawn scene",
            vec![Picture::drawn("harbour", part(&drawn::harbour()))],
        ),
        set(SCREEN, vec![Picture::drawn("panel", part(&drawn::panel()))]),
        set(TEXT, pages.collect()),
    ]
}

/// The middle: enough for figures, in a third of the time.
fn part(picture: &Rgb8) -> Rgb8 {
    let (width, height) = (picture.width() / 2, picture.height() / 2);
    picture.crop(width / 2, height / 2, width, height)
}

/// All pictures of a folder, by name.
pub(crate) fn folder(folder: &Path) -> anyhow::Result<Set> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let paths: Vec<PathBuf> = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<anyhow::Result<_>>()?;
    let mut found: Vec<PathBuf> = paths.into_iter().filter(|path| is_picture(path)).collect();
    if found.is_empty() {
        let endings = ENDINGS.join(", ");
        bail!("{} contains no pictures ({endings})", folder.display());
    }
    found.sort();
    let pictures = found.into_iter().map(|path| Picture {
        name: name(&path),
        origin: Origin::File(path),
        strokes: None,
    });
    Ok(Set {
        name: name(folder),
        pictures: pictures.collect(),
    })
}

fn is_picture(path: &Path) -> bool {
    let ending = path
        .extension()
        .map(|ending| ending.to_string_lossy().to_ascii_lowercase());
    ending.is_some_and(|ending| ENDINGS.contains(&ending.as_str()))
}

fn name(path: &Path) -> String {
    path.file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy()
        .into_owned()
}

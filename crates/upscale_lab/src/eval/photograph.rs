//! The picture that README shows first: a scene that looks like a photograph, made small and damaged as files of the web are,
//! enlarged four times by bicubic and by the service, side by side with labels. All of it is drawn by this program.

use std::{fs, path::Path};

use anyhow::Context;
use upscale_core::{Look, Scale};
use upscale_image::raster::Kernel;

use super::{Input, Small, as_served, interpolate};
use crate::drawn;

/// Places that are shown: left, top, height; as wide as the panels. Lettering first, then peel.
const SHOWN: [(usize, usize, usize); 2] = [(96, 222, 330), (600, 420, 200)];

/// Draws, damages, enlarges and writes it.
pub(crate) fn write(file: &Path) -> anyhow::Result<()> {
    let clean = drawn::still_life();
    let small = Small::make(&clean, Scale::X4, Input::Web)?;
    let bicubic = interpolate(&small, Scale::X4, Kernel::Bicubic);
    let ours = as_served(&small, Scale::X4, Look::default())?;
    let composed = drawn::labelled(
        &[("Bicubic", &bicubic), ("Upscale", &ours)],
        &SHOWN,
        // The alphabet has no J.
        "Drawn by our own program. Enlarged 4x from a soft and noisy file, jpeg quality 60. Shown at 100 %.",
    );
    fs::write(file, composed.to_png()?).with_context(|| file.display().to_string())
}

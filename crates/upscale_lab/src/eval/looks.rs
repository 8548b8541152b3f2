//! What the looks draw, for the page about them: bicubic and the three, as the service makes them at 4x, of a rendered
//! scene that looks like a photograph and of a drawn one. Both are made by this program.

use std::{fs, path::Path};

use anyhow::Context;
use upscale_core::{Look, Scale};
use upscale_image::raster::{Kernel, Rgb8};

use super::{Input, Small, as_served, interpolate};
use crate::drawn;

/// File name, picture, how it is made small, the place that is shown (left, top, height), and the line below.
type Sheet = (
    &'static str,
    fn() -> Rgb8,
    Input,
    (usize, usize, usize),
    &'static str,
);

// The alphabet has no J.
const SHEETS: [Sheet; 2] = [
    (
        "looks-photograph",
        drawn::still_life,
        Input::Web,
        (96, 222, 300),
        "Rendered by our own program. Enlarged 4x from a soft and noisy file, jpeg quality 60. Shown at 100 %.",
    ),
    (
        "looks-drawing",
        drawn::harbour,
        Input::Soft(8),
        (660, 240, 300),
        "Drawn by our own program. Enlarged 4x from a file blurred by 0.8 pixels. Shown at 100 %.",
    ),
];

/// Draws both and writes them into `folder`.
pub(crate) fn write(folder: &Path) -> anyhow::Result<()> {
    for (name, draw, input, shown, line) in SHEETS {
        let small = Small::make(&draw(), Scale::X4, input)?;
        let bicubic = interpolate(&small, Scale::X4, Kernel::Bicubic);
        let mut made = vec![("bicubic", bicubic)];
        for look in Look::ALL {
            made.push((look.as_str(), as_served(&small, Scale::X4, look)?));
        }
        let pictures: Vec<_> = made
            .iter()
            .map(|(name, picture)| (*name, picture))
            .collect();
        let file = folder.join(format!("{name}.png"));
        let composed = drawn::labelled(&pictures, &[shown], line);
        fs::write(&file, composed.to_png()?).with_context(|| file.display().to_string())?;
    }
    Ok(())
}

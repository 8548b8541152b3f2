//! What the looks draw, for the page about them: bicubic and the three, as the service makes them at 4x, of a rendered
//! scene that looks like a photograph and of a drawn one. Both are made by this program.

use std::{fs, path::Path};

use anyhow::Context;
use upscale_core::{Look, Scale};
use upscale_image::raster::{Kernel, Rgb8};

use super::{Input, Small, as_served, interpolate};
use crate::drawn;

/// A picture of the page.
struct Sheet {
    /// Without `.png`.
    name: &'static str,
    draw: fn() -> Rgb8,
    /// How it is made small.
    input: Input,
    /// Left, top and height of the part that is shown, in pixels of the drawing.
    shown: (usize, usize, usize),
    /// What stands below.
    line: &'static str,
}

// The alphabet has no J.
const SHEETS: [Sheet; 2] = [
    Sheet {
        name: "looks-photograph",
        draw: drawn::still_life,
        input: Input::Web,
        shown: (96, 222, 300),
        line: "Rendered by our own program. Enlarged 4x from a soft and noisy file, jpeg quality 60. Shown at 100 %.",
    },
    Sheet {
        name: "looks-drawing",
        draw: drawn::harbour,
        input: Input::Soft(8),
        shown: (660, 240, 300),
        line: "Drawn by our own program. Enlarged 4x from a file blurred by 0.8 pixels. Shown at 100 %.",
    },
];

/// Draws both and writes them into `folder`.
pub(crate) fn write(folder: &Path) -> anyhow::Result<()> {
    for sheet in SHEETS {
        let small = Small::make(&(sheet.draw)(), Scale::X4, sheet.input)?;
        let bicubic = interpolate(&small, Scale::X4, Kernel::Bicubic);
        let mut made = vec![("bicubic", bicubic)];
        for look in Look::ALL {
            made.push((look.as_str(), as_served(&small, Scale::X4, look)?));
        }
        let pictures: Vec<_> = made
            .iter()
            .map(|(name, picture)| (*name, picture))
            .collect();
        let file = folder.join(format!("{}.png", sheet.name));
        let composed = drawn::labelled(&pictures, &[sheet.shown], sheet.line);
        fs::write(&file, composed.to_png()?).with_context(|| file.display().to_string())?;
    }
    Ok(())
}

//! The two sample pictures of the service: drawn large and shrunk four times, so that 4x brings back the size they were
//! drawn at. They lie in the repository, for drawing them takes seconds and the demo has none to lose.

use std::{fs, path::Path};

use anyhow::Context;
use upscale_image::raster::{Kernel, Rgb8, resize};

use crate::drawn;

/// How much smaller than drawn.
const SHRINK: usize = 4;

/// Writes both into `folder`.
pub(crate) fn write(folder: &Path) -> anyhow::Result<()> {
    for (name, picture) in samples() {
        let path = folder.join(format!("{name}.png"));
        fs::write(&path, picture.to_png()?).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

fn samples() -> [(&'static str, Rgb8); 2] {
    [
        ("harbour", shrunk(&drawn::harbour())),
        ("panel", shrunk(&drawn::panel())),
    ]
}

fn shrunk(large: &Rgb8) -> Rgb8 {
    let (width, height) = (large.width() / SHRINK, large.height() / SHRINK);
    resize(large, width, height, Kernel::Bicubic)
}

#[cfg(test)]
mod tests {
    use upscale_image::decode;

    use super::*;

    /// Another processor may round a sine differently; no one sees a level.
    #[test]
    fn the_samples_of_the_demo_are_the_ones_drawn_here() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../upscale_core/src/samples");
        for (name, drawn) in samples() {
            let file = fs::read(folder.join(format!("{name}.png"))).unwrap();
            let kept = Rgb8::of_source(&decode(&file, 1_000_000).unwrap());
            assert_eq!(
                (kept.width(), kept.height()),
                (drawn.width(), drawn.height())
            );
            let pairs = kept.samples().iter().zip(drawn.samples());
            let furthest = pairs.map(|(a, b)| a.abs_diff(*b)).max();
            assert!(furthest <= Some(1), "{name}: {furthest:?} levels apart");
        }
    }
}

//! What the demo upscales: two pictures of its own or the user's files.

use std::{fs, path::PathBuf};

use anyhow::{Context, ensure};
use upscale_core::{
    Parameters, SAMPLES, Scale,
    limits::{MEGAPIXEL, SOURCE_BYTES_MAX, source_pixels_max},
};
use upscale_image::{
    Format, decode,
    raster::{Kernel, Rgb8, resize},
    read_header,
};

/// The largest photograph of the user's that is brought to the service's cap.
const GIVEN_PIXELS_MAX: u64 = 100 * MEGAPIXEL;

/// A picture to upscale.
pub(crate) struct Picture {
    /// For the files that come of it.
    pub(crate) name: String,
    /// Where the image host has it.
    pub(crate) path: String,
    pub(crate) bytes: Vec<u8>,
    /// Its own columns and rows, where they are more than the service takes at 4x.
    pub(crate) shrunk_from: Option<(u32, u32)>,
    /// Whether it is the demo's own, and no one has it yet.
    pub(crate) is_drawn: bool,
}

/// The demo's own are the samples that every service offers.
pub(crate) fn samples() -> anyhow::Result<Vec<Picture>> {
    let samples = SAMPLES.iter();
    samples
        .map(|sample| {
            let name = sample.file_name.trim_end_matches(".png");
            picture(name.to_owned(), sample.bytes.to_vec(), true)
        })
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
    let (bytes, shrunk_from) = brought_to_cap(bytes)?;
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
        shrunk_from,
        bytes,
        is_drawn,
    })
}

/// A file that the service takes, and its own columns and rows before it was shrunk, if it was.
type Brought = (Vec<u8>, Option<(u32, u32)>);

/// A photograph is larger than the service takes: it is shrunk to what it does at 4x, by the mean of what a pixel covers.
fn brought_to_cap(bytes: Vec<u8>) -> anyhow::Result<Brought> {
    let header = read_header(&bytes)?;
    let (pixels, cap) = (
        f64::from(header.width) * f64::from(header.height),
        source_pixels_max(Parameters::at(Scale::X4)) as f64,
    );
    if pixels <= cap {
        return Ok((bytes, None));
    }
    let picture = Rgb8::of_source(&decode(&bytes, GIVEN_PIXELS_MAX)?);
    let share = (cap / pixels).sqrt();
    let side = |side: usize| ((side as f64 * share) as usize).max(1);
    let (width, height) = (side(picture.width()), side(picture.height()));
    let png = resize(&picture, width, height, Kernel::Box).to_png()?;
    Ok((png, Some((header.width, header.height))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_photograph_is_shrunk_to_the_cap_and_a_small_picture_stays() {
        let paint = |width, height| {
            let picture = Rgb8::paint(width, height, |x, y| [x as u8, y as u8, 7]);
            picture.to_png().unwrap()
        };
        let small = picture("s".to_owned(), paint(30, 20), false).unwrap();
        assert_eq!((small.shrunk_from, small.bytes), (None, paint(30, 20)));
        let large = picture("l".to_owned(), paint(1_500, 1_000), false).unwrap();
        assert_eq!(large.shrunk_from, Some((1_500, 1_000)));
        let header = read_header(&large.bytes).unwrap();
        let pixels = u64::from(header.width) * u64::from(header.height);
        assert!((740_000..=750_000).contains(&pixels), "{header:?}");
    }
}

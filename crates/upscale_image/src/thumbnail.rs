//! A small picture of the source, for lists: the mean of what each of its pixels covers, over white, in sRGB. Colours of
//! a wide-gamut picture look a little pale in it: the profile, of up to 4 MiB, stays with the result.

use upscale_core::limits::{THUMBNAIL_BYTES_MAX, THUMBNAIL_SIDE_MAX};

use crate::{decoded::Source, raster::Rgb8};

/// A PNG of at most [`THUMBNAIL_SIDE_MAX`] pixels a side, never larger than the source; none where it would have more
/// than [`THUMBNAIL_BYTES_MAX`] bytes.
#[must_use]
pub fn thumbnail(source: &Source) -> Option<Vec<u8>> {
    let (width, height) = small_size(source.color.width(), source.color.height());
    let mut sums = vec![[0.0; 4]; width * height];
    let channels = source.color.channels();
    for y in 0..source.color.height() {
        let alpha = source.alpha.as_ref().map(|alpha| alpha.row(y));
        let cells = y * height / source.color.height() * width;
        for (x, pixel) in source.color.row(y).chunks_exact(channels).enumerate() {
            let opacity = alpha.map_or(1.0, |alpha| alpha[x].clamp(0.0, 1.0));
            let sum = &mut sums[cells + x * width / source.color.width()];
            for channel in 0..3 {
                let sample = pixel[channel.min(channels - 1)].clamp(0.0, 1.0);
                sum[channel] += 1.0 - opacity + sample * opacity;
            }
            sum[3] += 1.0;
        }
    }
    let level = |sum: f32, pixels: f32| (sum / pixels.max(1.0) * 255.0 + 0.5) as u8;
    let samples = sums
        .iter()
        .flat_map(|[red, green, blue, pixels]| [red, green, blue].map(|sum| level(*sum, *pixels)));
    let small = Rgb8::new(width, height, samples.collect()).ok()?;
    let png = small.to_png().ok()?;
    (png.len() <= THUMBNAIL_BYTES_MAX as usize).then_some(png)
}

/// The same shape with a longest side of [`THUMBNAIL_SIDE_MAX`], at least 1 x 1.
fn small_size(width: usize, height: usize) -> (usize, usize) {
    let most = THUMBNAIL_SIDE_MAX as usize;
    let longest = width.max(height);
    if longest <= most {
        return (width, height);
    }
    let side = |side: usize| (side * most / longest).max(1);
    (side(width), side(height))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode;

    fn small(picture: &Rgb8) -> Rgb8 {
        let source = decode(&picture.to_png().unwrap(), 1_000_000).unwrap();
        let png = thumbnail(&source).unwrap();
        Rgb8::of_source(&decode(&png, 1_000_000).unwrap())
    }

    #[test]
    fn a_thumbnail_has_the_shape_and_the_colours_of_its_picture() {
        let halves = Rgb8::paint(
            640,
            320,
            |x, _| if x < 320 { [200, 40, 0] } else { [0, 90, 250] },
        );
        let small = small(&halves);
        assert_eq!((small.width(), small.height()), (160, 80));
        assert_eq!(
            (small.pixel(3, 70), small.pixel(150, 2)),
            ([200, 40, 0], [0, 90, 250])
        );
    }

    #[test]
    fn no_shape_makes_it_empty_or_larger_than_its_picture() {
        let sizes = [(1, 1), (5, 3), (1, 4_000), (4_000, 1), (161, 160)];
        let made = sizes.map(|(width, height)| {
            let small = small(&Rgb8::paint(width, height, |x, y| [x as u8, y as u8, 9]));
            (small.width(), small.height())
        });
        assert_eq!(made, [(1, 1), (5, 3), (1, 160), (160, 1), (160, 159)]);
    }

    #[test]
    fn what_is_transparent_is_white_and_noise_stays_within_the_limit() {
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, 2, 1);
        encoder.set_color(png::ColorType::Rgba);
        let mut writer = encoder.write_header().unwrap();
        writer
            .write_image_data(&[9, 9, 9, 0, 9, 9, 9, 255])
            .unwrap();
        writer.finish().unwrap();
        let png = thumbnail(&decode(&file, 2).unwrap()).unwrap();
        let small = Rgb8::of_source(&decode(&png, 2).unwrap());
        assert_eq!((small.pixel(0, 0), small.pixel(1, 0)), ([255; 3], [9; 3]));

        let mut state = 1_u32;
        let noise = Rgb8::paint(160, 160, |_, _| {
            [0; 3].map(|_: u8| {
                // xorshift32, George Marsaglia.
                state ^= state << 13;
                state ^= state >> 17;
                state ^= state << 5;
                (state >> 24) as u8
            })
        });
        let source = decode(&noise.to_png().unwrap(), 160 * 160).unwrap();
        assert!(
            thumbnail(&source).is_some(),
            "the worst picture still has one"
        );
    }
}

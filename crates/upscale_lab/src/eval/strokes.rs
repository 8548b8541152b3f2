//! Does text stay text: which pixels are ink, and did colours appear that the page has not.

use upscale_image::raster::Rgb8;

/// The two colours that a page is made of, 0 to 255.
pub(crate) struct Strokes {
    paper: [f64; 3],
    /// From paper to ink.
    towards_ink: [f64; 3],
}

impl Strokes {
    pub(crate) fn new(ink: [f32; 3], paper: [f32; 3]) -> Self {
        let (ink, paper) = (ink.map(f64::from), paper.map(f64::from));
        Self {
            paper,
            towards_ink: [0, 1, 2].map(|c| ink[c] - paper[c]),
        }
    }

    /// Ink of both pages over ink of either, 1 when every stroke kept its shape; a pixel is ink when it is nearer to
    /// the ink's colour than to the paper's. A border of `shave` pixels is left out.
    pub(crate) fn overlap(&self, page: &Rgb8, enlarged: &Rgb8, shave: usize) -> f64 {
        let (mut both, mut either) = (0u32, 0u32);
        for (one, other) in pixels(page, enlarged, shave) {
            let (one, other) = (self.is_ink(one), self.is_ink(other));
            both += u32::from(one && other);
            either += u32::from(one || other);
        }
        f64::from(both) / f64::from(either.max(1))
    }

    fn is_ink(&self, pixel: [u8; 3]) -> bool {
        let along = |c: usize| (f64::from(pixel[c]) - self.paper[c]) * self.towards_ink[c];
        let whole: f64 = self.towards_ink.iter().map(|d| d * d).sum();
        along(0) + along(1) + along(2) > whole / 2.0
    }
}

/// Root mean square of what the colour differences Cb and Cr (BT.601, 0 to 255) are off, in levels: fringes.
pub(crate) fn colour_error(clean: &Rgb8, enlarged: &Rgb8, shave: usize) -> f64 {
    let (mut sum, mut count) = (0.0, 0.0);
    for (one, other) in pixels(clean, enlarged, shave) {
        let [b, r] = [0, 1].map(|c| chroma(one)[c] - chroma(other)[c]);
        sum += b * b + r * r;
        count += 2.0;
    }
    f64::sqrt(sum / f64::max(count, 1.0))
}

fn chroma(pixel: [u8; 3]) -> [f64; 2] {
    let [r, g, b] = pixel.map(f64::from);
    let y = 0.299 * r + 0.587 * g + 0.114 * b;
    [(b - y) / 1.772, (r - y) / 1.402]
}

/// Pairs of pixels of two pictures of one size.
fn pixels<'a>(
    one: &'a Rgb8,
    other: &'a Rgb8,
    shave: usize,
) -> impl Iterator<Item = ([u8; 3], [u8; 3])> + 'a {
    let columns = shave..one.width().saturating_sub(shave);
    let rows = shave..one.height().saturating_sub(shave);
    rows.flat_map(move |y| columns.clone().map(move |x| (x, y)))
        .map(|(x, y)| (one.pixel(x, y), other.pixel(x, y)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(stroke: std::ops::Range<usize>, ink: [u8; 3]) -> Rgb8 {
        Rgb8::paint(
            20,
            10,
            |x, _| if stroke.contains(&x) { ink } else { [255; 3] },
        )
    }

    #[test]
    fn a_stroke_that_grew_by_half_has_two_thirds_in_common() {
        let strokes = Strokes::new([0.0; 3], [255.0; 3]);
        let (one, other) = (page(4..8, [0; 3]), page(4..10, [90; 3]));
        assert!((strokes.overlap(&one, &one, 1) - 1.0).abs() < 1e-12);
        assert!((strokes.overlap(&one, &other, 1) - 4.0 / 6.0).abs() < 1e-12);
    }

    #[test]
    fn gray_beside_gray_has_no_fringe_and_red_has() {
        let one = page(4..8, [0; 3]);
        assert!(colour_error(&one, &page(2..9, [128; 3]), 0) < 1e-9);
        assert!(colour_error(&one, &page(4..8, [60, 0, 0]), 0) > 5.0);
    }
}

//! What a lens that is not in focus does to a picture, for trials.

use super::Rgb8;

/// The picture under a Gaussian with a `sigma` of so many pixels, more than 0; edges repeated.
pub fn soften(picture: &Rgb8, sigma: f64) -> Rgb8 {
    let reach = (4.0 * sigma).ceil() as isize;
    let taps: Vec<f64> = (-reach..=reach)
        .map(|i| (-0.5 * (i as f64 / sigma).powi(2)).exp())
        .collect();
    let sum: f64 = taps.iter().sum::<f64>().powi(2);
    let (width, height) = (picture.width() as isize, picture.height() as isize);
    Rgb8::paint(picture.width(), picture.height(), |x, y| {
        let mut mean = [0.5; 3];
        for (dy, down) in (-reach..=reach).zip(&taps) {
            for (dx, across) in (-reach..=reach).zip(&taps) {
                let (x, y) = (x as isize + dx, y as isize + dy);
                let at = picture.pixel(
                    x.clamp(0, width - 1) as usize,
                    y.clamp(0, height - 1) as usize,
                );
                let weight = down * across / sum;
                mean.iter_mut()
                    .zip(at)
                    .for_each(|(mean, sample)| *mean += weight * f64::from(sample));
            }
        }
        mean.map(|value| value as u8)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flat_picture_stays_and_a_point_becomes_a_round_spot() {
        let flat = Rgb8::paint(9, 7, |_, _| [3, 128, 250]);
        assert_eq!(soften(&flat, 1.3), flat);
        let point = Rgb8::paint(11, 11, |x, y| [if (x, y) == (5, 5) { 250 } else { 0 }; 3]);
        let spot = soften(&point, 1.0);
        // 250 / (2 pi), and e^-0.5 of it beside.
        let level = |x, y| spot.pixel(x, y)[0];
        assert_eq!((level(5, 5), level(4, 5), level(5, 6)), (40, 24, 24));
        assert_eq!((level(4, 4), level(0, 0)), (15, 0));
    }
}

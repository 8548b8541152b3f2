//! Where a large face has features: eyes, lashes, brows, lips, hair. They are places of much contrast; skin is not, and the
//! crispest networks draw scratches for its pores.

use std::iter;

use upscale_core::{Condition, Estimate, Pixels};

use super::enlarged;
use super::mean::{Size, box_mean};
use super::plane::Plane;
use super::region::eased;

/// Contrast (standard deviation over 5 x 5 source pixels, levels of 255) at which features begin to be drawn, and from which
/// on they are drawn whole. On 23 large faces cheeks have 5 in the median (2.6 to 8.9 eight in
/// ten times), eyes 13 (6.2 to 18.5).
const CONTRAST: [f32; 2] = [5.0, 12.0];
const RADIUS: usize = 2;
/// The borders between the two are smoothed over 3 x 3 source pixels.
const SMOOTHED: usize = 1;

/// For every pixel of an area how much of its features is drawn, 0 to 1.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Features {
    size: Size,
    shares: Vec<f32>,
}

impl Features {
    /// Those of `source`, an area of a picture of this condition: what noise adds to contrast is taken off.
    pub(super) fn of(source: &Pixels, condition: Condition) -> Self {
        let size = [source.width(), source.height(), 1];
        let noise = condition.estimate.map_or(0.0, Estimate::sure_noise);
        let contrast = contrast(&Plane::of(source).levels(), size, noise);
        let [least, whole] = CONTRAST;
        let share = |contrast: f32| eased((contrast - least) / (whole - least));
        let smooth = box_mean(&contrast, size, SMOOTHED);
        Self {
            size,
            shares: smooth.into_iter().map(share).collect(),
        }
    }

    /// Row `y` of an area enlarged `factor` times.
    pub(super) fn row(&self, y: usize, factor: usize) -> Vec<f32> {
        enlarged::row(&self.shares, self.size, factor, y)
    }
}

/// Standard deviation around every pixel, without that of `noise`.
fn contrast(levels: &[f32], size: Size, noise: f32) -> Vec<f32> {
    let squares: Vec<f32> = levels.iter().map(|level| level * level).collect();
    let means = box_mean(levels, size, RADIUS);
    let of_squares = box_mean(&squares, size, RADIUS);
    let variances = iter::zip(means, of_squares).map(|(mean, square)| square - mean * mean);
    variances
        .map(|variance| (variance - noise * noise).max(0.0).sqrt())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Flat on the left, stripes of `height` levels on the right.
    fn half_striped(height: f32) -> Pixels {
        let level = |i: usize| {
            if i % 40 >= 20 && i.is_multiple_of(2) {
                height
            } else {
                0.0
            }
        };
        let samples = (0..40 * 30).map(|i| 0.4 + level(i) / 255.0);
        Pixels::new(40, 30, 1, samples.collect()).unwrap()
    }

    #[test]
    fn contrast_is_drawn_and_skin_is_not() {
        let features = Features::of(&half_striped(60.0), Condition::CLEAN);
        let row = features.row(40, 4);
        assert_eq!((row[0], row[40], row[120], row[159]), (0.0, 0.0, 1.0, 1.0));
        let border = &row[64..88];
        assert!(border.is_sorted(), "{border:?}");
        let faint = Features::of(&half_striped(8.0), Condition::CLEAN);
        assert!(faint.shares.iter().all(|share| *share == 0.0));
    }

    #[test]
    fn noise_is_no_feature() {
        let noisy = Condition {
            estimate: Some(Estimate {
                noise: 10.0,
                ..Estimate::NONE
            }),
            ..Condition::CLEAN
        };
        // Stripes of 20 levels deviate by 10.
        let picture = half_striped(20.0);
        let most = |condition| {
            let shares = Features::of(&picture, condition).shares;
            shares.into_iter().fold(0.0, f32::max)
        };
        assert!(most(Condition::CLEAN) > 0.5);
        assert!(most(noisy) < 0.05, "{}", most(noisy));
        let texture = Condition {
            estimate: noisy.estimate.map(|estimate| Estimate {
                may_be_texture: true,
                ..estimate
            }),
            ..noisy
        };
        assert_eq!(most(texture), most(Condition::CLEAN));
    }

    #[test]
    fn an_area_of_one_pixel_has_a_row() {
        let one = Pixels::new(1, 1, 3, vec![0.5; 3]).unwrap();
        let features = Features::of(&one, Condition::UNKNOWN);
        assert_eq!(features.row(3, 4), [0.0; 4]);
    }
}

//! The base picture under a network's correction: interpolation weights, nothing else.
//!
//! One is bicubic, one bilinear; the centres of both are those of half pixels.
//!
//! Keys' cubic convolution (R. Keys, 1981) with a = -0.5, half-pixel centres: what PIL calls BICUBIC when it
//! enlarges. Edges are replicated. The weights of one phase sum to 1.

/// Weights of one output phase: source taps `first .. first + 4` relative to the source pixel it lies in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Phase {
    /// Offset of the first tap from the source pixel: -2 or -1.
    pub first: isize,
    /// The four weights, from `first` on.
    pub taps: [f64; 4],
}

/// The `scale` phases of an enlargement: output sample `x * scale + p` uses phase `p` at source pixel `x`.
#[must_use]
pub fn phases(scale: usize) -> Vec<Phase> {
    (0..scale).map(|phase| phase_at(phase, scale)).collect()
}

/// The same for bilinear interpolation, as PyTorch's `interpolate` has it without aligned corners: only the second and the
/// third tap are not zero.
#[must_use]
pub fn linear_phases(scale: usize) -> Vec<Phase> {
    let phase_at = |phase| {
        let (below, share) = place(phase, scale);
        Phase {
            first: below - 1,
            taps: [0.0, 1.0 - share, share, 0.0],
        }
    };
    (0..scale).map(phase_at).collect()
}

/// The source pixel before a phase's centre, from the pixel that it lies in, and the way from there to the centre.
fn place(phase: usize, scale: usize) -> (isize, f64) {
    let centre = (phase as f64 + 0.5) / scale as f64 - 0.5;
    let below = centre.floor();
    (below as isize, centre - below)
}

/// Clamps a source coordinate into `0..size`: an edge goes on forever.
pub(crate) fn replicated(position: isize, size: usize) -> usize {
    position.clamp(0, size as isize - 1) as usize
}

fn phase_at(phase: usize, scale: usize) -> Phase {
    let (below, share) = place(phase, scale);
    let taps: [f64; 4] = std::array::from_fn(|tap| cubic(share + 1.0 - tap as f64));
    let sum: f64 = taps.iter().sum();
    Phase {
        first: below - 1,
        taps: taps.map(|tap| tap / sum),
    }
}

/// Keys' kernel with a = -0.5.
fn cubic(distance: f64) -> f64 {
    let d = distance.abs();
    if d < 1.0 {
        (1.5 * d - 2.5) * d * d + 1.0
    } else if d < 2.0 {
        ((-0.5 * d + 2.5) * d - 4.0) * d + 2.0
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_phases_are_mirror_images_with_the_published_weights() {
        let both = phases(2);
        // Keys at t = 0.25: -0.0703125, 0.8671875, 0.2265625, -0.0234375.
        assert_eq!(both[1].first, -1);
        let expected = [-0.070_312_5, 0.867_187_5, 0.226_562_5, -0.023_437_5];
        assert_eq!(both[1].taps, expected);
        assert_eq!(both[0].first, -2);
        let mut mirrored = expected;
        mirrored.reverse();
        assert_eq!(both[0].taps, mirrored);
    }

    #[test]
    fn every_phase_sums_to_one() {
        for scale in [2, 4] {
            for phase in phases(scale).iter().chain(&linear_phases(scale)) {
                assert!((phase.taps.iter().sum::<f64>() - 1.0).abs() < 1e-15);
            }
        }
    }

    #[test]
    fn linear_taps_are_the_distances_to_the_two_centres() {
        let of = |phase: &Phase| (phase.first, phase.taps);
        let four: Vec<_> = linear_phases(4).iter().map(of).collect();
        assert_eq!(four[0], (-2, [0.0, 0.375, 0.625, 0.0]));
        assert_eq!(four[1], (-2, [0.0, 0.125, 0.875, 0.0]));
        assert_eq!(four[3], (-1, [0.0, 0.625, 0.375, 0.0]));
    }
}

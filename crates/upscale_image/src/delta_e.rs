//! How different two colours look: CIE Lab and ΔE2000.

use crate::colour::curve::srgb_to_linear;

/// An sRGB colour, components `[0, 1]`, as CIE Lab under D65 (IEC 61966-2-1 and CIE 15).
#[must_use]
pub fn lab(rgb: [f32; 3]) -> [f32; 3] {
    const TO_XYZ: [[f32; 3]; 3] = [
        [0.412_456_4, 0.357_576_1, 0.180_437_5],
        [0.212_672_9, 0.715_152_2, 0.072_175],
        [0.019_333_9, 0.119_192, 0.950_304_1],
    ];
    const WHITE: [f32; 3] = [0.950_47, 1.0, 1.088_83];
    let linear = rgb.map(srgb_to_linear);
    let [x, y, z] = [0, 1, 2].map(|row| {
        let sum: f32 = TO_XYZ[row].iter().zip(linear).map(|(m, l)| m * l).sum();
        let ratio = sum / WHITE[row];
        if ratio > 216.0 / 24_389.0 {
            ratio.cbrt()
        } else {
            (24_389.0 / 27.0 * ratio + 16.0) / 116.0
        }
    });
    [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
}

/// ΔE2000 between two Lab colours (CIE 142-2001; formulation of Sharma, Wu and Dalal, 2005).
#[must_use]
pub fn delta_e_2000(first: [f32; 3], second: [f32; 3]) -> f32 {
    let (first, second) = (first.map(f64::from), second.map(f64::from));
    let chroma = |lab: [f64; 3]| lab[1].hypot(lab[2]);
    let seventh = ((chroma(first) + chroma(second)) / 2.0).powi(7);
    let stretch = 1.0 + 0.5 * (1.0 - (seventh / (seventh + 25_f64.powi(7))).sqrt());
    let polar = |lab: [f64; 3]| {
        let a = lab[1] * stretch;
        (
            a.hypot(lab[2]),
            lab[2].atan2(a).to_degrees().rem_euclid(360.0),
        )
    };
    let ((c1, h1), (c2, h2)) = (polar(first), polar(second));
    let colourless = c1 * c2 == 0.0;
    let wrapped = if colourless {
        0.0
    } else {
        (h2 - h1 + 180.0).rem_euclid(360.0) - 180.0
    };
    let hue = if colourless {
        h1 + h2
    } else {
        h1 + wrapped / 2.0
    };
    let d_hue = 2.0 * (c1 * c2).sqrt() * (wrapped / 2.0).to_radians().sin();
    let (lightness, chroma) = ((first[0] + second[0]) / 2.0, (c1 + c2) / 2.0);
    let cosine = |factor: f64, shift: f64| (factor * hue + shift).to_radians().cos();
    let t = 1.0 - 0.17 * cosine(1.0, -30.0) + 0.24 * cosine(2.0, 0.0) + 0.32 * cosine(3.0, 6.0)
        - 0.20 * cosine(4.0, -63.0);
    let dark = (lightness - 50.0).powi(2);
    let l = (second[0] - first[0]) / (1.0 + 0.015 * dark / (20.0 + dark).sqrt());
    let c = (c2 - c1) / (1.0 + 0.045 * chroma);
    let h = d_hue / (1.0 + 0.015 * chroma * t);
    let bend = (60.0 * (-(((hue.rem_euclid(360.0)) - 275.0) / 25.0).powi(2)).exp()).to_radians();
    let seventh = chroma.powi(7);
    let rotation = -2.0 * (seventh / (seventh + 25_f64.powi(7))).sqrt() * bend.sin();
    (l * l + c * c + h * h + rotation * c * h).max(0.0).sqrt() as f32
}

#[cfg(test)]
mod tests {
    use super::{delta_e_2000, lab};

    /// Pairs of the test data that Sharma, Wu and Dalal published with their paper.
    #[test]
    fn published_pairs_come_out_right() {
        let pairs = [
            ([50.0, 2.6772, -79.7751], [50.0, 0.0, -82.7485], 2.0425),
            ([50.0, 0.0, 0.0], [50.0, -1.0, 2.0], 2.3669),
            ([50.0, 2.49, -0.001], [50.0, -2.49, 0.0011], 7.2195),
            ([50.0, 2.5, 0.0], [73.0, 25.0, -18.0], 27.1492),
            (
                [60.2574, -34.0099, 36.2677],
                [60.4626, -34.1751, 39.4387],
                1.2644,
            ),
            (
                [22.7233, 20.0904, -46.694],
                [23.0331, 14.973, -42.5619],
                2.0373,
            ),
            ([2.0776, 0.0795, -1.135], [0.9033, -0.0636, -0.5514], 0.9082),
        ];
        for (first, second, expected) in pairs {
            let found = delta_e_2000(first, second);
            assert!(
                (found - expected).abs() < 2e-4,
                "{first:?}: {found} not {expected}"
            );
        }
    }

    #[test]
    fn white_black_and_gray_lie_on_the_neutral_axis() {
        for (level, lightness) in [(0.0, 0.0), (0.5, 53.389), (1.0, 100.0)] {
            let [l, a, b] = lab([level; 3]);
            assert!((l - lightness).abs() < 0.01 && a.abs() < 0.01 && b.abs() < 0.02);
        }
    }
}

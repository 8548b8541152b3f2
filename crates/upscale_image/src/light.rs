//! Linear light by a polynomial, for the millions of samples of a result: no table, no `powf`, so that the compiler
//! makes vectors of it. Only differences of light are ever taken, source and result by the same curve.

/// Coefficients of `c`, `c²`, `c³`: within 0.0017 of IEC 61966-2-1 everywhere, exact at 0 and 1.
const CUBIC: [f32; 3] = [0.012_522_9, 0.682_171_1, 0.305_306];
/// The true curve is never flatter than this (1 / 12.92); the cubic is, below code 0.05.
const SLOPE_MIN: f32 = 1.0 / 12.92;

/// Light of an sRGB code value; both in `[0, 1]`.
#[inline(always)]
pub(crate) fn light(code: f32) -> f32 {
    code * (CUBIC[0] + code * (CUBIC[1] + code * CUBIC[2]))
}

/// How much code value a little light is worth at `code`.
#[inline(always)]
pub(crate) fn code_per_light(code: f32) -> f32 {
    let slope = CUBIC[0] + code * (2.0 * CUBIC[1] + code * 3.0 * CUBIC[2]);
    1.0 / slope.max(SLOPE_MIN)
}

#[cfg(test)]
mod tests {
    use super::{code_per_light, light};
    use crate::colour::curve::{linear_to_srgb, srgb_to_linear};

    #[test]
    fn the_cubic_follows_srgb() {
        for step in 0..=1000 {
            let code = step as f32 / 1000.0;
            assert!(
                (light(code) - srgb_to_linear(code)).abs() < 0.0017,
                "{code}"
            );
        }
        assert!((light(1.0) - 1.0).abs() < 1e-6);
    }

    #[test]
    fn a_step_of_light_is_worth_as_much_code_as_in_srgb() {
        for code in [0.2_f32, 0.5, 0.8] {
            let there = srgb_to_linear(code);
            let true_worth = (linear_to_srgb(there + 1e-3) - linear_to_srgb(there - 1e-3)) / 2e-3;
            let worth = code_per_light(code);
            assert!(
                (worth / true_worth - 1.0).abs() < 0.05,
                "{code}: {worth} {true_worth}"
            );
        }
    }
}

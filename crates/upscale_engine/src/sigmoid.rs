//! The logistic function on vectors: `1 / (1 + exp(-v))`, within 4 units in the last place (tested), and Mish, which is
//! made of it.
//!
//! exp: argument reduction by ln 2 in two parts and the polynomial of the Cephes library's `expf`
//! (S. Moshier, 1992): 2 units in the last place over the range used here.

use upscale_simd::Lanes;

/// 1.5 * 2^23: adding it rounds a small number to an integer, which then stands in the low bits.
const ROUND: f32 = 12_582_912.0;
const LN2_HIGH: f32 = 355.0 / 512.0;
const LN2_LOW: f32 = -2.121_944_4e-4;
/// exp(-87) is the last that is no subnormal; beyond, the logistic function is 0 or 1 to single precision.
const ARGUMENT_MAX: f32 = 87.0;
const POLYNOMIAL: [f32; 6] = [
    1.987_569_2e-4,
    1.398_2e-3,
    8.333_452e-3,
    4.166_579_6e-2,
    1.666_666_5e-1,
    0.5,
];

#[inline(always)]
pub(crate) fn sigmoid<L: Lanes>(lanes: L, v: L::V) -> L::V {
    let one = lanes.splat(1.0);
    let negated = lanes.sub(lanes.splat(0.0), v);
    lanes.div(one, lanes.add(one, exp(lanes, negated)))
}

/// `v * tanh(ln(1 + exp(v)))` (D. Misra: "Mish", 2019). With `s` the logistic function of `v` the second factor is
/// `s * (2 - s) / ((1 - s)² + 1)`: no exponential that could become infinite, and no difference of like numbers.
#[inline(always)]
pub(crate) fn mish<L: Lanes>(lanes: L, v: L::V) -> L::V {
    let (one, two) = (lanes.splat(1.0), lanes.splat(2.0));
    let s = sigmoid(lanes, v);
    let rest = lanes.sub(one, s);
    let above = lanes.mul(s, lanes.sub(two, s));
    lanes.mul(v, lanes.div(above, lanes.fma(rest, rest, one)))
}

/// exp of `v`, clamped to +-87.
#[inline(always)]
fn exp<L: Lanes>(lanes: L, v: L::V) -> L::V {
    let v = lanes.max(
        lanes.min(v, lanes.splat(ARGUMENT_MAX)),
        lanes.splat(-ARGUMENT_MAX),
    );
    let shifted = lanes.fma(v, lanes.splat(std::f32::consts::LOG2_E), lanes.splat(ROUND));
    let n = lanes.sub(shifted, lanes.splat(ROUND));
    let rest = lanes.fma(n, lanes.splat(-LN2_HIGH), v);
    let rest = lanes.fma(n, lanes.splat(-LN2_LOW), rest);
    let mut sum = lanes.splat(POLYNOMIAL[0]);
    for coefficient in &POLYNOMIAL[1..] {
        sum = lanes.fma(sum, rest, lanes.splat(*coefficient));
    }
    let squared = lanes.mul(rest, rest);
    let sum = lanes.add(lanes.fma(sum, squared, rest), lanes.splat(1.0));
    lanes.mul(sum, lanes.exponent(shifted))
}

#[cfg(test)]
mod tests {
    use upscale_simd::{Computation, Portable};

    use super::*;
    use crate::kernel_set::KernelSet;

    /// Furthest from the exact function, of the logistic function and of Mish.
    struct Worst;

    impl Computation for Worst {
        type Output = [f64; 2];

        fn run<L: Lanes>(self, lanes: L) -> [f64; 2] {
            let logistic = |v: f64| 1.0 / (1.0 + (-v).exp());
            let exact_mish = |v: f64| v * v.exp().ln_1p().tanh();
            let one = worst_in_last_places(lanes, |v| sigmoid(lanes, v), logistic);
            [
                one,
                worst_in_last_places(lanes, |v| mish(lanes, v), exact_mish),
            ]
        }
    }

    fn worst_in_last_places<L: Lanes>(
        lanes: L,
        given: impl Fn(L::V) -> L::V,
        exact: impl Fn(f64) -> f64,
    ) -> f64 {
        let function = given;
        let mut worst: f64 = 0.0;
        // Every 1/64 of the range in which a logistic function is not yet 0 or 1.
        for step in -87 * 64..=87 * 64 {
            let v = step as f32 / 64.0;
            let mut given = [0.0; 16];
            lanes.store(function(lanes.splat(v)), &mut given, 0);
            let exact = exact(f64::from(v));
            let place = 2.0_f64.powi(exact.abs().log2().floor().max(-126.0) as i32 - 23);
            worst = worst.max((f64::from(given[0]) - exact).abs() / place);
        }
        worst
    }

    #[test]
    fn every_set_is_within_a_few_units_in_the_last_place() {
        for kernels in KernelSet::ALL.into_iter().filter_map(KernelSet::kernels) {
            let [logistic, mish] = kernels.call(Worst);
            assert!(
                logistic <= 4.0 && mish <= 8.0,
                "{kernels:?}: {logistic}, {mish}"
            );
        }
    }

    #[test]
    fn far_out_it_saturates_without_infinities() {
        let lanes = Portable;
        for (v, expected) in [(1e30, 1.0), (-1e30, 0.0), (200.0, 1.0)] {
            let mut given = [9.0; 8];
            lanes.store(sigmoid(lanes, lanes.splat(v)), &mut given, 0);
            assert!((given[0] - expected).abs() < 1e-37, "{v}: {}", given[0]);
        }
    }
}

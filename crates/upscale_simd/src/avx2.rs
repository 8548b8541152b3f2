//! AVX2 with FMA: 16 registers of 8 numbers.

use std::arch::x86_64::{
    __m256, _MM_HINT_T0, _MM_HINT_T1, _mm_packs_epi32, _mm_prefetch, _mm_storeu_si128,
    _mm256_add_epi32, _mm256_add_ps, _mm256_and_si256, _mm256_andnot_ps, _mm256_castps_si256,
    _mm256_castsi256_ps, _mm256_castsi256_si128, _mm256_cvtepi32_ps, _mm256_cvtps_epi32,
    _mm256_div_ps, _mm256_extracti128_si256, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_madd_epi16,
    _mm256_max_ps, _mm256_min_ps, _mm256_mul_ps, _mm256_or_si256, _mm256_set1_epi32,
    _mm256_set1_ps, _mm256_slli_epi32, _mm256_storeu_ps, _mm256_sub_ps,
};

use crate::block::Block;
use crate::gemm;
use crate::lanes::{Computation, Lanes, Registers};

/// Proof that the CPU has AVX2 and FMA: only [`Avx2::detect`] makes one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Avx2 {
    /// Whether it has AVX-VNNI as well, and [`Registers::dot_words`] uses it.
    vnni: bool,
}

impl Avx2 {
    pub(crate) fn detect() -> Option<Self> {
        let found = std::arch::is_x86_feature_detected!("avx2")
            && std::arch::is_x86_feature_detected!("fma");
        let vnni = std::arch::is_x86_feature_detected!("avxvnni");
        found.then_some(Self { vnni })
    }
}

#[target_feature(enable = "avx2,fma")]
fn call<C: Computation>(lanes: Avx2, computation: C) -> C::Output {
    computation.run(lanes)
}

/// # Safety
/// As [`gemm::multiply`].
#[inline(never)]
#[target_feature(enable = "avx2,fma")]
unsafe fn multiply_rows<const ROWS: usize, const PANEL: usize>(lanes: Avx2, block: &Block) {
    // SAFETY: the caller keeps the same promise.
    unsafe { gemm::multiply::<Avx2, false, ROWS, PANEL>(lanes, block) }
}

/// `vpdpwssd`. Not by its intrinsic: the compiler makes two instructions of it, as if it had to wait for the sums.
#[inline]
#[target_feature(enable = "avx2,avxvnni")]
fn add_products(a: __m256, b: __m256, mut c: __m256) -> __m256 {
    // SAFETY: reads and writes registers only, which hold what the operands say.
    unsafe {
        std::arch::asm!(
            "{{vex}} vpdpwssd {c}, {a}, {b}",
            c = inout(ymm_reg) c,
            a = in(ymm_reg) a,
            b = in(ymm_reg) b,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    c
}

/// # Safety
/// As [`gemm::multiply`].
#[inline(never)]
#[target_feature(enable = "avx2,fma,avxvnni")]
unsafe fn multiply_words_vnni<const ROWS: usize, const PANEL: usize>(block: &Block) {
    // A constant here, so that no product asks for it.
    let lanes = Avx2 { vnni: true };
    // SAFETY: the caller keeps the same promise.
    unsafe { gemm::multiply::<Avx2, true, ROWS, PANEL>(lanes, block) }
}

/// # Safety
/// As [`gemm::multiply`].
#[inline(never)]
#[target_feature(enable = "avx2,fma")]
unsafe fn multiply_words<const ROWS: usize, const PANEL: usize>(block: &Block) {
    let lanes = Avx2 { vnni: false };
    // SAFETY: the caller keeps the same promise.
    unsafe { gemm::multiply::<Avx2, true, ROWS, PANEL>(lanes, block) }
}

impl Registers for Avx2 {
    type V = __m256;
    const WIDTH: usize = 8;
    /// 12 accumulators, 2 weights and a broadcast fit 16 registers.
    const KERNEL_ROWS: &'static [usize] = &[0, 6];

    /// Without AVX-VNNI too: `vpmaddwd` and `vpaddd` do 16 products where `vfmadd` does 8, and three ports share them.
    #[inline(always)]
    fn has_words(self) -> bool {
        true
    }

    #[inline(always)]
    unsafe fn dot_words(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        // SAFETY: the token proves AVX2 and, where it says so, AVX-VNNI.
        unsafe {
            if self.vnni {
                return add_products(a, b, c);
            }
            let [a, b, c] = [
                _mm256_castps_si256(a),
                _mm256_castps_si256(b),
                _mm256_castps_si256(c),
            ];
            _mm256_castsi256_ps(_mm256_add_epi32(_mm256_madd_epi16(a, b), c))
        }
    }

    #[inline(always)]
    unsafe fn store_words_at(self, value: Self::V, to: *mut i16) {
        // SAFETY: the caller promises 8 writable integers, the token the instructions.
        unsafe {
            let whole = _mm256_cvtps_epi32(value);
            let (low, high) = (
                _mm256_castsi256_si128(whole),
                _mm256_extracti128_si256::<1>(whole),
            );
            _mm_storeu_si128(to.cast(), _mm_packs_epi32(low, high));
        }
    }

    #[inline(always)]
    fn prefetch(self, at: *const f32) {
        // SAFETY: a prefetch of any address is harmless.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
    }

    #[inline(always)]
    fn prefetch_late(self, at: *const f32) {
        // SAFETY: a prefetch of any address is harmless.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(at.cast()) }
    }

    #[inline(always)]
    unsafe fn load_at(self, from: *const f32) -> Self::V {
        // SAFETY: the caller promises 8 readable numbers, the token the instruction.
        unsafe { _mm256_loadu_ps(from) }
    }

    #[inline(always)]
    unsafe fn store_at(self, value: Self::V, to: *mut f32) {
        // SAFETY: the caller promises 8 writable numbers, the token the instruction.
        unsafe { _mm256_storeu_ps(to, value) }
    }

    #[inline(always)]
    unsafe fn multiply<const WORDS: bool, const ROWS: usize, const PANEL: usize>(
        self,
        block: &Block,
    ) {
        // SAFETY: the token proves the features; the rest is the caller's promise.
        unsafe {
            match WORDS {
                true if self.vnni => multiply_words_vnni::<ROWS, PANEL>(block),
                true => multiply_words::<ROWS, PANEL>(block),
                false => multiply_rows::<ROWS, PANEL>(self, block),
            }
        }
    }

    #[inline]
    fn call<C: Computation>(self, computation: C) -> C::Output {
        // SAFETY: the token proves the features.
        unsafe { call(self, computation) }
    }
}

impl Lanes for Avx2 {
    #[inline(always)]
    fn splat(self, value: f32) -> Self::V {
        // SAFETY: the token proves the CPU has the instruction.
        unsafe { _mm256_set1_ps(value) }
    }

    #[inline(always)]
    fn add(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: the token proves the CPU has the instruction.
        unsafe { _mm256_add_ps(a, b) }
    }

    #[inline(always)]
    fn sub(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: the token proves the CPU has the instruction.
        unsafe { _mm256_sub_ps(a, b) }
    }

    #[inline(always)]
    fn mul(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: the token proves the CPU has the instruction.
        unsafe { _mm256_mul_ps(a, b) }
    }

    #[inline(always)]
    fn fma(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        // SAFETY: the token proves the CPU has the instruction.
        unsafe { _mm256_fmadd_ps(a, b, c) }
    }

    #[inline(always)]
    fn div(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: the token proves the CPU has the instruction.
        unsafe { _mm256_div_ps(a, b) }
    }

    #[inline(always)]
    fn min(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: the token proves the CPU has the instruction.
        unsafe { _mm256_min_ps(a, b) }
    }

    #[inline(always)]
    fn max(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: the token proves the CPU has the instruction.
        unsafe { _mm256_max_ps(a, b) }
    }

    #[inline(always)]
    fn exponent(self, a: Self::V) -> Self::V {
        // SAFETY: the token proves the CPU has the instructions.
        unsafe {
            let bits = _mm256_slli_epi32::<23>(_mm256_castps_si256(a));
            _mm256_castsi256_ps(_mm256_add_epi32(bits, _mm256_set1_epi32(0x3f80_0000)))
        }
    }

    #[inline(always)]
    fn whole(self, a: Self::V) -> Self::V {
        // SAFETY: the token proves the CPU has the instruction.
        unsafe { _mm256_cvtepi32_ps(_mm256_castps_si256(a)) }
    }

    #[inline(always)]
    fn pair_words(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: the token proves the CPU has the instructions.
        unsafe {
            let low = _mm256_and_si256(_mm256_cvtps_epi32(a), _mm256_set1_epi32(0xFFFF));
            let high = _mm256_slli_epi32::<16>(_mm256_cvtps_epi32(b));
            _mm256_castsi256_ps(_mm256_or_si256(low, high))
        }
    }

    #[inline(always)]
    fn max_magnitude(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: the token proves the CPU has the instructions.
        unsafe {
            let sign = _mm256_set1_ps(-0.0);
            _mm256_max_ps(_mm256_andnot_ps(sign, a), _mm256_andnot_ps(sign, b))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEPTH: usize = 5;
    const ROWS: usize = 3;

    /// Pairs of 16-bit integers, the largest among them.
    fn pairs(count: usize, seed: u32) -> Vec<f32> {
        let mut state = seed;
        let pair = |_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            f32::from_bits(if state.is_multiple_of(7) {
                0x8000_7fff
            } else {
                state
            })
        };
        (0..count).map(pair).collect()
    }

    /// By the definition: sums of both products of every pair, modulo 2^32.
    fn expected(input: &[f32], weights: &[f32]) -> Vec<u32> {
        let halves = |pair: f32| [pair.to_bits() as i16, (pair.to_bits() >> 16) as i16];
        let sum = |(row, lane): (usize, usize)| {
            (0..DEPTH).fold(0_i32, |sum, k| {
                let (a, b) = (
                    halves(input[row * DEPTH + k]),
                    halves(weights[k * 16 + lane]),
                );
                (0..2).fold(sum, |sum, i| {
                    sum.wrapping_add(i32::from(a[i]) * i32::from(b[i]))
                })
            }) as u32
        };
        (0..ROWS)
            .flat_map(|row| (0..16).map(move |lane| (row, lane)))
            .map(sum)
            .collect()
    }

    #[test]
    fn words_are_multiplied_alike_with_and_without_avx_vnni() {
        let Some(found) = Avx2::detect() else {
            println!("left out: this CPU has no AVX2");
            return;
        };
        let (input, weights) = (pairs(ROWS * DEPTH, 1), pairs(DEPTH * 16, 2));
        for vnni in [false, found.vnni] {
            let mut output = vec![0.0_f32; ROWS * 16];
            let block = Block {
                input: input.as_ptr(),
                input_stride: DEPTH,
                weights: weights.as_ptr(),
                depth: DEPTH,
                output: output.as_mut_ptr(),
                output_stride: 16,
                start: std::ptr::null(),
                start_stride: 0,
                next: std::ptr::null(),
                ahead: std::ptr::null(),
            };
            // SAFETY: three rows of five pairs times five pairs of registers into three pairs of registers, as allocated.
            unsafe { Avx2 { vnni }.multiply::<true, ROWS, 2>(&block) };
            let bits: Vec<u32> = output.iter().map(|sum| sum.to_bits()).collect();
            assert_eq!(bits, expected(&input, &weights), "AVX-VNNI: {vnni}");
        }
    }
}

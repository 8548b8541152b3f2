//! AVX2 with FMA: 16 registers of 8 numbers.

use std::arch::x86_64::{
    __m256, _MM_HINT_NTA, _mm_prefetch, _mm256_add_epi32, _mm256_add_ps, _mm256_castps_si256,
    _mm256_castsi256_ps, _mm256_div_ps, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_max_ps,
    _mm256_min_ps, _mm256_mul_ps, _mm256_set1_epi32, _mm256_set1_ps, _mm256_slli_epi32,
    _mm256_storeu_ps, _mm256_sub_ps,
};

use super::{Lanes, gemm};
use crate::job::Job;
use crate::task::{self, Scratch, Ticket};

/// Proof that the CPU has AVX2 and FMA: only [`Avx2::detect`] makes one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Avx2(());

impl Avx2 {
    pub(super) fn detect() -> Option<Self> {
        let found = std::arch::is_x86_feature_detected!("avx2")
            && std::arch::is_x86_feature_detected!("fma");
        found.then_some(Self(()))
    }
}

#[target_feature(enable = "avx2,fma")]
fn run_task(lanes: Avx2, job: &Job<'_>, scratch: &mut Scratch, ticket: &Ticket) {
    task::run(lanes, job, scratch, ticket);
}

#[target_feature(enable = "avx2,fma")]
fn spin_chains(lanes: Avx2, turns: u64) -> u64 {
    gemm::spin(lanes, turns)
}

/// # Safety
/// As [`gemm::multiply`].
#[inline(never)]
#[target_feature(enable = "avx2,fma")]
unsafe fn multiply_rows<const ROWS: usize, const PANEL: usize>(lanes: Avx2, block: &gemm::Block) {
    // SAFETY: the caller keeps the same promise.
    unsafe { gemm::multiply::<Avx2, ROWS, PANEL>(lanes, block) }
}

impl Lanes for Avx2 {
    type V = __m256;
    const WIDTH: usize = 8;
    const PANEL_MAX: usize = 2;

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
    fn prefetch(self, at: *const f32) {
        // SAFETY: a prefetch of any address is harmless.
        unsafe { _mm_prefetch::<_MM_HINT_NTA>(at.cast()) }
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

    /// 12 accumulators, 2 weights and a broadcast fit 16 registers.
    #[inline(always)]
    fn kernel_rows(panel: usize) -> usize {
        if panel == 1 { 12 } else { 6 }
    }

    #[inline(always)]
    unsafe fn multiply<const ROWS: usize, const PANEL: usize>(self, block: &gemm::Block) {
        // SAFETY: the token proves the features; the rest is the caller's promise.
        unsafe { multiply_rows::<ROWS, PANEL>(self, block) }
    }

    fn spin(self, turns: u64) -> u64 {
        // SAFETY: the token proves the features.
        unsafe { spin_chains(self, turns) }
    }

    fn run(self, job: &Job<'_>, scratch: &mut Scratch, ticket: &Ticket) {
        // SAFETY: the token proves the features.
        unsafe { run_task(self, job, scratch, ticket) }
    }
}

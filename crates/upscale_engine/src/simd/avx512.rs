//! AVX-512: 32 registers of 16 numbers.

use std::arch::x86_64::{
    __m512, _MM_HINT_NTA, _mm_prefetch, _mm512_add_epi32, _mm512_add_ps, _mm512_castps_si512,
    _mm512_castsi512_ps, _mm512_div_ps, _mm512_fmadd_ps, _mm512_loadu_ps, _mm512_max_ps,
    _mm512_min_ps, _mm512_mul_ps, _mm512_set1_epi32, _mm512_set1_ps, _mm512_slli_epi32,
    _mm512_storeu_ps, _mm512_sub_ps,
};

use super::{Lanes, gemm};
use crate::job::Job;
use crate::task::{self, Scratch, Ticket};

/// Proof that the CPU has AVX-512F, BW, DQ, VL: only [`Avx512::detect`] makes one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Avx512(());

impl Avx512 {
    pub(super) fn detect() -> Option<Self> {
        let found = std::arch::is_x86_feature_detected!("avx512f")
            && std::arch::is_x86_feature_detected!("avx512bw")
            && std::arch::is_x86_feature_detected!("avx512dq")
            && std::arch::is_x86_feature_detected!("avx512vl")
            && std::arch::is_x86_feature_detected!("fma")
            && std::arch::is_x86_feature_detected!("avx2");
        found.then_some(Self(()))
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,avx2")]
fn run_task(lanes: Avx512, job: &Job<'_>, scratch: &mut Scratch, ticket: &Ticket) {
    task::run(lanes, job, scratch, ticket);
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,avx2")]
fn spin_chains(lanes: Avx512, turns: u64) -> u64 {
    gemm::spin(lanes, turns)
}

/// # Safety
/// As [`gemm::multiply`].
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,avx2")]
unsafe fn multiply_rows<const ROWS: usize, const PANEL: usize>(lanes: Avx512, block: &gemm::Block) {
    // SAFETY: the caller keeps the same promise.
    unsafe { gemm::multiply::<Avx512, ROWS, PANEL>(lanes, block) }
}

impl Lanes for Avx512 {
    type V = __m512;
    const WIDTH: usize = 16;
    const PANEL_MAX: usize = 4;

    #[inline(always)]
    fn splat(self, value: f32) -> Self::V {
        // SAFETY: the token proves the CPU has the instruction.
        unsafe { _mm512_set1_ps(value) }
    }

    #[inline(always)]
    fn add(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: the token proves the CPU has the instruction.
        unsafe { _mm512_add_ps(a, b) }
    }

    #[inline(always)]
    fn sub(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: the token proves the CPU has the instruction.
        unsafe { _mm512_sub_ps(a, b) }
    }

    #[inline(always)]
    fn mul(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: the token proves the CPU has the instruction.
        unsafe { _mm512_mul_ps(a, b) }
    }

    #[inline(always)]
    fn fma(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        // SAFETY: the token proves the CPU has the instruction.
        unsafe { _mm512_fmadd_ps(a, b, c) }
    }

    #[inline(always)]
    fn div(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: the token proves the CPU has the instruction.
        unsafe { _mm512_div_ps(a, b) }
    }

    #[inline(always)]
    fn min(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: the token proves the CPU has the instruction.
        unsafe { _mm512_min_ps(a, b) }
    }

    #[inline(always)]
    fn max(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: the token proves the CPU has the instruction.
        unsafe { _mm512_max_ps(a, b) }
    }

    #[inline(always)]
    fn exponent(self, a: Self::V) -> Self::V {
        // SAFETY: the token proves the CPU has the instructions.
        unsafe {
            let bits = _mm512_slli_epi32::<23>(_mm512_castps_si512(a));
            _mm512_castsi512_ps(_mm512_add_epi32(bits, _mm512_set1_epi32(0x3f80_0000)))
        }
    }

    #[inline(always)]
    fn prefetch(self, at: *const f32) {
        // SAFETY: a prefetch of any address is harmless.
        unsafe { _mm_prefetch::<_MM_HINT_NTA>(at.cast()) }
    }

    #[inline(always)]
    unsafe fn load_at(self, from: *const f32) -> Self::V {
        // SAFETY: the caller promises 16 readable numbers, the token the instruction.
        unsafe { _mm512_loadu_ps(from) }
    }

    #[inline(always)]
    unsafe fn store_at(self, value: Self::V, to: *mut f32) {
        // SAFETY: the caller promises 16 writable numbers, the token the instruction.
        unsafe { _mm512_storeu_ps(to, value) }
    }

    /// 24 accumulators, 4 weights and a broadcast fit 32 registers.
    #[inline(always)]
    fn kernel_rows(panel: usize) -> usize {
        match panel {
            1 | 2 => 12,
            3 => 8,
            _ => 6,
        }
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

//! AVX-512: 32 registers of 16 numbers.

use std::arch::x86_64::{
    __m512, _MM_HINT_T0, _MM_HINT_T1, _mm_prefetch, _mm256_storeu_si256, _mm512_add_epi32,
    _mm512_add_ps, _mm512_and_si512, _mm512_castps_si512, _mm512_castsi512_ps, _mm512_cvtepi32_ps,
    _mm512_cvtps_epi32, _mm512_cvtsepi32_epi16, _mm512_div_ps, _mm512_fmadd_ps, _mm512_loadu_ps,
    _mm512_max_ps, _mm512_min_ps, _mm512_mul_ps, _mm512_or_si512, _mm512_range_ps,
    _mm512_set1_epi32, _mm512_set1_ps, _mm512_slli_epi32, _mm512_storeu_ps, _mm512_sub_ps,
};

use crate::block::Block;
use crate::gemm;
use crate::lanes::{Computation, Lanes, Registers};

/// Proof that the CPU has AVX-512F, BW, DQ, VL: only [`Avx512::detect`] makes one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Avx512 {
    /// Whether it has VNNI as well.
    vnni: bool,
}

impl Avx512 {
    pub(crate) fn detect() -> Option<Self> {
        let found = std::arch::is_x86_feature_detected!("avx512f")
            && std::arch::is_x86_feature_detected!("avx512bw")
            && std::arch::is_x86_feature_detected!("avx512dq")
            && std::arch::is_x86_feature_detected!("avx512vl")
            && std::arch::is_x86_feature_detected!("fma")
            && std::arch::is_x86_feature_detected!("avx2");
        let vnni = std::arch::is_x86_feature_detected!("avx512vnni");
        found.then_some(Self { vnni })
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,avx2")]
fn call<C: Computation>(lanes: Avx512, computation: C) -> C::Output {
    computation.run(lanes)
}

/// # Safety
/// As [`gemm::multiply`].
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,avx2")]
unsafe fn multiply_rows<const ROWS: usize, const PANEL: usize>(lanes: Avx512, block: &Block) {
    // SAFETY: the caller keeps the same promise.
    unsafe { gemm::multiply::<Avx512, false, ROWS, PANEL>(lanes, block) }
}

/// `vpdpwssd`. Not by its intrinsic: the compiler makes two instructions of it, as if it had to wait for the sums.
#[inline]
#[target_feature(enable = "avx512f,avx512vnni")]
fn add_products(a: __m512, b: __m512, mut c: __m512) -> __m512 {
    // SAFETY: reads and writes registers only, which hold what the operands say.
    unsafe {
        std::arch::asm!(
            "vpdpwssd {c}, {a}, {b}",
            c = inout(zmm_reg) c,
            a = in(zmm_reg) a,
            b = in(zmm_reg) b,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    c
}

/// # Safety
/// As [`gemm::multiply`].
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,avx2,avx512vnni")]
unsafe fn multiply_words<const ROWS: usize, const PANEL: usize>(lanes: Avx512, block: &Block) {
    // SAFETY: the caller keeps the same promise.
    unsafe { gemm::multiply::<Avx512, true, ROWS, PANEL>(lanes, block) }
}

impl Registers for Avx512 {
    type V = __m512;
    const WIDTH: usize = 16;
    /// 24 accumulators, 4 weights and a broadcast fit 32 registers.
    const KERNEL_ROWS: &'static [usize] = &[12, 12, 8, 6];

    #[inline(always)]
    fn has_words(self) -> bool {
        self.vnni
    }

    #[inline(always)]
    unsafe fn dot_words(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        // SAFETY: the caller promises VNNI.
        unsafe { add_products(a, b, c) }
    }

    #[inline(always)]
    unsafe fn store_words_at(self, value: Self::V, to: *mut i16) {
        // SAFETY: the caller promises 16 writable integers, the token the instructions.
        unsafe { _mm256_storeu_si256(to.cast(), _mm512_cvtsepi32_epi16(_mm512_cvtps_epi32(value))) }
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
        // SAFETY: the caller promises 16 readable numbers, the token the instruction.
        unsafe { _mm512_loadu_ps(from) }
    }

    #[inline(always)]
    unsafe fn store_at(self, value: Self::V, to: *mut f32) {
        // SAFETY: the caller promises 16 writable numbers, the token the instruction.
        unsafe { _mm512_storeu_ps(to, value) }
    }

    #[inline(always)]
    unsafe fn multiply<const WORDS: bool, const ROWS: usize, const PANEL: usize>(
        self,
        block: &Block,
    ) {
        if WORDS {
            assert!(self.vnni);
            // SAFETY: the token and the assertion prove the features; the rest is the caller's promise.
            unsafe { multiply_words::<ROWS, PANEL>(self, block) }
        } else {
            // SAFETY: the token proves the features; the rest is the caller's promise.
            unsafe { multiply_rows::<ROWS, PANEL>(self, block) }
        }
    }

    #[inline]
    fn call<C: Computation>(self, computation: C) -> C::Output {
        // SAFETY: the token proves the features.
        unsafe { call(self, computation) }
    }
}

impl Lanes for Avx512 {
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
    fn whole(self, a: Self::V) -> Self::V {
        // SAFETY: the token proves the CPU has the instruction.
        unsafe { _mm512_cvtepi32_ps(_mm512_castps_si512(a)) }
    }

    #[inline(always)]
    fn pair_words(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: the token proves the CPU has the instructions.
        unsafe {
            let low = _mm512_and_si512(_mm512_cvtps_epi32(a), _mm512_set1_epi32(0xFFFF));
            let high = _mm512_slli_epi32::<16>(_mm512_cvtps_epi32(b));
            _mm512_castsi512_ps(_mm512_or_si512(low, high))
        }
    }

    #[inline(always)]
    fn max_magnitude(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: the token proves the CPU has the instruction (3: larger magnitude, 4: the sign cleared).
        unsafe { _mm512_range_ps::<0b1011>(a, b) }
    }
}

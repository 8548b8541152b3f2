//! NEON: 32 registers of 4 numbers, on every 64-bit ARM.

use std::arch::aarch64::{
    float32x4_t, vaddq_f32, vaddq_s32, vdivq_f32, vdupq_n_f32, vdupq_n_s32, vfmaq_f32, vld1q_f32,
    vmaxq_f32, vminq_f32, vmulq_f32, vreinterpretq_f32_s32, vreinterpretq_s32_f32, vshlq_n_s32,
    vst1q_f32, vsubq_f32,
};

use crate::block::Block;
use crate::gemm;
use crate::lanes::{Computation, Lanes, Registers};

/// Proof that the CPU has NEON: only [`Neon::detect`] makes one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Neon(());

impl Neon {
    pub(crate) fn detect() -> Option<Self> {
        std::arch::is_aarch64_feature_detected!("neon").then_some(Self(()))
    }
}

#[target_feature(enable = "neon")]
fn call<C: Computation>(lanes: Neon, computation: C) -> C::Output {
    computation.run(lanes)
}

/// # Safety
/// As [`gemm::multiply`].
#[inline(never)]
#[target_feature(enable = "neon")]
unsafe fn multiply_rows<const WORDS: bool, const ROWS: usize, const PANEL: usize>(
    lanes: Neon,
    block: &Block,
) {
    // SAFETY: the caller keeps the same promise.
    unsafe { gemm::multiply::<Neon, WORDS, ROWS, PANEL>(lanes, block) }
}

impl Registers for Neon {
    type V = float32x4_t;
    const WIDTH: usize = 4;
    /// 24 accumulators, 4 weights and a broadcast fit 32 registers.
    const KERNEL_ROWS: &'static [usize] = &[0, 0, 0, 6];

    /// Left to the hardware.
    #[inline(always)]
    fn prefetch(self, _at: *const f32) {}

    /// Left to the hardware.
    #[inline(always)]
    fn prefetch_late(self, _at: *const f32) {}

    #[inline(always)]
    unsafe fn load_at(self, from: *const f32) -> Self::V {
        // SAFETY: the caller promises 4 readable numbers, the token the instruction.
        unsafe { vld1q_f32(from) }
    }

    #[inline(always)]
    unsafe fn store_at(self, value: Self::V, to: *mut f32) {
        // SAFETY: the caller promises 4 writable numbers, the token the instruction.
        unsafe { vst1q_f32(to, value) }
    }

    #[inline(always)]
    unsafe fn multiply<const WORDS: bool, const ROWS: usize, const PANEL: usize>(
        self,
        block: &Block,
    ) {
        // SAFETY: the token proves the features; the rest is the caller's promise.
        unsafe { multiply_rows::<WORDS, ROWS, PANEL>(self, block) }
    }

    #[inline]
    fn call<C: Computation>(self, computation: C) -> C::Output {
        // SAFETY: the token proves the features.
        unsafe { call(self, computation) }
    }
}

impl Lanes for Neon {
    #[inline(always)]
    fn splat(self, value: f32) -> Self::V {
        // SAFETY: the token proves the CPU has the instruction.
        unsafe { vdupq_n_f32(value) }
    }

    #[inline(always)]
    fn add(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: the token proves the CPU has the instruction.
        unsafe { vaddq_f32(a, b) }
    }

    #[inline(always)]
    fn sub(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: the token proves the CPU has the instruction.
        unsafe { vsubq_f32(a, b) }
    }

    #[inline(always)]
    fn mul(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: the token proves the CPU has the instruction.
        unsafe { vmulq_f32(a, b) }
    }

    #[inline(always)]
    fn fma(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        // SAFETY: the token proves the CPU has the instruction.
        unsafe { vfmaq_f32(c, a, b) }
    }

    #[inline(always)]
    fn div(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: the token proves the CPU has the instruction.
        unsafe { vdivq_f32(a, b) }
    }

    #[inline(always)]
    fn min(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: the token proves the CPU has the instruction.
        unsafe { vminq_f32(a, b) }
    }

    #[inline(always)]
    fn max(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: the token proves the CPU has the instruction.
        unsafe { vmaxq_f32(a, b) }
    }

    #[inline(always)]
    fn exponent(self, a: Self::V) -> Self::V {
        // SAFETY: the token proves the CPU has the instructions.
        unsafe {
            let bits = vshlq_n_s32::<23>(vreinterpretq_s32_f32(a));
            vreinterpretq_f32_s32(vaddq_s32(bits, vdupq_n_s32(0x3f80_0000)))
        }
    }
}

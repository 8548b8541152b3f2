//! No intrinsics: arrays that the compiler turns into whatever the target has (SSE2 on any x86-64).

use crate::block::Block;
use crate::gemm;
use crate::lanes::{Computation, Lanes, Registers};

/// Needs no proof.
#[derive(Debug, Clone, Copy)]
pub struct Portable;

const WIDTH: usize = 8;

#[inline(always)]
fn each(a: [f32; WIDTH], b: [f32; WIDTH], op: impl Fn(f32, f32) -> f32) -> [f32; WIDTH] {
    std::array::from_fn(|lane| op(a[lane], b[lane]))
}

#[inline(never)]
unsafe fn multiply_rows<const WORDS: bool, const ROWS: usize, const PANEL: usize>(block: &Block) {
    // SAFETY: the caller keeps the same promise.
    unsafe { gemm::multiply::<Portable, WORDS, ROWS, PANEL>(Portable, block) }
}

impl Registers for Portable {
    type V = [f32; WIDTH];
    const WIDTH: usize = WIDTH;
    const PANEL_MAX: usize = 1;

    /// Left to the hardware.
    #[inline(always)]
    fn prefetch(self, _at: *const f32) {}

    /// Left to the hardware.
    #[inline(always)]
    fn prefetch_late(self, _at: *const f32) {}

    #[inline(always)]
    unsafe fn load_at(self, from: *const f32) -> Self::V {
        // SAFETY: the caller promises 8 readable numbers; an array of them needs no more alignment than one.
        unsafe { from.cast::<Self::V>().read() }
    }

    #[inline(always)]
    unsafe fn store_at(self, value: Self::V, to: *mut f32) {
        // SAFETY: the caller promises 8 writable numbers; an array of them needs no more alignment than one.
        unsafe { to.cast::<Self::V>().write(value) }
    }

    /// 4 x 8 accumulators are 8 of SSE2's 16 registers of 4.
    #[inline(always)]
    fn kernel_rows(_panel: usize) -> usize {
        4
    }

    #[inline(always)]
    unsafe fn multiply<const WORDS: bool, const ROWS: usize, const PANEL: usize>(
        self,
        block: &Block,
    ) {
        // SAFETY: the caller keeps the same promise.
        unsafe { multiply_rows::<WORDS, ROWS, PANEL>(block) }
    }

    #[inline]
    fn call<C: Computation>(self, computation: C) -> C::Output {
        computation.run(self)
    }
}

impl Lanes for Portable {
    #[inline(always)]
    fn splat(self, value: f32) -> Self::V {
        [value; WIDTH]
    }

    #[inline(always)]
    fn add(self, a: Self::V, b: Self::V) -> Self::V {
        each(a, b, |a, b| a + b)
    }

    #[inline(always)]
    fn sub(self, a: Self::V, b: Self::V) -> Self::V {
        each(a, b, |a, b| a - b)
    }

    #[inline(always)]
    fn mul(self, a: Self::V, b: Self::V) -> Self::V {
        each(a, b, |a, b| a * b)
    }

    /// Rounded twice: a fused multiply without hardware is a function call of hundreds of cycles.
    #[inline(always)]
    fn fma(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        std::array::from_fn(|lane| a[lane] * b[lane] + c[lane])
    }

    #[inline(always)]
    fn div(self, a: Self::V, b: Self::V) -> Self::V {
        each(a, b, |a, b| a / b)
    }

    #[inline(always)]
    fn min(self, a: Self::V, b: Self::V) -> Self::V {
        each(a, b, |a, b| if a < b { a } else { b })
    }

    #[inline(always)]
    fn max(self, a: Self::V, b: Self::V) -> Self::V {
        each(a, b, |a, b| if a > b { a } else { b })
    }

    #[inline(always)]
    fn exponent(self, a: Self::V) -> Self::V {
        a.map(|lane| f32::from_bits((lane.to_bits() << 23).wrapping_add(0x3f80_0000)))
    }
}

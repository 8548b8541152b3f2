//! No intrinsics: arrays that the compiler turns into whatever the target has (SSE2 on any x86-64).

use crate::block::Block;
use crate::gemm;
use crate::lanes::{Computation, Lanes, Registers};

/// Needs no proof.
#[derive(Debug, Clone, Copy)]
pub struct Portable;

const WIDTH: usize = 8;

/// Lane by lane. Written out: with loops, which the compiler has to unroll one by one, the engine took 101 s of a processor to
/// compile in development, without them 78.
#[inline(always)]
fn each(a: [f32; WIDTH], b: [f32; WIDTH], op: impl Fn(f32, f32) -> f32) -> [f32; WIDTH] {
    [
        op(a[0], b[0]),
        op(a[1], b[1]),
        op(a[2], b[2]),
        op(a[3], b[3]),
        op(a[4], b[4]),
        op(a[5], b[5]),
        op(a[6], b[6]),
        op(a[7], b[7]),
    ]
}

/// The same of one vector.
#[inline(always)]
fn every<N>(a: [f32; WIDTH], op: impl Fn(f32) -> N) -> [N; WIDTH] {
    let [a, b, c, d, e, f, g, h] = a;
    [op(a), op(b), op(c), op(d), op(e), op(f), op(g), op(h)]
}

#[inline(never)]
unsafe fn multiply_rows<const WORDS: bool, const ROWS: usize, const PANEL: usize>(block: &Block) {
    // SAFETY: the caller keeps the same promise.
    unsafe { gemm::multiply::<Portable, WORDS, ROWS, PANEL>(Portable, block) }
}

impl Registers for Portable {
    type V = [f32; WIDTH];
    const WIDTH: usize = WIDTH;
    /// 4 x 8 accumulators are 8 of SSE2's 16 registers of 4.
    const KERNEL_ROWS: &'static [usize] = &[4];

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

    #[inline(always)]
    unsafe fn store_words_at(self, value: Self::V, to: *mut i16) {
        let words = every(value, |lane| lane.round_ties_even() as i16);
        // SAFETY: the caller promises 8 writable integers; an array of them needs no more alignment than one.
        unsafe { to.cast::<[i16; WIDTH]>().write(words) }
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

    #[inline(always)]
    fn whole(self, a: Self::V) -> Self::V {
        every(a, |lane| lane.to_bits() as i32 as f32)
    }

    /// Rounded twice: a fused multiply without hardware is a function call of hundreds of cycles.
    #[inline(always)]
    fn fma(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        each(each(a, b, |a, b| a * b), c, |product, c| product + c)
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
        every(a, |lane| {
            f32::from_bits((lane.to_bits() << 23).wrapping_add(0x3f80_0000))
        })
    }
}

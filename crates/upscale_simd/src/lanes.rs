//! Arithmetic on vectors, and vectors to and from slices: all that a computation needs, all of it safe.

use crate::registers::{Registers, WIDTH_MAX};

/// A token of an instruction set: holding one proves that the CPU has it. Its methods work on vectors `V` of `WIDTH`
/// numbers (4, 8 or 16), lane by lane, in IEEE single precision.
///
/// A function over a token must be `#[inline(always)]`, down to [`Computation::run`](crate::Computation::run), and
/// hold no closure that works on vectors: a closure is a function without the set's features, and a vector operation
/// inside it becomes a call (measured: seven times slower).
pub trait Lanes: Registers {
    /// The same number in every lane.
    fn splat(self, value: f32) -> Self::V;
    /// `a + b`
    fn add(self, a: Self::V, b: Self::V) -> Self::V;
    /// `a - b`
    fn sub(self, a: Self::V, b: Self::V) -> Self::V;
    /// `a * b`
    fn mul(self, a: Self::V, b: Self::V) -> Self::V;
    /// `a * b + c`, rounded once where the set can (everywhere but in the portable one).
    fn fma(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// `a / b`
    fn div(self, a: Self::V, b: Self::V) -> Self::V;
    /// The smaller one.
    fn min(self, a: Self::V, b: Self::V) -> Self::V;
    /// The larger one.
    fn max(self, a: Self::V, b: Self::V) -> Self::V;
    /// The bits of `a` shifted left by 23, plus the bits of 1.0: 2 to the power of an integer in the low bits.
    fn exponent(self, a: Self::V) -> Self::V;

    /// 32-bit integers in the bits of `a` as numbers, rounded to nearest.
    #[inline(always)]
    fn whole(self, a: Self::V) -> Self::V {
        let mut numbers = [0.0; WIDTH_MAX];
        self.store(a, &mut numbers, 0);
        for number in &mut numbers {
            *number = number.to_bits() as i32 as f32;
        }
        self.load(&numbers, 0)
    }

    /// The larger magnitude, lane by lane.
    #[inline(always)]
    fn max_magnitude(self, a: Self::V, b: Self::V) -> Self::V {
        let zero = self.splat(0.0);
        let [a, b] = [a, b].map(|v| self.max(v, self.sub(zero, v)));
        self.max(a, b)
    }

    /// The vector at `from[at..]`.
    #[inline(always)]
    fn load(self, from: &[f32], at: usize) -> Self::V {
        let part = &from[at..at + Self::WIDTH];
        // SAFETY: the slice is `WIDTH` long.
        unsafe { self.load_at(part.as_ptr()) }
    }

    /// `N` vectors from `from[at..]` on, `stride` numbers apart.
    #[inline(always)]
    fn load_line<const N: usize>(self, from: &[f32], at: usize, stride: usize) -> [Self::V; N] {
        check_line::<N>(stride, from.len());
        let part = &from[at..at + (N - 1) * stride + Self::WIDTH];
        let mut line = [self.splat(0.0); N];
        for (i, vector) in line.iter_mut().enumerate() {
            // SAFETY: the last of the `N` vectors ends with the slice.
            *vector = unsafe { self.load_at(part.as_ptr().add(i * stride)) };
        }
        line
    }

    /// Writes the first `count` of `N` vectors to `to[at..]`, `stride` numbers apart.
    #[inline(always)]
    fn store_line<const N: usize>(
        self,
        line: [Self::V; N],
        count: usize,
        to: &mut [f32],
        (at, stride): (usize, usize),
    ) {
        check_line::<N>(stride, to.len());
        let part = &mut to[at..at + (count.min(N) - 1) * stride + Self::WIDTH];
        let first = part.as_mut_ptr();
        for (i, &vector) in line.iter().enumerate() {
            if i < count {
                // SAFETY: the last of the `count` vectors ends with the slice.
                unsafe { self.store_at(vector, first.add(i * stride)) };
            }
        }
    }

    /// Writes the first `N` vectors as 16-bit integers into `to`, two in the place of a number: the first at integer
    /// `at`, `stride` numbers apart.
    #[inline(always)]
    fn store_words_line<const N: usize>(
        self,
        line: [Self::V; N],
        to: &mut [f32],
        (at, stride): (usize, usize),
    ) {
        check_line::<N>(stride.max(at / 2), to.len());
        let part = &mut to[..(N - 1) * stride + (at + Self::WIDTH).div_ceil(2)];
        let first = part.as_mut_ptr();
        for (i, &vector) in line.iter().enumerate() {
            // SAFETY: the last of the vectors ends within the slice.
            unsafe { self.store_words_at(vector, first.add(i * stride).cast::<i16>().add(at)) };
        }
    }

    /// Writes the vector to `to[at..]`.
    #[inline(always)]
    fn store(self, value: Self::V, to: &mut [f32], at: usize) {
        let part = &mut to[at..at + Self::WIDTH];
        // SAFETY: the slice is `WIDTH` long.
        unsafe { self.store_at(value, part.as_mut_ptr()) }
    }
}

/// Without it a hostile stride could wrap round and end within the slice.
#[inline(always)]
fn check_line<const N: usize>(stride: usize, len: usize) {
    const { assert!(N > 0 && N <= 16) };
    assert!(stride <= len);
}

//! The two halves of a token. [`Lanes`] is what a computation needs, all of it safe: arithmetic on vectors, and vectors
//! to and from slices. [`Registers`] is for this crate alone, raw memory and functions compiled for the set: no other
//! crate can name it, so none can call the unsafe half of a token or make a token of its own.

use crate::block::Block;

/// Numbers of the widest register.
pub(crate) const WIDTH_MAX: usize = 16;

/// Something to be computed with the vectors of whichever set there is.
pub trait Computation {
    /// What comes of it.
    type Output;

    /// Computes it. Implementations are `#[inline(always)]`: only what is inlined is compiled for the set.
    fn run<L: Lanes>(self, lanes: L) -> Self::Output;
}

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

    /// Both rounded to nearest even, as 16-bit integers in the place of one number: those of `a` in the low halves. What does
    /// not fit is cut to its low 16 bits.
    #[inline(always)]
    fn pair_words(self, a: Self::V, b: Self::V) -> Self::V {
        let (mut low, mut high) = ([0.0; WIDTH_MAX], [0.0; WIDTH_MAX]);
        self.store(a, &mut low, 0);
        self.store(b, &mut high, 0);
        for (low, high) in low.iter_mut().zip(high) {
            let [a, b] = [*low, high].map(|number: f32| number.round_ties_even() as i32 as u32);
            *low = f32::from_bits(a & 0xFFFF | b << 16);
        }
        self.load(&low, 0)
    }

    /// The larger magnitude, lane by lane.
    #[inline(always)]
    fn max_magnitude(self, a: Self::V, b: Self::V) -> Self::V {
        let zero = self.splat(0.0);
        let a = self.max(a, self.sub(zero, a));
        let b = self.max(b, self.sub(zero, b));
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

/// The part of [`Lanes`] that other crates do not see.
pub trait Registers: Copy + Send + Sync + 'static {
    /// One register.
    type V: Copy;
    /// Numbers in a register: 4, 8 or 16.
    const WIDTH: usize;
    /// Rows per call of the matrix kernel, by the registers of output channels that it holds side by side: one, two, and so on up to
    /// the widest panel. 0 for panels that units of [`crate::CHANNEL_UNIT`] channels never make. A kernel is compiled for each
    /// smaller number of rows as well.
    const KERNEL_ROWS: &'static [usize];

    /// Whether 16-bit integers are multiplied faster than numbers.
    fn has_words(self) -> bool {
        false
    }

    /// Numbers are taken for their bits here: each of `a` and `b` for two 16-bit integers, each of `c` for a 32-bit
    /// one. Adds both products of a pair to it; what does not fit 32 bits is lost.
    ///
    /// # Safety
    /// [`Registers::has_words`], where a set overrides this.
    #[inline(always)]
    unsafe fn dot_words(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        let mut numbers = [[0.0; WIDTH_MAX]; 3];
        for (vector, numbers) in [a, b, c].into_iter().zip(&mut numbers) {
            // SAFETY: no register is wider than `WIDTH_MAX`.
            unsafe { self.store_at(vector, numbers.as_mut_ptr()) };
        }
        let [a, b, mut c] = numbers;
        for lane in 0..WIDTH_MAX {
            let halves = |bits: u32| [bits as i16, (bits >> 16) as i16].map(i32::from);
            let (a, b) = (halves(a[lane].to_bits()), halves(b[lane].to_bits()));
            let sum = (c[lane].to_bits() as i32).wrapping_add(a[0] * b[0]);
            c[lane] = f32::from_bits(sum.wrapping_add(a[1] * b[1]) as u32);
        }
        // SAFETY: no register is wider than `WIDTH_MAX`.
        unsafe { self.load_at(c.as_ptr()) }
    }

    /// Stores `value` as 16-bit integers, rounded to nearest even; what does not fit becomes the nearest that does.
    ///
    /// # Safety
    /// `to` points to `WIDTH` writable integers.
    #[inline(always)]
    unsafe fn store_words_at(self, value: Self::V, to: *mut i16) {
        let mut numbers = [0.0_f32; WIDTH_MAX];
        // SAFETY: no register is wider than `WIDTH_MAX`.
        unsafe { self.store_at(value, numbers.as_mut_ptr()) };
        for (lane, number) in numbers.iter().enumerate().take(Self::WIDTH) {
            // SAFETY: the caller promises `WIDTH` writable integers; `as` saturates.
            unsafe { to.add(lane).write(number.round_ties_even() as i16) };
        }
    }

    /// # Safety
    /// `from` points to `WIDTH` readable numbers.
    unsafe fn load_at(self, from: *const f32) -> Self::V;
    /// # Safety
    /// `to` points to `WIDTH` writable numbers.
    unsafe fn store_at(self, value: Self::V, to: *mut f32);

    /// Asks for the cache line at `at`, which need not be readable, into all caches: weights, which the next row of
    /// tiles needs again. Past the second-level cache they came from the third every time: together with rows that
    /// went through the first (below) 15 % of all time on a Xeon.
    fn prefetch(self, at: *const f32);
    /// Asks for the cache line at `at`, which need not be readable, into the second-level cache: rows that the
    /// first could not hold until they are read.
    fn prefetch_late(self, at: *const f32);
    /// [`crate::gemm::multiply`], compiled for this set.
    ///
    /// # Safety
    /// As [`crate::gemm::multiply`].
    unsafe fn multiply<const WORDS: bool, const ROWS: usize, const PANEL: usize>(
        self,
        block: &Block,
    );
    /// A computation, compiled for this set.
    fn call<C: Computation>(self, computation: C) -> C::Output;
}

//! What an instruction set gives to this crate alone: registers and raw memory, and functions compiled for the set.
//! No other crate can name the trait, so none can call the unsafe half of a token or make a token of its own.

use crate::gemm::Block;
use crate::kernels::Computation;

/// Numbers of the widest register.
pub(crate) const WIDTH_MAX: usize = 16;

/// The part of [`crate::Lanes`] that other crates do not see.
pub trait Registers: Copy + Send + Sync + 'static {
    /// One register.
    type V: Copy;
    /// Numbers in a register: 4, 8 or 16.
    const WIDTH: usize;
    /// Registers of output channels that the matrix kernel holds side by side, at most.
    const PANEL_MAX: usize;

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
    /// Rows per call of the matrix kernel that is `panel` registers wide.
    fn kernel_rows(panel: usize) -> usize;
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

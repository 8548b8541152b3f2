//! Vectors of one instruction set each, behind tokens that prove the CPU has it, and the few loops that need
//! raw pointers. The only place in this room where `unsafe` may stand; what is computed is said one floor up.

#![allow(
    unsafe_code,
    reason = "intrinsics, and memory that threads share by leases checked at run time"
)]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod buffer;
mod denormals;
pub(crate) mod gemm;
mod leases;
#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;

pub(crate) use buffer::Buffer;
pub(crate) use denormals::FlushDenormals;
pub(crate) use leases::{ReadLease, SharedRows, WriteLease};

use crate::job::Job;
use crate::task::{Scratch, Ticket};

/// Numbers of the widest register.
const WIDTH_MAX: usize = 16;

/// A token of an instruction set: holding one proves that the CPU has it. Its methods work on vectors of
/// [`Lanes::WIDTH`] numbers, lane by lane, in IEEE single precision.
pub(crate) trait Lanes: Copy + Send + Sync + 'static {
    /// One register.
    type V: Copy;
    /// Numbers in a register: 4, 8 or 16.
    const WIDTH: usize;
    /// Registers of output channels that the matrix kernel holds side by side, at most.
    const PANEL_MAX: usize;

    fn splat(self, value: f32) -> Self::V;
    fn add(self, a: Self::V, b: Self::V) -> Self::V;
    fn sub(self, a: Self::V, b: Self::V) -> Self::V;
    fn mul(self, a: Self::V, b: Self::V) -> Self::V;
    /// `a * b + c`, rounded once where the set can (everywhere but in the portable one).
    fn fma(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    fn div(self, a: Self::V, b: Self::V) -> Self::V;
    fn min(self, a: Self::V, b: Self::V) -> Self::V;
    fn max(self, a: Self::V, b: Self::V) -> Self::V;
    /// The bits of `a` shifted left by 23, plus the bits of 1.0: a power of two, see [`crate::sigmoid`].
    fn exponent(self, a: Self::V) -> Self::V;

    /// Whether 16-bit integers are multiplied faster than numbers.
    fn has_words(self) -> bool {
        false
    }
    /// Numbers are taken for their bits here: each of `a` and `b` for two 16-bit integers, each of `c` for a 32-bit
    /// one. Adds both products of a pair to it; what does not fit 32 bits is lost.
    ///
    /// # Safety
    /// [`Lanes::has_words`], where a set overrides this.
    #[inline(always)]
    unsafe fn dot_words(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        let mut numbers = [[0.0; WIDTH_MAX]; 3];
        for (vector, numbers) in [a, b, c].into_iter().zip(&mut numbers) {
            self.store(vector, numbers, 0);
        }
        let [a, b, mut c] = numbers;
        for lane in 0..WIDTH_MAX {
            let halves = |bits: u32| [bits as i16, (bits >> 16) as i16].map(i32::from);
            let (a, b) = (halves(a[lane].to_bits()), halves(b[lane].to_bits()));
            let sum = (c[lane].to_bits() as i32).wrapping_add(a[0] * b[0]);
            c[lane] = f32::from_bits(sum.wrapping_add(a[1] * b[1]) as u32);
        }
        self.load(&c, 0)
    }
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
    /// Stores `value` as 16-bit integers, rounded to nearest even; what does not fit becomes the nearest that does.
    ///
    /// # Safety
    /// `to` points to [`Lanes::WIDTH`] writable integers.
    #[inline(always)]
    unsafe fn store_words_at(self, value: Self::V, to: *mut i16) {
        let mut numbers = [0.0_f32; WIDTH_MAX];
        self.store(value, &mut numbers, 0);
        for (lane, number) in numbers.iter().enumerate().take(Self::WIDTH) {
            // SAFETY: the caller promises `WIDTH` writable integers; `as` saturates.
            unsafe { to.add(lane).write(number.round_ties_even() as i16) };
        }
    }

    /// # Safety
    /// `from` points to [`Lanes::WIDTH`] readable numbers.
    unsafe fn load_at(self, from: *const f32) -> Self::V;
    /// # Safety
    /// `to` points to [`Lanes::WIDTH`] writable numbers.
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
    /// [`gemm::multiply`], compiled for this set.
    ///
    /// # Safety
    /// As [`gemm::multiply`].
    unsafe fn multiply<const WORDS: bool, const ROWS: usize, const PANEL: usize>(
        self,
        block: &gemm::Block,
    );
    /// [`gemm::spin`], compiled for this set.
    fn spin(self, turns: u64) -> u64;
    /// [`crate::task::run`], compiled for this set.
    fn run(self, job: &Job<'_>, scratch: &mut Scratch, ticket: &Ticket);

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
        let part = &mut to[at..at + (count - 1) * stride + Self::WIDTH];
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

/// A choice of kernels, by instruction set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KernelSet {
    /// x86-64 with AVX-512F, BW, DQ, VL.
    Avx512,
    /// x86-64 with AVX2 and FMA.
    Avx2,
    /// 64-bit ARM.
    Neon,
    /// Whatever the compiler makes of plain loops.
    Portable,
    /// The definition in double precision: slow.
    Reference,
}

impl KernelSet {
    /// All of them, fastest first.
    pub const ALL: [Self; 5] = [
        Self::Avx512,
        Self::Avx2,
        Self::Neon,
        Self::Portable,
        Self::Reference,
    ];

    /// The set of that name: `avx512`, `avx2`, `neon`, `portable` or `reference`.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|set| set.name() == name)
    }

    /// The name that [`KernelSet::parse`] knows it by.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Avx512 => "avx512",
            Self::Avx2 => "avx2",
            Self::Neon => "neon",
            Self::Portable => "portable",
            Self::Reference => "reference",
        }
    }

    /// Whether this CPU can run it.
    #[must_use]
    pub fn is_available(self) -> bool {
        self == Self::Reference || Kernels::find(self).is_some()
    }

    /// The fastest that this CPU can run.
    #[must_use]
    pub fn best() -> Self {
        let available = Self::ALL.into_iter().find(|set| set.is_available());
        available.unwrap_or(Self::Portable)
    }
}

/// A kernel set that this CPU can run.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kernels {
    #[cfg(target_arch = "x86_64")]
    Avx512(avx512::Avx512),
    #[cfg(target_arch = "x86_64")]
    Avx2(avx2::Avx2),
    #[cfg(target_arch = "aarch64")]
    Neon(neon::Neon),
    Portable(portable::Portable),
}

impl Kernels {
    /// None where the CPU lacks the set, and for the reference, which has no kernels.
    pub(crate) fn find(set: KernelSet) -> Option<Self> {
        match set {
            #[cfg(target_arch = "x86_64")]
            KernelSet::Avx512 => avx512::Avx512::detect().map(Self::Avx512),
            #[cfg(target_arch = "x86_64")]
            KernelSet::Avx2 => avx2::Avx2::detect().map(Self::Avx2),
            #[cfg(target_arch = "aarch64")]
            KernelSet::Neon => neon::Neon::detect().map(Self::Neon),
            KernelSet::Portable => Some(Self::Portable(portable::Portable)),
            _ => None,
        }
    }

    /// How the set wants output channels (a multiple of 16) split into panels.
    pub(crate) fn panels(self, channels: usize) -> Vec<usize> {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(_) => gemm::panels::<avx512::Avx512>(channels),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => gemm::panels::<avx2::Avx2>(channels),
            #[cfg(target_arch = "aarch64")]
            Self::Neon(_) => gemm::panels::<neon::Neon>(channels),
            Self::Portable(_) => gemm::panels::<portable::Portable>(channels),
        }
    }

    /// Whether the set multiplies 16-bit integers faster than numbers.
    pub(crate) fn has_words(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(lanes) => lanes.has_words(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(lanes) => lanes.has_words(),
            #[cfg(target_arch = "aarch64")]
            Self::Neon(lanes) => lanes.has_words(),
            Self::Portable(lanes) => lanes.has_words(),
        }
    }

    /// Multiply-adds and nothing else, to measure the peak; gives the operations done, two for each.
    pub(crate) fn spin(self, turns: u64) -> u64 {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(lanes) => lanes.spin(turns),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(lanes) => lanes.spin(turns),
            #[cfg(target_arch = "aarch64")]
            Self::Neon(lanes) => lanes.spin(turns),
            Self::Portable(lanes) => lanes.spin(turns),
        }
    }

    /// Computes one span of a job.
    pub(crate) fn run(self, job: &Job<'_>, scratch: &mut Scratch, ticket: &Ticket) {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(lanes) => lanes.run(job, scratch, ticket),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(lanes) => lanes.run(job, scratch, ticket),
            #[cfg(target_arch = "aarch64")]
            Self::Neon(lanes) => lanes.run(job, scratch, ticket),
            Self::Portable(lanes) => lanes.run(job, scratch, ticket),
        }
    }
}

//! Which sets this CPU can run, and the one place where a computation meets one of them.

use std::sync::OnceLock;

use crate::gemm;
use crate::lanes::{Computation, Lanes, Registers};
#[cfg(target_arch = "aarch64")]
use crate::neon::Neon;
use crate::portable::Portable;
use crate::tiles::Tiles;
#[cfg(target_arch = "x86_64")]
use crate::{avx2::Avx2, avx512::Avx512};

/// An instruction set that there are kernels for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstructionSet {
    /// x86-64 with AVX-512 and VNNI, and AMX for bytes.
    Amx,
    /// x86-64 with AVX-512F, BW, DQ, VL.
    Avx512,
    /// x86-64 with AVX2 and FMA.
    Avx2,
    /// 64-bit ARM.
    Neon,
    /// Whatever the compiler makes of plain loops.
    Portable,
}

/// The kernels of a set that this CPU has.
#[derive(Debug, Clone, Copy)]
pub struct Kernels(Token);

#[derive(Debug, Clone, Copy)]
enum Token {
    #[cfg(target_arch = "x86_64")]
    Amx(Avx512, Tiles),
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    #[cfg(target_arch = "aarch64")]
    Neon(Neon),
    Portable(Portable),
}

impl Kernels {
    /// None where the CPU lacks the set.
    #[must_use]
    pub fn find(set: InstructionSet) -> Option<Self> {
        let token = match set {
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Amx => Avx512::detect()
                .filter(|lanes| lanes.has_words())
                .zip(Tiles::detect())
                .map(|(lanes, tiles)| Token::Amx(lanes, tiles)),
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx512 => Avx512::detect().map(Token::Avx512),
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx2 => Avx2::detect().map(Token::Avx2),
            #[cfg(target_arch = "aarch64")]
            InstructionSet::Neon => Neon::detect().map(Token::Neon),
            InstructionSet::Portable => Some(Token::Portable(Portable)),
            _ => None,
        };
        token.map(Self)
    }

    /// Runs a computation with the vectors of this set.
    #[inline]
    pub fn call<C: Computation>(self, computation: C) -> C::Output {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Token::Amx(lanes, _) | Token::Avx512(lanes) => lanes.call(computation),
            #[cfg(target_arch = "x86_64")]
            Token::Avx2(lanes) => lanes.call(computation),
            #[cfg(target_arch = "aarch64")]
            Token::Neon(lanes) => lanes.call(computation),
            Token::Portable(lanes) => lanes.call(computation),
        }
    }

    /// How the set wants output channels (a multiple of [`crate::CHANNEL_UNIT`]) split into panels.
    #[must_use]
    pub fn panels(self, channels: usize) -> Vec<usize> {
        self.call(Panels { channels })
    }

    /// Whether the set multiplies 16-bit integers faster than numbers.
    #[must_use]
    pub fn has_words(self) -> bool {
        self.call(HasWords)
    }

    /// Tile registers, where the set has them.
    #[must_use]
    pub fn tiles(self) -> Option<Tiles> {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Token::Amx(_, tiles) => Some(tiles),
            _ => None,
        }
    }

    /// Multiply-adds and nothing else, to measure the peak; gives the operations done, two for each.
    #[must_use]
    pub fn spin(self, rounds: u64) -> u64 {
        self.call(Spin { rounds })
    }
}

/// Evaluates an expression compiled for the widest vectors that this CPU has: loops over slices become them where the compiler
/// sees that they can. The same operations in the same order, so the same bits on every CPU; no choice of kernels changes it.
/// What the expression calls should be `#[inline(always)]`: only what is inlined gains. In one build nine of seventeen
/// closures without that attribute were called instead, with vectors of 128 bits.
#[macro_export]
macro_rules! widened {
    ($work:expr) => {
        $crate::widest(
            #[inline(always)]
            || $work,
        )
    };
}

/// What [`widened!`] is made of.
#[doc(hidden)]
pub fn widest<R>(work: impl FnOnce() -> R) -> R {
    // Ten times for every row, of which a picture may have millions.
    static WIDEST: OnceLock<Option<Kernels>> = OnceLock::new();
    let find_widest = || {
        let sets = [
            InstructionSet::Avx512,
            InstructionSet::Avx2,
            InstructionSet::Neon,
        ];
        sets.into_iter().find_map(Kernels::find)
    };
    match *WIDEST.get_or_init(find_widest) {
        Some(kernels) => kernels.call(Plain(work)),
        None => work(),
    }
}

/// A computation that names no vectors.
struct Plain<F>(F);

impl<R, F: FnOnce() -> R> Computation for Plain<F> {
    type Output = R;

    #[inline(always)]
    fn run<L: Lanes>(self, _lanes: L) -> R {
        (self.0)()
    }
}

struct Panels {
    channels: usize,
}

impl Computation for Panels {
    type Output = Vec<usize>;

    #[inline(always)]
    fn run<L: Lanes>(self, _lanes: L) -> Vec<usize> {
        gemm::panels::<L>(self.channels)
    }
}

struct HasWords;

impl Computation for HasWords {
    type Output = bool;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> bool {
        lanes.has_words()
    }
}

struct Spin {
    rounds: u64,
}

impl Computation for Spin {
    type Output = u64;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> u64 {
        gemm::spin(lanes, self.rounds)
    }
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;

    #[inline(always)]
    fn computed(a: &[f32], b: &[f32]) -> Vec<u32> {
        let pairs = a.iter().zip(b);
        pairs
            .map(|(a, b)| (a * b + a / (b.abs() + 0.1) - (a - b).sqrt()).to_bits())
            .collect()
    }

    /// No product and sum are rounded together, and nothing is added in another order.
    #[test]
    fn the_widest_vectors_have_the_bits_of_plain_loops() {
        let numbers =
            |step: f32| -> Vec<f32> { (0..1_003).map(|i| (i as f32 * step).sin()).collect() };
        let (a, b) = (black_box(numbers(0.7)), black_box(numbers(1.3)));
        let sum = |a: &[f32]| a.iter().sum::<f32>().to_bits();
        assert_eq!(widened!(computed(&a, &b)), computed(&a, &b));
        assert_eq!(widened!(sum(&a)), sum(&a));
    }
}

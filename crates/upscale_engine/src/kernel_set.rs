//! What may compute: the sets of kernels by name, and the definition.

use upscale_simd::{InstructionSet, Kernels};

/// A choice of kernels, by instruction set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KernelSet {
    /// x86-64 with AVX-512 and VNNI, and AMX for bytes: 16-bit integers without Winograd.
    Amx,
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
    pub const ALL: [Self; 6] = [
        Self::Amx,
        Self::Avx512,
        Self::Avx2,
        Self::Neon,
        Self::Portable,
        Self::Reference,
    ];

    /// The set of that name: `amx`, `avx512`, `avx2`, `neon`, `portable` or `reference`.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|set| set.name() == name)
    }

    /// The name that [`KernelSet::parse`] knows it by.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Amx => "amx",
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
        self == Self::Reference || self.kernels().is_some()
    }

    /// The fastest that this CPU can run.
    #[must_use]
    pub fn best() -> Self {
        let available = Self::ALL.into_iter().find(|set| set.is_available());
        available.unwrap_or(Self::Portable)
    }

    /// Its kernels; none where the CPU lacks the set, and for the reference, which has no kernels.
    pub(crate) fn kernels(self) -> Option<Kernels> {
        let set = match self {
            Self::Amx => InstructionSet::Amx,
            Self::Avx512 => InstructionSet::Avx512,
            Self::Avx2 => InstructionSet::Avx2,
            Self::Neon => InstructionSet::Neon,
            Self::Portable => InstructionSet::Portable,
            Self::Reference => return None,
        };
        Kernels::find(set)
    }
}

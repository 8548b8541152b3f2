//! The instructions: tile registers for the products, AVX-512 for what becomes bytes and comes of sums.

mod finish;
mod split;

use std::arch::asm;
use std::arch::x86_64::{
    __cpuid_count, _MM_HINT_T1, _mm_prefetch, _mm512_max_epu32, _mm512_reduce_max_epu32,
    _mm512_setzero_si512, _xgetbv,
};
use std::ops::Range;
use std::sync::OnceLock;

use self::finish::{Finishing, finish, pack_sums};
pub(super) use self::split::split_pixels;
use super::{
    BLOCKS_MAX, ByteRows, Layout, Line, PIXEL_UNIT, Packing, ROW_BYTES, SplitWeights, Weight,
    packed_pitch,
};
use crate::{Ahead, CHANNEL_UNIT};

/// The CPU has the instructions, and the system gives this process the registers: only [`Granted::ask`] makes one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Granted(());

impl Granted {
    /// Asks once a process.
    pub(super) fn ask() -> Option<Self> {
        static FOUND: OnceLock<bool> = OnceLock::new();
        let found = FOUND.get_or_init(|| has_instructions() && is_granted());
        found.then_some(Self(()))
    }
}

/// AVX-512 as the other kernels need it, and tile registers for bytes that the system saves.
fn has_instructions() -> bool {
    const TILE_AND_BYTES: u32 = 1 << 24 | 1 << 25;
    const CONFIGURATION_AND_DATA: u64 = 1 << 17 | 1 << 18;
    if crate::avx512::Avx512::detect().is_none() || !std::arch::is_x86_feature_detected!("xsave") {
        return false;
    }
    if __cpuid_count(7, 0).edx & TILE_AND_BYTES != TILE_AND_BYTES {
        return false;
    }
    // SAFETY: the CPU has XGETBV, and the system has switched it on: without, AVX-512 would not have been found.
    let saved = unsafe { _xgetbv(0) };
    saved & CONFIGURATION_AND_DATA == CONFIGURATION_AND_DATA
}

/// Linux hands out the 8 KiB of a thread's tile data to processes that ask (Documentation/arch/x86/xstate.rst).
#[cfg(target_os = "linux")]
fn is_granted() -> bool {
    const ARCH_REQ_XCOMP_PERM: libc::c_long = 0x1023;
    const XFEATURE_XTILEDATA: libc::c_long = 18;
    // SAFETY: takes two numbers and touches no memory of this process.
    unsafe {
        libc::syscall(
            libc::SYS_arch_prctl,
            ARCH_REQ_XCOMP_PERM,
            XFEATURE_XTILEDATA,
        ) == 0
    }
}

#[cfg(not(target_os = "linux"))]
fn is_granted() -> bool {
    false
}

/// What `ldtilecfg` reads.
#[repr(C, align(64))]
struct Configuration {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    row_bytes: [u16; 16],
    rows: [u8; 16],
}

impl Configuration {
    /// Registers 0 and 1 hold pixels, 2 and 3 weights, 4 to 7 sums.
    fn new(depth: usize) -> Self {
        let (mut row_bytes, mut rows) = ([0; 16], [0; 16]);
        let pixels = (depth as u16, PIXEL_UNIT as u8);
        let weights = (ROW_BYTES as u16, (depth / 4) as u8);
        let sums = (ROW_BYTES as u16, PIXEL_UNIT as u8);
        let all = [pixels, pixels, weights, weights, sums, sums, sums, sums];
        for (register, (bytes, count)) in all.into_iter().enumerate() {
            (row_bytes[register], rows[register]) = (bytes, count);
        }
        Self {
            palette: 1,
            start_row: 0,
            reserved: [0; 14],
            row_bytes,
            rows,
        }
    }
}

/// Cache lines fetched with every step in depth: what a segment reads and writes is 8,000 of them, and its taps are 1,000.
const LINES_A_STEP: usize = 8;

/// Sums of 16 pixels and 16 channels.
type Sums = [i32; PIXEL_UNIT * CHANNEL_UNIT];

/// Of two rows of pixels, each the sums of high bytes, then the others.
#[repr(C, align(64))]
struct Block([[Sums; 2]; 2]);

/// # Safety
/// Input and output are as long as [`super::Tiles::convolve`] asks.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,avx2")]
pub(super) unsafe fn convolve_rows(
    _granted: Granted,
    input: &ByteRows<'_>,
    weights: &SplitWeights,
    (line, packing): (Line<'_>, Option<Packing<'_>>),
    (row, blocks): (usize, Range<usize>),
    (output, width): (&mut [&mut [f32]], usize),
    ahead: &mut Ahead,
) -> f32 {
    let configuration = Configuration::new(weights.chunks.channels);
    let mut sums = Block([[[0; PIXEL_UNIT * CHANNEL_UNIT]; 2]; 2]);
    let channels = line.bias.len();
    let pitch = if packing.is_some() {
        packed_pitch(channels)
    } else {
        channels
    };
    let last = blocks.end - 1;
    let finishing: [Finishing; BLOCKS_MAX] =
        std::array::from_fn(|at| Finishing::new(weights, line, last.min(blocks.start + at)));
    // SAFETY: the configuration is 64 bytes of palette 1. The compiler knows no tile registers and keeps nothing in them.
    unsafe {
        asm!("ldtilecfg [{}]", in(reg) &configuration, options(nostack, readonly, preserves_flags));
    };
    // Without a second row the first is computed twice.
    let rows = [row, row + output.len() - 1];
    let mut largest = _mm512_setzero_si512();
    for x in (0..width).step_by(PIXEL_UNIT) {
        let count = PIXEL_UNIT.min(width - x);
        for (block, finishing) in blocks.clone().zip(&finishing) {
            // SAFETY: the caller's promise.
            unsafe { sum_block(input, weights, block, (rows, x), (&mut sums, ahead)) };
            for (at, (output, sums)) in output.iter_mut().zip(&sums.0).enumerate() {
                let to = (&mut output[x * pitch..], block, (count, channels));
                let found = match &packing {
                    None => finish(sums, finishing, to),
                    Some(packing) => pack_sums(sums, finishing, to, (packing, at, x * pitch)),
                };
                largest = _mm512_max_epu32(largest, found);
            }
        }
    }
    // SAFETY: tile registers are no one else's; released, they cost no switch of threads anything.
    unsafe { asm!("tilerelease", options(nomem, nostack, preserves_flags)) };
    _mm512_reduce_max_epu32(largest) as f32
}

/// Sums of 16 pixels from `x` on of each of two rows, whose windows begin with these rows.
///
/// # Safety
/// The registers are configured for the weights' depth, and the windows of 18 pixels lie within the input.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,avx2")]
unsafe fn sum_block(
    input: &ByteRows<'_>,
    weights: &SplitWeights,
    channels: usize,
    (rows, x): ([usize; 2], usize),
    (block, ahead): (&mut Block, &mut Ahead),
) {
    // SAFETY: reads and writes within the input and the weights by the caller's promise, and within the block.
    unsafe {
        asm!(
            "tilezero tmm4",
            "tilezero tmm5",
            "tilezero tmm6",
            "tilezero tmm7",
            options(nomem, nostack, preserves_flags)
        );
        for (row, column, chunk) in weights.steps() {
            if let Some(line) = ahead.take(LINES_A_STEP) {
                for line in (0..LINES_A_STEP).map(|at| line.wrapping_add(at * CHANNEL_UNIT)) {
                    _mm_prefetch::<_MM_HINT_T1>(line.cast());
                }
            }
            let each = weights.chunks.count / input.parts.len();
            let part = &input.parts[chunk / each];
            let at = (x + column) * input.layout.pixel + chunk % each * ROW_BYTES;
            let pixels = rows.map(|first| part[first + row].as_ptr().add(at));
            let matrix = weights.matrices(channels, row * weights.side + column, chunk);
            let matrix = weights.bytes.as_ptr().add(matrix);
            match weights.weight {
                Weight::One => add_two_products(input.layout, pixels, matrix),
                Weight::Two => {
                    let both = [matrix, matrix.add(weights.chunks.matrix())];
                    add_three_products(input.layout, pixels, both);
                }
            }
        }
        let sums = block.0.as_mut_ptr().cast::<Sums>();
        asm!(
            "tilestored [{} + {line}*1], tmm4",
            "tilestored [{} + {line}*1], tmm5",
            "tilestored [{} + {line}*1], tmm6",
            "tilestored [{} + {line}*1], tmm7",
            in(reg) sums,
            in(reg) sums.add(1),
            in(reg) sums.add(2),
            in(reg) sums.add(3),
            line = in(reg) ROW_BYTES,
            options(nostack, preserves_flags)
        );
    }
}

impl SplitWeights {
    /// Row and column of each tap of a kernel, and each chunk of its input channels.
    fn steps(&self) -> impl Iterator<Item = (usize, usize, usize)> {
        let (side, chunks) = (self.side, self.chunks.count);
        let taps = (0..side).flat_map(move |row| (0..side).map(move |column| (row, column)));
        taps.flat_map(move |(row, column)| (0..chunks).map(move |chunk| (row, column, chunk)))
    }
}

/// Three products of 16 pixels each of two rows, which begin at `pixels`, with the high and low bytes of a matrix. Those that
/// add to the same sums stand apart: the next product can begin long before the sums of the last are there.
///
/// # Safety
/// As [`sum_block`]; the matrices are as deep as the registers are configured for.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,avx2")]
unsafe fn add_three_products(
    layout: Layout,
    [first, second]: [*const i8; 2],
    [high, low]: [*const i8; 2],
) {
    // SAFETY: reads only, within the input and the matrices by the caller's promise.
    unsafe {
        asm!(
            "tileloadd tmm2, [{high} + {line}*1]",
            "tileloadd tmm3, [{low} + {line}*1]",
            "tileloadd tmm0, [{first_high} + {pixel}*1]",
            "tileloadd tmm1, [{first_low} + {pixel}*1]",
            "tdpbssd tmm4, tmm0, tmm2",
            "tdpbssd tmm5, tmm0, tmm3",
            "tileloadd tmm0, [{second_high} + {pixel}*1]",
            "tdpbssd tmm6, tmm0, tmm2",
            "tdpbssd tmm7, tmm0, tmm3",
            "tdpbssd tmm5, tmm1, tmm2",
            "tileloadd tmm1, [{second_low} + {pixel}*1]",
            "tdpbssd tmm7, tmm1, tmm2",
            high = in(reg) high,
            low = in(reg) low,
            first_high = in(reg) first,
            first_low = in(reg) first.add(layout.low),
            second_high = in(reg) second,
            second_low = in(reg) second.add(layout.low),
            line = in(reg) ROW_BYTES,
            pixel = in(reg) layout.pixel,
            options(nostack, readonly, preserves_flags)
        );
    }
}

/// Two products of 16 pixels each of two rows, which begin at `pixels`, with a matrix.
///
/// # Safety
/// As [`add_three_products`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,avx2")]
unsafe fn add_two_products(layout: Layout, [first, second]: [*const i8; 2], matrix: *const i8) {
    // SAFETY: reads only, within the input and the matrix by the caller's promise.
    unsafe {
        asm!(
            "tileloadd tmm2, [{matrix} + {line}*1]",
            "tileloadd tmm0, [{first_high} + {pixel}*1]",
            "tdpbssd tmm4, tmm0, tmm2",
            "tileloadd tmm1, [{first_low} + {pixel}*1]",
            "tdpbssd tmm5, tmm1, tmm2",
            "tileloadd tmm0, [{second_high} + {pixel}*1]",
            "tdpbssd tmm6, tmm0, tmm2",
            "tileloadd tmm1, [{second_low} + {pixel}*1]",
            "tdpbssd tmm7, tmm1, tmm2",
            matrix = in(reg) matrix,
            first_high = in(reg) first,
            first_low = in(reg) first.add(layout.low),
            second_high = in(reg) second,
            second_low = in(reg) second.add(layout.low),
            line = in(reg) ROW_BYTES,
            pixel = in(reg) layout.pixel,
            options(nostack, readonly, preserves_flags)
        );
    }
}

//! The instructions: tile registers for the products, AVX-512 for what becomes bytes and comes of sums.

use std::arch::asm;
use std::arch::x86_64::{
    __cpuid_count, __m512, __m512i, _MM_HINT_T1, _mm_prefetch, _mm512_abs_epi16, _mm512_add_epi16,
    _mm512_and_si512, _mm512_cmpgt_epu16_mask, _mm512_cvtepi32_ps, _mm512_cvtps_epi32,
    _mm512_fmadd_ps, _mm512_loadu_ps, _mm512_loadu_si512, _mm512_mask_storeu_epi8,
    _mm512_max_epu16, _mm512_max_epu32, _mm512_max_ps, _mm512_min_ps, _mm512_mul_ps,
    _mm512_packs_epi16, _mm512_packs_epi32, _mm512_packus_epi16, _mm512_permutexvar_epi32,
    _mm512_reduce_max_epu32, _mm512_set1_epi16, _mm512_set1_epi32, _mm512_set1_ps,
    _mm512_setr_epi32, _mm512_setzero_ps, _mm512_setzero_si512, _mm512_srai_epi16,
    _mm512_srli_epi32, _mm512_storeu_ps, _xgetbv,
};
use std::ops::Range;
use std::sync::OnceLock;

use super::{BLOCKS_MAX, Line, PIXEL_UNIT, ROW_BYTES, SPLIT_MAX, SplitRows, SplitWeights, Weight};
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

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,avx2")]
pub(super) fn split_pixels(
    _granted: Granted,
    (numbers, channels): (&[f32], usize),
    scale: f32,
    [high, low]: [&mut [i8]; 2],
    (first, pixel_bytes): (usize, usize),
) -> f32 {
    let mut largest = _mm512_setzero_si512();
    for (pixel, numbers) in numbers.chunks_exact(channels).enumerate() {
        // As many at a time as become a cache line of bytes.
        for (part, numbers) in numbers.chunks(ROW_BYTES).enumerate() {
            let at = pixel * pixel_bytes + first + part * ROW_BYTES;
            let at = at..at + numbers.len();
            let to = [&mut high[at.clone()], &mut low[at]];
            let found = match numbers.len() / CHANNEL_UNIT {
                4 => split_registers::<4>(numbers, scale, to),
                3 => split_registers::<3>(numbers, scale, to),
                2 => split_registers::<2>(numbers, scale, to),
                _ => split_registers::<1>(numbers, scale, to),
            };
            largest = _mm512_max_epu16(largest, found);
        }
    }
    match _mm512_cmpgt_epu16_mask(largest, _mm512_set1_epi16(SPLIT_MAX as i16)) {
        0 => f32::from(largest_word(largest)),
        _ => largest_number(numbers, scale),
    }
}

/// `N` registers of numbers, times `scale`, become bytes; gives their magnitudes as unsigned 16-bit integers, the larger ones of those that
/// share a place. What is beyond them, or no number, becomes -32,768 or 32,767.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,avx2")]
fn split_registers<const N: usize>(
    numbers: &[f32],
    scale: f32,
    [high, low]: [&mut [i8]; 2],
) -> __m512i {
    let count = N * CHANNEL_UNIT;
    assert!(numbers.len() == count && high.len() == count && low.len() == count);
    let scale = _mm512_set1_ps(scale);
    let mut integers = [_mm512_setzero_si512(); 4];
    for (register, integer) in integers.iter_mut().take(N).enumerate() {
        // SAFETY: there are N registers of numbers.
        let value = unsafe { _mm512_loadu_ps(numbers.as_ptr().add(register * CHANNEL_UNIT)) };
        *integer = _mm512_cvtps_epi32(_mm512_mul_ps(value, scale));
    }
    // Packing takes 128 bits of each register in turn.
    let words = [
        _mm512_packs_epi32(integers[0], integers[1]),
        _mm512_packs_epi32(integers[2], integers[3]),
    ];
    let upper =
        words.map(|word| _mm512_srai_epi16::<8>(_mm512_add_epi16(word, _mm512_set1_epi16(128))));
    let lower = words.map(|word| _mm512_and_si512(word, _mm512_set1_epi16(255)));
    let order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    let upper = _mm512_permutexvar_epi32(order, _mm512_packs_epi16(upper[0], upper[1]));
    let lower = _mm512_permutexvar_epi32(order, _mm512_packus_epi16(lower[0], lower[1]));
    let written = u64::MAX >> (ROW_BYTES - count);
    // SAFETY: as many bytes are written as the slices are long.
    unsafe {
        _mm512_mask_storeu_epi8(high.as_mut_ptr(), written, upper);
        _mm512_mask_storeu_epi8(low.as_mut_ptr(), written, lower);
    }
    let [one, other] = words.map(|word| _mm512_abs_epi16(word));
    _mm512_max_epu16(one, other)
}

/// The largest of 32 unsigned 16-bit integers.
#[target_feature(enable = "avx512f")]
fn largest_word(words: __m512i) -> u16 {
    let low = _mm512_and_si512(words, _mm512_set1_epi32(0xffff));
    let high = _mm512_srli_epi32::<16>(words);
    _mm512_reduce_max_epu32(_mm512_max_epu32(low, high)) as u16
}

/// The largest magnitude, or what is no number: as bits no number is above that.
fn largest_number(numbers: &[f32], scale: f32) -> f32 {
    let bits = numbers
        .iter()
        .map(|number| (number * scale).abs().to_bits());
    f32::from_bits(bits.max().unwrap_or_default())
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
    input: &SplitRows,
    weights: &SplitWeights,
    line: Line<'_>,
    (row, blocks): (usize, Range<usize>),
    (output, width): (&mut [&mut [f32]], usize),
    ahead: &mut Ahead,
) {
    let configuration = Configuration::new(weights.chunks.channels);
    let mut sums = Block([[[0; PIXEL_UNIT * CHANNEL_UNIT]; 2]; 2]);
    let channels = line.bias.len();
    let last = blocks.end - 1;
    let finishing: [Finishing; BLOCKS_MAX] =
        std::array::from_fn(|at| Finishing::new(weights, line, last.min(blocks.start + at)));
    // SAFETY: the configuration is 64 bytes of palette 1. The compiler knows no tile registers and keeps nothing in them.
    unsafe {
        asm!("ldtilecfg [{}]", in(reg) &configuration, options(nostack, readonly, preserves_flags));
    };
    for x in (0..width).step_by(PIXEL_UNIT) {
        // Without a second row the first is computed twice.
        let first = row * input.row_bytes + x * input.pixel_bytes;
        let places = [first, first + (output.len() - 1) * input.row_bytes];
        let count = PIXEL_UNIT.min(width - x);
        for (block, finishing) in blocks.clone().zip(&finishing) {
            // SAFETY: the caller's promise.
            unsafe { sum_block(input, weights, block, places, (&mut sums, ahead)) };
            for (output, sums) in output.iter_mut().zip(&sums.0) {
                let output = &mut output[x * channels + block * CHANNEL_UNIT..];
                finish(sums, finishing, output, (count, channels));
            }
        }
    }
    // SAFETY: tile registers are no one else's; released, they cost no switch of threads anything.
    unsafe { asm!("tilerelease", options(nomem, nostack, preserves_flags)) };
}

/// Sums of 16 pixels each of two rows, whose windows begin at `places`.
///
/// # Safety
/// The registers are configured for the weights' depth, and the windows of 18 pixels lie within the input.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,avx2")]
unsafe fn sum_block(
    input: &SplitRows,
    weights: &SplitWeights,
    channels: usize,
    places: [usize; 2],
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
            let offset = row * input.row_bytes + column * input.pixel_bytes;
            let pixels = places.map(|place| place + offset + chunk * ROW_BYTES);
            let matrix = weights.matrices(channels, row * weights.side + column, chunk);
            let matrix = weights.bytes.as_ptr().add(matrix);
            match weights.weight {
                Weight::One => add_two_products(input, pixels, matrix),
                Weight::Two => {
                    let both = [matrix, matrix.add(weights.chunks.matrix())];
                    add_three_products(input, pixels, both);
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
    input: &SplitRows,
    [first, second]: [usize; 2],
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
            first_high = in(reg) input.high.as_ptr().add(first),
            first_low = in(reg) input.low.as_ptr().add(first),
            second_high = in(reg) input.high.as_ptr().add(second),
            second_low = in(reg) input.low.as_ptr().add(second),
            line = in(reg) ROW_BYTES,
            pixel = in(reg) input.pixel_bytes,
            options(nostack, readonly, preserves_flags)
        );
    }
}

/// Two products of 16 pixels each of two rows, which begin at `pixels`, with a matrix.
///
/// # Safety
/// As [`add_three_products`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,avx2")]
unsafe fn add_two_products(input: &SplitRows, [first, second]: [usize; 2], matrix: *const i8) {
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
            first_high = in(reg) input.high.as_ptr().add(first),
            first_low = in(reg) input.low.as_ptr().add(first),
            second_high = in(reg) input.high.as_ptr().add(second),
            second_low = in(reg) input.low.as_ptr().add(second),
            line = in(reg) ROW_BYTES,
            pixel = in(reg) input.pixel_bytes,
            options(nostack, readonly, preserves_flags)
        );
    }
}

/// What sums of 16 channels are multiplied by, and what is added.
struct Finishing {
    low_unit: __m512,
    high_unit: __m512,
    bias: __m512,
    slopes: __m512,
}

impl Finishing {
    /// That of 16 channels.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,avx2")]
    fn new(weights: &SplitWeights, line: Line<'_>, block: usize) -> Self {
        let place = block * CHANNEL_UNIT..(block + 1) * CHANNEL_UNIT;
        let units = weights.scales[place.clone()]
            .iter()
            .map(|&scale| match scale {
                0.0 => 0.0,
                one => weights.weight.low_unit() / (one * line.scale),
            });
        let mut low_unit = [0.0; CHANNEL_UNIT];
        for (to, unit) in low_unit.iter_mut().zip(units) {
            *to = unit;
        }
        let [bias, slopes] = [line.bias, line.slopes].map(|all| &all[place.clone()]);
        // SAFETY: all three are 16 long.
        let [low_unit, bias, slopes] = unsafe {
            [
                _mm512_loadu_ps(low_unit.as_ptr()),
                _mm512_loadu_ps(bias.as_ptr()),
                _mm512_loadu_ps(slopes.as_ptr()),
            ]
        };
        Self {
            low_unit,
            high_unit: _mm512_mul_ps(low_unit, _mm512_set1_ps(256.0)),
            bias,
            slopes,
        }
    }
}

/// Sums become numbers: 16 channels of `count` pixels, into a row with `channels` of them a pixel.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,avx2")]
fn finish(
    [high, low]: &[Sums; 2],
    by: &Finishing,
    output: &mut [f32],
    (count, channels): (usize, usize),
) {
    assert!(count <= PIXEL_UNIT);
    let zero = _mm512_setzero_ps();
    for pixel in 0..count {
        let (high, low) = (&high[pixel * CHANNEL_UNIT..], &low[pixel * CHANNEL_UNIT..]);
        let output = &mut output[pixel * channels..pixel * channels + CHANNEL_UNIT];
        // SAFETY: there are 16 sums for each of 16 pixels, and the output is 16 long.
        unsafe {
            let low = _mm512_cvtepi32_ps(_mm512_loadu_si512(low.as_ptr().cast()));
            let high = _mm512_cvtepi32_ps(_mm512_loadu_si512(high.as_ptr().cast()));
            let low = _mm512_fmadd_ps(low, by.low_unit, by.bias);
            let sum = _mm512_fmadd_ps(high, by.high_unit, low);
            let positive = _mm512_max_ps(sum, zero);
            let sum = _mm512_fmadd_ps(_mm512_min_ps(sum, zero), by.slopes, positive);
            _mm512_storeu_ps(output.as_mut_ptr(), sum);
        }
    }
}

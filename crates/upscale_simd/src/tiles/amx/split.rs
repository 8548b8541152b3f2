//! Numbers become bytes.

use std::arch::x86_64::{
    __m512i, _mm512_abs_epi16, _mm512_add_epi16, _mm512_and_si512, _mm512_cmpgt_epu16_mask,
    _mm512_cvtps_epi32, _mm512_loadu_ps, _mm512_mask_storeu_epi8, _mm512_max_epu16,
    _mm512_max_epu32, _mm512_mul_ps, _mm512_packs_epi16, _mm512_packs_epi32, _mm512_packus_epi16,
    _mm512_permutexvar_epi32, _mm512_reduce_max_epu32, _mm512_set1_epi16, _mm512_set1_epi32,
    _mm512_set1_ps, _mm512_setr_epi32, _mm512_setzero_si512, _mm512_srai_epi16, _mm512_srli_epi32,
};

use super::Granted;
use crate::CHANNEL_UNIT;
use crate::tiles::{Layout, ROW_BYTES, SPLIT_MAX};

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,avx2")]
pub(crate) fn split_pixels(
    _granted: Granted,
    (numbers, channels): (&[f32], usize),
    scale: f32,
    (to, layout): (&mut [i8], Layout),
) -> f32 {
    let mut largest = _mm512_setzero_si512();
    for (pixel, numbers) in numbers.chunks_exact(channels).enumerate() {
        // As many at a time as become a cache line of bytes.
        for (part, numbers) in numbers.chunks(ROW_BYTES).enumerate() {
            let at = pixel * layout.pixel + part * ROW_BYTES;
            let (high, low) = to[at..].split_at_mut(layout.low);
            let to = [&mut high[..numbers.len()], &mut low[..numbers.len()]];
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

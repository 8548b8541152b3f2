//! Sums become numbers, or bytes in their place.

use std::arch::x86_64::{
    __m512, __m512i, _mm_loadu_si128, _mm_storeu_si128, _mm512_abs_epi32, _mm512_add_epi32,
    _mm512_cvtepi8_epi32, _mm512_cvtepi32_epi8, _mm512_cvtepi32_ps, _mm512_cvtps_epi32,
    _mm512_fmadd_ps, _mm512_loadu_ps, _mm512_loadu_si512, _mm512_max_epu32, _mm512_max_ps,
    _mm512_min_ps, _mm512_mul_ps, _mm512_set1_epi32, _mm512_set1_ps, _mm512_setzero_ps,
    _mm512_setzero_si512, _mm512_slli_epi32, _mm512_srai_epi32, _mm512_storeu_ps,
};

use super::Sums;

use crate::CHANNEL_UNIT;
use crate::tiles::bytes::{bytes_of, bytes_of_mut};
use crate::tiles::{Layout, Line, PIXEL_UNIT, Packing, SplitWeights, Weight};

/// What sums of 16 channels are multiplied by, and what is added.
pub(super) struct Finishing {
    low_unit: __m512,
    high_unit: __m512,
    bias: __m512,
    slopes: __m512,
}

impl Finishing {
    /// That of 16 channels.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,avx2")]
    pub(super) fn new(weights: &SplitWeights, line: Line<'_>, block: usize) -> Self {
        let place = block * CHANNEL_UNIT..(block + 1) * CHANNEL_UNIT;
        let units = weights.scales[place.clone()]
            .iter()
            .map(|&scale| match scale {
                0.0 => 0.0,
                one => low_unit(weights.weight) / (one * line.scale),
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

    /// 16 numbers of a pixel's sums.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,avx2")]
    fn number(&self, [high, low]: &[Sums; 2], pixel: usize) -> __m512 {
        let place = pixel * CHANNEL_UNIT..(pixel + 1) * CHANNEL_UNIT;
        let [high, low] = [&high[place.clone()], &low[place]];
        let zero = _mm512_setzero_ps();
        // SAFETY: both are 16 long.
        let [high, low] =
            unsafe { [high, low].map(|sums| _mm512_loadu_si512(sums.as_ptr().cast())) };
        let low = _mm512_fmadd_ps(_mm512_cvtepi32_ps(low), self.low_unit, self.bias);
        let sum = _mm512_fmadd_ps(_mm512_cvtepi32_ps(high), self.high_unit, low);
        // In this order what is no number stays none.
        let positive = _mm512_max_ps(zero, sum);
        _mm512_fmadd_ps(_mm512_min_ps(zero, sum), self.slopes, positive)
    }
}

/// What the second of the two sums counts.
fn low_unit(weight: Weight) -> f32 {
    match weight {
        Weight::One => 1.0,
        Weight::Two => 256.0,
    }
}

/// Sums of a block of 16 channels become numbers, of `count` pixels in a row with `channels` of them a pixel. Zeros.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,avx2")]
pub(super) fn finish(
    sums: &[Sums; 2],
    by: &Finishing,
    (output, block, (count, channels)): (&mut [f32], usize, (usize, usize)),
) -> __m512i {
    assert!(count <= PIXEL_UNIT);
    for pixel in 0..count {
        let at = pixel * channels + block * CHANNEL_UNIT;
        let output = &mut output[at..at + CHANNEL_UNIT];
        // SAFETY: the output is 16 long.
        unsafe { _mm512_storeu_ps(output.as_mut_ptr(), by.number(sums, pixel)) };
    }
    _mm512_setzero_si512()
}

/// The same, packed; gives their magnitudes, the larger ones of those that share a place, and 2^31 for what is beyond or no number.
/// `at` says which row this is, and `first` where in the rows that are added it begins.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,avx2")]
pub(super) fn pack_sums(
    sums: &[Sums; 2],
    by: &Finishing,
    (output, block, (count, channels)): (&mut [f32], usize, (usize, usize)),
    (packing, at, first): (&Packing<'_>, usize, usize),
) -> __m512i {
    let layout = Layout::packed(channels);
    let joined = packing.joined.map(|joined| {
        let units = [1.0 / joined.scale, joined.factor].map(|unit| _mm512_set1_ps(unit));
        (bytes_of(&joined.rows[at][first..]), units)
    });
    let output = bytes_of_mut(output);
    let end = layout.end(count, channels);
    assert!(count <= PIXEL_UNIT && (block + 1) * CHANNEL_UNIT <= channels && end <= output.len());
    assert!(joined.is_none_or(|(from, _)| end <= from.len()));
    let scale = _mm512_set1_ps(packing.scale);
    let mut largest = _mm512_setzero_si512();
    for pixel in 0..count {
        let at = pixel * layout.pixel + block * CHANNEL_UNIT;
        let mut number = by.number(sums, pixel);
        if let Some((from, [unit, factor])) = joined {
            // SAFETY: all pixels' bytes lie within, as asserted.
            let other = unsafe { unpacked(from.as_ptr().add(at), layout.low) };
            number = _mm512_fmadd_ps(number, factor, _mm512_mul_ps(other, unit));
        }
        let integer = _mm512_cvtps_epi32(_mm512_mul_ps(number, scale));
        let high = _mm512_srai_epi32::<8>(_mm512_add_epi32(integer, _mm512_set1_epi32(128)));
        // SAFETY: as above.
        unsafe {
            let to = output.as_mut_ptr().add(at);
            _mm_storeu_si128(to.cast(), _mm512_cvtepi32_epi8(high));
            _mm_storeu_si128(to.add(layout.low).cast(), _mm512_cvtepi32_epi8(integer));
        }
        largest = _mm512_max_epu32(largest, _mm512_abs_epi32(integer));
    }
    largest
}

/// 16 numbers of their bytes.
///
/// # Safety
/// 16 bytes from there on, and from `low` bytes further, can be read.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,avx2")]
unsafe fn unpacked(bytes: *const i8, low: usize) -> __m512 {
    // SAFETY: the caller's promise.
    let [high, low] = unsafe { [bytes, bytes.add(low)].map(|at| _mm_loadu_si128(at.cast())) };
    let high = _mm512_slli_epi32::<8>(_mm512_cvtepi8_epi32(high));
    _mm512_cvtepi32_ps(_mm512_add_epi32(high, _mm512_cvtepi8_epi32(low)))
}

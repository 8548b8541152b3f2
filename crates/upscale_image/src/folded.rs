//! Rows joined sample by sample: a sum with weights, the highest, the lowest.

use upscale_simd::widened;

/// Samples that are joined at a time: they stay in registers, and each row is read once. Row by row into memory, what sharpens a
/// result at 4x took four times as long.
const BLOCK: usize = 32;

/// Appends what the samples of `rows` above one another come to, as far as all of them go: `join` of `first` and each of
/// them, given the number of its row.
pub(crate) fn fold<const ROWS: usize>(
    rows: [&[f32]; ROWS],
    made: &mut Vec<f32>,
    first: f32,
    join: impl Fn(f32, usize, f32) -> f32,
) {
    let samples = rows.iter().map(|row| row.len()).min().unwrap_or(0);
    let start = made.len();
    made.resize(start + samples, first);
    let rows = rows.map(|row| &row[..samples]);
    widened!(fold_into(rows, &mut made[start..], join));
}

#[inline(always)]
fn fold_into<const ROWS: usize>(
    rows: [&[f32]; ROWS],
    made: &mut [f32],
    join: impl Fn(f32, usize, f32) -> f32,
) {
    let rows = rows.map(|row| row.as_chunks::<BLOCK>());
    let (blocks, rest) = made.as_chunks_mut::<BLOCK>();
    for (at, block) in blocks.iter_mut().enumerate() {
        let mut folded = *block;
        for (index, (row, _)) in rows.iter().enumerate() {
            for (folded, sample) in folded.iter_mut().zip(&row[at]) {
                *folded = join(*folded, index, *sample);
            }
        }
        *block = folded;
    }
    for (index, (_, row)) in rows.iter().enumerate() {
        for (folded, sample) in rest.iter_mut().zip(*row) {
            *folded = join(*folded, index, *sample);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BLOCK, fold};

    #[test]
    fn every_length_is_folded_as_sample_by_sample() {
        for length in 0..=3 * BLOCK + 1 {
            let row = |number: usize| -> Vec<f32> {
                let sample = |x: usize| ((x * 37 + number * 11) % 101) as f32;
                (0..length).map(sample).collect()
            };
            let rows = [row(0), row(1), row(2)];
            let mut made = vec![7.0];
            let weighted = |sum: f32, index: usize, sample: f32| sum + index as f32 * sample;
            fold(rows.each_ref().map(Vec::as_slice), &mut made, 5.0, weighted);
            assert_eq!((made.len(), made[0]), (length + 1, 7.0));
            for (x, made) in made[1..].iter().enumerate() {
                assert_eq!(
                    *made,
                    5.0 + rows[1][x] + 2.0 * rows[2][x],
                    "{x} of {length}"
                );
            }
        }
    }
}

//! Tile registers beside plain sums, and what they refuse.

use super::*;

/// Numbers that repeat late and go to both limits.
fn number(seed: usize) -> f32 {
    let mixed = (seed as u32)
        .wrapping_mul(2_654_435_761)
        .rotate_left(13)
        .wrapping_mul(97);
    match mixed % 11 {
        0 => SPLIT_MAX,
        1 => -SPLIT_MAX,
        _ => (mixed % 65_279) as f32 - SPLIT_MAX,
    }
}

/// Exact bytes, one number after another.
fn plain(
    pixels: &[Vec<f32>],
    weights: &SplitWeights,
    line: Line<'_>,
    (x, y, n): (usize, usize, usize),
) -> f32 {
    let (mut upper, mut lower) = (0_i32, 0_i32);
    for (tap, k) in (0..TAPS).flat_map(|tap| (0..weights.depth).map(move |k| (tap, k))) {
        let number = pixels[y + tap / 3][(x + tap % 3) * weights.depth + k] * line.scale;
        let [high, low] = halves(number.round_ties_even() as i32).map(i32::from);
        let at = weights.place(tap, k, n);
        let (other_high, other_low) = (
            weights.bytes[at],
            weights.bytes[at + weights.chunks.matrix()],
        );
        upper += high * i32::from(other_high);
        lower += high * i32::from(other_low) + low * i32::from(other_high);
    }
    let unit = match weights.scales[n] {
        0.0 => 0.0,
        one => 256.0 / (one * line.scale),
    };
    let sum = (upper as f32).mul_add(256.0 * unit, (lower as f32).mul_add(unit, line.bias[n]));
    sum.min(0.0).mul_add(line.slopes[n], sum.max(0.0))
}

/// Sums of 16 channels as they are.
fn plain_line(scale: f32) -> Line<'static> {
    Line {
        scale,
        bias: &[0.0; 16],
        slopes: &[1.0; 16],
    }
}

fn here() -> Option<Tiles> {
    let found = Tiles::detect();
    if found.is_none() {
        eprintln!("left out: this CPU or system has no tile registers");
    }
    found
}

#[test]
fn halves_are_the_number() {
    for number in -32_639..=32_639 {
        let [high, low] = halves(number).map(i32::from);
        assert_eq!(256 * high + low, number);
    }
}

#[test]
fn every_shape_has_the_bits_of_the_plain_sums() {
    let Some(tiles) = here() else { return };
    for (depth, channels, rows, width) in [
        (16, 16, 1, 1),
        (48, 48, 6, 30),
        (64, 32, 3, 16),
        (32, 64, 2, 47),
        (64, 64, 6, 17),
        (96, 32, 2, 18),
        (192, 16, 3, 5),
    ] {
        // One output channel is all zeros.
        let weight = |tap: usize, k: usize, n: usize| match n {
            3 => 0.0,
            _ => number(tap + 9 * (k + 256 * n)) * 3e-6,
        };
        let weights = SplitWeights::new((depth, channels), weight).unwrap();
        let scale = 0.7;
        let value = |y: usize, at: usize| number(y * 7_919 + at + 5) / scale;
        let row = |y| (0..(width + 2) * depth).map(|at| value(y, at)).collect();
        let pixels: Vec<Vec<f32>> = (0..rows + 2).map(row).collect();
        let mut split = SplitRows::default();
        split.resize(rows + 2, width + 2, depth);
        for (y, pixels) in pixels.iter().enumerate() {
            let largest = tiles.split((pixels, depth), scale, &mut split, (y, 0));
            assert!(largest <= SPLIT_MAX * 1.000_001 && largest > 0.9 * SPLIT_MAX);
        }
        let bias: Vec<f32> = (0..channels).map(|n| n as f32 * 0.5 - 3.0).collect();
        let slopes: Vec<f32> = (0..channels).map(|n| n as f32 * 0.1 - 1.0).collect();
        let line = Line {
            scale,
            bias: &bias,
            slopes: &slopes,
        };
        let mut output = vec![vec![f32::NAN; width * channels]; rows];
        let mut to: Vec<&mut [f32]> = output.iter_mut().map(|row| &mut row[..]).collect();
        for (pair, to) in to.chunks_mut(2).enumerate() {
            for block in 0..channels / 16 {
                let place = (2 * pair, block);
                tiles.convolve(
                    &split,
                    &weights,
                    line,
                    place,
                    (to, width),
                    &mut Ahead::default(),
                );
            }
        }
        for (y, x) in (0..rows).flat_map(|y| (0..width).map(move |x| (y, x))) {
            for n in 0..channels {
                let expected = plain(&pixels, &weights, line, (x, y, n));
                let given = output[y][x * channels + n];
                assert_eq!(
                    given.to_bits(),
                    expected.to_bits(),
                    "{depth} to {channels}: {x} {y} {n}"
                );
            }
        }
    }
}

/// What is left out of a product is small beside it.
#[test]
fn sums_are_those_of_the_numbers() {
    let Some(tiles) = here() else { return };
    const DEPTH: usize = 64;
    let weight = |tap: usize, k: usize, n: usize| number(tap + 9 * (k + 64 * n)) * 1e-5;
    let weights = SplitWeights::new((DEPTH, 16), weight).unwrap();
    let mut split = SplitRows::default();
    split.resize(3, 3, DEPTH);
    let numbers: Vec<f32> = (0..9 * DEPTH).map(|at| number(at + 77) * 0.01).collect();
    for (y, row) in numbers.chunks(3 * DEPTH).enumerate() {
        tiles.split((row, DEPTH), 100.0, &mut split, (y, 0));
    }
    let mut output = [0.0; 16];
    let to = &mut [&mut output[..]];
    tiles.convolve(
        &split,
        &weights,
        plain_line(100.0),
        (0, 0),
        (to, 1),
        &mut Ahead::default(),
    );
    for (n, given) in output.into_iter().enumerate() {
        let products = (0..9 * DEPTH)
            .map(|at| f64::from(numbers[at]) * f64::from(weight(at / DEPTH, at % DEPTH, n)));
        let largest = f64::from(SPLIT_MAX).powi(2) * 1e-7 * (9.0 * DEPTH as f64).sqrt();
        let differs = (f64::from(given) - products.sum::<f64>()).abs() / largest;
        assert!(differs < 3e-5, "{n}: {differs}");
    }
}

#[test]
fn inputs_of_several_maps_lie_side_by_side() {
    let Some(tiles) = here() else { return };
    let mut split = SplitRows::default();
    split.resize(1, 2, 48);
    let (one, other) = ([256.0; 2 * 16], [-513.0; 2 * 32]);
    assert_eq!(tiles.split((&one, 16), 1.0, &mut split, (0, 0)), 256.0);
    assert_eq!(tiles.split((&other, 32), 1.0, &mut split, (0, 16)), 513.0);
    for pixel in 0..2 {
        let (high, low) = (&split.high[pixel * 64..], &split.low[pixel * 64..]);
        assert!(high[..16] == [1; 16] && low[..16] == [0; 16]);
        assert!(high[16..48] == [-2; 32] && low[16..48] == [-1; 32]);
    }
}

#[test]
fn what_is_no_number_is_not_overlooked() {
    let Some(tiles) = here() else { return };
    let mut split = SplitRows::default();
    split.resize(1, 3, 16);
    let mut largest_of = |odd: f32, sign: f32| {
        let mut numbers = [3.0; 3 * 16];
        (numbers[0], numbers[16]) = (sign * odd, -7.0);
        tiles.split((&numbers, 16), 1.0, &mut split, (0, 0))
    };
    assert!(largest_of(f32::NAN, 1.0).is_nan() && largest_of(f32::NAN, -1.0).is_nan());
    assert_eq!(largest_of(f32::INFINITY, -1.0), f32::INFINITY);
    assert_eq!(largest_of(2.0, 1.0), 7.0);
}

#[test]
fn weights_that_do_not_fit_are_refused() {
    assert!(SplitWeights::new((16, 16), |_, _, _| f32::NAN).is_none());
    assert!(SplitWeights::new((16, 16), |_, _, _| f32::INFINITY).is_none());
    assert!(SplitWeights::new((16, 16), |_, _, _| 1e-42).is_none());
    for (depth, channels) in [(1040, 16), (8, 16), (16, 8), (0, 16), (16, 0)] {
        assert!(SplitWeights::new((depth, channels), |_, _, _| 1.0).is_none());
    }
}

#[test]
fn what_lies_beyond_rows_weights_or_all_memory_is_refused() {
    let Some(tiles) = here() else { return };
    let weights = SplitWeights::new((16, 16), |_, _, _| 1.0).unwrap();
    let mut split = SplitRows::default();
    split.resize(4, 3, 16);
    let mut output = [[0.0; 64 * 16]; 2];
    let mut convolve = |place: (usize, usize), count: usize, width: usize| {
        let mut to: Vec<&mut [f32]> = output.iter_mut().map(|row| &mut row[..]).collect();
        let to = (&mut to[..count], width);
        let call = || {
            let ahead = &mut Ahead::default();
            tiles.convolve(&split, &weights, plain_line(1.0), place, to, ahead);
        };
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(call)).is_ok()
    };
    assert!(convolve((0, 0), 2, 1) && convolve((1, 0), 1, 1));
    assert!(!convolve((1, 0), 2, 1) && !convolve((2, 0), 1, 1) && !convolve((0, 0), 0, 1));
    for width in [20, 64, usize::MAX / 16, usize::MAX] {
        assert!(!convolve((0, 0), 1, width), "{width}");
    }
    assert!(!convolve((0, 1), 1, 1) && !convolve((0, usize::MAX), 1, 1));
    assert!(!convolve((usize::MAX, 0), 1, 1) && !convolve((usize::MAX / 2, 0), 2, 1));
}

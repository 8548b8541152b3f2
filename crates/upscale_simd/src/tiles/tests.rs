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
    let side = weights.side;
    for (tap, k) in (0..side * side).flat_map(|tap| (0..weights.depth).map(move |k| (tap, k))) {
        let number = pixels[y + tap / side][(x + tap % side) * weights.depth + k] * line.scale;
        let [high, low] = halves(number.round_ties_even() as i32).map(i32::from);
        let at = weights.place(tap, k, n);
        let other_high = i32::from(weights.bytes[at]);
        upper += high * other_high;
        lower += low * other_high;
        if weights.weight == Weight::Two {
            lower += high * i32::from(weights.bytes[at + weights.chunks.matrix()]);
        }
    }
    let counts = match weights.weight {
        Weight::One => 1.0,
        Weight::Two => 256.0,
    };
    let unit = match weights.scales[n] {
        0.0 => 0.0,
        one => counts / (one * line.scale),
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
    let shapes = [
        ((3, 16, 16), 1, 1),
        ((3, 48, 48), 6, 30),
        ((3, 64, 32), 3, 16),
        ((3, 32, 64), 2, 47),
        ((3, 64, 64), 6, 17),
        ((3, 48, 96), 2, 33),
        ((3, 96, 32), 2, 18),
        ((3, 192, 16), 3, 5),
        ((1, 16, 16), 1, 1),
        ((1, 192, 48), 5, 33),
        ((1, 64, 80), 2, 16),
    ];
    let kinds = [Weight::One, Weight::Two];
    let cases = shapes
        .iter()
        .flat_map(|shape| kinds.map(|kind| (kind, *shape)));
    for (kind, (shape, rows, width)) in cases {
        compare_with_plain(tiles, kind, shape, (rows, width));
    }
}

/// Side, input channels and output channels of a layer; rows and width of what comes out.
fn compare_with_plain(
    tiles: Tiles,
    kind: Weight,
    shape: (usize, usize, usize),
    (rows, width): (usize, usize),
) {
    let (side, depth, channels) = shape;
    let middle = side * side / 2;
    // One output channel is all zeros.
    let weight = |tap: usize, k: usize, n: usize| match (n, kind) {
        (3, _) => 0.0,
        (_, Weight::Two) => number(tap + 9 * (k + 256 * n)) * 3e-6,
        // The middle tap of the first input channel has the largest byte.
        (_, Weight::One) if (tap, k) == (middle, 0) => -127.0 * 0.013,
        (_, Weight::One) => (number(tap + 9 * (k + 256 * n)) / 257.5).round() * 0.013,
    };
    let weights = SplitWeights::new(kind, shape, weight).unwrap();
    let scale = 0.7;
    let value = |y: usize, at: usize| number(y * 7_919 + at + 5) / scale;
    let row = |y| {
        (0..(width + side - 1) * depth)
            .map(|at| value(y, at))
            .collect()
    };
    let pixels: Vec<Vec<f32>> = (0..rows + side - 1).map(row).collect();
    let mut split = SplitRows::default();
    split.resize(rows + side - 1, width + side - 1, depth);
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
        for blocks in weights.groups() {
            let place = (2 * pair, blocks);
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
                "{kind:?}, {shape:?}: {x} {y} {n}"
            );
        }
    }
}

/// What is left out of a product is small beside it.
#[test]
fn sums_are_those_of_the_numbers() {
    let Some(tiles) = here() else { return };
    const DEPTH: usize = 64;
    let weight = |tap: usize, k: usize, n: usize| number(tap + 9 * (k + 64 * n)) * 1e-5;
    let weights = SplitWeights::new(Weight::Two, (3, DEPTH, 16), weight).unwrap();
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
        (0, 0..1),
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
    // Rounded up to the limit, as it is beyond, and where 16 bits end.
    assert_eq!(largest_of(32_639.4, -1.0), SPLIT_MAX);
    for beyond in [32_640.0, 32_768.0, 4e9] {
        assert_eq!(largest_of(beyond, -1.0), beyond);
    }
}

#[test]
fn bytes_are_known_by_what_they_are() {
    let with = |one: f32, step: f32| {
        let weight = |tap: usize, k: usize, _: usize| match (tap, k) {
            (0, 0) => 127.0 * step,
            (5, 3) => one * step,
            _ => (tap as f32 - 4.0) * step,
        };
        SplitWeights::new(Weight::One, (3, 16, 16), weight)
    };
    for step in [1.0, 0.001_234_5, 3e5] {
        assert!(with(-126.0, step).is_some() && with(0.0, step).is_some());
        assert!(with(0.5, step).is_none() && with(-60.1, step).is_none());
    }
}

#[test]
fn weights_that_do_not_fit_are_refused() {
    for kind in [Weight::One, Weight::Two] {
        for weight in [f32::NAN, f32::INFINITY, 1e-42] {
            assert!(SplitWeights::new(kind, (3, 16, 16), |_, _, _| weight).is_none());
        }
    }
    let channels = [(1040, 16), (8, 16), (16, 8), (0, 16), (16, 0)];
    let shapes = channels.map(|(depth, channels)| (3, depth, channels));
    for shape in shapes
        .into_iter()
        .chain([0, 2, 5].map(|side| (side, 16, 16)))
    {
        assert!(SplitWeights::new(Weight::Two, shape, |_, _, _| 1.0).is_none());
    }
}

#[test]
fn what_lies_beyond_rows_weights_or_all_memory_is_refused() {
    let Some(tiles) = here() else { return };
    let weights = SplitWeights::new(Weight::Two, (3, 16, 16), |_, _, _| 1.0).unwrap();
    let mut split = SplitRows::default();
    split.resize(4, 3, 16);
    let mut output = [[0.0; 64 * 16]; 2];
    let mut convolve = |place: (usize, Range<usize>), count: usize, width: usize| {
        let mut to: Vec<&mut [f32]> = output.iter_mut().map(|row| &mut row[..]).collect();
        let to = (&mut to[..count], width);
        let call = || {
            let ahead = &mut Ahead::default();
            tiles.convolve(&split, &weights, plain_line(1.0), place, to, ahead);
        };
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(call)).is_ok()
    };
    assert!(convolve((0, 0..1), 2, 1) && convolve((1, 0..1), 1, 1));
    assert!(!convolve((1, 0..1), 2, 1) && !convolve((2, 0..1), 1, 1));
    assert!(!convolve((0, 0..1), 0, 1) && !convolve((0, 0..0), 1, 1));
    for width in [20, 64, usize::MAX / 16, usize::MAX] {
        assert!(!convolve((0, 0..1), 1, width), "{width}");
    }
    assert!(!convolve((0, 1..2), 1, 1) && !convolve((0, 0..usize::MAX), 1, 1));
    assert!(!convolve((usize::MAX, 0..1), 1, 1) && !convolve((usize::MAX / 2, 0..1), 2, 1));
}

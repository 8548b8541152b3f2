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
    let weights = SplitWeights::new(kind, 1, shape, weight).unwrap();
    let scale = 0.7;
    let value = |y: usize, at: usize| number(y * 7_919 + at + 5) / scale;
    let row = |y| {
        (0..(width + side - 1) * depth)
            .map(|at| value(y, at))
            .collect()
    };
    let pixels: Vec<Vec<f32>> = (0..rows + side - 1).map(row).collect();
    let mut split = SplitRows::default();
    split.resize(rows + side - 1, width + side - 1, (depth, 1));
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
                &split.rows(),
                &weights,
                (line, None),
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
    let weights = SplitWeights::new(Weight::Two, 1, (3, DEPTH, 16), weight).unwrap();
    let mut split = SplitRows::default();
    split.resize(3, 3, (DEPTH, 1));
    let numbers: Vec<f32> = (0..9 * DEPTH).map(|at| number(at + 77) * 0.01).collect();
    for (y, row) in numbers.chunks(3 * DEPTH).enumerate() {
        tiles.split((row, DEPTH), 100.0, &mut split, (y, 0));
    }
    let mut output = [0.0; 16];
    let to = &mut [&mut output[..]];
    tiles.convolve(
        &split.rows(),
        &weights,
        (plain_line(100.0), None),
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
    split.resize(1, 2, (48, 1));
    let (one, other) = ([256.0; 2 * 16], [-513.0; 2 * 32]);
    assert_eq!(tiles.split((&one, 16), 1.0, &mut split, (0, 0)), 256.0);
    assert_eq!(tiles.split((&other, 32), 1.0, &mut split, (0, 16)), 513.0);
    for pixel in 0..2 {
        let rows = split.rows();
        let (high, low) = rows.parts[0][0][pixel * 128..].split_at(64);
        assert!(high[..16] == [1; 16] && low[..16] == [0; 16]);
        assert!(high[16..48] == [-2; 32] && low[16..48] == [-1; 32]);
    }
}

#[test]
fn what_is_no_number_is_not_overlooked() {
    let Some(tiles) = here() else { return };
    let mut split = SplitRows::default();
    split.resize(1, 3, (16, 1));
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
        SplitWeights::new(Weight::One, 1, (3, 16, 16), weight)
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
            assert!(SplitWeights::new(kind, 1, (3, 16, 16), |_, _, _| weight).is_none());
        }
    }
    let channels = [(1040, 16), (8, 16), (16, 8), (0, 16), (16, 0)];
    let shapes = channels.map(|(depth, channels)| (3, depth, channels));
    for shape in shapes
        .into_iter()
        .chain([0, 2, 5].map(|side| (side, 16, 16)))
    {
        assert!(SplitWeights::new(Weight::Two, 1, shape, |_, _, _| 1.0).is_none());
    }
}

#[test]
fn what_lies_beyond_rows_weights_or_all_memory_is_refused() {
    let Some(tiles) = here() else { return };
    let weights = SplitWeights::new(Weight::Two, 1, (3, 16, 16), |_, _, _| 1.0).unwrap();
    let mut split = SplitRows::default();
    split.resize(4, 3, (16, 1));
    let mut output = [[0.0; 64 * 16]; 2];
    let mut convolve = |place: (usize, Range<usize>), count: usize, width: usize| {
        let mut to: Vec<&mut [f32]> = output.iter_mut().map(|row| &mut row[..]).collect();
        let to = (&mut to[..count], width);
        let call = || {
            let ahead = &mut Ahead::default();
            tiles.convolve(
                &split.rows(),
                &weights,
                (plain_line(1.0), None),
                place,
                to,
                ahead,
            );
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

/// Numbers that a scale makes whole, so that no rounding stands between both ways.
fn packed_rows(tiles: Tiles, rows: usize, width: usize, channels: usize) -> [Vec<Vec<f32>>; 2] {
    let number = |y: usize, at: usize| number(y * 7_919 + at + 11) / 64.0;
    let numbers: Vec<Vec<f32>> = (0..rows)
        .map(|y| (0..width * channels).map(|at| number(y, at)).collect())
        .collect();
    let packed = numbers.iter().map(|row| {
        let mut to = vec![f32::NAN; (width + PIXEL_UNIT) * packed_pitch(channels)];
        assert!(tiles.pack((row, channels), 64.0, &mut to) <= SPLIT_MAX);
        to
    });
    let packed = packed.collect();
    [numbers, packed]
}

fn slices(rows: &[Vec<f32>]) -> Vec<&[f32]> {
    rows.iter().map(|row| &row[..]).collect()
}

#[test]
fn packed_pixels_come_back() {
    let Some(tiles) = here() else { return };
    for channels in [16, 32, 48, 64, 80, 128] {
        let [numbers, packed] = packed_rows(tiles, 2, 19, channels);
        for (numbers, packed) in numbers.iter().zip(&packed) {
            let mut given = vec![0.0; numbers.len()];
            unpack((packed, channels), 64.0, &mut given);
            assert_eq!(&given, numbers, "{channels}");
        }
    }
}

/// Two rows of what a layer makes of its input, and the largest number that was packed.
fn two_rows(
    tiles: Tiles,
    (input, weights): (&ByteRows<'_>, &SplitWeights),
    packing: Option<Packing<'_>>,
    width: usize,
) -> (Vec<Vec<f32>>, f32) {
    let channels = weights.scales.len();
    let pitch = packing.map_or(channels, |_| packed_pitch(channels));
    let bias = vec![0.25; channels];
    let line = Line {
        scale: 64.0,
        bias: &bias,
        slopes: &bias,
    };
    let mut output = vec![vec![0.0; width * pitch]; 2];
    let mut to: Vec<&mut [f32]> = output.iter_mut().map(|row| &mut row[..]).collect();
    let mut largest = 0.0_f32;
    for blocks in weights.groups() {
        let (place, ahead) = ((0, blocks), &mut Ahead::default());
        let (to, line) = ((&mut to[..], width), (line, packing));
        largest = largest.max(tiles.convolve(input, weights, line, place, to, ahead));
    }
    (output, largest)
}

/// What a layer makes of packed maps is what it makes of their numbers.
#[test]
fn packed_maps_have_the_bits_of_numbers() {
    let Some(tiles) = here() else { return };
    let width = 21;
    for (side, part, parts, channels) in [(3, 48, 1, 48), (1, 48, 4, 32), (3, 80, 1, 16)] {
        let (depth, beyond) = (part * parts, side - 1);
        let shape = (side, depth, channels);
        let weight = |tap: usize, k: usize, n: usize| number(tap + 9 * (k + 256 * n)) * 3e-9;
        let weights = SplitWeights::new(Weight::Two, parts, shape, weight).unwrap();
        let maps = (0..parts).map(|_| packed_rows(tiles, 2 + beyond, width + beyond, part));
        let maps: Vec<_> = maps.collect();
        let mut split = SplitRows::default();
        split.resize(2 + beyond, width + beyond, (depth, parts));
        for (at, [numbers, _]) in maps.iter().enumerate() {
            for (y, row) in numbers.iter().enumerate() {
                tiles.split((row, part), 64.0, &mut split, (y, at * part));
            }
        }
        let packed = maps.iter().map(|[_, rows]| slices(rows));
        let packed = ByteRows::packed(packed, part);
        let (numbers, _) = two_rows(tiles, (&split.rows(), &weights), None, width);
        assert!(two_rows(tiles, (&packed, &weights), None, width).0 == numbers);
        compare_packed(tiles, (&packed, &weights), (&numbers, width));
    }
}

/// Sums are packed as numbers are, alone and where something is added.
fn compare_packed(
    tiles: Tiles,
    (input, weights): (&ByteRows<'_>, &SplitWeights),
    (numbers, width): (&[Vec<f32>], usize),
) {
    let channels = weights.scales.len();
    let [other, rows] = packed_rows(tiles, 2, width, channels);
    let joined = Joined {
        rows: [&rows[0], &rows[1]],
        scale: 64.0,
        factor: 0.5,
    };
    for (joined, scale) in [(None, 600.0), (Some(joined), 40.0)] {
        let packing = Some(Packing { scale, joined });
        let (given, largest) = two_rows(tiles, (input, weights), packing, width);
        let mut most = 0.0_f32;
        for (y, row) in numbers.iter().enumerate() {
            let added = row.iter().zip(&other[y]);
            let added: Vec<f32> = match joined {
                None => row.clone(),
                Some(joined) => added.map(|(v, h)| v.mul_add(joined.factor, *h)).collect(),
            };
            let mut expected = vec![0.0; given[y].len()];
            most = most.max(tiles.pack((&added, channels), scale, &mut expected));
            // Between the planes of a pixel is what no one reads: compared as numbers.
            let [given, expected] = [&given[y], &expected].map(|row| {
                let mut numbers = vec![0.0; width * channels];
                unpack((row, channels), scale, &mut numbers);
                numbers
            });
            assert!(given == expected, "{channels} {y}");
        }
        assert!(most <= SPLIT_MAX && largest == most, "{largest} {most}");
    }
}

#[test]
fn sums_that_do_not_fit_are_told() {
    let Some(tiles) = here() else { return };
    let weights = SplitWeights::new(Weight::Two, 1, (1, 16, 16), |_, _, _| 1.0).unwrap();
    let [_, rows] = packed_rows(tiles, 1, 1, 16);
    let input = ByteRows::packed([vec![&rows[0][..]]].into_iter(), 16);
    let largest = |bias: f32| {
        let line = Line {
            scale: 64.0,
            bias: &[bias; 16],
            slopes: &[1.0; 16],
        };
        let packing = Packing {
            scale: 1.0,
            joined: None,
        };
        let mut output = [0.0; 8];
        let to = (&mut [&mut output[..]][..], 1);
        let line = (line, Some(packing));
        tiles.convolve(&input, &weights, line, (0, 0..1), to, &mut Ahead::default())
    };
    assert!(largest(0.0) < 20_000.0);
    for beyond in [60_000.0, -4e9, 1e20, f32::INFINITY, f32::NAN] {
        assert!(largest(beyond) > SPLIT_MAX, "{beyond}");
    }
}

//! Edges straighten, all else stays, and rows come out in time.

use std::f32::consts::TAU;

use super::Edges;
use crate::shrink::shrunk;
use crate::spare::Spare;

const WIDTH: usize = 96;
const HEIGHT: usize = 80;

/// A slanted edge that lies beside its course by a sine of `tremble` pixels: brightness, row by row.
fn edge(tremble: f32) -> Vec<f32> {
    let at = |index: usize| {
        let (x, y) = ((index % WIDTH) as f32, (index / WIDTH) as f32);
        let beside = x - 48.0 - 0.3 * (y - 40.0) + tremble * (y / 30.0 * TAU).sin();
        0.25 + 0.5 / (1.0 + (-beside / 1.5).exp())
    };
    (0..WIDTH * HEIGHT).map(at).collect()
}

/// What comes of a result of `width` pixels a row, of a sharp source.
fn laid(made: &[f32], width: usize, channels: usize, scale: usize) -> Vec<f32> {
    laid_softly(made, width, channels, scale, 0.0)
}

fn laid_softly(
    made: &[f32],
    width: usize,
    channels: usize,
    scale: usize,
    softness: f32,
) -> Vec<f32> {
    let samples = width * channels * scale;
    let size = [width / scale, made.len() / samples];
    let mut edges = Edges::new(size, channels, scale, softness).expect("narrow enough");
    let mut all = Vec::new();
    for group in made.chunks_exact(samples) {
        let means = shrunk(group, channels, scale, &mut Spare::default());
        let mut take = |group: &[f32], means: Vec<f32>, _: &mut Spare| {
            assert_eq!(means.len() * scale * scale, group.len());
            all.extend_from_slice(group);
            Ok(())
        };
        edges
            .push(group, means, &mut Spare::default(), &mut take)
            .unwrap();
    }
    all
}

/// How far rows 20 to 60 cross half of the edge's height beside its course, in pixels, in the mean.
fn trembling(made: &[f32]) -> f32 {
    let beside = (20..60).map(|y| {
        let row = &made[y * WIDTH..][..WIDTH];
        let x = row.iter().position(|code| *code > 0.5).expect("an edge") as f32;
        let (above, below) = (row[x as usize], row[x as usize - 1]);
        let crossing = x - (above - 0.5) / (above - below);
        (crossing - 48.0 - 0.3 * (y as f32 - 40.0)).abs()
    });
    beside.sum::<f32>() / 40.0
}

#[test]
fn a_trembling_edge_lies_straighter_and_a_straight_one_as_it_was() {
    let trembles = edge(1.0);
    let (before, after) = (
        trembling(&trembles),
        trembling(&laid(&trembles, WIDTH, 1, 4)),
    );
    assert!(before > 0.55 && after < 0.7 * before, "{before} {after}");
    let straight = edge(0.0);
    let moved = straight.iter().zip(laid(&straight, WIDTH, 1, 4));
    let most = moved.fold(0.0_f32, |most, (one, other)| most.max((one - other).abs()));
    assert!(most < 0.01, "{most}");
}

/// The numbers stand in training/tests/test_edges.py as well: it measures looks by its own copy.
#[test]
fn steps_are_those_that_the_looks_are_measured_by() {
    let made = edge(1.5);
    let known = [
        (4, 0.0, 10, 37, -0.01619),
        (4, 0.0, 40, 47, -0.02937),
        (4, 0.0, 55, 52, 0.02675),
        (4, 0.0, 79, 60, 0.0),
        (4, 0.0, 3, 3, 0.0),
        (4, 0.275, 40, 47, -0.04707),
        (4, 0.6, 10, 37, -0.04117),
        (4, 0.6, 40, 47, -0.06568),
        (4, 0.6, 55, 52, 0.06011),
        (2, 0.0, 10, 37, -0.01056),
        (2, 0.0, 40, 50, -0.00827),
        (2, 0.0, 55, 52, 0.00943),
        (2, 0.6, 40, 50, -0.01266),
    ];
    for (scale, softness, y, x, step) in known {
        let found =
            laid_softly(&made, WIDTH, 1, scale, softness)[y * WIDTH + x] - made[y * WIDTH + x];
        assert!(
            (found - step).abs() < 3e-4,
            "{scale} {softness} {y} {x}: {found}"
        );
    }
}

#[test]
fn colours_move_together_as_their_brightness_does() {
    let gray = edge(1.5);
    let colours: Vec<f32> = gray
        .iter()
        .flat_map(|code| [code + 0.1, *code, code - 0.1])
        .collect();
    let (one, three) = (laid(&gray, WIDTH, 1, 4), laid(&colours, WIDTH, 3, 4));
    for (pixel, (before, after)) in three.chunks_exact(3).zip(gray.iter().zip(&one)) {
        let step = after - before;
        for (sample, apart) in pixel.iter().zip([0.1, 0.0, -0.1]) {
            assert!((sample - (before + apart) - step).abs() < 0.002);
        }
    }
}

#[test]
fn rows_go_on_as_soon_as_all_that_they_reach_is_there_and_every_size_comes_out_whole() {
    for (width, height) in [
        (16, 1),
        (16, 40),
        (40, 1),
        (17, 3),
        (29, 9),
        (16, 17),
        (20, 30),
    ] {
        let made: Vec<f32> = (0..width * height * 16)
            .map(|index| (index * 37 % 101) as f32 / 100.0)
            .collect();
        assert_eq!(laid(&made, width * 4, 1, 4).len(), made.len());
    }
    let mut edges = Edges::new([16, 100], 1, 2, 0.0).expect("narrow enough");
    let mut came = 0;
    for group in 0..100 {
        let mut take = |_: &[f32], _, _: &mut Spare| {
            came += 1;
            Ok(())
        };
        edges
            .push(&[0.5; 64], vec![0.5; 16], &mut Spare::default(), &mut take)
            .unwrap();
        assert_eq!(
            came,
            if group == 99 {
                100
            } else {
                (group + 1_usize).saturating_sub(15)
            }
        );
    }
}

#[test]
fn flat_places_stay_to_the_bit_and_what_is_no_number_harms_nothing() {
    let flat = vec![0.3; WIDTH * HEIGHT];
    assert_eq!(laid(&flat, WIDTH, 1, 4), flat);
    let broken = vec![f32::NAN; WIDTH * HEIGHT];
    assert!(laid(&broken, WIDTH, 1, 4).iter().all(|code| code.is_nan()));
    let far: Vec<f32> = edge(1.0).iter().map(|code| code * 1e30).collect();
    assert_eq!(laid(&far, WIDTH, 1, 4).len(), far.len());
}

#[test]
fn too_wide_a_picture_keeps_its_edges_and_too_narrow_a_one() {
    let laid = [15, 16, 4_096, 4_097].map(|width| Edges::new([width, 3], 3, 4, 0.0).is_some());
    assert_eq!(laid, [false, true, true, false]);
}

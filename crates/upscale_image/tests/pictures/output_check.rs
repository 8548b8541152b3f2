//! Nothing broken is ever called a success: faults put into the network's rows, each caught by name, with numbers.

#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail loudly")]

use crate::files::{bilinear, picture, pngs, upscale, upscale_with};
use upscale_core::Rows;
use upscale_image::{AlphaPlane, CheckFailure, PngWriter, WriteError, decode};

const WIDTH: usize = 128;
const HEIGHT: usize = 96;
const SCALE: usize = 2;
/// Samples of a result row.
const ROW: usize = WIDTH * SCALE * 3;

fn failure(tamper: impl FnMut(usize, &mut Vec<f32>)) -> CheckFailure {
    let bytes = pngs::rgb(WIDTH, HEIGHT, &picture(WIDTH, HEIGHT));
    match upscale_with(&bytes, SCALE, tamper).expect("decodes") {
        Err(WriteError::Check(failure)) => failure,
        Err(error) => panic!("another error: {error}"),
        Ok(_) => panic!("called a success"),
    }
}

/// Applies `change` to every sample of result row `y`, column `x`, channel `c`.
fn each(first_row: usize, samples: &mut [f32], change: impl Fn(usize, usize, usize, &mut f32)) {
    for (at, sample) in samples.iter_mut().enumerate() {
        let (y, x) = (first_row + at / ROW, at % ROW / 3);
        change(x, y, at % 3, sample);
    }
}

#[test]
fn a_sound_result_passes_and_says_how_faithful_it_is() {
    let bytes = pngs::rgb(WIDTH, HEIGHT, &picture(WIDTH, HEIGHT));
    let fidelity = upscale(&bytes, SCALE).expect("passes").facts.fidelity;
    assert!(
        fidelity.psnr > 25.0 && fidelity.delta_e < 1.0,
        "{fidelity:?}"
    );
}

#[test]
fn one_nan_is_caught() {
    let caught = failure(|first_row, samples| {
        if (first_row..first_row + 3).contains(&100) {
            samples[7] = f32::NAN;
        }
    });
    assert!(matches!(caught, CheckFailure::NotFinite { row: 99..=101, value } if value.is_nan()));
}

#[test]
fn one_infinity_is_caught() {
    let caught = failure(|_, samples| samples[0] = f32::NEG_INFINITY);
    assert!(
        matches!(caught, CheckFailure::NotFinite { row: 0..=2, .. }),
        "{caught}"
    );
}

#[test]
fn a_flat_result_is_caught_whatever_its_gray() {
    for gray in [0.0, 0.5, 1.0] {
        let caught = failure(|_, samples| samples.fill(gray));
        let named = matches!(
            caught,
            CheckFailure::Flat { .. } | CheckFailure::Differs { .. }
        );
        assert!(named, "{gray}: {caught}");
    }
}

#[test]
fn a_flat_tile_of_the_right_colour_is_caught() {
    // The mean colour of the disc's edge, so that only its flatness tells.
    let caught = failure(|first_row, samples| {
        each(first_row, samples, |x, y, c, sample| {
            if (64..128).contains(&x) && (0..64).contains(&y) {
                *sample = [0.55, 0.5, 0.6][c];
            }
        });
    });
    let there = matches!(
        caught,
        CheckFailure::Flat { x: 32, y: 0, .. } | CheckFailure::Differs { x: 32, y: 0, .. }
    );
    assert!(there, "{caught}");
}

#[test]
fn a_missing_tile_is_caught_and_located() {
    let caught = failure(|first_row, samples| {
        each(first_row, samples, |x, y, _, sample| {
            if (128..192).contains(&x) && (64..128).contains(&y) {
                *sample = 0.0;
            }
        });
    });
    let there = matches!(
        caught,
        CheckFailure::Flat { x: 64, y: 32, .. } | CheckFailure::Differs { x: 64, y: 32, .. }
    );
    assert!(there, "{caught}");
}

#[test]
fn a_tile_pasted_over_by_its_neighbour_is_caught() {
    let caught = failure(|_, samples| {
        for row in samples.chunks_exact_mut(ROW) {
            row.copy_within(0..64 * 3, 64 * 3);
        }
    });
    let named = matches!(
        caught,
        CheckFailure::Differs { .. } | CheckFailure::Flat { .. } | CheckFailure::Shifted { .. }
    );
    assert!(named, "{caught}");
}

#[test]
fn a_shift_by_one_source_pixel_is_caught_in_every_direction() {
    for (dx, dy) in [(1_i32, 0_i32), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, -1)] {
        let source =
            decode(&pngs::rgb(WIDTH, HEIGHT, &fine(WIDTH, HEIGHT)), 20_000).expect("decodes");
        let shifted = decode(&pngs::rgb(WIDTH, HEIGHT, &moved(dx, dy)), 20_000).expect("decodes");
        let mut writer = PngWriter::new(&source, SCALE, None).expect("opens");
        let mut failed = None;
        bilinear(&shifted.color, SCALE, |rows| {
            if failed.is_none() {
                failed = writer.push_rows(rows).err();
            }
        });
        let caught = match failed {
            Some(WriteError::Check(caught)) => caught,
            Some(error) => panic!("another error: {error}"),
            None => panic!("({dx}, {dy}) passed"),
        };
        let named =
            matches!(caught, CheckFailure::Shifted { dx: x, dy: y, .. } if (x, y) == (-dx, -dy));
        assert!(named, "({dx}, {dy}): {caught}");
    }
}

/// Waves of a few pixels in both directions.
fn fine(width: usize, height: usize) -> Vec<u8> {
    let level = |x: usize, y: usize| {
        (128.0 + 50.0 * (x as f32 * 0.7).sin() + 50.0 * (y as f32 * 0.6).cos()) as u8
    };
    (0..width * height)
        .flat_map(|at| [level(at % width, at / width), 100, 90])
        .collect()
}

fn moved(dx: i32, dy: i32) -> Vec<u8> {
    let source = fine(WIDTH, HEIGHT);
    let near = |at: usize, step: i32, length: usize| {
        at.saturating_add_signed(-step as isize).min(length - 1)
    };
    (0..WIDTH * HEIGHT)
        .flat_map(|at| {
            let from = near(at / WIDTH, dy, HEIGHT) * WIDTH + near(at % WIDTH, dx, WIDTH);
            [source[from * 3], source[from * 3 + 1], source[from * 3 + 2]]
        })
        .collect()
}

#[test]
fn swapped_channels_and_inverted_colours_are_caught() {
    let caught = failure(|_, samples| samples.chunks_exact_mut(3).for_each(|p| p.swap(0, 2)));
    assert!(matches!(caught, CheckFailure::Differs { .. }), "{caught}");
    let caught = failure(|_, samples| samples.iter_mut().for_each(|s| *s = 1.0 - *s));
    assert!(matches!(caught, CheckFailure::Differs { .. }), "{caught}");
}

#[test]
fn colours_that_moved_everywhere_a_little_too_far_are_caught() {
    let caught = failure(|_, samples| {
        samples.chunks_exact_mut(3).for_each(|pixel| {
            pixel[0] += 0.075;
            pixel[1] -= 0.075;
        });
    });
    assert!(
        matches!(caught, CheckFailure::Colours { delta_e, .. } if delta_e > 8.0),
        "{caught}"
    );
}

#[test]
fn noise_where_the_source_is_smooth_is_caught() {
    let mut state = 1_u32;
    let caught = failure(|_, samples| {
        for pixel in samples.iter_mut() {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            *pixel += (state >> 8) as f32 / 16_777_216.0 - 0.5;
        }
    });
    assert!(
        matches!(
            caught,
            CheckFailure::Differs { .. } | CheckFailure::Noisy { .. }
        ),
        "{caught}"
    );
}

#[test]
fn rows_come_once_and_in_order_and_all_of_them() {
    let source = decode(&pngs::rgb(8, 8, &picture(8, 8)), 64).expect("decodes");
    let samples = vec![0.5; 16 * 3];
    let rows = |first_row: usize| Rows {
        first_row,
        row_count: 1,
        row_samples: 48,
        samples: &samples,
    };
    for wrong in [1, 2, 15] {
        let mut writer = PngWriter::new(&source, 2, None).expect("opens");
        let error = writer.push_rows(rows(wrong)).expect_err("not the first");
        assert!(matches!(error, WriteError::RowOrder { expected: 0, given, .. } if given == wrong));
    }
    let mut writer = PngWriter::new(&source, 2, None).expect("opens");
    writer.push_rows(rows(0)).expect("first");
    assert!(matches!(
        writer.push_rows(rows(0)),
        Err(WriteError::RowOrder { expected: 1, .. })
    ));
    let mut writer = PngWriter::new(&source, 2, None).expect("opens");
    writer.push_rows(rows(0)).expect("first");
    assert!(matches!(
        writer.finish(),
        Err(WriteError::RowOrder {
            expected: 1,
            height: 16,
            ..
        })
    ));
}

#[test]
fn a_broken_alpha_is_caught_too() {
    let rgba: Vec<u8> = (0..64 * 64)
        .flat_map(|at| [90, 80, 70, (at % 64 * 4) as u8])
        .collect();
    let source = decode(&pngs::rgba(64, 64, &rgba), 5000).expect("decodes");
    let mut plane = AlphaPlane::new(&source, 2).expect("has alpha");
    let flat = vec![0.5; 128 * 64];
    let rows = Rows {
        first_row: 0,
        row_count: 64,
        row_samples: 128,
        samples: &flat,
    };
    assert!(matches!(plane.push_rows(rows), Err(WriteError::Check(_))));
}

#[test]
fn alpha_must_be_there_when_the_source_has_it_and_only_then() {
    let rgba: Vec<u8> = (0..64).flat_map(|at| [90, 80, 70, at * 4]).collect();
    let with = decode(&pngs::rgba(8, 8, &rgba), 64).expect("decodes");
    let without = decode(&pngs::rgb(8, 8, &picture(8, 8)), 64).expect("decodes");
    let missing = PngWriter::new(&with, 2, None).err();
    assert!(matches!(missing, Some(WriteError::AlphaMismatch { .. })));
    let empty = AlphaPlane::new(&with, 2);
    let unfinished = PngWriter::new(&with, 2, empty).err();
    assert!(matches!(unfinished, Some(WriteError::AlphaMismatch { .. })));
    assert!(AlphaPlane::new(&without, 2).is_none());
}

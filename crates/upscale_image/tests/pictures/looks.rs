//! What the finer looks do on the way into the file, sharpen and lay edges: only where the writer is asked to, however rows come.

#![allow(clippy::expect_used, reason = "a test may fail loudly")]

use std::f32::consts::TAU;

use upscale_core::{Look, Rows};
use upscale_image::raster::Rgb8;
use upscale_image::{PngWriter, Source, decode};

const SCALE: usize = 4;
const WIDTH: usize = 96;
const HEIGHT: usize = 80;

/// A slanted edge that trembles by a pixel and a half, in one row of the result after the other.
fn code(x: usize, y: usize) -> f32 {
    let (x, y) = (x as f32, y as f32);
    let beside = x - 48.0 - 0.3 * (y - 40.0) + 1.5 * (y / 30.0 * TAU).sin();
    0.25 + 0.5 / (1.0 + (-beside / 1.5).exp())
}

/// What would be enlarged to that.
fn source() -> Source {
    let mean = |x: usize, y: usize| {
        let (x, y) = (x * SCALE, y * SCALE);
        let block = (0..SCALE * SCALE).map(|at| code(x + at % SCALE, y + at / SCALE));
        (block.sum::<f32>() / 16.0 * 255.0).round() as u8
    };
    let picture = Rgb8::paint(WIDTH / SCALE, HEIGHT / SCALE, |x, y| [mean(x, y); 3]);
    decode(&picture.to_png().expect("a PNG"), 10_000).expect("its source")
}

/// Levels of the file of that look, given so many rows at a time.
fn written(source: &Source, look: Look, row_count: usize) -> Vec<f32> {
    let channels = source.color.channels();
    let writer = PngWriter::new(source, SCALE, None).expect("opens");
    let mut writer = writer.with_look(look, 0.0);
    push(&mut writer, channels, row_count);
    levels(writer)
}

fn push(writer: &mut PngWriter<'_>, channels: usize, row_count: usize) {
    for first_row in (0..HEIGHT).step_by(row_count) {
        let rows = first_row..(first_row + row_count).min(HEIGHT);
        let samples: Vec<f32> = rows
            .clone()
            .flat_map(|y| (0..WIDTH * channels).map(move |at| code(at / channels, y)))
            .collect();
        let given = Rows {
            first_row,
            row_count: rows.len(),
            row_samples: WIDTH * channels,
            samples: &samples,
        };
        writer.push_rows(given).expect("sound rows");
    }
}

fn levels(writer: PngWriter<'_>) -> Vec<f32> {
    let (_, png) = writer.finish().expect("a file");
    let made = decode(&png, 1_000_000).expect("a PNG");
    made.color.samples().to_vec()
}

/// How steep the edge is, in the mean of all rows: from four pixels before it to four behind it, in 0..1.
fn rise(levels: &[f32], channels: usize) -> f32 {
    let rows = levels.chunks_exact(WIDTH * channels).enumerate();
    let rises = rows.map(|(y, row)| {
        let x = (48.0 + 0.3 * (y as f32 - 40.0)) as usize;
        row[(x + 4) * channels] - row[(x - 4) * channels]
    });
    rises.sum::<f32>() / HEIGHT as f32
}

#[test]
fn finer_looks_change_what_is_beside_edges_alone_and_crisp_the_more() {
    let source = source();
    let [faithful, natural, crisp] = Look::ALL.map(|look| written(&source, look, 7));
    let channels = source.color.channels();
    let mut plain = PngWriter::new(&source, SCALE, None).expect("opens");
    push(&mut plain, channels, 7);
    assert_eq!(faithful, levels(plain));
    let mut moved = 0;
    for (at, (before, after)) in faithful.iter().zip(&natural).enumerate() {
        let (x, y) = (at / channels % WIDTH, at / channels / WIDTH);
        let across = (x as f32 - 48.0 - 0.3 * (y as f32 - 40.0)).abs();
        let apart = (before - after).abs();
        assert!(across < 12.0 || apart == 0.0, "{x} {y}: {apart}");
        moved += usize::from(apart > 2.0 / 255.0);
    }
    assert!(moved > 200 * channels, "{moved}");
    assert!(rise(&natural, channels) < rise(&crisp, channels));
}

#[test]
fn the_file_is_the_same_however_its_rows_came() {
    let source = source();
    let whole = written(&source, Look::Crisp, HEIGHT);
    for row_count in [1, 3, 4, 17] {
        assert_eq!(
            written(&source, Look::Crisp, row_count),
            whole,
            "{row_count}"
        );
    }
}

//! What was pure black or white, and stays so.

use upscale_core::Pixels;

/// Of every pixel of row `y`: whether the result stays white where it and all eight around it are pure white, or black.
/// Empty where none does.
pub(super) fn pure_pixels(source: &Pixels, y: usize) -> Vec<Option<bool>> {
    // Most rows of a photograph have nothing pure.
    let mut own = source.row(y).iter();
    if !own.any(|sample| is_white(sample) || is_black(sample)) {
        return Vec::new();
    }
    let mut pure = vec![None; source.width()];
    mark(&mut pure, true, &pure_columns(source, y, is_white));
    mark(&mut pure, false, &pure_columns(source, y, is_black));
    pure
}

/// Of every column: whether all samples of row `y` and of the two beside it pass.
fn pure_columns(source: &Pixels, y: usize, passes: impl Fn(&f32) -> bool) -> Vec<bool> {
    let channels = source.channels();
    let mut pure = vec![true; source.width()];
    for row in [y, y.saturating_sub(1), (y + 1).min(source.height() - 1)] {
        for (pixel, pure) in source.row(row).chunks_exact(channels).zip(&mut pure) {
            *pure = *pure && pixel.iter().all(&passes);
        }
        if !pure.contains(&true) {
            break;
        }
    }
    pure
}

fn mark(pure: &mut [Option<bool>], white: bool, columns: &[bool]) {
    let width = columns.len();
    for (x, level) in pure.iter_mut().enumerate() {
        let around = &columns[x.saturating_sub(1)..(x + 2).min(width)];
        if around.iter().all(|pure| *pure) {
            *level = Some(white);
        }
    }
}

pub(super) fn keep_pure(pure: &[Option<bool>], block_samples: usize, row: &mut [f32]) {
    for (level, block) in pure.iter().zip(row.chunks_exact_mut(block_samples)) {
        if let Some(white) = level {
            block.fill(f32::from(u8::from(*white)));
        }
    }
}

/// A level of 16 bits short of the end is the end: curves and decoders round.
const PURE: f32 = 1.0 / 65_535.0;

fn is_white(sample: &f32) -> bool {
    *sample >= 1.0 - PURE
}

fn is_black(sample: &f32) -> bool {
    *sample <= PURE
}

//! Pictures that are one line of pixels. Beside the line all is zero, so a 3x3 layer has three taps there: Winograd's F(6, 3),
//! eight products for six pixels where a tile would take 64. They stand at the positions of a tile's second row, whichever
//! way the line lies.
//!
//! Layers in 16-bit integers know no lines: their products have scales of their own for every position of a tile.

use upscale_simd::{Lanes, ReadLease};

use crate::finish::{Joined, finish_line};
use crate::needed::Line;
use crate::plan::PlanLayer;
use crate::products::Products;
use crate::winograd::{TILE, WINDOW, inputs, kernel_line, outputs};

/// The eight matrices of a layer, one after another, of its nine taps.
#[inline(always)]
pub(crate) fn transform_weights<L: Lanes>(
    lanes: L,
    (taps, line): (&[f32], Line),
    (numbers, matrix): (&mut [f32], usize),
) {
    // The middle column of each kernel, or its middle row.
    let (first, step) = match line {
        Line::Standing => (1, 3),
        Line::Lying => (3, 1),
    };
    for at in (0..matrix).step_by(L::WIDTH) {
        let kernels = lanes.load_line(taps, first * matrix + at, step * matrix);
        let points = kernel_line(lanes, kernels);
        lanes.store_line(points, WINDOW, numbers, (at, matrix));
    }
}

/// As [`crate::tiles::transform_inputs`], of a line.
#[inline(always)]
pub(crate) fn transform_inputs<L: Lanes>(
    lanes: L,
    shape: &Products,
    window: &[ReadLease<'_>; WINDOW],
    (place, channels): (usize, usize),
    (products, first): (&mut [f32], usize),
    line: Line,
) {
    let to = (shape.position(WINDOW) + first, shape.position(1));
    for tile in 0..shape.tiles {
        let at = place + tile * TILE * channels;
        let products = &mut products[tile * shape.tile_stride..];
        for channel in (0..channels).step_by(L::WIDTH) {
            let pixels = pixels(lanes, window, (at + channel, channels), line);
            let points = inputs(lanes, pixels);
            lanes.store_line(points, WINDOW, products, (to.0 + channel, to.1));
        }
    }
}

/// Eight neighbours of the line; the window begins at `at` (in numbers) of rows with `channels` channels.
#[inline(always)]
fn pixels<L: Lanes>(
    lanes: L,
    window: &[ReadLease<'_>; WINDOW],
    (at, channels): (usize, usize),
    line: Line,
) -> [L::V; WINDOW] {
    if line == Line::Lying {
        return lanes.load_line(&window[1], at, channels);
    }
    let [a, b, c, d, e, f, g, h] = window;
    let at = at + channels;
    [
        lanes.load(a, at),
        lanes.load(b, at),
        lanes.load(c, at),
        lanes.load(d, at),
        lanes.load(e, at),
        lanes.load(f, at),
        lanes.load(g, at),
        lanes.load(h, at),
    ]
}

/// As [`crate::tiles::transform_outputs`], of a line.
#[inline(always)]
pub(crate) fn transform_outputs<L: Lanes>(
    lanes: L,
    shape: &Products,
    (products, width): (&[f32], usize),
    (layer, line): (&PlanLayer, Line),
    joined: &[Joined<'_>],
    place: usize,
    rows: &mut [&mut [f32]],
) {
    let from = (shape.position(WINDOW), shape.position(1));
    for tile in 0..shape.tiles {
        let products = &products[tile * shape.tile_stride..];
        for channel in (0..layer.channels).step_by(L::WIDTH) {
            let sums = lanes.load_line(products, from.0 + channel, from.1);
            let mut values = outputs(lanes, sums);
            let pixel = tile * TILE * layer.channels + channel;
            let at = place * layer.channels + pixel;
            if line == Line::Standing {
                for (row, (output, value)) in rows.iter_mut().zip(values).enumerate() {
                    let mut one = [value];
                    finish_line(lanes, layer, joined, (row, at, channel), &mut one, 1);
                    lanes.store(one[0], output, pixel);
                }
            } else if let [output] = rows {
                let columns = (width - tile * TILE).min(TILE);
                finish_line(lanes, layer, joined, (0, at, channel), &mut values, columns);
                lanes.store_line(values, columns, output, (pixel, layer.channels));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use upscale_core::Pixels;

    use crate::calibrate::fast_plan;
    use crate::kernel_set::KernelSet;
    use crate::plan::Plan;
    use crate::shapes::{Random, Shape};
    use crate::trials::run_cut;
    use crate::upscale::Cut;

    fn picture(width: usize, height: usize, channels: usize) -> Pixels {
        let mut random = Random((width * 1_000 + height) as u64);
        let samples = (0..width * height * channels).map(|_| random.unit());
        Pixels::new(width, height, channels, samples.collect()).unwrap()
    }

    /// Tile by tile, all products of each: what the definition of the tiles says.
    const PLAIN: Cut = Cut {
        segment_tiles: 1,
        band: 1,
        task_rows: 1,
        strip_tiles: usize::MAX / 64,
        rest: 3,
        leaves_out: false,
        is_staggered: false,
    };

    /// Several rows of tiles a task, strips of a few tiles, and nothing computed that lies outside.
    const FOLDED: Cut = Cut {
        segment_tiles: 4,
        band: 9,
        task_rows: 5,
        strip_tiles: 8,
        rest: 2,
        leaves_out: true,
        is_staggered: false,
    };

    /// Every kind of layer: gates, squares of pixels, maps that are enlarged or read four as one, 16-bit integers.
    fn plans() -> Vec<(&'static str, Plan)> {
        let kernels = KernelSet::best().kernels().unwrap();
        let rrdb = Shape::Rrdb {
            channels: 16,
            growth: 8,
            blocks: 1,
        };
        let compact = Shape::Compact {
            channels: 24,
            convs: 3,
        };
        let exact = |shape: Shape, scale| Plan::new(&shape.network(scale, 5).unfolded(), kernels);
        let edsr = Shape::Edsr {
            channels: 16,
            blocks: 1,
        };
        let f = Shape::parse("f").unwrap();
        vec![
            ("f at 2x", exact(f, 2)),
            ("f at 4x", exact(f, 4)),
            ("squares", exact(rrdb, 2)),
            ("enlarged", exact(rrdb, 4)),
            ("four maps as one", exact(edsr, 4)),
            (
                "words at 2x",
                fast_plan(&compact.network(2, 5).unfolded(), kernels),
            ),
            (
                "words at 4x",
                fast_plan(&compact.network(4, 5).unfolded(), kernels),
            ),
        ]
    }

    #[test]
    fn thin_pictures_have_the_bits_of_their_tiles_and_lines_the_bits_of_any_cut() {
        for (name, plan) in plans() {
            for thin in [1, 2, 3, 5, 7] {
                for (long, channels) in [(1, 3), (6, 1), (97, 3), (200, 1)] {
                    for (width, height) in [(thin, long), (long, thin)] {
                        let source = picture(width, height, channels);
                        let usual = Cut {
                            is_staggered: false,
                            ..Cut::new(&plan, (width, height), 1, usize::MAX)
                        };
                        let [plain, folded, usual] =
                            [PLAIN, FOLDED, usual].map(|cut| run_cut(&plan, &source, 2, &cut));
                        let bits = |samples: &[f32]| -> Vec<u32> {
                            samples.iter().map(|sample| sample.to_bits()).collect()
                        };
                        let what = format!("{name}, {width} x {height}");
                        assert_eq!(bits(&folded), bits(&usual), "{what}");
                        if thin.min(long) > plan.unshuffle {
                            assert_eq!(bits(&folded), bits(&plain), "{what}");
                        }
                        let most = if name.starts_with("words") {
                            1e-3
                        } else {
                            1e-5
                        };
                        let mut beside = folded.iter().zip(&plain);
                        assert!(beside.all(|(a, b)| (a - b).abs() < most), "{what}");
                    }
                }
            }
        }
    }
}

//! Pictures that do not fill a tile: one to five pixels wide or high. Of the 64 products of a tile those are left out
//! that only pixels outside of the picture need; and where a picture is one line of pixels, the transforms know that
//! seven of a window's eight lines are zero. The numbers that are left are bit by bit those of `tiles.rs` and
//! `word_tiles.rs`.

use upscale_simd::{CHANNEL_UNIT, Lanes, ReadLease};

use crate::finish::{Joined, finish_line};
use crate::needed::{Line, Narrow};
use crate::plan::PlanLayer;
use crate::products::Products;
use crate::winograd::{POSITIONS, TILE, WINDOW, crosswise, inputs, outputs};

/// The eight points of a line of inputs of which only the second is not zero, as multiples of it: what
/// [`inputs`] comes to, for powers of two are multiplied without rounding.
const LONE: [f32; WINDOW] = [0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, -1.0];

/// A window of one line, transformed along that line.
#[derive(Clone, Copy)]
struct Points<V> {
    along: [V; WINDOW],
    is_standing: bool,
}

impl<V: Copy> Points<V> {
    /// Of channels `channel` and on; the window begins at `place` (in numbers) of rows with `channels` channels.
    #[inline(always)]
    fn of<L: Lanes<V = V>>(
        lanes: L,
        window: &[ReadLease<'_>; WINDOW],
        (place, channels): (usize, usize),
        channel: usize,
        narrow: Narrow,
    ) -> Self {
        let is_standing = narrow.line == Line::Standing;
        let pixels = if is_standing {
            let at = place + channels + channel;
            let [a, b, c, d, e, f, g, h] = window;
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
        } else {
            lanes.load_line(&window[1], place + channel, channels)
        };
        Self {
            along: inputs(lanes, pixels),
            is_standing,
        }
    }

    /// The points that the eight numbers of a column are multiples of.
    #[inline(always)]
    fn repeated(&self, column: usize) -> [V; WINDOW] {
        if self.is_standing {
            self.along
        } else {
            [self.along[column]; WINDOW]
        }
    }

    /// The eight numbers of a column.
    #[inline(always)]
    fn column<L: Lanes<V = V>>(&self, lanes: L, column: usize) -> [V; WINDOW] {
        let mut line = self.repeated(column);
        for (row, value) in line.iter_mut().enumerate() {
            let lone = if self.is_standing { column } else { row };
            *value = lanes.mul(*value, lanes.splat(LONE[lone]));
        }
        line
    }
}

/// As [`crate::tiles::transform_inputs`], of a line, as far as products are needed.
#[inline(always)]
pub(crate) fn transform_inputs<L: Lanes>(
    lanes: L,
    shape: &Products,
    window: &[ReadLease<'_>; WINDOW],
    (place, channels): (usize, usize),
    (products, first): (&mut [f32], usize),
    narrow: Narrow,
) {
    let stride = shape.position(WINDOW);
    for tile in 0..shape.tiles {
        let at = (place + tile * TILE * channels, channels);
        for channel in (0..channels).step_by(L::WIDTH) {
            let points = Points::of(lanes, window, at, channel, narrow);
            let to = &mut products[tile * shape.tile_stride + first + channel..];
            for column in narrow.columns.0..narrow.columns.1 {
                let line = points.column(lanes, column);
                lanes.store_line(line, WINDOW, to, (shape.position(column), stride));
            }
        }
    }
}

/// As [`crate::word_tiles::transform_inputs`], of a line. All 64 numbers of a tile count for its scale.
#[inline(always)]
pub(crate) fn transform_word_inputs<L: Lanes>(
    lanes: L,
    shape: &Products,
    window: &[ReadLease<'_>; WINDOW],
    (place, channels): (usize, usize),
    (products, first): (&mut [f32], usize),
    ((scales, largest), narrow): ((&[f32; POSITIONS], &mut [f32]), Narrow),
) {
    let stride = shape.position(WINDOW);
    let scales = LineScales::of(scales, narrow);
    for (tile, largest) in largest.iter_mut().enumerate() {
        let at = (place + tile * TILE * channels, channels);
        let to = &mut products[tile * shape.tile_stride..];
        let mut found = lanes.splat(*largest);
        for channel in (0..channels).step_by(L::WIDTH) {
            let points = Points::of(lanes, window, at, channel, narrow);
            for (value, by) in points.along.iter().zip(scales.largest) {
                let largest = lanes.mul(*value, lanes.splat(by));
                found = lanes.max_magnitude(found, largest);
            }
            for column in narrow.columns.0..narrow.columns.1 {
                let mut line = points.repeated(column);
                for (value, by) in line.iter_mut().zip(scales.of_column(column)) {
                    *value = lanes.mul(*value, lanes.splat(by));
                }
                let to = &mut to[shape.position(column)..];
                lanes.store_words_line(line, to, (first + channel, stride));
            }
        }
        let mut lanes_found = [0.0_f32; CHANNEL_UNIT];
        lanes.store(found, &mut lanes_found, 0);
        *largest = lanes_found.into_iter().fold(0.0, f32::max);
    }
}

/// What the points along a line are multiplied by: [`LONE`] and a layer's scales at once, for the former are powers of
/// two.
struct LineScales {
    /// By column, then by row.
    all: [[f32; WINDOW]; WINDOW],
    /// The largest magnitude for every point along the line.
    largest: [f32; WINDOW],
}

impl LineScales {
    fn of(scales: &[f32; POSITIONS], narrow: Narrow) -> Self {
        let (mut all, mut largest) = ([[0.0_f32; WINDOW]; WINDOW], [0.0_f32; WINDOW]);
        for (position, scale) in scales.iter().enumerate() {
            let (row, column) = (position / WINDOW, position % WINDOW);
            let (along, lone) = match narrow.line {
                Line::Standing => (row, column),
                _ => (column, row),
            };
            let scale = LONE[lone] * scale;
            all[column][row] = scale;
            largest[along] = largest[along].max(scale.abs());
        }
        Self { all, largest }
    }

    #[inline(always)]
    fn of_column(&self, column: usize) -> [f32; WINDOW] {
        self.all[column]
    }
}

/// As [`crate::tiles::transform_outputs`], of a line.
#[inline(always)]
pub(crate) fn transform_outputs<L: Lanes>(
    lanes: L,
    shape: &Products,
    (products, tile_scales, width): (&[f32], &[f32], usize),
    (layer, narrow): (&PlanLayer, Narrow),
    joined: &[Joined<'_>],
    place: usize,
    rows: &mut [&mut [f32]],
) {
    let is_standing = narrow.line == Line::Standing;
    for tile in 0..shape.tiles {
        for channel in (0..layer.channels).step_by(L::WIDTH) {
            let from = &products[tile * shape.tile_stride + channel..];
            let sums = Sums {
                shape,
                from,
                layer,
                channel,
            };
            let mut line = if is_standing {
                sums.standing(lanes)
            } else {
                sums.lying(lanes)
            };
            if layer.words.is_some() {
                let scale = lanes.splat(1.0 / tile_scales[tile]);
                let bias = lanes.load(&layer.bias, channel);
                for value in &mut line {
                    *value = lanes.fma(*value, scale, bias);
                }
            }
            let pixel = tile * TILE * layer.channels + channel;
            let at = place * layer.channels + pixel;
            if is_standing {
                for (row, (output, value)) in rows.iter_mut().zip(line).enumerate() {
                    let mut one = [value];
                    finish_line(lanes, layer, joined, (row, at, channel), &mut one, 1);
                    lanes.store(one[0], output, pixel);
                }
            } else if let [output] = rows {
                let columns = (width - tile * TILE).min(TILE);
                finish_line(lanes, layer, joined, (0, at, channel), &mut line, columns);
                lanes.store_line(line, columns, output, (pixel, layer.channels));
            }
        }
    }
}

/// The sums of one tile, of channels `channel` and on.
struct Sums<'a> {
    shape: &'a Products,
    from: &'a [f32],
    layer: &'a PlanLayer,
    channel: usize,
}

impl Sums<'_> {
    /// Six outputs below one another: all six of every column, then the first across.
    #[inline(always)]
    fn standing<L: Lanes>(&self, lanes: L) -> [L::V; TILE] {
        let zero = [lanes.splat(0.0); TILE];
        let half = [
            zero,
            outputs(lanes, self.column(lanes, 1)),
            outputs(lanes, self.column(lanes, 2)),
            outputs(lanes, self.column(lanes, 3)),
            outputs(lanes, self.column(lanes, 4)),
            outputs(lanes, self.column(lanes, 5)),
            outputs(lanes, self.column(lanes, 6)),
            zero,
        ];
        [
            first(lanes, crosswise(&half, 0)),
            first(lanes, crosswise(&half, 1)),
            first(lanes, crosswise(&half, 2)),
            first(lanes, crosswise(&half, 3)),
            first(lanes, crosswise(&half, 4)),
            first(lanes, crosswise(&half, 5)),
        ]
    }

    /// Six outputs side by side: the first of every column, then all six across.
    #[inline(always)]
    fn lying<L: Lanes>(&self, lanes: L) -> [L::V; TILE] {
        let firsts = [
            first(lanes, self.column(lanes, 0)),
            first(lanes, self.column(lanes, 1)),
            first(lanes, self.column(lanes, 2)),
            first(lanes, self.column(lanes, 3)),
            first(lanes, self.column(lanes, 4)),
            first(lanes, self.column(lanes, 5)),
            first(lanes, self.column(lanes, 6)),
            first(lanes, self.column(lanes, 7)),
        ];
        outputs(lanes, firsts)
    }

    /// The eight sums of a column as numbers.
    #[inline(always)]
    fn column<L: Lanes>(&self, lanes: L, column: usize) -> [L::V; WINDOW] {
        let (step, stride) = (self.shape.position(column), self.shape.position(WINDOW));
        let mut line = lanes.load_line(self.from, step, stride);
        if let Some(words) = &self.layer.words {
            let at = column * words.channels + self.channel;
            let stride = WINDOW * words.channels;
            let scales: [L::V; WINDOW] = lanes.load_line(&words.sum_scales, at, stride);
            for (value, scale) in line.iter_mut().zip(scales) {
                *value = lanes.mul(lanes.whole(*value), scale);
            }
        }
        line
    }
}

/// The first of [`outputs`], where the first point is zero.
#[inline(always)]
fn first<L: Lanes>(l: L, m: [L::V; WINDOW]) -> L::V {
    let (one, two) = (l.add(m[1], m[2]), l.add(m[3], m[4]));
    let half = l.add(m[5], m[6]);
    l.fma(half, l.splat(32.0), l.add(l.add(l.splat(0.0), one), two))
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
    fn thin_pictures_have_the_bits_of_their_tiles() {
        for (name, plan) in plans() {
            for thin in [1, 2, 3, 5, 7] {
                for (long, channels) in [(1, 3), (6, 1), (97, 3), (200, 1)] {
                    for (width, height) in [(thin, long), (long, thin)] {
                        let source = picture(width, height, channels);
                        let plain = run_cut(&plan, &source, 2, &PLAIN);
                        let usual = Cut {
                            is_staggered: false,
                            ..Cut::new(&plan, (width, height), 1, usize::MAX)
                        };
                        for cut in [FOLDED, usual] {
                            let given = run_cut(&plan, &source, 2, &cut);
                            let same = given.iter().zip(&plain);
                            let mut same = same.map(|(a, b)| a.to_bits() == b.to_bits());
                            assert!(
                                given.len() == plain.len() && same.all(|same| same),
                                "{name}, {width} x {height}, {cut:?}"
                            );
                        }
                    }
                }
            }
        }
    }
}

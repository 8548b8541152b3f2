//! Maps that are kept as 16-bit integers in bytes, as tile registers read them: a layer packs once what the next ones need, instead of
//! splitting what it reads in each row of tiles, and rows take half of the memory.
//!
//! A tile of six by six pixels with a number that does not fit is scaled down by a power of two; by which depends on
//! its numbers alone, so that results stay the same however a picture is cut.

use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering};

use upscale_simd::{SPLIT_MAX, Tiles, packed_pitch, unpack};

use crate::network::{Map, PICTURE};
use crate::plan::{Method, PlanLayer};
use crate::winograd::TILE;
use crate::word_tiles::tile_scale;

/// Channels of a map at most, where a layer reads several: a chunk of bytes that is multiplied at a time.
const PART_MAX: usize = 64;

/// Equal parts that a layer's inputs are cut into, which have so many channels; none where they are unequal or too wide.
pub(crate) fn parts(inputs: &[usize]) -> Option<usize> {
    let (first, others) = inputs.split_first()?;
    let is_equal = others.iter().all(|one| one == first);
    (others.is_empty() || is_equal && *first <= PART_MAX).then_some(inputs.len())
}

/// Of every map, what its numbers are multiplied by where it is packed: those that only layers on tile registers read. All that one
/// layer reads have one scale, the smallest of theirs, which the layers are given.
pub(crate) fn pack(layers: &mut [PlanLayer], maps: &[usize]) -> Vec<Option<f32>> {
    let mut is_packed = vec![true; maps.len()];
    is_packed[PICTURE] = false;
    while let Some(map) = one_to_leave(layers, maps, &is_packed) {
        is_packed[map] = false;
    }
    let mut scales: Vec<Option<f32>> = vec![None; maps.len()];
    // Until nothing changes: a scale goes from layer to map to layer, and only ever down.
    loop {
        let mut is_done = true;
        for layer in layers.iter_mut() {
            let inputs = || layer.inputs.iter().filter(|map| is_packed[**map]);
            let Some(direct) = layer.direct.as_mut().filter(|_| inputs().count() > 0) else {
                continue;
            };
            let least = inputs().filter_map(|&map| scales[map]);
            let least = least.fold(direct.scale, f32::min);
            for &map in inputs() {
                is_done &= scales[map] == Some(least);
                scales[map] = Some(least);
            }
            direct.scale = least;
        }
        if is_done {
            return scales;
        }
    }
}

/// A map that cannot be packed although it is said to be.
fn one_to_leave(layers: &[PlanLayer], maps: &[usize], is_packed: &[bool]) -> Option<Map> {
    layers.iter().find_map(|layer| {
        let channels: Vec<usize> = layer.inputs.iter().map(|&map| maps[map]).collect();
        let direct = layer.direct.as_ref();
        let is_reader = direct.is_some() && parts(&channels).is_some();
        let is_reader = is_reader && layer.inputs.iter().all(|map| is_packed[*map]);
        let is_maker = direct.is_some() || layer.method == Method::Picture;
        // What is added is packed with the sums, or not at all.
        let is_adder = direct.is_some_and(|direct| direct.packs_sums(layer));
        let is_adder = is_adder && is_packed[layer.output];
        let read = layer.inputs.iter().copied().filter(|_| !is_reader);
        let made = [layer.output].into_iter().filter(|_| !is_maker);
        let joined = layer.combine.iter().map(|combine| combine.map());
        let mut wrong = read.chain(made).chain(joined.filter(|_| !is_adder));
        wrong.find(|map| is_packed[*map])
    })
}

/// Tiles of a map: of some rows of tiles those in some columns.
#[derive(Clone)]
pub(crate) struct TileArea {
    pub(crate) rows: Range<usize>,
    pub(crate) columns: Range<usize>,
}

impl TileArea {
    /// Those and all that touch them.
    pub(crate) fn with_neighbours(&self) -> Self {
        let wider = |range: &Range<usize>| range.start.saturating_sub(1)..range.end + 1;
        Self {
            rows: wider(&self.rows),
            columns: wider(&self.columns),
        }
    }
}

/// By how much tiles of packed maps are scaled down; of a map that is not packed, nothing.
pub(crate) struct Packed(Vec<Option<Tiled>>);

/// A packed map.
struct Tiled {
    scale: f32,
    /// Tiles of a row that are kept: those of a strip.
    columns: Range<usize>,
    /// By how many powers of two each tile is scaled down, row by row; [`NO_NUMBERS`]. Tasks that read wait for those that wrote, so that no order
    /// is needed here.
    down: Vec<AtomicU8>,
}

/// What a tile has whose largest magnitude is no number.
const NO_NUMBERS: u8 = u8::MAX;

impl Packed {
    /// For maps with these scales; `size` gives columns of a map's tiles and how many rows.
    pub(crate) fn new(scales: &[Option<f32>], size: impl Fn(Map) -> (Range<usize>, usize)) -> Self {
        let maps = scales.iter().enumerate().map(|(map, scale)| {
            let (columns, rows) = size(map);
            let count = columns.len() * rows;
            scale.map(|scale| Tiled {
                scale,
                columns,
                down: (0..count).map(|_| AtomicU8::new(0)).collect(),
            })
        });
        Self(maps.collect())
    }

    /// Whether one of these tiles is scaled down in one of the maps.
    pub(crate) fn has_scaled(&self, maps: impl Iterator<Item = Map>, area: &TileArea) -> bool {
        maps.filter_map(|map| self.0[map].as_ref()).any(|map| {
            let mut rows = area.rows.clone();
            rows.any(|row| area.columns.clone().any(|column| map.down(row, column) > 0))
        })
    }

    /// Packs what is a row of tiles of `map`, of `channels` numbers a pixel, into its rows.
    pub(crate) fn store(
        &self,
        tiles: Tiles,
        area: &TileArea,
        (map, channels): (Map, usize),
        (numbers, rows): (&[f32], &mut [&mut [f32]]),
    ) {
        let Some(map) = &self.0[map] else { return };
        let row_len = numbers.len() / rows.len();
        let (side, pitch) = (TILE * channels, TILE * packed_pitch(channels));
        for (tile, column) in area.columns.clone().enumerate() {
            let pixels = tile * side..row_len.min((tile + 1) * side);
            let mut pack = |scale: f32| {
                let each = rows.iter_mut().enumerate().map(|(row, to)| {
                    let from = &numbers[row * row_len..][pixels.clone()];
                    tiles.pack((from, channels), scale, &mut to[tile * pitch..])
                });
                each.fold(0.0, larger)
            };
            let scale = tile_scale(pack(map.scale), SPLIT_MAX);
            let down = match scale.is_nan() {
                true => NO_NUMBERS,
                false => -scale.log2() as u8,
            };
            if down > 0 {
                pack(map.scale * scale);
            }
            if let Some(found) = map.tile(area.rows.start, column) {
                found.store(down, Ordering::Relaxed);
            }
        }
    }

    /// Numbers of pixels in a row of `map`, from column `x` and row `y` on, of what the row holds there.
    pub(crate) fn read(
        &self,
        map: Map,
        (x, y): (isize, isize),
        (from, channels): (&[f32], usize),
        to: &mut [f32],
    ) {
        let Some(map) = &self.0[map] else { return };
        let tile = |at: isize| usize::try_from(at).map_or(usize::MAX, |at| at / TILE);
        let pixels = from.chunks_exact(packed_pitch(channels));
        for (x, (to, from)) in (x..).zip(to.chunks_exact_mut(channels).zip(pixels)) {
            match map.down(tile(y), tile(x)) {
                NO_NUMBERS => to.fill(f32::NAN),
                down => {
                    let scale = map.scale * f32::from(down).exp2().recip();
                    unpack((from, channels), scale, to);
                }
            }
        }
    }
}

impl Tiled {
    /// None outside of the picture or the strip.
    fn tile(&self, row: usize, column: usize) -> Option<&AtomicU8> {
        let column = column.checked_sub(self.columns.start)?;
        let is_kept = column < self.columns.len();
        let at = row.checked_mul(self.columns.len())?.checked_add(column)?;
        self.down.get(at).filter(|_| is_kept)
    }

    /// By how many powers of two that tile is scaled down.
    fn down(&self, row: usize, column: usize) -> u8 {
        let tile = self.tile(row, column);
        tile.map_or(0, |tile| tile.load(Ordering::Relaxed))
    }
}

/// The larger magnitude, or what is no number.
pub(crate) fn larger(one: f32, other: f32) -> f32 {
    if other > one || other.is_nan() {
        other
    } else {
        one
    }
}

/// Where the numbers of `rows` are computed: in `numbers`, `row_len` for each, if they are packed into their rows afterwards
/// ([`Packed::store`]), and in the rows themselves otherwise.
pub(crate) fn rows_of_numbers<'a>(
    rows: &'a mut [&mut [f32]],
    numbers: &'a mut Vec<f32>,
    row_len: Option<usize>,
) -> Vec<&'a mut [f32]> {
    let Some(row_len) = row_len else {
        return rows.iter_mut().map(|row| &mut **row).collect();
    };
    numbers.resize(rows.len() * row_len, 0.0);
    numbers.chunks_mut(row_len).collect()
}

#[cfg(test)]
mod tests {
    use upscale_core::Pixels;

    use super::*;
    use crate::kernel_set::KernelSet;
    use crate::plan::Plan;
    use crate::shapes::{Random, Shape};
    use crate::trials::{noise, plans, run, run_cut};
    use crate::upscale::Cut;

    fn integers(shape: Shape, scale: usize) -> Option<Plan> {
        let Some(kernels) = KernelSet::Amx.kernels() else {
            eprintln!("left out: this CPU or system has no tile registers");
            return None;
        };
        let [_, integers] = plans(&shape.network(scale, 1), kernels);
        Some(integers)
    }

    fn compact(channels: usize) -> Shape {
        Shape::Compact { channels, convs: 3 }
    }

    fn s() -> Shape {
        Shape::parse("s").unwrap()
    }

    #[test]
    fn all_maps_are_packed_that_only_tile_registers_read() {
        for (shape, expected) in [(s(), true), (compact(64), true), (compact(24), false)] {
            let Some(plan) = integers(shape, 2) else {
                return;
            };
            let read = plan.layers.iter().flat_map(|layer| &layer.inputs);
            let read = read.filter(|map| **map != PICTURE);
            for map in read {
                assert_eq!(plan.packed[*map].is_some(), expected, "{shape:?}: {map}");
            }
            for layer in plan.layers.iter().filter(|_| expected) {
                let scales = layer.inputs.iter().map(|map| plan.packed[*map]);
                let direct = layer.direct.as_ref().map(|direct| direct.scale);
                assert!(scales.filter(Option::is_some).all(|scale| scale == direct));
            }
        }
        // Its layers read maps of different widths: those stay numbers.
        let rrdb = Shape::Rrdb {
            channels: 64,
            growth: 32,
            blocks: 1,
        };
        let Some(plan) = integers(rrdb, 2) else {
            return;
        };
        let uneven = plan.layers.iter().filter(|layer| layer.inputs.len() > 1);
        let mut uneven = uneven.flat_map(|layer| &layer.inputs);
        assert!(uneven.all(|map| plan.packed[*map].is_none()));
    }

    /// A picture with some pixels far beyond all scales.
    fn bright() -> Pixels {
        let usual = noise(75, 50, 1.0);
        let mut samples = usual.samples().to_vec();
        for (x, y) in [(0, 0), (40, 20), (41, 20), (74, 30), (33, 49)] {
            samples[(y * 75 + x) * 3..][..3].fill(60.0);
        }
        Pixels::new(75, 50, 3, samples).unwrap()
    }

    #[test]
    fn tiles_that_are_scaled_down_are_the_same_in_any_cut() {
        let source = bright();
        for (shape, scale) in [(s(), 4), (s(), 2), (compact(64), 2), (compact(48), 4)] {
            let Some(plan) = integers(shape, scale) else {
                return;
            };
            let expected = run(&plan, &source);
            for (segment_tiles, band, strip, task_rows) in
                [(1, 1, 13, 1), (5, 2, 10, 3), (7, 3, 7, 2), (2, 64, 6, 1)]
            {
                let places = Cut {
                    segment_tiles,
                    band,
                    task_rows,
                    strip_tiles: usize::next_multiple_of(strip, segment_tiles),
                    rest: 1 + band,
                    leaves_out: true,
                    is_staggered: false,
                };
                let given = run_cut(&plan, &source, 3, &places);
                let mut bits = given.iter().zip(&expected);
                assert!(
                    given.len() == expected.len() && bits.all(|(a, b)| a.to_bits() == b.to_bits()),
                    "{shape:?}, {places:?}"
                );
            }
        }
    }

    #[test]
    fn a_tile_gives_back_what_it_was_given() {
        const CHANNELS: usize = 48;
        let Some(tiles) = KernelSet::Amx.kernels().and_then(|kernels| kernels.tiles()) else {
            eprintln!("left out: this CPU or system has no tile registers");
            return;
        };
        let scale = 300.0;
        let packed = Packed::new(&[None, Some(scale)], |_| (1..4, 2));
        let (width, pitch) = (3 * TILE - 2, packed_pitch(CHANNELS));
        let mut random = Random(4);
        let mut numbers: Vec<f32> = (0..TILE * width * CHANNELS)
            .map(|_| 200.0 * random.unit() - 100.0)
            .collect();
        // In the second tile one is far too large, in the third one is none.
        numbers[(2 * width + TILE) * CHANNELS] = -1e9;
        numbers[(width + 2 * TILE + 1) * CHANNELS] = f32::NAN;
        let mut rows = vec![vec![0.0; width * pitch]; TILE];
        let mut to: Vec<&mut [f32]> = rows.iter_mut().map(|row| &mut row[..]).collect();
        let area = TileArea {
            rows: 1..2,
            columns: 1..4,
        };
        packed.store(tiles, &area, (1, CHANNELS), (&numbers, &mut to));
        let scaled = (0..4).map(|column| {
            let area = TileArea {
                rows: 1..2,
                columns: column..column + 1,
            };
            packed.has_scaled([0, 1].into_iter(), &area)
        });
        assert_eq!(scaled.collect::<Vec<_>>(), [false, false, true, true]);
        for (y, row) in rows.iter().enumerate() {
            let mut given = vec![0.0; width * CHANNELS];
            let at = (TILE as isize, (TILE + y) as isize);
            packed.read(1, at, (row, CHANNELS), &mut given);
            let expected = &numbers[y * width * CHANNELS..][..width * CHANNELS];
            for (at, (given, expected)) in given.into_iter().zip(expected).enumerate() {
                let differs = (given - expected).abs();
                match at / CHANNELS / TILE {
                    0 => assert!(differs <= 0.51 / scale, "{given} {expected}"),
                    1 => assert!(differs <= 1e9 / SPLIT_MAX, "{given} {expected}"),
                    _ => assert!(given.is_nan()),
                }
            }
        }
    }
}

//! One picture, or one strip of it, being upscaled: the source, the plan, the schedule and the memory between.

use std::ops::{Deref, Range};

use upscale_core::Pixels;
use upscale_simd::{Ahead, ReadLease, SharedRows, WriteLease};

use crate::needed::Narrow;
use crate::network::Map;
use crate::packed::Packed;
use crate::plan::{Method, Plan, PlanLayer};
use crate::schedule::{Extent, Schedule, WEIGHTS_SLOTS, Work};
use crate::winograd::{TILE, WINDOW};

/// Sizes of maps: 1, 2, 4 or 8 times map 0.
const FACTORS: usize = 4;

/// Everything that the threads share.
pub(crate) struct Job<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) source: &'a Pixels,
    pub(crate) extent: Extent,
    pub(crate) schedule: Schedule,
    maps: Vec<SharedRows>,
    /// Transformed weights, a row for each slot, a segment for each row of positions.
    weights: SharedRows,
    weights_segment: usize,
    /// First column, in tiles, that memory rows of every factor hold: at its binary logarithm.
    first_tiles: [usize; FACTORS],
    output: &'a Output,
    /// By how much tiles of packed maps are scaled down.
    pub(crate) packed: Packed,
}

/// A row of a map, or what is needed of it: its numbers, where it is packed.
pub(crate) enum Row<'a> {
    Whole(ReadLease<'a>),
    Part(Vec<f32>),
}

impl Deref for Row<'_> {
    type Target = [f32];

    #[inline(always)]
    fn deref(&self) -> &[f32] {
        match self {
            Self::Whole(lease) => lease,
            Self::Part(numbers) => numbers,
        }
    }
}

/// One segment of a task.
pub(crate) struct Ticket {
    pub(crate) layer: usize,
    pub(crate) work: Work,
    pub(crate) weights_slot: usize,
    pub(crate) segment: usize,
}

/// A segment of some rows of tiles.
#[derive(Clone, Copy)]
pub(crate) struct Span {
    pub(crate) layer: usize,
    /// The first row of tiles.
    pub(crate) tile_row: usize,
    pub(crate) row_count: usize,
    pub(crate) weights_slot: usize,
    pub(crate) segment: usize,
}

impl Span {
    /// Its rows of tiles.
    pub(crate) fn tile_rows(&self) -> Range<usize> {
        self.tile_row..self.tile_row + self.row_count
    }

    /// The same segment of the `index`-th row of tiles alone.
    pub(crate) fn row(&self, index: usize) -> Self {
        Self {
            tile_row: self.tile_row + index,
            row_count: 1,
            ..*self
        }
    }
}

/// Finished rows of the output picture, until they are handed on. Each row of tiles has a place of its own.
pub(crate) struct Output {
    rows: SharedRows,
    /// Rows of tiles kept at a time.
    pub(crate) places: usize,
    /// Output rows of a row of tiles.
    place_rows: usize,
}

impl Output {
    /// Room for `places` rows of tiles, each tile `side` output rows high; output rows have `row_len` numbers,
    /// `segment_len` a segment.
    pub(crate) fn new(places: usize, side: usize, row_len: usize, segment_len: usize) -> Self {
        Self {
            rows: SharedRows::new(places * side, row_len, 0, segment_len),
            places,
            place_rows: side,
        }
    }

    /// Those output rows of a row of tiles.
    pub(crate) fn read(&self, tile_row: usize, rows: &Range<usize>) -> ReadLease<'_> {
        self.rows.read(self.place(tile_row, rows))
    }

    /// Gives back the memory of output rows of a row of tiles that were handed on, and whose place no other row takes.
    pub(crate) fn discard(&self, tile_row: usize, rows: &Range<usize>) {
        self.rows.discard(self.place(tile_row, rows));
    }

    fn place(&self, tile_row: usize, rows: &Range<usize>) -> Range<usize> {
        let first = tile_row % self.places * self.place_rows;
        first + rows.start..first + rows.end
    }
}

impl<'a> Job<'a> {
    pub(crate) fn new(
        plan: &'a Plan,
        source: &'a Pixels,
        extent: Extent,
        schedule: Schedule,
        output: &'a Output,
    ) -> Self {
        let columns = |factor| schedule.all_columns(plan, &extent, factor);
        let maps = schedule.classes.iter().zip(&schedule.slot_counts);
        let maps = maps.map(|(&(pitch, factor), &slots)| {
            let segment = extent.segment_tiles * TILE * pitch;
            let pixels = columns(factor).len() * TILE + 2 + plan.row_rest();
            SharedRows::new(slots, pixels * pitch, pitch, segment)
        });
        let tiles = |map: Map| (columns(plan.factors[map]), extent.tile_rows(plan, map));
        let packed = Packed::new(&plan.packed, tiles);
        // Of those that are transformed: a 1x1 layer over four maps would make the room four times as large, all of it to be
        // cleared.
        let with_taps = plan.layers.iter().filter(|layer| layer.has_taps());
        let matrix = with_taps.map(PlanLayer::matrix).max().unwrap_or(1);
        let weights_segment = WINDOW * matrix;
        Self {
            weights: SharedRows::new(WEIGHTS_SLOTS, WINDOW * weights_segment, 0, weights_segment),
            weights_segment,
            maps: maps.collect(),
            first_tiles: std::array::from_fn(|log| columns(1 << log).start),
            plan,
            source,
            schedule,
            extent,
            output,
            packed,
        }
    }

    /// Bytes that a job keeps in maps under this schedule.
    pub(crate) fn bytes(plan: &Plan, schedule: &Schedule, extent: &Extent) -> usize {
        let classes = schedule.classes.iter().zip(&schedule.slot_counts);
        let bytes = classes.map(|(&(pitch, factor), slots)| {
            let pixels = schedule.all_columns(plan, extent, factor).len() * TILE + 2;
            let pixels = pixels + plan.row_rest();
            size_of::<f32>() * pixels * pitch * slots
        });
        bytes.sum()
    }

    /// What a layer's tiles have of its map, where that is narrower or lower than a tile.
    pub(crate) fn narrow(&self, layer: &PlanLayer) -> Narrow {
        let (width, height) = (self.extent.width, self.extent.height);
        // Rows above the picture are in its tiles as well.
        let rows = height * layer.factor + self.extent.rises[layer.output];
        match self.extent.leaves_out {
            true if layer.words.is_none() => Narrow::of_line(width * layer.factor, rows),
            true => Narrow::of(width * layer.factor, rows),
            false => Narrow::WHOLE,
        }
    }

    /// Tiles of a layer in a segment.
    pub(crate) fn tiles(&self, layer: usize, segment: usize) -> Range<usize> {
        let columns = &self.schedule.columns[layer];
        let start = segment * self.extent.segment_tiles;
        start.max(columns.start)..(start + self.extent.segment_tiles).min(columns.end)
    }

    /// The transformed weights in a slot.
    pub(crate) fn weights(&self, slot: usize) -> ReadLease<'_> {
        self.weights.read(slot..slot + 1)
    }

    /// A row of positions of transformed weights, to write: one matrix after another.
    pub(crate) fn write_weights(&self, slot: usize, row: usize) -> WriteLease<'_> {
        self.weights.write(slot, row)
    }

    /// Where a position's matrix stands among the transformed weights.
    pub(crate) fn matrix(&self, layer: &PlanLayer, position: usize) -> Range<usize> {
        let start = position / WINDOW * self.weights_segment + position % WINDOW * layer.matrix();
        start..start + layer.matrix()
    }

    /// Pixel columns of a run of a layer's tiles, cut at the picture's edge.
    pub(crate) fn pixels(&self, factor: usize, tiles: &Range<usize>) -> Range<usize> {
        tiles.start * TILE..(tiles.end * TILE).min(self.extent.width * factor)
    }

    /// Where pixel column `x` stands in a memory row, in pixels; the column left of the first tile is at 0.
    pub(crate) fn place(&self, factor: usize, x: usize) -> usize {
        x + 1 - self.first_tile(factor) * TILE
    }

    fn first_tile(&self, factor: usize) -> usize {
        self.first_tiles[factor.ilog2() as usize]
    }

    /// The eight rows that a layer's row of tiles reads; rows outside the picture are zero. A map that is enlarged
    /// gives each of its rows twice.
    pub(crate) fn window(
        &self,
        layer: &PlanLayer,
        map: Map,
        tile_row: usize,
    ) -> [ReadLease<'_>; WINDOW] {
        let height = self.extent.height * layer.factor;
        let first = self.extent.top(layer, tile_row) - 1;
        std::array::from_fn(|row| match usize::try_from(first + row as isize) {
            Ok(y) if y < height => self.row(map, y / layer.enlarged),
            _ => self.row(map, usize::MAX),
        })
    }

    /// The rows of a map beside a layer's row of tiles; those outside the picture are zero.
    pub(crate) fn rows(
        &self,
        layer: &PlanLayer,
        map: Map,
        tile_row: usize,
    ) -> [ReadLease<'_>; TILE] {
        let top = self.extent.top(layer, tile_row);
        std::array::from_fn(|row| {
            let y = usize::try_from(top + row as isize);
            self.row(map, y.unwrap_or(usize::MAX))
        })
    }

    /// Adds to `ahead` what a 3x3 layer over maps reads, or what it writes and joins: runs of rows.
    pub(crate) fn look_ahead(&self, ticket: &Ticket, is_read: bool, ahead: &mut Ahead) {
        let layer = &self.plan.layers[ticket.layer];
        let Work::Rows { tile_row, count } = ticket.work else {
            return;
        };
        if layer.method != Method::Winograd {
            return;
        }
        let mut push = |map: Map, rows: Range<usize>, tiles: Range<usize>| {
            let (pitch, factor) = (self.plan.pitch(map), self.plan.factors[map]);
            let start = (self.place(factor, tiles.start * TILE) - 1) * pitch;
            let pixels = (tiles.len() * TILE).min(self.extent.width * factor + 1);
            let count = pixels * pitch;
            for &slot in self.schedule.slots[map].get(rows).unwrap_or_default() {
                let rows = &self.maps[self.schedule.class(map)];
                ahead.push(rows, slot as usize, start, count);
            }
        };
        let tiles = self.tiles(ticket.layer, ticket.segment);
        let height = self.extent.height * layer.factor;
        let rows = self.extent.pixel_rows(layer, tile_row..tile_row + count);
        // Several short rows of tiles: the products are too few to fetch more than what is read.
        if !is_read && count > 1 {
            return;
        }
        if !is_read {
            let joined = layer.combine.iter().map(|combine| combine.map());
            for map in joined.chain([layer.output]) {
                push(map, rows.clone(), tiles.clone());
            }
            return;
        }
        let enlarged = layer.enlarged;
        for &map in &layer.inputs {
            let rows =
                rows.start.saturating_sub(1) / enlarged..rows.end.min(height - 1) / enlarged + 1;
            let tiles = tiles.start / enlarged..tiles.end.div_ceil(enlarged);
            push(map, rows, tiles);
        }
    }

    /// `width` pixels of a packed map's row `y` as numbers, from `place` on, where they stand in that row.
    pub(crate) fn numbers(
        &self,
        map: Map,
        (place, y): (usize, usize),
        (row, width): (&[f32], usize),
    ) -> Vec<f32> {
        let (channels, factor) = (self.plan.maps[map], self.plan.factors[map]);
        let x = place + self.first_tile(factor) * TILE - 1;
        let mut numbers = vec![0.0; (place + width) * channels];
        let from = &row[place * self.plan.pitch(map)..];
        let to = &mut numbers[place * channels..];
        self.packed
            .read(map, (x as isize, y as isize), (from, channels), to);
        numbers
    }

    fn row(&self, map: Map, y: usize) -> ReadLease<'_> {
        let slot = self.schedule.slots[map]
            .get(y)
            .map_or(0, |&slot| slot as usize);
        self.maps[self.schedule.class(map)].read(slot..slot + 1)
    }

    /// A segment of row `y`, to write.
    pub(crate) fn write(&self, map: Map, y: usize, segment: usize) -> WriteLease<'_> {
        let slot = self.schedule.slots[map][y] as usize;
        let factor = self.plan.factors[map];
        let first = self.first_tile(factor) / self.extent.segment_tiles;
        self.maps[self.schedule.class(map)].write(slot, segment - first)
    }

    /// Where pixel column `x` stands in a segment, in pixels.
    pub(crate) fn place_in_segment(&self, x: usize, segment: usize) -> usize {
        x - segment * self.extent.segment_tiles * TILE
    }

    /// A segment of the `row`-th output row of a row of tiles, to write.
    pub(crate) fn write_output(
        &self,
        tile_row: usize,
        row: usize,
        segment: usize,
    ) -> WriteLease<'_> {
        let place = tile_row % self.output.places * self.output.place_rows + row;
        self.output.rows.write(place, segment)
    }
}

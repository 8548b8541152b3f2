//! What a row of tiles reads of a layer's input maps: bytes where they are packed, numbers where they are not or a tile is scaled down.

use upscale_simd::{ByteRows, ReadLease, SPLIT_MAX, SplitRows};

use super::Direct;
use crate::job::{Job, Row, Span};
use crate::packed::{TileArea, larger};
use crate::plan::PlanLayer;
use crate::winograd::TILE;

/// The rows that a row of tiles reads of each input map, and what they are to the layer.
pub(super) struct Windows<'a> {
    /// Rows, place of the first tile's window in them (in numbers), and channels.
    maps: Vec<(Vec<Row<'a>>, usize, usize)>,
    /// Rows that are needed: as many as come out, and those around them.
    rows: usize,
    /// Rows and pixels that are read around those that come out, on both sides together.
    around: usize,
    /// Whether the maps are packed.
    is_packed: bool,
    /// Whether they are but one of these tiles is scaled down: then all rows are numbers.
    pub(super) has_scaled: bool,
}

impl<'a> Windows<'a> {
    /// What `rows` rows of these tiles read.
    pub(super) fn new(
        (job, span, layer): (&'a Job<'_>, &Span, &PlanLayer),
        area: &TileArea,
        rows: usize,
    ) -> Self {
        let around = if layer.is_wide() { 2 } else { 0 };
        let count = rows + around;
        let is_packed = (layer.inputs.iter()).all(|&map| job.plan.packed[map].is_some());
        let read = match layer.is_wide() {
            true => area.with_neighbours(),
            false => area.clone(),
        };
        let has_scaled = is_packed && job.packed.has_scaled(layer.inputs.iter().copied(), &read);
        let x = area.columns.start * TILE;
        let maps = layer.inputs.iter().map(|&map| {
            let (channels, pitch) = (job.plan.maps[map], job.plan.pitch(map));
            let first = job.place(job.plan.factors[map], x) - around / 2;
            let leases: Vec<_> = match layer.is_wide() {
                true => job.window(layer, map, span.tile_row).into(),
                false => job.rows(layer, map, span.tile_row).into(),
            };
            let leases = leases.into_iter().take(count);
            if !has_scaled {
                let rows = leases.map(Row::Whole).collect();
                return (rows, first * pitch, channels);
            }
            let beside = (around / 2) as isize;
            let row = |(row, lease): (usize, ReadLease<'_>)| {
                let y = (span.tile_row * TILE + row) as isize - beside;
                let mut numbers = vec![0.0; (area.columns.len() * TILE + around) * channels];
                let from = (&lease[first * pitch..], channels);
                job.packed
                    .read(map, (x as isize - beside, y), from, &mut numbers);
                Row::Part(numbers)
            };
            (leases.enumerate().map(row).collect(), 0, channels)
        });
        Self {
            maps: maps.collect(),
            rows: count,
            around,
            is_packed,
            has_scaled,
        }
    }

    /// The pixels of a map from `first` on, in each row.
    fn pixels(
        &self,
        first: usize,
        count: usize,
    ) -> impl Iterator<Item = (usize, usize, &[f32], usize)> {
        let mut channel = 0;
        self.maps.iter().flat_map(move |(rows, at, channels)| {
            let start = at + first * channels;
            let from = channel;
            channel += channels;
            let rows = rows.iter().take(self.rows).enumerate();
            rows.map(move |(row, numbers)| {
                let numbers = &numbers[start..start + count * channels];
                (row, from, numbers, *channels)
            })
        })
    }

    /// What `count` pixels from `first` on are made of, as bytes; gives the largest magnitude, scaled.
    pub(super) fn split(
        &self,
        direct: &Direct,
        scale: f32,
        (first, count): (usize, usize),
        to: &mut SplitRows,
    ) -> f32 {
        let count = count + self.around;
        to.resize(self.rows, count, direct.parts);
        let mut largest = 0.0_f32;
        for (row, channel, numbers, channels) in self.pixels(first, count) {
            let found = direct
                .tiles
                .split((numbers, channels), scale, to, (row, channel));
            largest = larger(largest, found);
        }
        largest
    }

    /// The maps as they are, where they are packed and all fits.
    pub(super) fn packed(&self) -> Option<ByteRows<'_>> {
        if !self.is_packed || self.has_scaled {
            return None;
        }
        let channels = self.maps.first().map_or(0, |(_, _, channels)| *channels);
        let maps = self.maps.iter().map(|(rows, at, _)| {
            let rows = rows.iter().take(self.rows);
            rows.map(|row| &row[*at..]).collect()
        });
        Some(ByteRows::packed(maps, channels))
    }

    /// All of it as bytes; none where a number does not fit.
    pub(super) fn bytes<'b>(
        &'b self,
        direct: &Direct,
        width: usize,
        to: &'b mut SplitRows,
    ) -> Option<ByteRows<'b>> {
        if self.is_packed {
            return self.packed();
        }
        let largest = self.split(direct, direct.scale, (0, width), to);
        (largest <= SPLIT_MAX).then(|| to.rows())
    }
}

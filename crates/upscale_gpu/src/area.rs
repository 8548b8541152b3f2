//! Which part of every map a tile of the picture needs, and where in the arena it lies: pure reckoning, no device.
//!
//! The picture is cut into tiles anew for every section of the network. Maps that leave their section are kept whole;
//! all others exist for one tile, as large as later layers look around it. The arena is one buffer; its unit is a vector
//! of four channels.

use std::ops::Range;

use upscale_engine::{Layer, Map, Network, PICTURE};

/// A rectangle of a map, in its own pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Area {
    pub(crate) x: usize,
    pub(crate) y: usize,
    pub(crate) width: usize,
    pub(crate) height: usize,
}

impl Area {
    pub(crate) fn pixels(self) -> usize {
        self.width * self.height
    }

    pub(crate) fn enlarged(self, factor: usize) -> Self {
        Self {
            x: self.x * factor,
            y: self.y * factor,
            width: self.width * factor,
            height: self.height * factor,
        }
    }

    /// With so many pixels more on every side, as far as there are any.
    fn grown(self, by: usize, (width, height): (usize, usize)) -> Self {
        let (x, y) = (self.x.saturating_sub(by), self.y.saturating_sub(by));
        Self {
            x,
            y,
            width: (self.x + self.width + by).min(width) - x,
            height: (self.y + self.height + by).min(height) - y,
        }
    }

    /// Of a map of which every pixel is read as a square of that side.
    fn shrunk(self, repeat: usize) -> Self {
        let (x, y) = (self.x / repeat, self.y / repeat);
        Self {
            x,
            y,
            width: (self.x + self.width).div_ceil(repeat) - x,
            height: (self.y + self.height).div_ceil(repeat) - y,
        }
    }

    /// The smallest that holds both.
    fn with(self, other: Self) -> Self {
        let (x, y) = (self.x.min(other.x), self.y.min(other.y));
        Self {
            x,
            y,
            width: (self.x + self.width).max(other.x + other.width) - x,
            height: (self.y + self.height).max(other.y + other.height) - y,
        }
    }
}

/// Where a map, or its part around a tile, lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Location {
    /// First vector.
    pub(crate) offset: usize,
    /// Which pixels are there, row after row.
    pub(crate) area: Area,
}

/// A tile of one section: what is made of every map, and where.
#[derive(Debug)]
pub(crate) struct TilePlan {
    /// Of every map that the section reads or writes.
    pub(crate) places: Vec<Option<Location>>,
    /// What is made of every map that it writes.
    pub(crate) made: Vec<Option<Area>>,
    /// Vectors of the arena that are used, those of whole maps included.
    pub(crate) end: usize,
}

/// A network cut for one size of picture.
#[derive(Debug)]
pub(crate) struct Cut<'a> {
    network: &'a Network,
    /// Columns and rows of map 0.
    pub(crate) grid: (usize, usize),
    /// Maps that leave their section, by offset.
    whole: Vec<Option<usize>>,
    /// First vector after them.
    whole_end: usize,
}

impl<'a> Cut<'a> {
    pub(crate) fn new(network: &'a Network, width: usize, height: usize) -> Self {
        let side = network.unshuffle();
        let mut cut = Self {
            network,
            grid: (width.div_ceil(side), height.div_ceil(side)),
            whole: vec![None; network.maps().len()],
            whole_end: 0,
        };
        cut.keep_whole();
        cut
    }

    /// Vectors of four that a pixel of the map has.
    pub(crate) fn columns(&self, map: Map) -> usize {
        self.network.maps()[map].div_ceil(4)
    }

    /// Columns and rows of a whole map.
    pub(crate) fn extent(&self, map: Map) -> (usize, usize) {
        let factor = self.network.factors()[map];
        (self.grid.0 * factor, self.grid.1 * factor)
    }

    /// The layers of every section.
    pub(crate) fn sections(&self) -> Vec<Range<usize>> {
        let starts = self.network.sections();
        let ends = starts[1..].iter().copied();
        let ends = ends.chain([self.network.layers().len()]);
        starts
            .iter()
            .zip(ends)
            .map(|(&start, end)| start..end)
            .collect()
    }

    /// Map 0 is made anew wherever it is read; any other map that a later section reads is kept whole.
    fn keep_whole(&mut self) {
        let sections = self.sections();
        let section_of = |layer: usize| sections.iter().position(|one| one.contains(&layer));
        let mut lives = Vec::new();
        for (index, layer) in self.network.layers().iter().enumerate() {
            let map = layer.output;
            let last = self
                .network
                .layers()
                .iter()
                .rposition(|later| reads(later, map));
            let (first, last) = (section_of(index), last.and_then(section_of));
            if let (Some(first), Some(last)) = (first, last)
                && last > first
            {
                let (width, height) = self.extent(map);
                let size = width * height * self.columns(map);
                lives.push((map, size, first..last + 1));
            }
        }
        let sizes: Vec<_> = lives
            .iter()
            .map(|(_, size, life)| (*size, life.clone()))
            .collect();
        let (offsets, end) = place_all(&sizes);
        for ((map, ..), offset) in lives.iter().zip(offsets) {
            self.whole[*map] = Some(offset);
        }
        self.whole_end = end;
    }

    /// What of every map the section's layers need, and where it lies, for a tile of map 0.
    pub(crate) fn plan(&self, section: &Range<usize>, tile: Area) -> TilePlan {
        let made = self.needed(section, tile);
        let mut places = vec![None; made.len()];
        let mut lives = Vec::new();
        for (map, area) in made.iter().enumerate() {
            let whole = self.whole[map].map(|offset| Location {
                offset,
                area: self.whole_area(map),
            });
            places[map] = whole;
            if let (None, Some(area)) = (whole, area) {
                let size = area.pixels() * self.columns(map);
                lives.push((map, *area, size, self.life(section, map)));
            }
        }
        let sizes: Vec<_> = lives
            .iter()
            .map(|(.., size, life)| (*size, life.clone()))
            .collect();
        let (offsets, end) = place_all(&sizes);
        for ((map, area, ..), offset) in lives.iter().zip(offsets) {
            let offset = self.whole_end + offset;
            places[*map] = Some(Location {
                offset,
                area: *area,
            });
        }
        TilePlan {
            places,
            made,
            end: self.whole_end + end,
        }
    }

    fn whole_area(&self, map: Map) -> Area {
        let (width, height) = self.extent(map);
        Area {
            x: 0,
            y: 0,
            width,
            height,
        }
    }

    /// From the section's end to its begin: what a layer makes, its inputs are needed around.
    fn needed(&self, section: &Range<usize>, tile: Area) -> Vec<Option<Area>> {
        let (layers, factors) = (self.network.layers(), self.network.factors());
        let mut needed: Vec<Option<Area>> = vec![None; self.network.maps().len()];
        let mut made = needed.clone();
        for index in section.clone().rev() {
            let layer = &layers[index];
            let leaves = self.whole[layer.output].is_some() || index + 1 == layers.len();
            if leaves {
                need(
                    &mut needed[layer.output],
                    tile.enlarged(factors[layer.output]),
                );
            }
            let Some(area) = needed[layer.output] else {
                continue;
            };
            made[layer.output] = Some(area);
            let around = area.grown(layer.side / 2, self.extent(layer.output));
            for &map in &layer.inputs {
                let repeat = factors[layer.output] / factors[map];
                need(&mut needed[map], around.shrunk(repeat));
            }
            for combine in &layer.combine {
                need(&mut needed[combine.map()], area);
            }
        }
        made[PICTURE] = needed[PICTURE];
        made
    }

    /// Layers of the section, counted from 1, during which a map must be there; 0 is before all of them.
    fn life(&self, section: &Range<usize>, map: Map) -> Range<usize> {
        let layers = &self.network.layers()[section.clone()];
        let first = layers.iter().position(|layer| layer.output == map);
        let last = layers.iter().rposition(|layer| reads(layer, map));
        let first = first.map_or(0, |index| index + 1);
        // The last layer's map is read after all of them.
        first..last.map_or(layers.len() + 1, |index| index + 1) + 1
    }
}

fn reads(layer: &Layer, map: Map) -> bool {
    layer.inputs.contains(&map) || layer.combine.iter().any(|combine| combine.map() == map)
}

fn need(needed: &mut Option<Area>, area: Area) {
    *needed = Some(needed.map_or(area, |before| before.with(area)));
}

/// Lowest places for blocks of these sizes so that none share memory while both live; where each begins, and the end of all.
fn place_all(blocks: &[(usize, Range<usize>)]) -> (Vec<usize>, usize) {
    let mut offsets: Vec<usize> = Vec::new();
    for (index, (size, life)) in blocks.iter().enumerate() {
        let mut taken: Vec<Range<usize>> = (0..index)
            .filter(|&other| overlap(&blocks[other].1, life))
            .map(|other| offsets[other]..offsets[other] + blocks[other].0)
            .collect();
        taken.sort_unstable_by_key(|range| range.start);
        let mut offset = 0;
        for range in taken {
            if offset + size <= range.start {
                break;
            }
            offset = offset.max(range.end);
        }
        offsets.push(offset);
    }
    let ends = offsets.iter().zip(blocks).map(|(at, (size, _))| at + size);
    let end = ends.max().unwrap_or(0);
    (offsets, end)
}

fn overlap(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.start < other.end && other.start < one.end
}

#[cfg(test)]
mod tests {
    use super::*;
    use upscale_engine::Shape;

    #[test]
    fn blocks_that_live_at_the_same_time_share_nothing() {
        let blocks = [(4, 0..2), (2, 1..3), (3, 2..4), (1, 3..4), (4, 3..5)];
        let (offsets, end) = place_all(&blocks);
        assert_eq!(offsets[..2], [0, 4], "side by side");
        assert_eq!(offsets[2], 0, "in the place of what is gone");
        for (i, (size, life)) in blocks.iter().enumerate() {
            for j in 0..i {
                let apart =
                    offsets[i] + size <= offsets[j] || offsets[j] + blocks[j].0 <= offsets[i];
                assert!(
                    apart || !overlap(life, &blocks[j].1),
                    "{i} and {j}: {offsets:?}"
                );
            }
        }
        assert!(end <= 9, "{end}");
    }

    #[test]
    fn a_tile_needs_what_its_layers_see() {
        let shape = Shape::Residual {
            channels: 8,
            blocks: 1,
        };
        let network = shape.network(2, 1);
        let cut = Cut::new(&network, 100, 100);
        let section = &cut.sections()[0];
        let tile = Area {
            x: 40,
            y: 0,
            width: 10,
            height: 10,
        };
        let plan = cut.plan(section, tile);
        let reach = network.reach();
        let area = plan.made[PICTURE].unwrap();
        assert_eq!((area.x, area.width), (40 - reach, 10 + 2 * reach));
        assert_eq!(
            (area.y, area.height),
            (0, 10 + reach),
            "none above the first row"
        );
    }

    #[test]
    fn maps_that_leave_their_section_are_whole_and_others_are_not() {
        let shape = Shape::Rrdb {
            channels: 8,
            growth: 4,
            blocks: 3,
        };
        let network = shape.network(4, 1);
        let cut = Cut::new(&network, 50, 40);
        let whole = cut.whole.iter().flatten().count();
        assert_eq!(whole, 1 + 3, "the head and every block's end");
        // Three of them live at the same time: the head, a block's begin and its end.
        assert_eq!(cut.whole_end, 3 * 50 * 40 * 2);
    }
}

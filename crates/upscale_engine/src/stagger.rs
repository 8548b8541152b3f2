//! Where the tiles of a map begin: each 3x3 layer's one row above those that it reads, so that it needs no row of tiles below
//! its own. On one grid for all maps every layer stays six rows behind the one before, and a map that layers far apart read
//! waits for all of them: S keeps 632 rows of maps of a picture of 512, and 183 with tiles that are staggered.

use std::ops::Range;

use crate::network::{Map, PICTURE};
use crate::plan::{Method, Plan, PlanLayer};
use crate::schedule::Extent;
use crate::winograd::TILE;

/// Source rows from which on tiles are staggered: a row of tiles more, in every other layer, is 1 % of that. Below it squares
/// have small maps; wide pictures keep all their rows.
pub(crate) const STAGGERED_FROM: usize = 192;

/// Rows of every map's first tiles that lie above the picture. None in the last map, whose tiles are the output's, nor in maps
/// that a network enlarged on the way; none at all in one that runs in sections or on tile registers.
pub(crate) fn rises(plan: &Plan, is_staggered: bool) -> Vec<usize> {
    let mut rises = vec![0; plan.maps.len()];
    if !is_staggered || !can_be_staggered(plan) {
        return rises;
    }
    let last = plan.layers.len() - 1;
    for layer in &plan.layers[..last] {
        // The newest map is the one that is waited for.
        let newest = layer.inputs.iter().copied().max().unwrap_or(PICTURE);
        rises[layer.output] = match layer.method {
            Method::Picture => 0,
            _ if layer.factor > 1 => 0,
            Method::Point => rises[newest],
            Method::Winograd => (rises[newest] + 1) % TILE,
        };
    }
    rises
}

fn can_be_staggered(plan: &Plan) -> bool {
    plan.sections.len() == 1 && plan.layers.iter().all(|layer| layer.direct.is_none())
}

impl Extent {
    /// Rows of tiles of a map.
    pub(crate) fn tile_rows(&self, plan: &Plan, map: Map) -> usize {
        (self.height * plan.factors[map] + self.rises[map]).div_ceil(TILE)
    }

    /// The first pixel row of a layer's row of tiles; the first ones may lie above the picture.
    pub(crate) fn top(&self, layer: &PlanLayer, tile_row: usize) -> isize {
        (tile_row * TILE) as isize - self.rises[layer.output] as isize
    }

    /// Rows of a layer's row of tiles that lie above the picture.
    pub(crate) fn rows_above(&self, layer: &PlanLayer, tile_row: usize) -> usize {
        (-self.top(layer, tile_row)).max(0) as usize
    }

    /// Pixel rows of rows of tiles that lie in the picture.
    pub(crate) fn pixel_rows(&self, layer: &PlanLayer, tile_rows: Range<usize>) -> Range<usize> {
        let height = self.height * layer.factor;
        let [top, end] = [tile_rows.start, tile_rows.end].map(|row| self.top(layer, row));
        top.max(0) as usize..(end.max(0) as usize).min(height)
    }

    /// Pixel rows of a map that there are when its first `tile_rows` are made; no limit once all are.
    pub(crate) fn rows_made(&self, plan: &Plan, map: Map, tile_rows: usize) -> usize {
        match tile_rows >= self.tile_rows(plan, map) {
            true => usize::MAX,
            false => (tile_rows * TILE).saturating_sub(self.rises[map]),
        }
    }

    /// The row of tiles that holds row `y` of a map, or its last one.
    pub(crate) fn tile_row_of(&self, plan: &Plan, map: Map, y: usize) -> usize {
        ((y + self.rises[map]) / TILE).min(self.tile_rows(plan, map) - 1)
    }
}

#[cfg(test)]
mod tests {
    use upscale_core::Pixels;
    use upscale_simd::Kernels;

    use super::*;
    use crate::calibrate::fast_plan;
    use crate::kernel_set::KernelSet;
    use crate::shapes::Shape;
    use crate::trials::{noise, run_cut};
    use crate::upscale::{Cut, grid};

    fn kernels() -> Kernels {
        KernelSet::best().kernels().unwrap()
    }

    fn plan(shape: &str) -> Plan {
        Plan::new(
            &Shape::parse(shape).unwrap().network(2, 5).unfolded(),
            kernels(),
        )
    }

    fn edsr(blocks: usize) -> Plan {
        let shape = Shape::Edsr {
            channels: 64,
            blocks,
        };
        Plan::new(&shape.network(4, 5).unfolded(), kernels())
    }

    fn cut(plan: &Plan, source: &Pixels, is_staggered: bool) -> Cut {
        Cut {
            is_staggered,
            ..Cut::new(plan, grid(plan, source), 2, usize::MAX)
        }
    }

    #[test]
    fn every_3x3_layer_begins_one_row_above_the_one_before() {
        let rises = rises(&plan("s"), true);
        // The head, three layers of the first block, three of the second.
        assert_eq!(rises[..9], [0, 0, 1, 2, 3, 4, 5, 0, 1]);
        assert_eq!(rises.last(), Some(&0));
        assert_eq!(super::rises(&plan("s"), false), vec![0; rises.len()]);
        assert!(
            super::rises(&plan("rrdb"), true)
                .iter()
                .all(|&rise| rise == 0)
        );
        let enlarging = edsr(1);
        let rises = super::rises(&enlarging, true);
        // Head, the two layers of a block, the one behind it.
        assert_eq!(rises[..5], [0, 0, 1, 2, 3]);
        let of_enlarged = rises.iter().zip(&enlarging.factors);
        assert!(
            of_enlarged
                .into_iter()
                .all(|(&rise, &factor)| factor == 1 || rise == 0)
        );
    }

    /// Heights round a multiple of a tile, and one with fewer rows than a tile has.
    #[test]
    fn staggered_tiles_make_the_same_picture() {
        let compact = Shape::Compact {
            channels: 40,
            convs: 4,
        };
        let words = fast_plan(&compact.network(4, 5).unfolded(), kernels());
        let plans = [("f", plan("f")), ("s", plan("s")), ("edsr", edsr(1))];
        for (name, plan) in plans.into_iter().chain([("compact in words", words)]) {
            for height in [4, 35, 36, 37, 38, 41] {
                let source = noise(29, height, 1.0);
                let [plain, staggered] =
                    [false, true].map(|is| run_cut(&plan, &source, 2, &cut(&plan, &source, is)));
                let pairs = plain.iter().zip(&staggered);
                let most = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                // Integers round anew in other tiles.
                let allowed = if name == "compact in words" {
                    5e-3
                } else {
                    2e-5
                };
                assert!(most <= allowed, "{name}, {height} rows: {most}");
            }
        }
    }

    #[test]
    fn maps_take_two_fifths_of_the_memory() {
        for shape in [plan("s"), plan("compact"), edsr(16)] {
            let source = noise(768, 512, 1.0);
            let [plain, staggered] = [false, true]
                .map(|is| cut(&shape, &source, is).bytes(&shape, grid(&shape, &source)));
            println!("{plain} bytes of maps, {staggered} where tiles are staggered");
            assert!(5 * staggered <= 2 * plain, "{staggered} of {plain}");
        }
    }
}

//! One picture from beginning to end: how it is cut, then strip after strip.
//!
//! A picture whose maps fit the budget is one strip and its rows leave as they are finished. A wider one is cut
//! into columns that overlap by one tile per layer, so that every tile is computed from the very same numbers;
//! then the output is collected, and its rows leave while the last strip is computed.

use std::ops::{ControlFlow, Range};

use upscale_core::{Pixels, Rows};
use upscale_simd::CHANNEL_UNIT;

use crate::error::UpscaleError;
use crate::job::{Job, Output};
use crate::network::PICTURE;
use crate::plan::{Method, Plan, PlanLayer};
use crate::run::{Cancelled, Sink, hand_on_strips, row_samples, run};
use crate::schedule::{Extent, Schedule, tiles_beside};
use crate::stagger::{STAGGERED_FROM, rises};
use crate::winograd::{POSITIONS, TILE};

/// Memory for the maps of one strip. With the source, the output and the threads' own memory, network S stays
/// below 350 MB and X below 500 MB at the contract's largest sizes.
const MAP_BYTES_MAX: usize = 192 << 20;
/// Tiles that share one pass over a layer's weights, in numbers of a Winograd product: 64 positions x tiles x
/// channels of them stay in a second-level cache of 1 MiB beside the weights.
const SEGMENT_NUMBERS: usize = 96 << 10;
/// Tiles of a pass where all 3x3 layers are on tile registers, which keep no products: rows of 264 pixels at once. Beside
/// passes of 22 to 34 tiles S takes 0.95 of the time at 256x256, 0.98 at 600x600 and as long at 768x512; Compact 0.92 and 0.93.
const DIRECT_TILES: usize = 44;
/// Memory of the rows that one step of a band reads and writes, at most: large enough that a layer's weights serve some
/// hundred tiles (3 to 10 MiB measure the same).
const BAND_BYTES_MAX: usize = 6 << 20;
/// Where a cache holds no more than this of a step, hardly a row is still there when it is read again, and larger bands at
/// least read the weights less often.
const BAND_BYTES_MIN: usize = 2 << 20;
/// Of the last-level cache that an image's threads have among them; the other half is for the rows that layers keep between two
/// bands (docs/sizing.md has the model).
const BAND_SHARE: usize = 2;

/// Rows of tiles of a band, at most, unless more are needed to keep all threads busy.
const BAND_ROWS_MAX: usize = 64;
/// Tiles of a pass where a picture is a row or a few columns of tiles: products and weights have to stay in half of a
/// second-level cache there (measured at 1 × 60,000: passes of 8, 16 and 32 tiles take 1.3 to 1.4 times the processor time).
const NARROW_TILES: usize = 12;
/// A strip is at least so many times as wide as what is computed twice beside it.
const STRIP_PER_HALO: usize = 16;

/// Rows of tiles that are scheduled at a time: 24,576 pixel rows.
const BLOCK_TILE_ROWS: usize = 4_096;

/// Upscales a picture of 1 or 3 channels.
pub(crate) fn upscale(
    plan: &Plan,
    source: &Pixels,
    threads: usize,
    sink: Sink<'_>,
    cancelled: Cancelled<'_>,
) -> Result<(), UpscaleError> {
    upscale_in_blocks(plan, source, threads, BLOCK_TILE_ROWS, sink, cancelled)
}

/// A schedule has a task for each layer and row of tiles: a picture of 1 x 1,500,000 would need more memory for its
/// schedule than for its pixels. So it is done block after block, each with as many rows of tiles around it as
/// later layers can see; the tiles are the same ones.
fn upscale_in_blocks(
    plan: &Plan,
    source: &Pixels,
    threads: usize,
    block_tile_rows: usize,
    sink: Sink<'_>,
    cancelled: Cancelled<'_>,
) -> Result<(), UpscaleError> {
    let (height, scale) = (source.height(), plan.scale);
    let block = block_tile_rows * TILE * plan.unshuffle;
    if height <= block {
        let cut = Cut::new(plan, grid(plan, source), threads, MAP_BYTES_MAX);
        return run_strips(plan, source, threads, &cut, sink, cancelled);
    }
    // One more for the two rows that the bicubic base reads.
    let halo = (tiles_beside(plan)[PICTURE] + 1) * TILE * plan.unshuffle;
    for start in (0..height).step_by(block) {
        let end = (start + block).min(height);
        let above = start.saturating_sub(halo);
        let crop = rows_of(source, above..(end + halo).min(height));
        let cut = Cut {
            // As the whole picture's.
            is_staggered: grid(plan, source).1 >= STAGGERED_FROM,
            ..Cut::new(plan, grid(plan, &crop), threads, MAP_BYTES_MAX)
        };
        let wanted = (start - above) * scale..(end - above) * scale;
        let mut kept = |rows: Rows<'_>| match part(rows, &wanted) {
            None => ControlFlow::Continue(()),
            Some(rows) => sink(Rows {
                first_row: rows.first_row + above * scale,
                ..rows
            }),
        };
        run_strips(plan, &crop, threads, &cut, &mut kept, cancelled)?;
    }
    Ok(())
}

/// Bytes that the maps of a source of that width and height take.
pub(crate) fn memory_bytes(plan: &Plan, (width, height): (usize, usize), threads: usize) -> usize {
    let size = (
        width.div_ceil(plan.unshuffle),
        height.div_ceil(plan.unshuffle),
    );
    let size = (size.0, size.1.min(BLOCK_TILE_ROWS * TILE));
    Cut::new(plan, size, threads, MAP_BYTES_MAX).bytes(plan, size)
}

/// Columns and rows of map 0.
pub(crate) fn grid(plan: &Plan, source: &Pixels) -> (usize, usize) {
    let (width, height) = (source.width(), source.height());
    (
        width.div_ceil(plan.unshuffle),
        height.div_ceil(plan.unshuffle),
    )
}

/// Those rows of a picture as a picture.
pub(crate) fn rows_of(source: &Pixels, rows: Range<usize>) -> Pixels {
    let stride = source.width() * source.channels();
    let samples = source.samples()[rows.start * stride..rows.end * stride].to_vec();
    Pixels::new(source.width(), rows.len(), source.channels(), samples)
        .unwrap_or_else(|_| unreachable!("as many samples as the rows have"))
}

/// Those of `rows` that are wanted.
fn part<'a>(rows: Rows<'a>, wanted: &Range<usize>) -> Option<Rows<'a>> {
    let first_row = rows.first_row.max(wanted.start);
    let end = (rows.first_row + rows.row_count).min(wanted.end);
    let skipped = first_row.checked_sub(rows.first_row)?;
    let row_count = end.checked_sub(first_row).filter(|&count| count > 0)?;
    let samples = &rows.samples[skipped * rows.row_samples..];
    Some(Rows {
        first_row,
        row_count,
        samples: &samples[..row_count * rows.row_samples],
        ..rows
    })
}

/// Columns of tiles of a strip, none computed in vain: all, or what leaves two rows of tiles of a wide picture (fewer
/// pixels if it is lower) in the caches. Otherwise a picture of few rows would read and write main memory in every layer.
fn cached_columns(plan: &Plan, (columns, height): (usize, usize)) -> usize {
    let widest = plan.maps.iter().copied().max().unwrap_or(CHANNEL_UNIT);
    // One row more, of the zeros beyond the edge.
    let tile_bytes = 2 * (height.min(2 * TILE) + 1) * TILE * widest * size_of::<f32>();
    let halo = tiles_beside(plan)[PICTURE];
    let most = (BAND_BYTES_MAX / tile_bytes).max(STRIP_PER_HALO * 2 * halo);
    if columns <= 2 * most {
        return columns;
    }
    columns.div_ceil(columns.div_ceil(most))
}

/// Memory of the rows of one step of a band, where a core has so much of the last-level cache.
fn band_bytes(share_bytes: Option<usize>, threads: usize) -> usize {
    match share_bytes.map(|share| share.saturating_mul(threads) / BAND_SHARE) {
        Some(bytes) if bytes >= BAND_BYTES_MIN => bytes.min(BAND_BYTES_MAX),
        _ => BAND_BYTES_MAX,
    }
}

/// How a picture is cut.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cut {
    pub(crate) segment_tiles: usize,
    pub(crate) band: usize,
    pub(crate) task_rows: usize,
    pub(crate) strip_tiles: usize,
    pub(crate) rest: usize,
    pub(crate) leaves_out: bool,
    pub(crate) is_staggered: bool,
}

impl Cut {
    /// How a picture whose map 0 has that many columns and rows is cut.
    pub(crate) fn new(
        plan: &Plan,
        (width, height): (usize, usize),
        threads: usize,
        map_bytes_max: usize,
    ) -> Self {
        let columns = width.div_ceil(TILE);
        let wide = plan.layers.iter().filter(|l| l.method == Method::Winograd);
        let widest = wide.map(|layer| layer.depth.max(layer.channels));
        let widest = widest.max().unwrap_or(CHANNEL_UNIT);
        let most = (SEGMENT_NUMBERS / POSITIONS / widest).max(6);
        let narrow_most = most.min(NARROW_TILES);
        let has_products = |l: &PlanLayer| l.method == Method::Winograd && l.direct.is_none();
        let most = match plan.layers.iter().any(has_products) {
            true => most,
            false => DIRECT_TILES,
        };
        let most = if height <= TILE { narrow_most } else { most };
        // A low picture has too few rows to keep all threads busy: there the rows are cut finer.
        let rows = height.div_ceil(TILE);
        let least = (3 * threads).div_ceil(rows).min(columns.div_ceil(6));
        let segments = columns.div_ceil(most).max(least).max(1);
        let segment_tiles = columns.div_ceil(segments);
        // A narrow picture has too few tiles in a row for one pass over the weights: there a task takes several rows.
        let task_rows = (narrow_most / columns).min(rows / (3 * threads)).max(1);
        let row_bytes = 2 * columns * TILE * TILE * widest * size_of::<f32>();
        let band = (band_bytes(plan.cache_share_bytes, threads) / row_bytes)
            .max((3 * threads).div_ceil(segments));
        let band = band.clamp(2, BAND_ROWS_MAX.max(2 * threads * task_rows));
        let rest = (2 * threads).div_ceil(segments) + 1;
        let mut cut = Self {
            segment_tiles,
            band,
            task_rows,
            strip_tiles: cached_columns(plan, (columns, height)).next_multiple_of(segment_tiles),
            rest,
            leaves_out: true,
            is_staggered: height >= STAGGERED_FROM,
        };
        let mut bytes = cut.bytes(plan, (width, height));
        while cut.strip_tiles > segment_tiles && bytes > map_bytes_max {
            let segments = cut.strip_tiles / segment_tiles;
            let strip_tiles = segments.div_ceil(2) * segment_tiles;
            let half = Self { strip_tiles, ..cut };
            let half_bytes = half.bytes(plan, (width, height));
            // What a deep network sees beside a strip may be wider than the strip: then cutting saves nothing.
            if half_bytes > bytes / 4 * 3 {
                break;
            }
            (cut, bytes) = (half, half_bytes);
        }
        cut
    }

    /// Bytes that the maps of one strip take.
    pub(crate) fn bytes(&self, plan: &Plan, (width, height): (usize, usize)) -> usize {
        // A strip in the middle has neighbours on both sides: the widest there is.
        let columns = width.div_ceil(TILE);
        let start = (columns / 2).min(columns - self.strip_tiles.min(columns));
        let start = start / self.segment_tiles * self.segment_tiles;
        let extent = self.extent(plan, (width, height), start);
        Job::bytes(plan, &Schedule::new(plan, &extent), &extent)
    }

    pub(crate) fn extent(
        &self,
        plan: &Plan,
        (width, height): (usize, usize),
        start: usize,
    ) -> Extent {
        Extent {
            width,
            height,
            strip: start..(start + self.strip_tiles).min(width.div_ceil(TILE)),
            segment_tiles: self.segment_tiles,
            band: self.band,
            task_rows: self.task_rows,
            rest: self.rest,
            leaves_out: self.leaves_out,
            rises: rises(plan, self.is_staggered),
        }
    }
}

pub(crate) fn run_strips(
    plan: &Plan,
    source: &Pixels,
    threads: usize,
    cut: &Cut,
    sink: Sink<'_>,
    cancelled: Cancelled<'_>,
) -> Result<(), UpscaleError> {
    let grid = grid(plan, source);
    let starts: Vec<usize> = (0..grid.0.div_ceil(TILE))
        .step_by(cut.strip_tiles)
        .collect();
    let extent = cut.extent(plan, grid, 0);
    let tile_rows = extent.tile_rows(plan, plan.maps.len() - 1);
    let places = match starts.len() {
        1 => (2 * cut.band + 2).min(tile_rows),
        _ => tile_rows,
    };
    let row_len = row_samples(plan, source);
    let segment = cut.segment_tiles * TILE * plan.shuffle * source.channels();
    let output = Output::new(places, TILE * plan.shuffle, row_len, segment);
    let mut sink = Some(sink);
    for &start in &starts {
        let extent = cut.extent(plan, grid, start);
        let schedule = Schedule::new(plan, &extent);
        let job = Job::new(plan, source, extent, schedule, &output);
        let taker = sink.take_if(|_| starts.len() == 1);
        run(&job, &output, threads, taker, cancelled)?;
    }
    match sink {
        Some(sink) => hand_on_strips(plan, source, &output, sink),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibrate::fast_plan;
    use crate::kernel_set::KernelSet;
    use crate::shapes::{Random, Shape};
    use crate::trials::run_cut;

    fn picture(width: usize, height: usize) -> Pixels {
        let mut random = Random(3);
        let samples = (0..width * height * 3).map(|_| random.unit());
        Pixels::new(width, height, 3, samples.collect()).unwrap()
    }

    #[test]
    fn any_segment_band_and_strip_gives_the_same_bits() {
        let source = picture(133, 50);
        let kernels = KernelSet::best().kernels().unwrap();
        let small = Shape::Rrdb {
            channels: 16,
            growth: 8,
            blocks: 2,
        };
        let tiers = ["f", "s"].map(|name| (name, Shape::parse(name).unwrap(), 2));
        let edsr = Shape::Edsr {
            channels: 24,
            blocks: 1,
        };
        let brought = [("rrdb", small), ("edsr", edsr)];
        let brought = brought.map(|(name, shape)| [2, 4].map(|scale| (name, shape, scale)));
        let compact = Shape::Compact {
            channels: 40,
            convs: 4,
        };
        let fast = fast_plan(&compact.network(4, 5).unfolded(), kernels);
        let exact = tiers.into_iter().chain(brought.into_iter().flatten());
        let exact = exact.map(|(name, shape, scale)| {
            (
                name,
                Plan::new(&shape.network(scale, 5).unfolded(), kernels),
            )
        });
        for (name, plan) in exact.chain([("compact in words", fast)]) {
            for is_staggered in [false, true] {
                let whole = Cut {
                    is_staggered,
                    ..Cut::new(&plan, grid(&plan, &source), 1, MAP_BYTES_MAX)
                };
                let expected = run_cut(&plan, &source, 1, &whole);
                for (segment_tiles, band, strip, task_rows) in [
                    (1, 1, 23_usize, 1),
                    (5, 2, 10, 2),
                    (7, 3, 7, 1),
                    (4, 64, 12, 3),
                ] {
                    let cut = Cut {
                        segment_tiles,
                        band,
                        task_rows,
                        strip_tiles: strip.next_multiple_of(segment_tiles),
                        rest: 1 + band,
                        ..whole
                    };
                    let given = run_cut(&plan, &source, 3, &cut);
                    assert!(given == expected, "{name} {cut:?}");
                }
            }
        }
    }

    #[test]
    fn blocks_of_a_high_picture_join_without_a_seam() {
        let source = picture(9, 1_000);
        let kernels = KernelSet::best().kernels().unwrap();
        let plan = Plan::new(
            &Shape::parse("f").unwrap().network(4, 5).unfolded(),
            kernels,
        );
        let whole = Cut::new(&plan, grid(&plan, &source), 1, MAP_BYTES_MAX);
        let expected = run_cut(&plan, &source, 1, &whole);
        let mut output = Vec::new();
        let mut next_row = 0;
        let mut sink = |rows: Rows<'_>| {
            assert_eq!(rows.first_row, next_row);
            next_row += rows.row_count;
            output.extend_from_slice(rows.samples);
            ControlFlow::Continue(())
        };
        upscale_in_blocks(&plan, &source, 2, 37, &mut sink, &|| false).unwrap();
        assert!(output == expected);
    }

    #[test]
    fn a_wide_picture_is_cut_until_its_maps_fit() {
        let kernels = KernelSet::best().kernels().unwrap();
        let plan = Plan::new(
            &Shape::parse("s").unwrap().network(2, 5).unfolded(),
            kernels,
        );
        for (width, height) in [(1_500_000, 1), (30_000, 50), (2_500, 600)] {
            let source = picture(width, height);
            let cut = Cut::new(&plan, grid(&plan, &source), 2, MAP_BYTES_MAX);
            assert!(
                cut.bytes(&plan, grid(&plan, &source)) <= MAP_BYTES_MAX,
                "{cut:?}"
            );
        }
    }

    #[test]
    fn bands_are_cut_for_the_cache_of_the_threads() {
        let most = BAND_BYTES_MAX >> 20;
        for (share, threads, expected) in [
            (None, 8, most),
            // EPYC: a core, two, a whole die.
            (Some(4), 1, 2),
            (Some(4), 2, 4),
            (Some(4), 8, most),
            // No band fits.
            (Some(1), 1, most),
            (Some(240), 2, most),
        ] {
            let bytes = band_bytes(share.map(|mebibytes: usize| mebibytes << 20), threads);
            assert_eq!(bytes >> 20, expected, "{share:?} MiB, {threads} threads");
        }
    }

    #[test]
    fn threads_stop_soon_after_they_are_told() {
        use std::sync::atomic::{AtomicUsize, Ordering};
        let kernels = KernelSet::best().kernels().unwrap();
        let plan = Plan::new(
            &Shape::parse("s").unwrap().network(2, 5).unfolded(),
            kernels,
        );
        let source = picture(600, 600);
        let asked = AtomicUsize::new(0);
        let cancelled = || asked.fetch_add(1, Ordering::Relaxed) >= 20;
        let mut sink = |_: upscale_core::Rows<'_>| ControlFlow::Continue(());
        let ended = upscale(&plan, &source, 3, &mut sink, &cancelled);
        assert_eq!(ended, Err(UpscaleError::Cancelled));
        // Every thread asks once more at most, per segment or wait, before it sees that all are to stop.
        assert!(asked.load(Ordering::Relaxed) < 20 + 2 * 3 + 1);
    }
}

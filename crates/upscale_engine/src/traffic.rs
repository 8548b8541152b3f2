//! What passes a last-level cache: the rows of maps that a schedule reads and writes and the weights of its layers, in the
//! order in which the engine does, through a cache that drops what was not used for longest. A model, for docs/sizing.md; it
//! knows nothing of other caches, of prefetching and of threads.

use std::collections::{BTreeMap, HashMap};

use crate::kernel_set::KernelSet;
use crate::network::PICTURE;
use crate::plan::Plan;
use crate::schedule::{Extent, Schedule, Work};
use crate::shapes::Shape;
use crate::trials::plans;
use crate::upscale::Cut;
use crate::winograd::{POSITIONS, TILE};

/// A row of a class of maps, or a layer's weights.
type Key = (usize, usize);
const WEIGHTS: usize = usize::MAX;

/// Bytes that pass.
#[derive(Debug, Default, Clone, Copy)]
struct Passed {
    /// Rows read; those that are written are read first, as caches do it.
    read: usize,
    written: usize,
    weights: usize,
}

/// Least recently used goes first.
struct Cache {
    room: usize,
    round: u64,
    held: HashMap<Key, (u64, usize, bool)>,
    by_round: BTreeMap<u64, Key>,
    passed: Passed,
}

impl Cache {
    fn new(room: usize) -> Self {
        Self {
            room,
            round: 0,
            held: HashMap::new(),
            by_round: BTreeMap::new(),
            passed: Passed::default(),
        }
    }

    fn touch(&mut self, key: Key, bytes: usize, is_written: bool) {
        self.round += 1;
        let before = self.held.remove(&key);
        match before {
            Some((round, ..)) => drop(self.by_round.remove(&round)),
            None => {
                self.room = self.make_room(bytes);
                match key.0 {
                    WEIGHTS => self.passed.weights += bytes,
                    _ => self.passed.read += bytes,
                }
            }
        }
        let is_dirty = is_written || before.is_some_and(|(.., is_dirty)| is_dirty);
        self.held.insert(key, (self.round, bytes, is_dirty));
        self.by_round.insert(self.round, key);
    }

    /// What room is left when `bytes` more are held.
    fn make_room(&mut self, bytes: usize) -> usize {
        let mut room = self.room;
        while room < bytes {
            let Some((_, key)) = self.by_round.pop_first() else {
                return 0;
            };
            let Some((_, freed, is_dirty)) = self.held.remove(&key) else {
                continue;
            };
            room += freed;
            self.passed.written += if is_dirty { freed } else { 0 };
        }
        room - bytes
    }
}

/// What a picture of `extent` passes.
fn passed(plan: &Plan, extent: &Extent, room: usize) -> Passed {
    let schedule = Schedule::new(plan, extent);
    let mut cache = Cache::new(room);
    for task in &schedule.tasks {
        let Work::Rows { tile_row, count } = task.work else {
            continue;
        };
        let layer = &plan.layers[task.layer];
        let weights = POSITIONS * layer.depth * layer.channels * size_of::<i16>();
        cache.touch((WEIGHTS, task.layer), weights, false);
        let rows = extent.pixel_rows(layer, tile_row..tile_row + count);
        let above = usize::from(layer.is_wide());
        let read = rows.start.saturating_sub(above)..(rows.end + above).min(extent.height);
        let inputs = layer.inputs.iter().map(|&map| (map, read.clone(), false));
        let joined = layer.combine.iter();
        let joined = joined.map(|combine| (combine.map(), rows.clone(), false));
        let touched = inputs
            .chain(joined)
            .chain([(layer.output, rows.clone(), true)]);
        for (map, rows, is_written) in touched.filter(|one| one.0 != PICTURE) {
            let class = schedule.class(map);
            let bytes = extent.width.next_multiple_of(TILE) * plan.pitch(map) * size_of::<f32>();
            for &slot in &schedule.slots[map][rows] {
                cache.touch((class, slot as usize), bytes, is_written);
            }
        }
    }
    cache.passed
}

#[test]
fn staggered_tiles_pass_less_through_every_cache() {
    let kernels = KernelSet::best().kernels().unwrap();
    let [_, mut plan] = plans(&Shape::parse("s").unwrap().network(2, 5), kernels);
    println!("bytes for a pixel of a result at 2x: maps read + maps written + weights read");
    for (width, height) in [(256, 256), (640, 480), (1_500, 1_000)] {
        for share in [4_usize, 8, 16, 32] {
            plan.cache_share_bytes = Some(share << 20);
            let cut = Cut::new(&plan, (width, height), 1, usize::MAX);
            let [plain, staggered] = [false, true].map(|is_staggered| {
                let cut = Cut {
                    is_staggered,
                    ..cut
                };
                let extent = cut.extent(&plan, (width, height), 0);
                passed(&plan, &extent, share << 20)
            });
            let pixels = 4 * width * height;
            let shown = [plain, staggered].map(|one| {
                let bytes = [one.read, one.written, one.weights].map(|bytes| bytes / pixels);
                format!("{} + {} + {}", bytes[0], bytes[1], bytes[2])
            });
            println!(
                "{width}, band {}, {share} MiB: {}",
                cut.band,
                shown.join(" | ")
            );
            let maps = |one: Passed| one.read + one.written;
            // Alike where not even one band fits.
            let most = maps(plain) + maps(plain) / 100;
            assert!(maps(staggered) <= most, "{width}, {share} MiB");
        }
    }
}

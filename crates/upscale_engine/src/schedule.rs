//! Who computes what when, and where it is kept: settled before a picture is begun, the same for any thread count.
//!
//! The layers are run depth first over bands of rows. A band enters at the picture; every layer follows as far
//! as its inputs allow (a 3x3 layer stays a row behind, a row of tiles where all maps' tiles lie on one grid: `stagger.rs`),
//! so between two bands a layer keeps only the rows that its readers have not done with. The tiles of a map lie on one
//! grid over the whole picture, whatever the band: that is why bands, strips and threads cannot change a bit of the output.
//!
//! A network may be cut into *sections*: each is run over all rows before the next begins, and only inside it layers
//! follow each other closely. Over 351 layers that stay one row of tiles behind each other, the rows in between would
//! be more than a few whole maps.
//!
//! A *row task* is one row of tiles of one layer, or a few where rows are short, cut into *segments* of neighbouring tiles
//! that threads take in order. It may begin when the first `needs` tasks are finished: those that made its input, and those that
//! still read the memory it writes to.
//!
//! A *weights task* transforms a layer's weights, half a step ahead of the rows that use them, into one of two
//! slots. Transformed once and kept they would be seven times as large: 36 MB for 34 layers of 64 channels, read
//! from main memory in every band. Made anew they cost 1 % and stay in the caches.

use std::ops::Range;

use crate::network::{Map, PICTURE};
use crate::plan::{Method, Plan};
use crate::winograd::{TILE, WINDOW};

/// The part of a picture that one schedule covers, in tiles.
#[derive(Debug, Clone)]
pub(crate) struct Extent {
    /// Columns and rows of map 0.
    pub(crate) width: usize,
    pub(crate) height: usize,
    /// Tile columns of map 0 under the wanted output, from the beginning of a segment on.
    pub(crate) strip: Range<usize>,
    /// Tiles of a segment of any map, and rows of tiles that enter at a time.
    pub(crate) segment_tiles: usize,
    pub(crate) band: usize,
    /// Rows of tiles of a task: more than 1 where a row has too few tiles for one pass over a layer's weights.
    pub(crate) task_rows: usize,
    /// Whether products are left out that only pixels outside of the picture need (`narrow.rs`); not so in the tests that
    /// compare.
    pub(crate) leaves_out: bool,
    /// Tasks for which freed memory rests before it is used again, so that no one waits for it.
    pub(crate) rest: usize,
    /// Rows of every map's first tiles that lie above the picture (`stagger.rs`).
    pub(crate) rises: Vec<usize>,
}

impl Extent {
    /// Tile columns of a map that is `factor` times as wide as map 0.
    pub(crate) fn tile_columns(&self, factor: usize) -> usize {
        (self.width * factor).div_ceil(TILE)
    }
}

/// What a task makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// A layer's transformed weights; a segment is one row of positions.
    Weights,
    /// Rows of tiles of a layer.
    Rows {
        /// The first, counted over the picture.
        tile_row: usize,
        /// Rows of tiles, at least 1.
        count: usize,
    },
}

/// A piece of work that several threads share, segment by segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Task {
    pub(crate) layer: usize,
    pub(crate) work: Work,
    /// Where the layer's transformed weights stand.
    pub(crate) weights_slot: usize,
    /// How many tasks, counted from the first, must be finished before.
    pub(crate) needs: usize,
    /// Segments of the picture's grid that the layer touches, or of the weights.
    pub(crate) segments: Range<usize>,
}

/// Slots for transformed weights: one in use, one in the making.
pub(crate) const WEIGHTS_SLOTS: usize = 2;

/// The order of work and the place of every row.
pub(crate) struct Schedule {
    pub(crate) tasks: Vec<Task>,
    /// For every map and pixel row: the slot that keeps it. Slot 0 is the row of zeros outside the picture.
    pub(crate) slots: Vec<Vec<u32>>,
    /// Slots used of every class of maps, see [`Schedule::class`].
    pub(crate) slot_counts: Vec<usize>,
    /// Distinct pairs of numbers a pixel and factor.
    pub(crate) classes: Vec<(usize, usize)>,
    /// Class of every map.
    class_of: Vec<usize>,
    /// Tile columns that each layer computes: the strip and what later layers see beside it.
    pub(crate) columns: Vec<Range<usize>>,
    /// Index of the last layer's task for every row of tiles.
    pub(crate) last_tasks: Vec<usize>,
}

impl Schedule {
    pub(crate) fn new(plan: &Plan, extent: &Extent) -> Self {
        let steps = steps(plan, extent);
        let mut builder = Builder::new(plan, extent);
        builder.push_weights(steps.first());
        for (index, step) in steps.iter().enumerate() {
            let middle = step.rows.len().div_ceil(extent.task_rows) / 2;
            for (task, tile_row) in step.rows.clone().step_by(extent.task_rows).enumerate() {
                if task == middle {
                    builder.push_weights(steps.get(index + 1));
                }
                let end = (tile_row + extent.task_rows).min(step.rows.end);
                builder.push(step.layer, tile_row..end);
            }
            builder.free_weights(step.layer);
        }
        builder.schedule
    }

    /// Which class of equally wide maps a map belongs to.
    pub(crate) fn class(&self, map: Map) -> usize {
        self.class_of[map]
    }

    /// All tile columns that any layer of that factor computes, from the beginning of a segment on.
    pub(crate) fn all_columns(&self, plan: &Plan, extent: &Extent, factor: usize) -> Range<usize> {
        let layers = plan.layers.iter().zip(&self.columns);
        let columns = layers.filter(|(layer, _)| layer.factor == factor);
        let (start, end) = columns.fold((usize::MAX, 0), |(start, end), (_, c)| {
            (start.min(c.start), end.max(c.end))
        });
        start.min(end) / extent.segment_tiles * extent.segment_tiles..end
    }
}

/// Tiles beside the wanted ones that every map must hold, on both sides.
pub(crate) fn tiles_beside(plan: &Plan) -> Vec<usize> {
    let mut beside = vec![0; plan.maps.len()];
    for layer in plan.layers.iter().rev() {
        let own = beside[layer.output];
        // One pixel more for a 3x3 layer, in pixels and then in tiles of the input.
        let pixels = own * TILE / layer.enlarged + usize::from(layer.is_wide());
        for &map in &layer.inputs {
            beside[map] = beside[map].max(pixels.div_ceil(TILE));
        }
        for combine in &layer.combine {
            beside[combine.map()] = beside[combine.map()].max(own);
        }
    }
    beside
}

/// Tile columns of every layer.
fn layer_columns(plan: &Plan, extent: &Extent) -> Vec<Range<usize>> {
    let beside = tiles_beside(plan);
    let columns = plan.layers.iter().map(|layer| {
        let (halo, factor) = (beside[layer.output], layer.factor);
        let start = (extent.strip.start * factor).saturating_sub(halo);
        start..(extent.strip.end * factor + halo).min(extent.tile_columns(factor))
    });
    columns.collect()
}

/// Rows of tiles that a layer does before the next layer has its turn.
struct Step {
    layer: usize,
    rows: Range<usize>,
}

/// Section after section, each depth first: whenever a band has entered, every layer goes as far as its inputs allow.
fn steps(plan: &Plan, extent: &Extent) -> Vec<Step> {
    let mut order = Order {
        plan,
        extent,
        done: vec![0; plan.maps.len()],
        steps: Vec::new(),
    };
    let rows = extent.tile_rows(plan, PICTURE);
    order.done[PICTURE] = rows;
    let ends = plan.sections.iter().skip(1).copied();
    let ends = ends.chain([plan.layers.len()]);
    for (&first, end) in plan.sections.iter().zip(ends) {
        let mut entered = 0;
        while entered < rows {
            entered = (entered + extent.band).min(rows);
            order.advance(first..end, (first, entered));
        }
    }
    order.steps
}

/// Steps in the making.
struct Order<'a> {
    plan: &'a Plan,
    extent: &'a Extent,
    /// Rows of tiles made of every map.
    done: Vec<usize>,
    steps: Vec<Step>,
}

impl Order<'_> {
    /// Runs layers of a section as far as `entered` (the section's first layer, and rows of map 0's tiles) allows.
    /// A layer that enlarges its input makes only a band at a time, and the layers after it follow: their rows are
    /// long, and four times as many.
    fn advance(&mut self, layers: Range<usize>, entered: (usize, usize)) {
        for index in layers.clone() {
            let layer = &self.plan.layers[index];
            let reach = self.reach(index, entered);
            if layer.enlarged == 1 {
                self.step(index, reach);
                continue;
            }
            loop {
                self.step(index, reach.min(self.done[layer.output] + self.extent.band));
                self.advance(index + 1..layers.end, entered);
                if self.done[layer.output] >= reach {
                    return;
                }
            }
        }
    }

    fn step(&mut self, layer: usize, reach: usize) {
        let done = &mut self.done[self.plan.layers[layer].output];
        if reach > *done {
            let rows = *done..reach;
            self.steps.push(Step { layer, rows });
            *done = reach;
        }
    }

    /// Rows of tiles of a layer whose inputs are there.
    fn reach(&self, index: usize, (section, entered): (usize, usize)) -> usize {
        let layer = &self.plan.layers[index];
        let made = |map: Map| {
            let factor = self.plan.factors[map];
            // Map n is made by layer n - 1.
            let is_older = map <= section;
            let limit = if is_older {
                entered * factor
            } else {
                usize::MAX
            };
            let made = self.done[map].min(limit);
            self.extent.rows_made(self.plan, map, made)
        };
        let below = usize::from(layer.method == Method::Winograd);
        let inputs = layer.inputs.iter().map(|&map| {
            let rows = made(map).saturating_mul(layer.enlarged);
            rows.saturating_sub(below)
        });
        let joined = layer.combine.iter().map(|combine| made(combine.map()));
        let made = inputs.chain(joined).min().unwrap_or(0);
        // Tiles end where the picture does.
        let tiles = made.saturating_add(self.extent.rises[layer.output]) / TILE;
        tiles.min(self.extent.tile_rows(self.plan, layer.output))
    }
}

/// Memory rows of one class: free ones, and those that rest.
#[derive(Default)]
struct Pool {
    /// Slot and the number of tasks that must be finished before it is written.
    free: Vec<(u32, usize)>,
    resting: std::collections::VecDeque<(u32, usize)>,
}

struct Builder<'a> {
    plan: &'a Plan,
    extent: &'a Extent,
    schedule: Schedule,
    /// Rows of tiles that each layer has done.
    done: Vec<usize>,
    /// Layer that makes each map, and its task for every row of tiles.
    made_by: Vec<Option<usize>>,
    tasks_of: Vec<Vec<usize>>,
    readers: Vec<Vec<usize>>,
    /// Pixel rows of each map whose memory was given back.
    given_back: Vec<usize>,
    pools: Vec<Pool>,
    /// The slot of the weights made last.
    weights_slot: usize,
    /// Tasks that must be finished before a slot is written again.
    weights_free: [usize; WEIGHTS_SLOTS],
    /// Slot of each layer's weights, and how many tasks have to be finished to have them.
    weights_of: Vec<(usize, usize)>,
}

impl<'a> Builder<'a> {
    fn new(plan: &'a Plan, extent: &'a Extent) -> Self {
        let kinds = plan.factors.iter().enumerate();
        let kinds: Vec<_> = kinds
            .map(|(map, &factor)| (plan.pitch(map), factor))
            .collect();
        let mut classes = kinds.clone();
        classes.sort_unstable();
        classes.dedup();
        let class_of = kinds
            .iter()
            .map(|kind| classes.partition_point(|class| class < kind));
        let slots = plan.factors.iter();
        let slots = slots.map(|factor| vec![0; extent.height * factor]);
        let mut made_by = vec![None; plan.maps.len()];
        let mut readers = vec![Vec::new(); plan.maps.len()];
        for (index, layer) in plan.layers.iter().enumerate() {
            made_by[layer.output] = Some(index);
            let joined = layer.combine.iter().map(|combine| combine.map());
            for map in layer.inputs.iter().copied().chain(joined) {
                readers[map].push(index);
            }
        }
        let schedule = Schedule {
            tasks: Vec::new(),
            slots: slots.collect(),
            slot_counts: vec![1; classes.len()],
            class_of: class_of.collect(),
            columns: layer_columns(plan, extent),
            last_tasks: Vec::new(),
            classes: classes.clone(),
        };
        Self {
            plan,
            extent,
            schedule,
            done: vec![0; plan.layers.len()],
            made_by,
            tasks_of: vec![Vec::new(); plan.layers.len()],
            readers,
            given_back: vec![0; plan.maps.len()],
            pools: classes.iter().map(|_| Pool::default()).collect(),
            weights_slot: 0,
            weights_free: [0; WEIGHTS_SLOTS],
            weights_of: vec![(0, 0); plan.layers.len()],
        }
    }

    /// Schedules the weights of a step, if it needs any, into the slot that was not used last.
    fn push_weights(&mut self, step: Option<&Step>) {
        let Some(step) = step else { return };
        if !self.plan.layers[step.layer].has_taps() {
            return;
        }
        self.weights_slot = (self.weights_slot + 1) % WEIGHTS_SLOTS;
        self.schedule.tasks.push(Task {
            layer: step.layer,
            work: Work::Weights,
            weights_slot: self.weights_slot,
            needs: self.weights_free[self.weights_slot],
            segments: 0..WINDOW,
        });
        self.weights_of[step.layer] = (self.weights_slot, self.schedule.tasks.len());
    }

    /// All tasks so far have to be finished before a layer's weights are replaced.
    fn free_weights(&mut self, layer: usize) {
        let (slot, _) = self.weights_of[layer];
        if self.plan.layers[layer].has_taps() {
            self.weights_free[slot] = self.schedule.tasks.len();
        }
    }

    fn push(&mut self, layer: usize, rows: Range<usize>) {
        let task = self.schedule.tasks.len();
        let (weights_slot, weights_made) = self.weights_of[layer];
        let mut needs = self.input_needs(layer, rows.end - 1).max(weights_made);
        if layer + 1 < self.plan.layers.len() {
            needs = needs.max(self.take_memory(layer, &rows, task));
        } else {
            let tasks = rows.clone().map(|_| task);
            self.schedule.last_tasks.extend(tasks);
        }
        let columns = &self.schedule.columns[layer];
        let tiles = self.extent.segment_tiles;
        let segments = columns.start / tiles..columns.end.div_ceil(tiles);
        self.schedule.tasks.push(Task {
            layer,
            work: Work::Rows {
                tile_row: rows.start,
                count: rows.len(),
            },
            weights_slot,
            needs,
            segments,
        });
        self.tasks_of[layer].extend(rows.clone().map(|_| task));
        self.done[layer] = rows.end;
        self.give_back(layer, task + 1);
    }

    /// The last of the tasks that make the input.
    fn input_needs(&self, layer: usize, tile_row: usize) -> usize {
        let plan = &self.plan.layers[layer];
        // The lowest pixel row that is written, and that is read.
        let lowest = (self.extent.top(plan, tile_row + 1) - 1).max(0) as usize;
        let read = (lowest + usize::from(plan.is_wide())) / plan.enlarged;
        let inputs = plan.inputs.iter().map(|&map| (map, read));
        let joined = plan.combine.iter().map(|combine| (combine.map(), lowest));
        let made = inputs.chain(joined).filter_map(|(map, lowest)| {
            let maker = self.made_by[map]?;
            let row = self.extent.tile_row_of(self.plan, map, lowest);
            Some(self.tasks_of[maker][row] + 1)
        });
        made.max().unwrap_or(0)
    }

    /// Finds memory for the rows that a task writes, and what must be finished before it may.
    fn take_memory(&mut self, layer: usize, rows: &Range<usize>, task: usize) -> usize {
        let map = self.plan.layers[layer].output;
        let class = self.schedule.class_of[map];
        let pool = &mut self.pools[class];
        while let Some(&slot) = pool
            .resting
            .front()
            .filter(|slot| slot.1 + self.extent.rest <= task)
        {
            pool.resting.pop_front();
            pool.free.push(slot);
        }
        let mut needs = 0;
        let layer = &self.plan.layers[layer];
        for row in self.extent.pixel_rows(layer, rows.clone()) {
            let (slot, after) = pool.free.pop().unwrap_or_else(|| {
                let count = &mut self.schedule.slot_counts[class];
                *count += 1;
                (*count as u32 - 1, 0)
            });
            self.schedule.slots[map][row] = slot;
            needs = needs.max(after);
        }
        needs
    }

    /// Gives back the rows that no reader of the layer's inputs needs any more once `finished` tasks are.
    fn give_back(&mut self, layer: usize, finished: usize) {
        let plan = &self.plan.layers[layer];
        let joined = plan.combine.iter().map(|combine| combine.map());
        for map in plan.inputs.iter().copied().chain(joined) {
            if map == PICTURE {
                continue;
            }
            let needed = self.readers[map]
                .iter()
                .map(|&reader| self.first_needed(reader, map));
            let height = self.extent.height * self.plan.factors[map];
            let needed = needed.min().unwrap_or(height);
            let class = self.schedule.class_of[map];
            for row in self.given_back[map]..needed {
                let slot = self.schedule.slots[map][row];
                self.pools[class].resting.push_back((slot, finished));
            }
            self.given_back[map] = self.given_back[map].max(needed);
        }
    }

    /// The first pixel row of `map` that `reader` still has to read.
    fn first_needed(&self, reader: usize, map: Map) -> usize {
        let plan = &self.plan.layers[reader];
        let done = self.done[reader];
        if done == self.extent.tile_rows(self.plan, plan.output) {
            return self.extent.height * self.plan.factors[map];
        }
        let above = usize::from(plan.is_wide() && plan.inputs.contains(&map));
        let next = self.extent.top(plan, done).max(0) as usize;
        next.saturating_sub(above) / plan.enlarged
    }
}

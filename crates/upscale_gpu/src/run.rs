//! One picture through one network on one device: section by section, tile by tile, rows handed on top to bottom.

use std::ops::{ControlFlow, Range};

use upscale_core::{Pixels, Rows};
use upscale_engine::Network;
use wgpu::{
    BindGroup, BindGroupDescriptor, BindGroupEntry, BindingResource, Buffer, BufferBinding,
    BufferUsages, CommandEncoderDescriptor, ComputePassDescriptor, MapMode, SubmissionIndex,
};

use crate::{
    area::{Area, Cut},
    error::GpuError,
    gpu::{Gpu, Storage},
    packed::Packed,
    steps::{STEP_BYTES, Step, Steps},
};

/// Below this side of its tiles a network computes what lies around them many times over.
const TILE_SIDE_MIN: usize = 16;
/// Above it there is nothing to gain, and a device counts its workgroups in 16 bits.
const TILE_SIDE_MAX: usize = 4_096;

/// A network whose numbers are on the device.
pub(crate) struct Program {
    pub(crate) network: Network,
    packed: Packed,
    numbers: Buffer,
}

impl Program {
    /// Takes a network without conditions.
    pub(crate) fn new(gpu: &Gpu, network: Network) -> Result<Self, GpuError> {
        let mut packed = Packed::new(&network)?;
        let bytes = (packed.numbers.len() * 4) as u64;
        if bytes > gpu.facts.buffer_bytes_max {
            return Err(GpuError::Unfit(format!(
                "the network's numbers take {bytes} bytes, its largest buffer {}",
                gpu.facts.buffer_bytes_max
            )));
        }
        let numbers = gpu.buffer(bytes, BufferUsages::STORAGE | BufferUsages::COPY_DST)?;
        gpu.queue
            .write_buffer(&numbers, 0, bytemuck::cast_slice(&packed.numbers));
        packed.numbers = Vec::new();
        Ok(Self {
            network,
            packed,
            numbers,
        })
    }
}

/// Where a picture's tiles end, and in which precision its maps are kept.
struct Tiling<'a> {
    cut: Cut<'a>,
    storage: Storage,
    /// Of every section, its layers and the largest sides of its tiles.
    sections: Vec<(Range<usize>, (usize, usize))>,
    arena_bytes: u64,
}

impl<'a> Tiling<'a> {
    /// The largest tiles whose maps fit into `bytes`.
    fn new(
        network: &'a Network,
        source: &Pixels,
        storage: Storage,
        bytes: u64,
    ) -> Result<Self, GpuError> {
        let cut = Cut::new(network, source.width(), source.height());
        let vectors = usize::try_from(bytes).unwrap_or(usize::MAX) / storage.vector_bytes();
        let (mut sections, mut most) = (Vec::new(), 0);
        for section in cut.sections() {
            let (tile, end) = largest_tile(&cut, &section, vectors).ok_or_else(|| {
                GpuError::Unfit(format!(
                    "{} x {} pixels through {} need more than the {bytes} bytes that its maps may take",
                    source.width(),
                    source.height(),
                    network.name()
                ))
            })?;
            most = end.max(most);
            sections.push((section, tile));
        }
        Ok(Self {
            cut,
            storage,
            sections,
            arena_bytes: (most * storage.vector_bytes()) as u64,
        })
    }
}

/// Halves the longer side until all tiles fit; and what the arena needs then. Those in the middle see most, but maps of
/// other sizes may be laid worse: those of a tile at the edge once took more.
fn largest_tile(
    cut: &Cut<'_>,
    section: &Range<usize>,
    vectors: usize,
) -> Option<((usize, usize), usize)> {
    let (mut width, mut height) = (cut.grid.0.min(TILE_SIDE_MAX), cut.grid.1.min(TILE_SIDE_MAX));
    loop {
        let tile = Area {
            x: (cut.grid.0 - width) / 2,
            y: (cut.grid.1 - height) / 2,
            width,
            height,
        };
        let end_of = |tile| cut.plan(section, tile).end;
        if end_of(tile) <= vectors {
            let all = rows_of_tiles(cut.grid, (width, height));
            let end = all.into_iter().flatten().map(end_of).max();
            if let Some(end) = end.filter(|end| *end <= vectors) {
                return Some(((width, height), end));
            }
        }
        if width.max(height) <= TILE_SIDE_MIN {
            return None;
        }
        if width > height {
            width = width.div_ceil(2);
        } else {
            height = height.div_ceil(2);
        }
    }
}

/// Upscales a picture of one or three channels.
///
/// # Errors
/// [`GpuError`]; rows that were handed on before are right.
pub(crate) fn upscale(
    gpu: &Gpu,
    program: &Program,
    source: &Pixels,
    sink: &mut dyn FnMut(Rows<'_>) -> ControlFlow<()>,
    cancelled: &dyn Fn() -> bool,
) -> Result<(), GpuError> {
    let most = gpu.arena_bytes_max;
    let in_storage = |storage| Tiling::new(&program.network, source, storage, most);
    let tiling = match gpu.storage {
        Some(storage) => in_storage(storage),
        // Half precision where single precision does not fit.
        None => in_storage(Storage::F32).or_else(|_| in_storage(Storage::F16)),
    }?;
    Running::new(gpu, program, &tiling, source)?.run(sink, cancelled)
}

/// The buffers of one picture.
struct Running<'a> {
    gpu: &'a Gpu,
    program: &'a Program,
    tiling: &'a Tiling<'a>,
    source: &'a Pixels,
    steps: Buffer,
    result: Buffer,
    back: Buffer,
    bound: BindGroup,
}

impl<'a> Running<'a> {
    fn new(
        gpu: &'a Gpu,
        program: &'a Program,
        tiling: &'a Tiling<'a>,
        source: &'a Pixels,
    ) -> Result<Self, GpuError> {
        use BufferUsages as U;
        let samples: &[u8] = bytemuck::cast_slice(source.samples());
        let arena = gpu.buffer(tiling.arena_bytes, U::STORAGE)?;
        let picture = gpu.buffer(samples.len() as u64, U::STORAGE | U::COPY_DST)?;
        gpu.queue.write_buffer(&picture, 0, samples);
        let longest = tiling.sections.iter().map(|(layers, _)| layers.len()).max();
        let steps_bytes = ((longest.unwrap_or(0) + 2) * STEP_BYTES) as u64;
        let steps = gpu.buffer(steps_bytes, U::UNIFORM | U::COPY_DST)?;
        let bytes = result_bytes(&program.network, tiling, source);
        if bytes.max(samples.len() as u64) > gpu.facts.buffer_bytes_max {
            return Err(GpuError::Unfit(format!(
                "a tile's result takes {bytes} bytes"
            )));
        }
        let result = gpu.buffer(bytes, U::STORAGE | U::COPY_SRC)?;
        let back = gpu.buffer(bytes, U::MAP_READ | U::COPY_DST)?;
        let resources = [
            arena.as_entire_binding(),
            program.numbers.as_entire_binding(),
            BindingResource::Buffer(BufferBinding {
                buffer: &steps,
                offset: 0,
                size: std::num::NonZeroU64::new(STEP_BYTES as u64),
            }),
            picture.as_entire_binding(),
            result.as_entire_binding(),
        ];
        let entries: Vec<_> = (0..)
            .zip(resources)
            .map(|(binding, resource)| BindGroupEntry { binding, resource })
            .collect();
        let bound = gpu.device.create_bind_group(&BindGroupDescriptor {
            label: None,
            layout: &gpu.bindings,
            entries: &entries,
        });
        gpu.check()?;
        Ok(Self {
            gpu,
            program,
            tiling,
            source,
            steps,
            result,
            back,
            bound,
        })
    }

    fn run(
        &self,
        sink: &mut dyn FnMut(Rows<'_>) -> ControlFlow<()>,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<(), GpuError> {
        let (last, before) = self
            .tiling
            .sections
            .split_last()
            .unwrap_or_else(|| unreachable!("a network has layers"));
        for (section, tile) in before {
            for row in rows_of_tiles(self.tiling.cut.grid, *tile) {
                for tile in row {
                    self.compute(section, tile, None, cancelled)?;
                }
            }
        }
        let (section, tile) = last;
        for row in rows_of_tiles(self.tiling.cut.grid, *tile) {
            let (first_row, samples) = self.finish(section, &row, cancelled)?;
            let row_samples =
                self.source.width() * self.program.network.scale() * self.source.channels();
            let rows = Rows {
                first_row,
                row_count: samples.len() / row_samples,
                row_samples,
                samples: &samples,
            };
            if sink(rows).is_break() {
                return Err(GpuError::Cancelled);
            }
        }
        Ok(())
    }

    /// The result's rows that a row of tiles makes, and the number of the first.
    fn finish(
        &self,
        section: &Range<usize>,
        tiles: &[Area],
        cancelled: &dyn Fn() -> bool,
    ) -> Result<(usize, Vec<f32>), GpuError> {
        let row_samples =
            self.source.width() * self.program.network.scale() * self.source.channels();
        let mut samples = Vec::new();
        let mut first_row = 0;
        for &tile in tiles {
            let area = self.result_area(tile);
            self.compute(section, tile, Some(area), cancelled)?;
            first_row = area.y;
            samples.resize(area.height * row_samples, 0.0);
            self.take(area, &mut samples, row_samples, cancelled)?;
        }
        Ok((first_row, samples))
    }

    /// A tile of map 0 in pixels of the result, which ends where the source does.
    fn result_area(&self, tile: Area) -> Area {
        let (scale, side) = (
            self.program.network.scale(),
            self.program.network.unshuffle(),
        );
        let whole = tile.enlarged(scale * side);
        Area {
            width: whole.width.min(self.source.width() * scale - whole.x),
            height: whole.height.min(self.source.height() * scale - whole.y),
            ..whole
        }
    }

    /// Runs the section's layers for a tile; with `result` also what makes those pixels of its last map.
    fn compute(
        &self,
        section: &Range<usize>,
        tile: Area,
        result: Option<Area>,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<(), GpuError> {
        let plan = self.tiling.cut.plan(section, tile);
        let steps = Steps {
            network: &self.program.network,
            cut: &self.tiling.cut,
            plan: &plan,
            source: self.source,
        };
        let layers = section
            .clone()
            .filter_map(|index| steps.layer(index, self.program.packed.layers[index]));
        let end = result.map(|area| steps.spread(area));
        let all: Vec<Step> = steps
            .gather()
            .into_iter()
            .chain(layers)
            .chain(end)
            .collect();
        self.write(&all);
        let mut running = None;
        let mut first = 0;
        while first < all.len() {
            if cancelled() {
                return Err(GpuError::Cancelled);
            }
            let count = at_a_time(&all[first..], self.gpu.macs_at_a_time());
            let is_end = first + count == all.len();
            let next = self.submit(first, &all[first..first + count], result.filter(|_| is_end))?;
            // The device has the next ones while the last are waited for.
            if let Some(before) = running.replace(next) {
                self.gpu.wait(before, cancelled)?;
            }
            first += count;
        }
        running.map_or(Ok(()), |last| self.gpu.wait(last, cancelled))
    }

    fn write(&self, steps: &[Step]) {
        let mut bytes = vec![0; steps.len() * STEP_BYTES];
        for (to, step) in bytes.chunks_exact_mut(STEP_BYTES).zip(steps) {
            let words: &[u8] = bytemuck::cast_slice(&step.words);
            to[..words.len()].copy_from_slice(words);
        }
        self.gpu.queue.write_buffer(&self.steps, 0, &bytes);
    }

    fn submit(
        &self,
        first: usize,
        steps: &[Step],
        result: Option<Area>,
    ) -> Result<SubmissionIndex, GpuError> {
        let mut encoder = self
            .gpu
            .device
            .create_command_encoder(&CommandEncoderDescriptor::default());
        let mut pass = encoder.begin_compute_pass(&ComputePassDescriptor::default());
        for (index, step) in (first..).zip(steps) {
            let kernel = self.gpu.kernel(step.kernel, self.tiling.storage)?;
            let [x, y, z] = step.groups;
            pass.set_pipeline(&kernel);
            pass.set_bind_group(0, &self.bound, &[(index * STEP_BYTES) as u32]);
            pass.dispatch_workgroups(x, y, z);
        }
        drop(pass);
        if let Some(area) = result {
            let bytes = (area.pixels() * self.source.channels() * 4) as u64;
            encoder.copy_buffer_to_buffer(&self.result, 0, &self.back, 0, bytes);
        }
        let submission = self.gpu.queue.submit([encoder.finish()]);
        self.gpu.check().map(|()| submission)
    }

    /// Copies the pixels `area`, which the device has made, into their place in whole rows.
    fn take(
        &self,
        area: Area,
        samples: &mut [f32],
        row_samples: usize,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<(), GpuError> {
        let channels = self.source.channels();
        let bytes = (area.pixels() * channels * 4) as u64;
        let slice = self.back.slice(..bytes.next_multiple_of(8));
        slice.map_async(MapMode::Read, |_| ());
        let nothing = self.gpu.queue.submit([]);
        self.gpu.wait(nothing, cancelled)?;
        let mapped = slice.get_mapped_range();
        let mapped =
            mapped.map_err(|e| GpuError::Failed(format!("its result cannot be read: {e}")))?;
        let made: &[f32] = bytemuck::cast_slice(&mapped[..bytes as usize]);
        let width = area.width * channels;
        for (row, made) in samples
            .chunks_exact_mut(row_samples)
            .zip(made.chunks_exact(width))
        {
            row[area.x * channels..][..width].copy_from_slice(made);
        }
        drop(mapped);
        self.back.unmap();
        Ok(())
    }
}

/// How many steps are handed over together: one at least, and of no more than `most` multiply-accumulates.
fn at_a_time(steps: &[Step], most: usize) -> usize {
    let mut macs = 0;
    let fit = steps.iter().take_while(|step| {
        macs += step.macs;
        macs <= most
    });
    fit.count().max(1)
}

/// The tiles of map 0, a row of them at a time.
fn rows_of_tiles(
    (width, height): (usize, usize),
    (tile_width, tile_height): (usize, usize),
) -> Vec<Vec<Area>> {
    let tiles = |y: usize| {
        let of_row = (0..width).step_by(tile_width).map(move |x| Area {
            x,
            y,
            width: tile_width.min(width - x),
            height: tile_height.min(height - y),
        });
        of_row.collect()
    };
    (0..height).step_by(tile_height).map(tiles).collect()
}

/// Of the largest tile's result.
fn result_bytes(network: &Network, tiling: &Tiling<'_>, source: &Pixels) -> u64 {
    let (width, height) = tiling.sections.last().map_or((1, 1), |(_, tile)| *tile);
    let side = network.scale() * network.unshuffle();
    (width * height * side * side * source.channels() * 4) as u64
}

//! The matrix kernel: a few rows of numbers times a panel of weights, all sums in registers. Every layer of a network
//! ends here; 70 % of the time is spent in `multiply`.
//!
//! A sum is taken over the depth in order, one fused multiply-add after another, whatever the number of rows or
//! the width of the panel: results do not depend on how the work was cut.

use crate::block::Block;
use crate::lanes::Lanes;
use crate::leases::SharedRows;

/// Registers of 16 numbers are the unit that channels are padded to; every width divides it.
pub const CHANNEL_UNIT: usize = 16;

/// What sums begin with.
#[derive(Clone, Copy)]
pub enum Start<'a> {
    /// 0
    Zero,
    /// A number per output channel.
    Values(&'a [f32]),
    /// What stands in the output.
    Output,
}

/// Weights for one matrix product: for every panel `[depth][panel channels]`, panels one after another.
#[derive(Clone, Copy)]
pub struct Weights<'a> {
    /// All panels, one after the other.
    pub numbers: &'a [f32],
    /// Output channels of each panel.
    pub panels: &'a [usize],
    /// Numbers of each row of the input.
    pub depth: usize,
}

/// Rows of the left matrix, to read.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    /// The first row begins here.
    pub numbers: &'a [f32],
    /// Numbers from the beginning of a row to that of the next.
    pub stride: usize,
}

/// Rows of the product, to write.
pub struct Output<'a> {
    /// The first row begins here.
    pub numbers: &'a mut [f32],
    /// Numbers from the beginning of a row to that of the next.
    pub stride: usize,
}

/// What a product in place needs beside its rows and weights.
pub struct Beside<'a> {
    /// Holds rows while their panels are computed one after another.
    pub copy: &'a mut Vec<f32>,
    /// The weights used after these.
    pub next: &'a [f32],
    /// What comes after all products.
    pub ahead: &'a mut Ahead,
}

/// Runs of memory that will be needed when the products are done: rows of maps, to be fetched while they are
/// computed. A transform that fetched its own rows waited for them two thirds of its time.
#[derive(Default)]
pub struct Ahead {
    /// First number and count of the runs that are left.
    runs: Vec<(*const f32, usize)>,
}

impl Ahead {
    /// Forgets all runs.
    pub fn clear(&mut self) {
        self.runs.clear();
    }

    /// Adds a part of a row, which someone else may be writing: `count` numbers from `start` on.
    pub fn push(&mut self, rows: &SharedRows, row: usize, start: usize, count: usize) {
        let first = rows.address(row).wrapping_add(start);
        self.runs.push((first, count));
    }

    /// The next `lines` cache lines; nothing is left of runs that are shorter.
    pub(crate) fn take(&mut self, lines: usize) -> Option<*const f32> {
        let (first, count) = self.runs.last_mut()?;
        let (given, numbers) = (*first, lines * CHANNEL_UNIT);
        if *count <= numbers {
            self.runs.pop();
        } else {
            *first = first.wrapping_add(numbers);
            *count -= numbers;
        }
        Some(given)
    }
}

/// Splits `channels` (a multiple of [`CHANNEL_UNIT`]) into panels as equal as can be.
pub(crate) fn panels<L: Lanes>(channels: usize) -> Vec<usize> {
    let vectors = channels / L::WIDTH;
    let count = vectors.div_ceil(L::KERNEL_ROWS.len());
    let sizes = (0..count).map(|i| vectors * (i + 1) / count - vectors * i / count);
    sizes.map(|size| size * L::WIDTH).collect()
}

/// The first `weights.depth` numbers of each of the first `rows` rows become their product.
///
/// With `WORDS` every number of the input and of the weights is a pair of 16-bit integers, and every number of the
/// output a 32-bit integer, modulo 2^32. `start` is zero then.
#[inline(always)]
pub fn multiply_in_place<L: Lanes, const WORDS: bool>(
    lanes: L,
    output: Output<'_>,
    rows: usize,
    weights: Weights<'_>,
    start: Start<'_>,
    beside: Beside<'_>,
) {
    let Output {
        numbers: buffer,
        stride,
    } = output;
    let Beside { copy, next, ahead } = beside;
    let every = if WORDS { 1 } else { 2 };
    let most = most_rows::<L>(weights.panels);
    check(buffer.len(), stride, rows, weights.depth);
    for (index, (first, count)) in blocks(rows, most).enumerate() {
        let next = next
            .as_ptr()
            .wrapping_add(index * weights.depth * CHANNEL_UNIT);
        let ahead = ahead.take(weights.depth / every).unwrap_or(next);
        let soon = Soon { next, ahead };
        let at = &mut buffer[first * stride..];
        let is_copied = weights.panels.len() > 1;
        if is_copied {
            copy.clear();
            for row in at.chunks(stride).take(count) {
                copy.extend_from_slice(&row[..weights.depth]);
            }
        }
        let (output, output_len) = (at.as_mut_ptr(), at.len());
        let (input, input_stride) = match is_copied {
            true => (copy.as_ptr(), weights.depth),
            false => (output.cast_const(), stride),
        };
        let place = Patch {
            rows: count,
            output,
            output_stride: stride,
            output_len,
            input,
            input_stride,
        };
        // SAFETY: `check` has seen that the rows are within the buffer; the copy holds `count` rows of `depth` numbers.
        unsafe { run_block::<L, WORDS>(lanes, &place, weights, start, soon) };
    }
}

/// `rows` rows of `input` times the weights into as many rows of `output`.
#[inline(always)]
pub fn multiply_into<L: Lanes>(
    lanes: L,
    input: Input<'_>,
    output: Output<'_>,
    rows: usize,
    weights: Weights<'_>,
    start: Start<'_>,
) {
    check(input.numbers.len(), input.stride, rows, weights.depth);
    let first = weights.numbers.as_ptr();
    let soon = Soon {
        next: first,
        ahead: first,
    };
    for (first, count) in blocks(rows, most_rows::<L>(weights.panels)) {
        let to = &mut output.numbers[first * output.stride..];
        let place = Patch {
            rows: count,
            input: input.numbers[first * input.stride..].as_ptr(),
            input_stride: input.stride,
            output: to.as_mut_ptr(),
            output_stride: output.stride,
            output_len: to.len(),
        };
        // SAFETY: `check` has seen that the rows are within the input.
        unsafe { run_block::<L, false>(lanes, &place, weights, start, soon) };
    }
}

#[inline]
fn check(len: usize, stride: usize, rows: usize, depth: usize) {
    assert!(rows > 0 && depth > 0 && len >= reach(rows, stride, depth));
}

/// Where the last of some rows of `len` numbers ends; nowhere if that is beyond all memory.
#[inline]
fn reach(rows: usize, stride: usize, len: usize) -> usize {
    (rows - 1).saturating_mul(stride).saturating_add(len)
}

fn most_rows<L: Lanes>(panels: &[usize]) -> usize {
    let rows = panels
        .iter()
        .map(|&panel| kernel_rows::<L>(panel / L::WIDTH));
    rows.min().unwrap_or(1)
}

/// Rows per call of the kernel that is `panel` registers wide, at most; 0 where the set has none so wide.
const fn kernel_rows<L: Lanes>(panel: usize) -> usize {
    match panel {
        0 => 0,
        _ if panel > L::KERNEL_ROWS.len() => 0,
        _ => L::KERNEL_ROWS[panel - 1],
    }
}

/// Cuts `rows` into runs of at most `most`, as equal as can be: a run of one row would wait for its own sums.
fn blocks(rows: usize, most: usize) -> impl Iterator<Item = (usize, usize)> {
    let count = rows.div_ceil(most);
    (0..count).map(move |i| (rows * i / count, rows * (i + 1) / count - rows * i / count))
}

/// Where some rows are read and written.
struct Patch {
    rows: usize,
    input: *const f32,
    input_stride: usize,
    output: *mut f32,
    output_stride: usize,
    /// Writable numbers.
    output_len: usize,
}

/// What is fetched meanwhile.
#[derive(Clone, Copy)]
struct Soon {
    next: *const f32,
    ahead: *const f32,
}

/// All panels of some rows. Output, weights and start are checked here.
///
/// # Safety
/// The input has `weights.depth` readable numbers in each row, the output as many writable ones as it says.
#[inline(always)]
unsafe fn run_block<L: Lanes, const WORDS: bool>(
    lanes: L,
    place: &Patch,
    weights: Weights<'_>,
    start: Start<'_>,
    soon: Soon,
) {
    let channels: usize = weights.panels.iter().sum();
    assert!(place.output_len >= reach(place.rows, place.output_stride, channels));
    assert!(weights.numbers.len() >= channels.saturating_mul(weights.depth));
    let mut done = 0;
    for &panel in weights.panels {
        let registers = panel / L::WIDTH;
        assert!(panel % L::WIDTH == 0 && (1..=kernel_rows::<L>(registers)).contains(&place.rows));
        // SAFETY: `done + panel <= channels`, within the output by the first assertion.
        let output = unsafe { place.output.add(done) };
        let (start, start_stride) = match start {
            Start::Zero => (std::ptr::null(), 0),
            Start::Values(values) => (values[done..done + panel].as_ptr(), 0),
            Start::Output => (output.cast_const(), place.output_stride),
        };
        let block = Block {
            input: place.input,
            input_stride: place.input_stride,
            weights: weights.numbers[done * weights.depth..].as_ptr(),
            depth: weights.depth,
            output,
            output_stride: place.output_stride,
            start,
            start_stride,
            next: soon.next.wrapping_add(done * weights.depth),
            ahead: soon.ahead,
        };
        // SAFETY: input rows were checked by the callers, output and weights above, the start by its slice.
        unsafe { by_panel::<L, WORDS>(lanes, registers, place.rows, &block) };
        done += panel;
    }
}

/// # Safety
/// As [`multiply`].
#[inline(always)]
unsafe fn by_panel<L: Lanes, const WORDS: bool>(
    lanes: L,
    panel: usize,
    rows: usize,
    block: &Block,
) {
    // SAFETY: the caller's promise.
    unsafe {
        match panel {
            1 => by_rows::<L, WORDS, 1>(lanes, rows, block),
            2 => by_rows::<L, WORDS, 2>(lanes, rows, block),
            3 => by_rows::<L, WORDS, 3>(lanes, rows, block),
            4 => by_rows::<L, WORDS, 4>(lanes, rows, block),
            _ => unreachable!("no kernel is {panel} registers wide"),
        }
    }
}

/// # Safety
/// As [`multiply`].
#[inline(always)]
unsafe fn by_rows<L: Lanes, const WORDS: bool, const PANEL: usize>(
    lanes: L,
    rows: usize,
    block: &Block,
) {
    // What a constant condition rules out is not compiled: portable kernels were made in 48 shapes, of which they run 4.
    macro_rules! kernels {
        ($($count:literal)*) => {
            match rows {
                $($count if const { $count <= kernel_rows::<L>(PANEL) } => {
                    // SAFETY: the caller's promise.
                    unsafe { lanes.multiply::<WORDS, $count, PANEL>(block) }
                })*
                _ => unreachable!("no kernel has {rows} rows of {PANEL} registers"),
            }
        };
    }
    kernels!(1 2 3 4 5 6 7 8 9 10 11 12);
}

/// `ROWS` rows times one panel of `PANEL` registers. Input and output may be the same rows: all of the input
/// is read before any output is written.
///
/// # Safety
/// The CPU has [`crate::lanes::Registers::dot_words`] if `WORDS` is set. The block's `ROWS` input rows have `depth`
/// readable numbers each, the weights `depth * PANEL` registers, the output rows `PANEL` writable registers each, the
/// start none when null and else `PANEL` readable registers.
#[inline(always)]
pub(crate) unsafe fn multiply<
    L: Lanes,
    const WORDS: bool,
    const ROWS: usize,
    const PANEL: usize,
>(
    lanes: L,
    block: &Block,
) {
    // SAFETY: every offset below stays within what the caller promises.
    unsafe {
        let mut sums = [[lanes.splat(0.0); PANEL]; ROWS];
        if !block.start.is_null() {
            for (row, sums) in sums.iter_mut().enumerate() {
                for (v, sum) in sums.iter_mut().enumerate() {
                    *sum = lanes.load_at(block.start.add(row * block.start_stride + v * L::WIDTH));
                }
            }
        }
        let mut weights = block.weights;
        for k in 0..block.depth {
            let mut panel = [lanes.splat(0.0); PANEL];
            for (v, vector) in panel.iter_mut().enumerate() {
                *vector = lanes.load_at(weights.add(v * L::WIDTH));
            }
            weights = weights.add(PANEL * L::WIDTH);
            lanes.prefetch(block.next.wrapping_add(k * CHANNEL_UNIT));
            // Pairs are half as many steps: there a line with every one.
            let every = if WORDS { 1 } else { 2 };
            if k % every == 0 {
                lanes.prefetch_late(block.ahead.wrapping_add(k / every * CHANNEL_UNIT));
            }
            for (row, sums) in sums.iter_mut().enumerate() {
                let value = lanes.splat(*block.input.add(row * block.input_stride + k));
                for (sum, &vector) in sums.iter_mut().zip(&panel) {
                    *sum = match WORDS {
                        true => lanes.dot_words(value, vector, *sum),
                        false => lanes.fma(value, vector, *sum),
                    };
                }
            }
        }
        for (row, sums) in sums.iter().enumerate() {
            for (v, &sum) in sums.iter().enumerate() {
                lanes.store_at(
                    sum,
                    block.output.add(row * block.output_stride + v * L::WIDTH),
                );
            }
        }
    }
}

/// Twelve chains of dependent multiply-adds, `rounds` long; gives the operations, two a lane.
#[inline(always)]
pub(crate) fn spin<L: Lanes>(lanes: L, rounds: u64) -> u64 {
    const CHAINS: usize = 12;
    let factor = lanes.splat(std::hint::black_box(0.999));
    let term = lanes.splat(std::hint::black_box(0.001));
    let mut sums = [term; CHAINS];
    for _ in 0..rounds {
        for sum in &mut sums {
            *sum = lanes.fma(*sum, factor, term);
        }
    }
    let mut kept = [0.0; 16];
    for sum in sums {
        lanes.store(sum, &mut kept, 0);
        std::hint::black_box(&kept);
    }
    rounds * (CHAINS * L::WIDTH * 2) as u64
}

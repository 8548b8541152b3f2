//! AMX: 3x3 and 1x1 convolutions of 16-bit integers on tile registers, which hold 16 rows of 64 bytes and multiply bytes only
//! (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, chapter 18).
//!
//! A 16-bit integer is 256 times a high byte plus a low byte, both signed. Of the four products of two such numbers three
//! are taken: high by high, and high by low both ways. Low by low is left out; it is at most 2^14 where a product goes to 2^30.
//! Weights of one byte take two products, high by weight and low by weight, and nothing is left out.
//! Sums are exact 32-bit integers, so the order in which they are taken changes no bit.

#[cfg(target_arch = "x86_64")]
mod amx;
#[cfg(not(target_arch = "x86_64"))]
#[path = "tiles/absent.rs"]
mod amx;
mod bytes;
mod rows;

use std::ops::Range;

use self::bytes::{Bytes, bytes_of, bytes_of_mut};
use self::rows::Layout;
pub use self::rows::{ByteRows, SplitRows, packed_pitch};
use crate::{Ahead, CHANNEL_UNIT};

/// The largest magnitude whose high byte is one: 127 * 256 + 127.
pub const SPLIT_MAX: f32 = 32_639.0;
/// Rows of a tile register: pixels of a row of the picture that are computed at a time.
pub const PIXEL_UNIT: usize = 16;
/// Bytes of a row of a tile register: input channels that are multiplied at a time.
const ROW_BYTES: usize = 64;
/// Input channels at most. Sums cannot overflow below 7,281: two products of 2^14 for each channel and tap.
const DEPTH_MAX: usize = 1024;
/// How far from a byte a weight may be that is one: what rounding leaves when a channel's weights are scaled.
const BYTE_OFF_MAX: f32 = 1e-3;
/// Blocks of channels at most that are computed of some pixels before the next pixels' turn.
pub const BLOCKS_MAX: usize = 4;
/// Bytes of weights that stay in the first cache beside the pixels they meet.
const KEPT_BYTES: usize = 24 << 10;

/// Proof that the CPU has AMX for bytes and the system lets this process use it: only [`Tiles::detect`] makes one.
#[derive(Debug, Clone, Copy)]
pub struct Tiles(amx::Granted);

/// Bytes of a weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// 8-bit integers: two thirds of the products.
    One,
    /// 16-bit integers.
    Two,
}

impl Weight {
    /// The largest magnitude.
    fn largest(self) -> f32 {
        match self {
            Self::One => 127.0,
            Self::Two => SPLIT_MAX,
        }
    }

    fn bytes(self) -> usize {
        match self {
            Self::One => 1,
            Self::Two => 2,
        }
    }
}

/// Weights of a layer as integers, split into bytes and laid out as tile registers read them.
pub struct SplitWeights {
    /// `[16 output channels][tap][chunk][high, low][4 input channels][output channel][input channel]`.
    bytes: Bytes,
    /// What a weight of each output channel was multiplied by; 0 where all of them are zero.
    scales: Vec<f32>,
    /// Width and height of a kernel: 1 or 3.
    side: usize,
    depth: usize,
    chunks: Chunks,
    weight: Weight,
}

/// How input channels are cut: equal chunks, the last one filled up with zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Chunks {
    channels: usize,
    count: usize,
}

impl Chunks {
    /// Of each of `parts` equal parts.
    fn new(depth: usize, parts: usize) -> Self {
        let part = depth / parts;
        Self {
            channels: part.min(ROW_BYTES),
            count: part.div_ceil(ROW_BYTES) * parts,
        }
    }

    /// Bytes of a chunk's weights for 16 output channels, one of each.
    fn matrix(self) -> usize {
        self.channels * CHANNEL_UNIT
    }
}

impl SplitWeights {
    /// `weight` gives the weight of a tap (row-major) from an input channel below `depth` to an output channel below `channels`.
    /// Both are multiples of [`CHANNEL_UNIT`], the depth at most 1,024; `side` is 1 or 3. Input channels stand in `parts` equal parts, of at
    /// most 64 where they are several. None where it is not so, a weight is not finite,
    /// or those of an output channel are no bytes where they should be: whole multiples, up to 127, of one number.
    #[must_use]
    pub fn new(
        kind: Weight,
        parts: usize,
        (side, depth, channels): (usize, usize, usize),
        weight: impl Fn(usize, usize, usize) -> f32,
    ) -> Option<Self> {
        let is_whole = |count: usize| count > 0 && count.is_multiple_of(CHANNEL_UNIT);
        if !is_whole(depth) || !is_whole(channels) || depth > DEPTH_MAX || ![1, 3].contains(&side) {
            return None;
        }
        if parts == 0 || !depth.is_multiple_of(parts) || !is_whole(depth / parts) {
            return None;
        }
        if parts > 1 && depth / parts > ROW_BYTES {
            return None;
        }
        let taps = side * side;
        let chunks = Chunks::new(depth, parts);
        let mut split = Self {
            bytes: Bytes::zeroed(
                channels / CHANNEL_UNIT * taps * chunks.count * kind.bytes() * chunks.matrix(),
            ),
            scales: Vec::with_capacity(channels),
            side,
            depth,
            chunks,
            weight: kind,
        };
        let mut column = vec![0.0; taps * depth];
        for n in 0..channels {
            for (at, number) in column.iter_mut().enumerate() {
                *number = weight(at / depth, at % depth, n);
            }
            let scale = scale_of(&column, kind)?;
            let is_off = |number: &f32| {
                let exact = number * scale;
                (exact - whole(exact)).abs() > BYTE_OFF_MAX
            };
            if kind == Weight::One && column.iter().any(is_off) {
                return None;
            }
            split.scales.push(scale);
            split.store(&column, n);
        }
        Some(split)
    }

    /// Blocks of [`CHANNEL_UNIT`] output channels in groups: those of one are best computed together, for their weights fit the first cache.
    pub fn groups(&self) -> impl Iterator<Item = Range<usize>> {
        let count = self.scales.len() / CHANNEL_UNIT;
        let together = KEPT_BYTES / self.matrices(1, 0, 0);
        let together = together.clamp(1, BLOCKS_MAX);
        (0..count)
            .step_by(together)
            .map(move |first| first..count.min(first + together))
    }

    /// The weights `[tap][input channel]` of output channel `n`, scaled and split.
    fn store(&mut self, column: &[f32], n: usize) {
        let (scale, low) = (self.scales[n], self.chunks.matrix());
        for (tap, numbers) in column.chunks_exact(self.depth).enumerate() {
            for (chunk, numbers) in numbers.chunks(self.chunks.channels).enumerate() {
                let first = self.place(tap, chunk * self.chunks.channels, n);
                for (k, number) in numbers.iter().enumerate() {
                    let at = first + k / 4 * ROW_BYTES + k % 4;
                    let integer = whole(number * scale) as i32;
                    match self.weight {
                        Weight::One => self.bytes[at] = integer as i8,
                        Weight::Two => {
                            [self.bytes[at], self.bytes[at + low]] = halves(integer);
                        }
                    }
                }
            }
        }
    }

    /// Where the first byte of a weight stands.
    fn place(&self, tap: usize, k: usize, n: usize) -> usize {
        let (chunk, k) = (k / self.chunks.channels, k % self.chunks.channels);
        let matrices = self.matrices(n / CHANNEL_UNIT, tap, chunk);
        matrices + k / 4 * ROW_BYTES + n % CHANNEL_UNIT * 4 + k % 4
    }

    /// Where the bytes of a tap's chunk begin, for 16 output channels.
    fn matrices(&self, block: usize, tap: usize, chunk: usize) -> usize {
        let before = (block * self.side * self.side + tap) * self.chunks.count + chunk;
        before * self.weight.bytes() * self.chunks.matrix()
    }
}

/// What becomes of sums: divided by the weights' scales and by `scale`, plus `bias`; below zero times `slopes`. Each is as long
/// as there are output channels.
#[derive(Clone, Copy)]
pub struct Line<'a> {
    /// What inputs were multiplied by.
    pub scale: f32,
    /// A number for each output channel.
    pub bias: &'a [f32],
    /// 1: nothing is changed; 0: ReLU.
    pub slopes: &'a [f32],
}

/// What brings the largest of some weights up to what they may be; 0 where all of them are. None where one is not finite, or so
/// small that the scale is not.
fn scale_of(weights: &[f32], kind: Weight) -> Option<f32> {
    let largest = weights
        .iter()
        .fold(0.0_f32, |most, one| most.max(one.abs()));
    let is_finite = weights.iter().all(|one| one.is_finite());
    let scale = if largest == 0.0 {
        0.0
    } else {
        kind.largest() / largest
    };
    (is_finite && scale.is_finite()).then_some(scale)
}

/// The nearest integer of a number of at most [`SPLIT_MAX`], ties to even: what is added rounds it, and is taken away again.
/// `round_ties_even` is a call where the compiler may not use SSE 4.1.
fn whole(number: f32) -> f32 {
    const TO_WHOLE: f32 = 1.5 * (1 << 23) as f32;
    number + TO_WHOLE - TO_WHOLE
}

/// The bytes of an integer of at most [`SPLIT_MAX`]: the nearest multiple of 256, and what is left.
fn halves(number: i32) -> [i8; 2] {
    [((number + 128) >> 8) as i8, number as i8]
}

impl Tiles {
    /// Asks the system for the tile registers, once a process; none where CPU or system has none.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn detect() -> Option<Self> {
        amx::Granted::ask().map(Self)
    }

    /// Whole pixels of `channels` numbers each, times `scale`, become bytes of row `row`, from channel `first` of each pixel on.
    /// Gives the largest magnitude among them, times `scale`, or what is no number: rounded up to [`SPLIT_MAX`], as it is beyond, where
    /// bytes have no meaning.
    ///
    /// # Panics
    /// When the row has no room for them, or the channels are no multiple of [`CHANNEL_UNIT`].
    pub fn split(
        self,
        (numbers, channels): (&[f32], usize),
        scale: f32,
        rows: &mut SplitRows,
        (row, first): (usize, usize),
    ) -> f32 {
        let layout = rows.layout();
        let to = rows.pixels_mut(row, (first, channels));
        self.split_pixels((numbers, channels), scale, (to, layout))
    }

    /// The same into pixels of [`packed_pitch`]. [`unpack`] brings them back.
    ///
    /// # Panics
    /// As [`Tiles::split`].
    pub fn pack(self, (numbers, channels): (&[f32], usize), scale: f32, to: &mut [f32]) -> f32 {
        let to = (bytes_of_mut(to), Layout::packed(channels));
        self.split_pixels((numbers, channels), scale, to)
    }

    fn split_pixels(
        self,
        (numbers, channels): (&[f32], usize),
        scale: f32,
        (to, layout): (&mut [i8], Layout),
    ) -> f32 {
        assert!(channels > 0 && channels.is_multiple_of(CHANNEL_UNIT));
        let count = numbers.len() / channels;
        assert!(channels <= layout.low && layout.end(count, channels) <= to.len());
        // SAFETY: the token proves the features; what is written was looked at above.
        unsafe { amx::split_pixels(self.0, (numbers, channels), scale, (to, layout)) }
    }

    /// The convolution of as many rows as kernels have, or of one more: some blocks of [`CHANNEL_UNIT`] channels of one output row or
    /// of two below one another. Pixel `x` of the first is made of `side` pixels from `x` on, of as many input rows from `row` on;
    /// `width` pixels in all. Meanwhile some of `ahead` is fetched. Where it is packed, the largest magnitude is given: above [`SPLIT_MAX`]
    /// where one does not fit or is no number; else 0.
    ///
    /// # Panics
    /// When there are fewer rows, pixels or channels, more than [`BLOCKS_MAX`] blocks or none, or a row of output or of what is added is
    /// shorter.
    pub fn convolve(
        self,
        input: &ByteRows<'_>,
        weights: &SplitWeights,
        (line, packing): (Line<'_>, Option<Packing<'_>>),
        (row, blocks): (usize, Range<usize>),
        (output, width): (&mut [&mut [f32]], usize),
        ahead: &mut Ahead,
    ) -> f32 {
        let (depth, channels) = (weights.depth, weights.scales.len());
        let beyond = weights.side - 1;
        // Whole blocks of pixels, and what a kernel reads beyond; nowhere if that is beyond all memory.
        let pixels = width.saturating_add(PIXEL_UNIT - 1) / PIXEL_UNIT * PIXEL_UNIT;
        let last_row = row.saturating_add((output.len() + beyond).saturating_sub(1));
        assert!(input.has(
            depth,
            weights.chunks,
            (last_row, pixels.saturating_add(beyond))
        ));
        assert!(line.bias.len() == channels && line.slopes.len() == channels);
        assert!((1..=BLOCKS_MAX).contains(&blocks.len()) && blocks.end <= channels / CHANNEL_UNIT);
        assert!((1..=2).contains(&output.len()));
        let pitch = if packing.is_some() {
            packed_pitch(channels)
        } else {
            channels
        };
        let numbers = width.saturating_mul(pitch);
        assert!(output.iter().all(|row| row.len() >= numbers));
        if let Some(joined) = packing.and_then(|packing| packing.joined) {
            let mut rows = joined.rows.iter().take(output.len());
            assert!(rows.all(|row| row.len() >= numbers));
        }
        let place = (row, blocks);
        let line = (line, packing);
        // SAFETY: the token proves the features; every row and weight that is read was looked at above, the weights by their making.
        unsafe { amx::convolve_rows(self.0, input, weights, line, place, (output, width), ahead) }
    }
}

/// How sums are stored as bytes, as [`Tiles::pack`] does.
#[derive(Clone, Copy)]
pub struct Packing<'a> {
    /// Multiplies a number.
    pub scale: f32,
    /// What is added before.
    pub joined: Option<Joined<'a>>,
}

/// Packed pixels that are added to sums times a number.
#[derive(Clone, Copy)]
pub struct Joined<'a> {
    /// A row for each of the output.
    pub rows: [&'a [f32]; 2],
    /// What they were multiplied by.
    pub scale: f32,
    /// Multiplies the sums.
    pub factor: f32,
}

/// Packed pixels of `channels` numbers each become numbers again.
///
/// # Panics
/// When there are fewer pixels than `to` has room for.
pub fn unpack((from, channels): (&[f32], usize), scale: f32, to: &mut [f32]) {
    let (layout, unit) = (Layout::packed(channels), 1.0 / scale);
    let from = bytes_of(from).chunks_exact(layout.pixel);
    let pixels = to.chunks_exact_mut(channels);
    assert!(from.len() >= pixels.len());
    for (bytes, numbers) in from.zip(pixels) {
        let halves = bytes.iter().zip(&bytes[layout.low..]);
        for (number, (high, low)) in numbers.iter_mut().zip(halves) {
            *number = (256 * i32::from(*high) + i32::from(*low)) as f32 * unit;
        }
    }
}

#[cfg(test)]
#[path = "tiles/tests.rs"]
mod tests;

//! What parent and child say to each other, both directions: one order and the source's bytes go in, then
//! progress and exactly one answer come out. Every length is checked before anything is allocated for it;
//! whatever is not the protocol is `InvalidData`. All numbers are little-endian.
//!
//! Order: `UPS` 1, the fields of [`Order`], the source's length (u32), the source.
//! Frame: kind (u8), payload length (u32), payload.

use std::io::{self, Read, Write};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use upscale_core::{Parameters, Scale, limits::SOURCE_BYTES_MAX};

const MAGIC: [u8; 4] = *b"UPS\x01";
const ORDER_BYTES: usize = 4 + 1 + 1 + 2 + 8 + 8 + 8 + 4 + 4;
const FACTS_BYTES: usize = 4 * 4 + 1 + 1 + 4 * 4 + 8;
const HEAD_BYTES: usize = 5;

const PROGRESS: u8 = 1;
const DONE: u8 = 2;
const REFUSED: u8 = 3;
const BROKE: u8 = 4;
const UNFAITHFUL: u8 = 5;

/// Longest message of a child.
const MESSAGE_BYTES_MAX: usize = 1_024;
/// Progress frames before a child is taken for a babbler; a thousand is one for each permille.
const PROGRESS_FRAMES_MAX: u32 = 10_000;
/// A result is read in pieces of this size, so that memory follows the bytes and not the promise.
const PIECE_BYTES: u64 = 1024 * 1024;

/// What the child is to do, and within which limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    /// What the customer ordered.
    pub parameters: Parameters,
    /// Threads to compute with, at least 1.
    pub threads: u16,
    /// Largest source frame in pixels, inclusive.
    pub source_pixels_max: u64,
    /// Largest PNG in bytes, inclusive; a child that makes a larger one refuses.
    pub result_bytes_max: u64,
    /// Address space of the child in bytes; 0 for no limit.
    pub memory_bytes_max: u64,
    /// Processor time of the child in seconds; 0 for no limit.
    pub cpu_seconds_max: u32,
}

/// What the child found and made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// Columns of the source, oriented.
    pub source_width: u32,
    /// Rows of the source, oriented.
    pub source_height: u32,
    /// Columns of the PNG.
    pub width: u32,
    /// Rows of the PNG.
    pub height: u32,
    /// What the source was.
    pub source_format: SourceFormat,
    /// Whether the fast path failed the output check and the plain kernels made this.
    pub by_reference: bool,
    /// What it took, for metrics: believed by nobody who decides.
    pub spent: Spent,
}

/// What a child spent on one image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spent {
    /// Microseconds from bytes to pixels.
    pub decode_micros: u32,
    /// Microseconds in the networks, the sink's time not counted.
    pub network_micros: u32,
    /// Microseconds of the output check and the colours' balance.
    pub check_micros: u32,
    /// Microseconds in the PNG encoder.
    pub encode_micros: u32,
    /// The largest memory it ever had resident, in bytes; 0 where the system does not say.
    pub memory_bytes: u64,
}

/// The three kinds of source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceFormat {
    /// JPEG.
    Jpeg,
    /// PNG.
    Png,
    /// WebP.
    WebP,
}

/// The end of a child's work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The whole PNG.
    Done {
        /// What it is.
        facts: Facts,
        /// Its bytes.
        png: Vec<u8>,
    },
    /// This source can never be upscaled: a sentence for the customer, with numbers.
    Refused(String),
    /// Something on our side broke: a sentence for the logs.
    Broke(String),
    /// Neither the fast kernels nor the plain ones passed the output check, and a third attempt would be the same
    /// arithmetic: a sentence for the logs.
    Unfaithful(String),
}

impl Order {
    fn to_bytes(self, source_bytes: u32) -> [u8; ORDER_BYTES] {
        let mut bytes = [0; ORDER_BYTES];
        let mut rest = bytes.as_mut_slice();
        put(&mut rest, &MAGIC);
        put(&mut rest, &[self.parameters.scale.factor() as u8]);
        put(&mut rest, &[u8::from(self.parameters.face_enhance)]);
        put(&mut rest, &self.threads.to_le_bytes());
        put(&mut rest, &self.source_pixels_max.to_le_bytes());
        put(&mut rest, &self.result_bytes_max.to_le_bytes());
        put(&mut rest, &self.memory_bytes_max.to_le_bytes());
        put(&mut rest, &self.cpu_seconds_max.to_le_bytes());
        put(&mut rest, &source_bytes.to_le_bytes());
        bytes
    }

    fn parse(bytes: &[u8; ORDER_BYTES]) -> io::Result<(Self, u32)> {
        let mut rest = bytes.as_slice();
        if take::<4>(&mut rest) != MAGIC {
            return Err(invalid("this is no order"));
        }
        let [factor] = take::<1>(&mut rest);
        let order = Self {
            parameters: Parameters {
                scale: Scale::from_factor(factor.into())
                    .ok_or_else(|| invalid(format!("the scale is {factor}")))?,
                face_enhance: flag(take::<1>(&mut rest))?,
            },
            threads: u16::from_le_bytes(take(&mut rest)),
            source_pixels_max: u64::from_le_bytes(take(&mut rest)),
            result_bytes_max: u64::from_le_bytes(take(&mut rest)),
            memory_bytes_max: u64::from_le_bytes(take(&mut rest)),
            cpu_seconds_max: u32::from_le_bytes(take(&mut rest)),
        };
        let source_bytes = u32::from_le_bytes(take(&mut rest));
        if u64::from(source_bytes) > SOURCE_BYTES_MAX || order.threads == 0 {
            return Err(invalid(format!(
                "an order of {source_bytes} bytes for {} threads",
                order.threads
            )));
        }
        Ok((order, source_bytes))
    }
}

impl Facts {
    fn to_bytes(self) -> [u8; FACTS_BYTES] {
        let mut bytes = [0; FACTS_BYTES];
        let mut rest = bytes.as_mut_slice();
        for number in [
            self.source_width,
            self.source_height,
            self.width,
            self.height,
        ] {
            put(&mut rest, &number.to_le_bytes());
        }
        put(&mut rest, &[self.source_format as u8]);
        put(&mut rest, &[u8::from(self.by_reference)]);
        for micros in [
            self.spent.decode_micros,
            self.spent.network_micros,
            self.spent.check_micros,
            self.spent.encode_micros,
        ] {
            put(&mut rest, &micros.to_le_bytes());
        }
        put(&mut rest, &self.spent.memory_bytes.to_le_bytes());
        bytes
    }

    fn parse(bytes: &[u8; FACTS_BYTES]) -> io::Result<Self> {
        let mut rest = bytes.as_slice();
        Ok(Self {
            source_width: u32::from_le_bytes(take(&mut rest)),
            source_height: u32::from_le_bytes(take(&mut rest)),
            width: u32::from_le_bytes(take(&mut rest)),
            height: u32::from_le_bytes(take(&mut rest)),
            source_format: match take::<1>(&mut rest) {
                [0] => SourceFormat::Jpeg,
                [1] => SourceFormat::Png,
                [2] => SourceFormat::WebP,
                [other] => return Err(invalid(format!("the source's format is {other}"))),
            },
            by_reference: flag(take::<1>(&mut rest))?,
            spent: Spent {
                decode_micros: u32::from_le_bytes(take(&mut rest)),
                network_micros: u32::from_le_bytes(take(&mut rest)),
                check_micros: u32::from_le_bytes(take(&mut rest)),
                encode_micros: u32::from_le_bytes(take(&mut rest)),
                memory_bytes: u64::from_le_bytes(take(&mut rest)),
            },
        })
    }
}

/// The parent's side: the order and the source, at most 20 × 1024² bytes.
pub(crate) async fn write_order(
    pipe: &mut (impl AsyncWrite + Unpin),
    order: &Order,
    source: &[u8],
) -> io::Result<()> {
    let length = u32::try_from(source.len()).map_err(|_| invalid("the source is too long"))?;
    pipe.write_all(&order.to_bytes(length)).await?;
    pipe.write_all(source).await?;
    pipe.shutdown().await
}

/// The child's side: the order and the source's bytes.
///
/// # Errors
/// `InvalidData` when it is no order or the source is too long, `UnexpectedEof` when it ends too early.
pub fn read_order(pipe: &mut impl Read) -> io::Result<(Order, Vec<u8>)> {
    let mut head = [0; ORDER_BYTES];
    pipe.read_exact(&mut head)?;
    let (order, length) = Order::parse(&head)?;
    let mut source = Vec::new();
    pipe.take(length.into()).read_to_end(&mut source)?;
    if source.len() as u64 != u64::from(length) {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok((order, source))
}

/// The child's side: how far it is, in thousandths, before its answer.
///
/// # Errors
/// The pipe's.
pub fn write_progress(pipe: &mut impl Write, permille: u16) -> io::Result<()> {
    pipe.write_all(&head(PROGRESS, 2))?;
    pipe.write_all(&permille.to_le_bytes())?;
    pipe.flush()
}

/// The child's side: the answer, once. Messages are cut after 1,024 bytes.
///
/// # Errors
/// The pipe's; `InvalidInput` when a result does not fit the protocol.
pub fn write_answer(pipe: &mut impl Write, answer: &Answer) -> io::Result<()> {
    match answer {
        Answer::Done { facts, png } => {
            let length = u32::try_from(FACTS_BYTES + png.len())
                .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
            pipe.write_all(&head(DONE, length))?;
            pipe.write_all(&facts.to_bytes())?;
            pipe.write_all(png)?;
        }
        Answer::Refused(message) => write_message(pipe, REFUSED, message)?,
        Answer::Broke(message) => write_message(pipe, BROKE, message)?,
        Answer::Unfaithful(message) => write_message(pipe, UNFAITHFUL, message)?,
    }
    pipe.flush()
}

/// The parent's side: reads up to the answer's last byte. `progress` always holds the last thousandths
/// heard. A result larger than `result_bytes_max` is refused before it is read.
///
/// # Errors
/// `InvalidData` for whatever is not the protocol, `UnexpectedEof` when it ends too early.
pub async fn read_answer(
    pipe: &mut (impl AsyncRead + Unpin),
    result_bytes_max: u64,
    progress: &mut u16,
) -> io::Result<Answer> {
    for _ in 0..=PROGRESS_FRAMES_MAX {
        let mut head = [0; HEAD_BYTES];
        pipe.read_exact(&mut head).await?;
        let [kind, length @ ..] = head;
        let length = u32::from_le_bytes(length);
        match kind {
            PROGRESS if length == 2 => *progress = pipe.read_u16_le().await?.min(1_000),
            DONE => return read_result(pipe, length, result_bytes_max).await,
            REFUSED => return read_message(pipe, length).await.map(Answer::Refused),
            BROKE => return read_message(pipe, length).await.map(Answer::Broke),
            UNFAITHFUL => return read_message(pipe, length).await.map(Answer::Unfaithful),
            _ => return Err(invalid(format!("a frame of kind {kind}, {length} bytes"))),
        }
    }
    Err(invalid(format!(
        "more than {PROGRESS_FRAMES_MAX} reports of progress"
    )))
}

async fn read_result(
    pipe: &mut (impl AsyncRead + Unpin),
    length: u32,
    result_bytes_max: u64,
) -> io::Result<Answer> {
    let png_bytes = u64::from(length)
        .checked_sub(FACTS_BYTES as u64)
        .filter(|&bytes| bytes <= result_bytes_max)
        .ok_or_else(|| invalid(format!("a result of {length} bytes")))?;
    let mut facts = [0; FACTS_BYTES];
    pipe.read_exact(&mut facts).await?;
    let facts = Facts::parse(&facts)?;
    let mut png = Vec::new();
    while (png.len() as u64) < png_bytes {
        let piece = (png_bytes - png.len() as u64).min(PIECE_BYTES);
        let start = png.len();
        png.resize(start + piece as usize, 0);
        pipe.read_exact(&mut png[start..]).await?;
    }
    Ok(Answer::Done { facts, png })
}

/// Control characters become spaces: a child's words must not forge lines in the logs.
async fn read_message(pipe: &mut (impl AsyncRead + Unpin), length: u32) -> io::Result<String> {
    if length as usize > MESSAGE_BYTES_MAX {
        return Err(invalid(format!("a message of {length} bytes")));
    }
    let mut text = vec![0; length as usize];
    pipe.read_exact(&mut text).await?;
    let text = String::from_utf8_lossy(&text);
    Ok(text.replace(char::is_control, " "))
}

fn write_message(pipe: &mut impl Write, kind: u8, message: &str) -> io::Result<()> {
    let end = message.floor_char_boundary(MESSAGE_BYTES_MAX);
    pipe.write_all(&head(kind, end as u32))?;
    pipe.write_all(&message.as_bytes()[..end])
}

fn head(kind: u8, length: u32) -> [u8; HEAD_BYTES] {
    let [a, b, c, d] = length.to_le_bytes();
    [kind, a, b, c, d]
}

fn put(rest: &mut &mut [u8], bytes: &[u8]) {
    let (place, after) = std::mem::take(rest).split_at_mut(bytes.len());
    place.copy_from_slice(bytes);
    *rest = after;
}

/// The arrays' lengths are constants that add up, so there is always enough; missing bytes would be zero.
fn take<const N: usize>(rest: &mut &[u8]) -> [u8; N] {
    let (first, after) = rest.split_at(N.min(rest.len()));
    *rest = after;
    first.try_into().unwrap_or([0; N])
}

fn flag(byte: [u8; 1]) -> io::Result<bool> {
    match byte {
        [0] => Ok(false),
        [1] => Ok(true),
        [other] => Err(invalid(format!("a flag is {other}"))),
    }
}

fn invalid(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

#[cfg(test)]
mod tests;

//! What parent and child say to each other: one job and the source's bytes go in, then progress and exactly one answer
//! come out. Whatever is not the protocol is `InvalidData`.
//!
//! In both directions a frame is its length (u32, little-endian, at most 2,048) and that many bytes of postcard, read to
//! the last one. What may be long follows its frame as bare bytes, read in pieces, so that memory follows what arrived and
//! not what was promised: the source after a job, the PNG and its thumbnail after [`Report::Done`].

mod wire;

use std::{
    io::{self, Read, Write},
    time::Duration,
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use upscale_core::{
    Look, Parameters,
    limits::{SOURCE_BYTES_MAX, THUMBNAIL_BYTES_MAX},
};
use upscale_image::Format;

use crate::sandbox::Parts;

/// The last byte is the protocol's version: a service whose program was replaced on disk starts children of the new one.
const MAGIC: [u8; 4] = *b"UPS\x06";
/// A message of the longest kind takes half of it.
const FRAME_BYTES_MAX: usize = 2_048;
/// Longest message of a child.
const MESSAGE_BYTES_MAX: usize = 1_024;
/// Progress frames before a child is taken for a babbler; a thousand is one for each permille.
const PROGRESS_FRAMES_MAX: u32 = 10_000;
/// Bytes of a result that are read at a time.
const PIECE_BYTES: u64 = 1024 * 1024;

/// What the child is to do, and within which limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// What the customer ordered.
    #[serde(with = "wire::Parameters")]
    pub parameters: Parameters,
    /// Which of our networks make it.
    #[serde(with = "wire::Look")]
    pub look: Look,
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
    /// Parts of the sandbox without which the child must not look at the source.
    pub required: Parts,
}

/// What the child found and made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
    #[serde(with = "wire::Format")]
    pub source_format: Format,
    /// Whether a brought model made it, in the place of our networks.
    pub by_brought_model: bool,
    /// Whether the fast path failed the output check and the plain kernels made this.
    pub by_reference: bool,
    /// What came of the device.
    pub device: DeviceUse,
    /// Where the result differs most from its source enlarged smoothly, in thousandths of its sides.
    pub focus_permille: [u16; 2],
    /// Where the time went, for metrics: believed by no one who decides.
    pub spent: Spent,
    /// The largest memory the child ever had resident, in bytes; 0 where the system does not say.
    pub memory_bytes: u64,
}

/// Whether a device beside the CPU made a picture.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeviceUse {
    /// There was none, or it was not asked.
    #[default]
    None,
    /// It did.
    Made,
    /// It was asked, and was not for this picture, or not just then; the CPU made it.
    Refused,
    /// It was asked, and failed; the CPU made it.
    Failed,
}

/// Where the time of one image went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// From bytes to pixels.
    pub decode: Duration,
    /// In the engine's calling thread, faces included, handing rows on not counted.
    pub network: Duration,
    /// Output check, balance, alpha: all of handing rows on but the encoder.
    pub check: Duration,
    /// In the PNG encoder.
    pub encode: Duration,
}

/// The end of a child's work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The whole PNG.
    Done {
        /// What the child reports of the result.
        facts: Facts,
        /// The PNG file, at most `RESULT_BYTES_MAX` bytes.
        png: Vec<u8>,
        /// The thumbnail's; none where none could be made.
        thumbnail: Vec<u8>,
    },
    /// This source can never be upscaled: a sentence for the customer, with numbers.
    Refused(String),
    /// Something on our side broke: a sentence for the logs.
    Broke(String),
    /// Neither the fast kernels nor the plain ones passed the output check, and a third attempt would be the same
    /// arithmetic: a sentence for the logs.
    Unfaithful(String),
}

/// A frame on its way in.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    job: Job,
    /// Bare bytes that follow.
    source_bytes: u32,
}

/// A frame on its way out.
#[derive(Debug, Serialize, Deserialize)]
enum Report {
    /// In thousandths.
    Progress(u16),
    /// So many bytes of PNG follow, then so many of thumbnail.
    Done(Facts, u64, u32),
    Refused(String),
    Broke(String),
    Unfaithful(String),
}

impl Head {
    fn check(self) -> io::Result<Self> {
        if u64::from(self.source_bytes) > SOURCE_BYTES_MAX || self.job.threads == 0 {
            return Err(invalid(format!(
                "a job of {} bytes for {} threads",
                self.source_bytes, self.job.threads
            )));
        }
        Ok(self)
    }
}

/// The parent's side: the job and the source, at most 20 × 1024² bytes.
pub(crate) async fn write_job(
    pipe: &mut (impl AsyncWrite + Unpin),
    job: &Job,
    source: &[u8],
) -> io::Result<()> {
    let source_bytes =
        u32::try_from(source.len()).map_err(|_| invalid("the source is too long"))?;
    let job = *job;
    pipe.write_all(&MAGIC).await?;
    pipe.write_all(&to_frame(&Head { job, source_bytes })?)
        .await?;
    pipe.write_all(source).await?;
    pipe.shutdown().await
}

/// The child's side: the job, which is the parent's alone, and how many bytes of source follow.
///
/// # Errors
/// `InvalidData` when it is no job or the source is too long, `UnexpectedEof` when it ends too early.
pub fn read_job(pipe: &mut impl Read) -> io::Result<(Job, u32)> {
    let (mut magic, mut length) = ([0; 4], [0; 4]);
    pipe.read_exact(&mut magic)?;
    if magic != MAGIC {
        return Err(invalid("this is no job"));
    }
    pipe.read_exact(&mut length)?;
    let mut frame = vec![0; frame_bytes(length)?];
    pipe.read_exact(&mut frame)?;
    let Head { job, source_bytes } = from_frame::<Head>(&frame)?.check()?;
    Ok((job, source_bytes))
}

/// The child's side: the source, of so many bytes.
///
/// # Errors
/// `UnexpectedEof` when it ends too early.
pub fn read_source(pipe: &mut impl Read, source_bytes: u32) -> io::Result<Vec<u8>> {
    let mut source = Vec::new();
    pipe.take(source_bytes.into()).read_to_end(&mut source)?;
    if source.len() as u64 != u64::from(source_bytes) {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(source)
}

/// The child's side: how far it is, in thousandths, before its answer.
///
/// # Errors
/// Those of writing to the pipe.
pub fn write_progress(pipe: &mut impl Write, permille: u16) -> io::Result<()> {
    pipe.write_all(&to_frame(&Report::Progress(permille))?)?;
    pipe.flush()
}

/// The child's side: the answer, once. Messages are cut after 1,024 bytes.
///
/// # Errors
/// Those of writing to the pipe.
pub fn write_answer(pipe: &mut impl Write, answer: &Answer) -> io::Result<()> {
    let (report, png, small): (Report, &[u8], &[u8]) = match answer {
        Answer::Done {
            facts,
            png,
            thumbnail,
        } => {
            let small = u32::try_from(thumbnail.len()).map_err(io::Error::other)?;
            (
                Report::Done(*facts, png.len() as u64, small),
                png,
                thumbnail,
            )
        }
        Answer::Refused(message) => (Report::Refused(cut(message)), &[], &[]),
        Answer::Broke(message) => (Report::Broke(cut(message)), &[], &[]),
        Answer::Unfaithful(message) => (Report::Unfaithful(cut(message)), &[], &[]),
    };
    pipe.write_all(&to_frame(&report)?)?;
    pipe.write_all(png)?;
    pipe.write_all(small)?;
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
        return Ok(match read_report(pipe).await? {
            Report::Progress(permille) => {
                *progress = permille.min(1_000);
                continue;
            }
            Report::Done(facts, bytes, small)
                if bytes <= result_bytes_max && small <= THUMBNAIL_BYTES_MAX =>
            {
                Answer::Done {
                    facts,
                    png: read_png(pipe, bytes).await?,
                    thumbnail: read_png(pipe, small.into()).await?,
                }
            }
            Report::Done(_, bytes, small) => {
                return Err(invalid(format!(
                    "a result of {bytes} bytes and a thumbnail of {small}"
                )));
            }
            Report::Refused(message) => Answer::Refused(one_line(&message)?),
            Report::Broke(message) => Answer::Broke(one_line(&message)?),
            Report::Unfaithful(message) => Answer::Unfaithful(one_line(&message)?),
        });
    }
    Err(invalid(format!(
        "more than {PROGRESS_FRAMES_MAX} reports of progress"
    )))
}

async fn read_report(pipe: &mut (impl AsyncRead + Unpin)) -> io::Result<Report> {
    let mut length = [0; 4];
    pipe.read_exact(&mut length).await?;
    let mut frame = vec![0; frame_bytes(length)?];
    pipe.read_exact(&mut frame).await?;
    from_frame(&frame)
}

async fn read_png(pipe: &mut (impl AsyncRead + Unpin), bytes: u64) -> io::Result<Vec<u8>> {
    let mut png = Vec::new();
    while (png.len() as u64) < bytes {
        let piece = (bytes - png.len() as u64).min(PIECE_BYTES);
        let start = png.len();
        png.resize(start + piece as usize, 0);
        pipe.read_exact(&mut png[start..]).await?;
    }
    Ok(png)
}

pub(crate) fn to_frame(what: &impl Serialize) -> io::Result<Vec<u8>> {
    let body = postcard::to_allocvec(what).map_err(io::Error::other)?;
    let length = u32::try_from(body.len()).map_err(io::Error::other)?;
    Ok([length.to_le_bytes().as_slice(), &body].concat())
}

pub(crate) fn frame_bytes(length: [u8; 4]) -> io::Result<usize> {
    let length = u32::from_le_bytes(length) as usize;
    if length > FRAME_BYTES_MAX {
        return Err(invalid(format!("a frame of {length} bytes")));
    }
    Ok(length)
}

pub(crate) fn from_frame<T: DeserializeOwned>(frame: &[u8]) -> io::Result<T> {
    match postcard::take_from_bytes(frame) {
        Ok((what, [])) => Ok(what),
        Ok((_, rest)) => Err(invalid(format!("{} bytes after a frame", rest.len()))),
        Err(error) => Err(invalid(format!("a frame of nothing known: {error}"))),
    }
}

fn cut(message: &str) -> String {
    message[..message.floor_char_boundary(MESSAGE_BYTES_MAX)].to_owned()
}

/// Control characters become spaces: a child's words must not forge lines in the logs.
fn one_line(message: &str) -> io::Result<String> {
    if message.len() > MESSAGE_BYTES_MAX {
        return Err(invalid(format!("a message of {} bytes", message.len())));
    }
    Ok(message.replace(char::is_control, " "))
}

fn invalid(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

#[cfg(test)]
mod tests;

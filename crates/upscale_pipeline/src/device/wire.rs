//! What a child and a device's process say to each other: orders, each a frame and the source's samples behind it, and
//! replies, some with rows behind them. Samples are 32-bit floating point in the machine's own order.

use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use upscale_core::{Compression, Condition, Estimate, Subsampling};

use crate::frame::{frame_bytes, from_frame, to_frame};

/// A picture for the device.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Order {
    /// [`upscale_engine::Network::fingerprint`]: the process knows the networks that children run, and runs no other.
    pub(super) network: u64,
    pub(super) condition: Conveyed,
    pub(super) width: u32,
    pub(super) height: u32,
    /// 1 or 3.
    pub(super) channels: u8,
}

/// A [`Condition`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Conveyed {
    compression: ConveyedCompression,
    /// Noise, softness, and whether the noise may be texture.
    estimate: Option<(f32, f32, bool)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
enum ConveyedCompression {
    Unknown,
    Lossless,
    /// Means of the tables, and how many samples of luma have one of chroma: 1, 2, 4.
    Quantised(f32, f32, u8),
}

/// What comes back, in this order but for the last two, which end it at any time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum Reply {
    /// Still at it: it begins, or a part of it is done.
    Working,
    /// The next so many rows of the result, and their samples follow.
    Rows(u32),
    /// All rows were sent.
    Done,
    /// The device is not for this picture, or not now.
    Refused(String),
    /// The device broke.
    Failed(String),
}

/// What a device's process says first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Announcement {
    /// It takes orders from now on.
    Ready(DeviceFacts),
    /// It will not, and ends: why, in words.
    Declined(String),
}

/// A device as its process describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceFacts {
    /// As its driver calls it.
    pub name: String,
    /// The driver, with its version.
    pub driver: String,
    /// `discrete`, `integrated`, `virtual`, `software` or `other`.
    pub kind: String,
    /// The largest buffer that it computes in, in bytes.
    pub buffer_bytes: u64,
}

impl From<Condition> for Conveyed {
    fn from(condition: Condition) -> Self {
        Self {
            compression: match condition.compression {
                Compression::Unknown => ConveyedCompression::Unknown,
                Compression::Lossless => ConveyedCompression::Lossless,
                Compression::Quantised {
                    luma_mean,
                    chroma_mean,
                    subsampling,
                } => {
                    let per_chroma = match subsampling {
                        Subsampling::None => 1,
                        Subsampling::Half => 2,
                        Subsampling::Quarter => 4,
                    };
                    ConveyedCompression::Quantised(luma_mean, chroma_mean, per_chroma)
                }
            },
            estimate: condition
                .estimate
                .map(|e| (e.noise, e.softness, e.may_be_texture)),
        }
    }
}

impl From<Conveyed> for Condition {
    fn from(conveyed: Conveyed) -> Self {
        Self {
            compression: match conveyed.compression {
                ConveyedCompression::Unknown => Compression::Unknown,
                ConveyedCompression::Lossless => Compression::Lossless,
                ConveyedCompression::Quantised(luma_mean, chroma_mean, per_chroma) => {
                    Compression::Quantised {
                        luma_mean,
                        chroma_mean,
                        subsampling: match per_chroma {
                            1 => Subsampling::None,
                            2 => Subsampling::Half,
                            _ => Subsampling::Quarter,
                        },
                    }
                }
            },
            estimate: conveyed
                .estimate
                .map(|(noise, softness, may_be_texture)| Estimate {
                    noise,
                    softness,
                    may_be_texture,
                }),
        }
    }
}

pub(super) fn send(to: &mut impl Write, what: &impl Serialize) -> io::Result<()> {
    to.write_all(&to_frame(what)?)
}

pub(super) fn receive<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<T> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let mut frame = vec![0; frame_bytes(length)?];
    from.read_exact(&mut frame)?;
    from_frame(&frame)
}

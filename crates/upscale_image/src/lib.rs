//! Hostile bytes to pixels and back: sniff, decode JPEG, PNG and WebP, orientation, colour, alpha, depth; how noisy
//! and soft a picture is; the
//! check of what the networks made; the PNG that leaves. No network, no async, no `unsafe`. It never upscales:
//! [`Source::color`] goes out to the engine, finished rows come back into a [`PngWriter`].

mod alpha;
mod balance;
mod brightness;
mod check;
mod colour;
mod compression;
mod decode;
mod decoded;
mod delta_e;
mod density;
mod edges;
mod error;
mod estimate;
mod exif;
mod focus;
mod folded;
mod format;
mod from_png;
mod from_webp;
mod gaussian;
mod groups;
mod jpeg;
mod orientation;
pub mod raster;
mod reencode;
mod ring;
mod sharpen;
mod shrink;
mod sniff;
mod spare;
mod stored;
mod thumbnail;
mod to_png;
mod vp8_header;

pub use alpha::AlphaPlane;
pub use balance::balance;
pub use check::{CheckFailure, Fidelity, check_result};
pub use decode::{decode, read_header};
pub use decoded::Source;
pub use delta_e::{delta_e_2000, lab};
pub use error::{ImageError, WriteError};
pub use estimate::estimate;
pub use format::Format;
pub use reencode::Reencoding;
pub use sniff::{Header, sniff};
pub use stored::store_if_smaller;
pub use thumbnail::thumbnail;
pub use to_png::{OutputFacts, PngWriter};

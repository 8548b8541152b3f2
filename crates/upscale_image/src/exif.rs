//! The four EXIF tags that change what a picture looks like on screen or paper: orientation and resolution. All else
//! (position, serial numbers, thumbnails, maker notes) is not even read, and so cannot leave with the result.

use crate::density::Density;
use crate::orientation::Orientation;

const TAG_ORIENTATION: u16 = 0x0112;
const TAG_X_RESOLUTION: u16 = 0x011a;
const TAG_Y_RESOLUTION: u16 = 0x011b;
const TAG_RESOLUTION_UNIT: u16 = 0x0128;

/// Entries looked at in the first directory; cameras write about twenty.
const ENTRIES_MAX: usize = 512;

/// What the first directory says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Exif {
    pub(crate) orientation: Orientation,
    pub(crate) density: Option<Density>,
}

impl Exif {
    /// Reads a TIFF block (`II*\0…` or `MM\0*…`, with or without the `Exif\0\0` that JPEG puts before it).
    /// Broken EXIF is common and harmless: what cannot be read counts as not said.
    pub(crate) fn read(block: &[u8]) -> Self {
        let tiff = Tiff::new(block.strip_prefix(b"Exif\0\0").unwrap_or(block));
        let found = tiff.and_then(|tiff| tiff.first_directory());
        found.unwrap_or(Self {
            orientation: Orientation::UPRIGHT,
            density: None,
        })
    }
}

/// A TIFF block and its byte order.
struct Tiff<'a> {
    bytes: &'a [u8],
    little_endian: bool,
}

impl<'a> Tiff<'a> {
    fn new(bytes: &'a [u8]) -> Option<Self> {
        let little_endian = match bytes.get(..4)? {
            b"II*\0" => true,
            b"MM\0*" => false,
            _ => return None,
        };
        Some(Self {
            bytes,
            little_endian,
        })
    }

    fn first_directory(&self) -> Option<Exif> {
        let start = self.u32_at(4)? as usize;
        let count = usize::from(self.u16_at(start)?).min(ENTRIES_MAX);
        let mut orientation = Orientation::UPRIGHT;
        let (mut x, mut y, mut unit) = (None, None, 2);
        for index in 0..count {
            let Some(at) = start.checked_add(2 + index * 12) else {
                break;
            };
            let Some(tag) = self.u16_at(at) else { break };
            match tag {
                TAG_ORIENTATION => {
                    orientation = Orientation::from_exif(self.integer(at).unwrap_or(1));
                }
                TAG_X_RESOLUTION => x = self.rational(at),
                TAG_Y_RESOLUTION => y = self.rational(at),
                TAG_RESOLUTION_UNIT => unit = self.integer(at).unwrap_or(2),
                _ => {}
            }
        }
        Some(Exif {
            orientation,
            density: density(x, y.or(x), unit),
        })
    }

    /// The value of a SHORT or LONG entry (types 3 and 4).
    fn integer(&self, entry: usize) -> Option<u32> {
        match self.u16_at(entry.checked_add(2)?)? {
            3 => self.u16_at(entry.checked_add(8)?).map(u32::from),
            4 => self.u32_at(entry.checked_add(8)?),
            _ => None,
        }
    }

    /// The value of a RATIONAL entry (type 5): numerator and denominator elsewhere in the block.
    fn rational(&self, entry: usize) -> Option<f64> {
        if self.u16_at(entry.checked_add(2)?)? != 5 {
            return None;
        }
        let at = self.u32_at(entry.checked_add(8)?)? as usize;
        let numerator = f64::from(self.u32_at(at)?);
        let denominator = f64::from(self.u32_at(at.checked_add(4)?)?);
        (numerator > 0.0 && denominator > 0.0).then(|| numerator / denominator)
    }

    fn u16_at(&self, at: usize) -> Option<u16> {
        let pair = self.bytes.get(at..at.checked_add(2)?)?.try_into().ok()?;
        Some(if self.little_endian {
            u16::from_le_bytes(pair)
        } else {
            u16::from_be_bytes(pair)
        })
    }

    fn u32_at(&self, at: usize) -> Option<u32> {
        let four = self.bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
        Some(if self.little_endian {
            u32::from_le_bytes(four)
        } else {
            u32::from_be_bytes(four)
        })
    }
}

/// Unit 2 is the inch, 3 the centimetre, 1 none (then only the ratio counts).
fn density(x: Option<f64>, y: Option<f64>, unit: u32) -> Option<Density> {
    let (x, y) = (x?, y?);
    match unit {
        2 => Density::per_metre(x, y, 1.0 / 0.0254),
        3 => Density::per_metre(x, y, 100.0),
        _ => Density::aspect(x.round() as u32, y.round() as u32),
    }
}

//! The marker segments of a JPEG file (ITU-T T.81 annex B): size, coding, profile, EXIF, density, density. The
//! picture is left to its neighbours: `scans.rs` proves it whole, `jpeg.rs` decodes it.

use super::quantisation::TableMeans;
use crate::density::Density;
use crate::error::ImageError;
use crate::exif::Exif;
use crate::format::Format;

/// Segments before the picture; a real file has a few dozen, a hostile one millions of empty ones.
const SEGMENTS_MAX: usize = 20_000;
/// An ICC profile comes in at most 255 chunks of 64 KiB.
const ICC_CHUNKS_MAX: usize = 255;

/// What the segments say.
#[derive(Debug, Clone)]
pub(crate) struct JpegSegments {
    pub(crate) width: u16,
    pub(crate) height: u16,
    /// 1 gray, 3 colour, 4 inks.
    pub(crate) components: u8,
    /// By component: its name, sampling factors (`h << 4 | v`) and quantisation table.
    pub(crate) component_specs: Vec<[u8; 3]>,
    pub(crate) table_means: TableMeans,
    /// A JFIF segment is there.
    pub(crate) is_jfif: bool,
    /// Bits per sample: 8 but for medical and archival files.
    pub(crate) precision: u8,
    /// Low nibble of the SOF marker, T.81 table B.1: 0–2 are what decoders read.
    pub(crate) coding: u8,
    /// The colour transform of the Adobe segment: 0 none, 1 YCbCr, 2 YCCK.
    pub(crate) adobe_transform: Option<u8>,
    pub(crate) exif: Option<Exif>,
    pub(crate) icc: Option<Vec<u8>>,
    pub(crate) jfif_density: Option<Density>,
    /// Further full frames (panorama, stereo, multi-angle) that a multi-picture index lists.
    pub(crate) further_frames: usize,
}

/// Collected while walking.
#[derive(Default)]
struct Walk<'a> {
    frame: Option<(u8, &'a [u8])>,
    table_means: TableMeans,
    adobe_transform: Option<u8>,
    exif: Option<Exif>,
    icc_chunks: Vec<&'a [u8]>,
    is_jfif: bool,
    jfif_density: Option<Density>,
    further_frames: usize,
    complete: bool,
}

impl JpegSegments {
    /// Walks the file once, allocating nothing but a profile.
    ///
    /// # Errors
    /// [`ImageError::Truncated`] or [`ImageError::Damaged`] when there is no frame header to be found.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, ImageError> {
        let walk = walk(bytes)?;
        let Some((coding, frame)) = walk.frame else {
            return Err(if walk.complete {
                damaged("it has no frame header")
            } else {
                truncated(bytes)
            });
        };
        let &[precision, h1, h0, w1, w0, components, ..] = frame else {
            return Err(damaged("its frame header is too short"));
        };
        Ok(Self {
            width: u16::from_be_bytes([w1, w0]),
            height: u16::from_be_bytes([h1, h0]),
            components,
            component_specs: component_specs(components, frame)?,
            table_means: walk.table_means,
            is_jfif: walk.is_jfif,
            precision,
            coding,
            adobe_transform: walk.adobe_transform,
            exif: walk.exif,
            icc: join_icc(&walk.icc_chunks),
            jfif_density: walk.jfif_density,
            further_frames: walk.further_frames,
        })
    }

    /// Sampling factors that the decoder gets wrong: it makes black pictures of sequential files with four rows of
    /// blocks to one, or four by two, rounds ratios such as 3 to 2, and scrambles files whose first component is not
    /// the finest. Nothing but test suites writes them.
    pub(crate) fn odd_sampling(&self) -> Option<String> {
        let factors = |spec: &[u8; 3]| (spec[1] >> 4, spec[1] & 0x0f);
        let (h, v) = factors(self.component_specs.first()?);
        let fits = |spec: &[u8; 3]| h % factors(spec).0 == 0 && v % factors(spec).1 == 0;
        let plain = self.coding == 2 || v == 1 || (h <= 2 && v == 2);
        let alone = self.component_specs.len() == 1;
        if alone || (plain && self.component_specs.iter().all(fits)) {
            return None;
        }
        let all = self.component_specs.iter().map(factors);
        let named: Vec<String> = all.map(|(h, v)| format!("{h}x{v}")).collect();
        Some(named.join(", "))
    }

    /// The components are called R, G and B.
    pub(crate) fn has_rgb_names(&self) -> bool {
        self.component_specs.iter().map(|spec| spec[0]).eq(*b"RGB")
    }
}

fn component_specs(components: u8, frame: &[u8]) -> Result<Vec<[u8; 3]>, ImageError> {
    let specs = frame.get(6..6 + 3 * usize::from(components));
    let specs: Vec<[u8; 3]> = specs
        .ok_or_else(|| damaged("its frame header is too short"))?
        .chunks_exact(3)
        .map(|spec| [spec[0], spec[1], spec[2]])
        .collect();
    let sampling =
        |spec: &[u8; 3]| (1..=4).contains(&(spec[1] >> 4)) && (1..=4).contains(&(spec[1] & 15));
    if !specs.iter().all(sampling) {
        return Err(damaged("a sampling factor is not 1 to 4"));
    }
    Ok(specs)
}

fn walk(bytes: &[u8]) -> Result<Walk<'_>, ImageError> {
    let mut walk = Walk::default();
    let mut at = 2;
    for _ in 0..SEGMENTS_MAX {
        let Some((marker, after)) = next_marker(bytes, at) else {
            return Ok(walk);
        };
        if marker == 0xd9 {
            walk.complete = true;
            return Ok(walk);
        }
        if marker == 0x01 || (0xd0..=0xd8).contains(&marker) {
            at = after;
            continue;
        }
        let Some(length) = bytes.get(after..after + 2) else {
            return Ok(walk);
        };
        let length = usize::from(u16::from_be_bytes([length[0], length[1]]));
        let Some(body) = bytes.get(after + 2..after + length.max(2)) else {
            return Ok(walk);
        };
        walk.take(marker, body)?;
        at = after + length.max(2);
    }
    Err(damaged("it has more segments than any picture needs"))
}

/// The next marker at or after `at` and the position behind it. Stuffed zeros and fill bytes are passed over, so this
/// also runs through entropy-coded data.
pub(crate) fn next_marker(bytes: &[u8], mut at: usize) -> Option<(u8, usize)> {
    loop {
        at += bytes.get(at..)?.iter().position(|byte| *byte == 0xff)?;
        let marker = *bytes.get(at + 1)?;
        match marker {
            0xff => at += 1,
            0x00 => at += 2,
            _ => return Some((marker, at + 2)),
        }
    }
}

impl<'a> Walk<'a> {
    fn take(&mut self, marker: u8, body: &'a [u8]) -> Result<(), ImageError> {
        match marker {
            0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf => {
                if self.frame.is_some() {
                    return Err(damaged("it has two frame headers"));
                }
                self.frame = Some((marker & 0x0f, body));
            }
            0xdb => self.table_means.take(body),
            0xe0 if body.starts_with(b"JFIF\0") => {
                self.is_jfif = true;
                self.jfif_density = self.jfif_density.or_else(|| jfif_density(body));
            }
            0xe1 if body.starts_with(b"Exif\0\0") => {
                self.exif.get_or_insert_with(|| Exif::read(body));
            }
            0xe2 => self.take_app2(body),
            0xee if body.starts_with(b"Adobe") => {
                self.adobe_transform = body.get(11).copied().or(self.adobe_transform);
            }
            _ => {}
        }
        Ok(())
    }

    fn take_app2(&mut self, body: &'a [u8]) {
        if let Some(chunk) = body.strip_prefix(b"ICC_PROFILE\0") {
            if self.icc_chunks.len() < ICC_CHUNKS_MAX {
                self.icc_chunks.push(chunk);
            }
        } else if let Some(index) = body.strip_prefix(b"MPF\0") {
            self.further_frames = self.further_frames.max(multi_frames(index));
        }
    }
}

/// Chunks say their number (from 1) and how many there are; all must be there, once.
fn join_icc(chunks: &[&[u8]]) -> Option<Vec<u8>> {
    let mut sorted: Vec<&[u8]> = chunks.to_vec();
    sorted.sort_by_key(|chunk| chunk.first().copied());
    let mut profile = Vec::new();
    for (index, chunk) in sorted.iter().enumerate() {
        let (&[number, count], data) = chunk.split_first_chunk::<2>()?;
        if usize::from(number) != index + 1 || usize::from(count) != sorted.len() {
            return None;
        }
        profile.extend_from_slice(data);
    }
    (!profile.is_empty()).then_some(profile)
}

/// JFIF 1.02: version (2 bytes), unit (1 inch, 2 centimetre, 0 aspect), x and y density.
fn jfif_density(body: &[u8]) -> Option<Density> {
    let &[_, _, unit, x1, x0, y1, y0, ..] = body.strip_prefix(b"JFIF\0")? else {
        return None;
    };
    let (x, y) = (u16::from_be_bytes([x1, x0]), u16::from_be_bytes([y1, y0]));
    match unit {
        1 => Density::per_metre(f64::from(x), f64::from(y), 1.0 / 0.0254),
        2 => Density::per_metre(f64::from(x), f64::from(y), 100.0),
        _ => Density::aspect(u32::from(x), u32::from(y)),
    }
}

/// Counts the entries after the first of a multi-picture index (CIPA DC-007) that are frames in their own right: class 2 (panorama,
/// disparity, multi-angle). Previews (class 1) and a gain map (undefined) belong to the one picture, so a phone's
/// photograph with an HDR gain map is a still image like any other.
fn multi_frames(index: &[u8]) -> usize {
    let little_endian = index.starts_with(b"II");
    let u32_at = |at: usize| -> Option<u32> {
        let four: [u8; 4] = index.get(at..at.checked_add(4)?)?.try_into().ok()?;
        Some(if little_endian {
            u32::from_le_bytes(four)
        } else {
            u32::from_be_bytes(four)
        })
    };
    let u16_at = |at: usize| -> Option<u16> {
        let two: [u8; 2] = index.get(at..at.checked_add(2)?)?.try_into().ok()?;
        Some(if little_endian {
            u16::from_le_bytes(two)
        } else {
            u16::from_be_bytes(two)
        })
    };
    let entries = || -> Option<(usize, usize)> {
        let directory = u32_at(4)? as usize;
        let count = usize::from(u16_at(directory)?);
        (0..count.min(64)).find_map(|number| {
            let at = directory.checked_add(2 + number * 12)?;
            let is_entry_list = u16_at(at)? == 0xb002;
            is_entry_list.then_some((u32_at(at + 8)? as usize, u32_at(at + 4)? as usize / 16))
        })
    };
    let Some((at, count)) = entries() else {
        return 0;
    };
    (1..count.min(256))
        .filter(|number| {
            let attribute = at.checked_add(number * 16).and_then(u32_at);
            attribute.is_some_and(|bits| (bits >> 16) & 0xff == 0x02)
        })
        .count()
}

pub(crate) fn damaged(what: &'static str) -> ImageError {
    ImageError::Damaged {
        format: Format::Jpeg,
        what,
    }
}

pub(crate) fn truncated(bytes: &[u8]) -> ImageError {
    ImageError::Truncated {
        format: Format::Jpeg,
        bytes: bytes.len(),
    }
}

//! Proves that a JPEG's picture is whole before it is decoded: every scan is walked, code by code (T.81 annexes F and
//! G), and must end exactly where its last block ends. Decoders fill what is missing with gray and call it a success:
//! in strict mode `zune-jpeg` took 180 of 180 files that had been cut off anywhere and given an end marker.

use super::blocks::{Band, walk_ac_first, walk_ac_refining, walk_ac_sequential};
use super::huffman::{BitReader, Fault, HuffmanTable};
use super::segments::next_marker;

/// A progressive encoder writes about ten scans; each costs a walk over the whole picture.
const SCANS_MAX: usize = 100;
/// Bytes that may stand between the last code and the next marker. Some cameras pad; damage leaves many more.
const LEFT_OVER_MAX: usize = 8;
/// Largest dequantised DC value: 8 times a mean of ±128 is 1024, doubled for encoders that overshoot on purpose.
const DC_MAX: i32 = 2048;

/// What the walk needs to know of a frame.
pub(crate) struct Frame {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) progressive: bool,
    pub(crate) components: Vec<Component>,
}

/// One component of the frame, and how much of it the scans have brought so far.
pub(crate) struct Component {
    pub(crate) id: u8,
    pub(crate) h: usize,
    pub(crate) v: usize,
    pub(crate) quantisation: usize,
    /// Blocks a row and rows of blocks, padded to whole MCUs.
    columns: usize,
    /// Blocks a row and rows of blocks that hold picture.
    own: (usize, usize),
    dc: i32,
    /// A bit per coefficient of every block: already known not to be zero.
    nonzero: Vec<u64>,
    /// Lowest bit known of each coefficient; [`UNSEEN`] before the first scan that brings it.
    lowest_bit: [u8; 64],
}

const UNSEEN: u8 = u8::MAX;

impl Component {
    pub(crate) fn new(id: u8, h: usize, v: usize, quantisation: usize) -> Self {
        Self {
            id,
            h,
            v,
            quantisation,
            columns: 0,
            own: (0, 0),
            dc: 0,
            nonzero: Vec::new(),
            lowest_bit: [UNSEEN; 64],
        }
    }
}

/// Tables as they stand at some point of the file.
#[derive(Default)]
struct Tables {
    dc: [Option<HuffmanTable>; 4],
    ac: [Option<HuffmanTable>; 4],
    quantisation: [i32; 4],
    restart_interval: usize,
}

/// The header of a scan.
struct Scan {
    /// Index of the component, of its DC and of its AC table.
    parts: Vec<(usize, usize, usize)>,
    first: usize,
    last: usize,
    high: u8,
    low: u8,
}

impl Scan {
    fn band(&self) -> Band {
        self.first..=self.last
    }
}

/// Walks every scan of the file.
///
/// # Errors
/// The first [`Fault`]; [`Fault::Short`] too when the scans together do not bring the whole picture.
pub(crate) fn check_scans(bytes: &[u8], mut frame: Frame) -> Result<(), Fault> {
    frame.lay_out();
    let mut tables = Tables::default();
    let (mut at, mut scans) = (2, 0);
    while let Some((marker, after)) = next_marker(bytes, at) {
        if marker == 0xd9 || frame.is_whole() {
            break;
        }
        if marker == 0x01 || (0xd0..=0xd8).contains(&marker) {
            at = after;
            continue;
        }
        let (body, end) = segment_body(bytes, after).ok_or(Fault::Short)?;
        at = end;
        match marker {
            0xc4 => tables.take_huffman(body).ok_or(Fault::Code)?,
            0xdb => tables.take_quantisation(body),
            0xdd => tables.take_restart(body).ok_or(Fault::Code)?,
            0xda => {
                scans += 1;
                if scans > SCANS_MAX {
                    return Err(Fault::OutOfOrder);
                }
                at = frame.walk_scan(bytes, end, &tables, &frame.scan(body).ok_or(Fault::Code)?)?;
            }
            _ => {}
        }
    }
    if frame.is_whole() {
        Ok(())
    } else {
        Err(Fault::Short)
    }
}

fn segment_body(bytes: &[u8], after: usize) -> Option<(&[u8], usize)> {
    let length = bytes.get(after..after + 2)?;
    let end = after + usize::from(u16::from_be_bytes([length[0], length[1]])).max(2);
    Some((bytes.get(after + 2..end)?, end))
}

impl Tables {
    fn take_huffman(&mut self, mut body: &[u8]) -> Option<()> {
        while let Some((class_and_slot, rest)) = body.split_first() {
            let (counts, rest) = rest.split_first_chunk::<16>()?;
            let total = counts.iter().map(|count| usize::from(*count)).sum();
            let (symbols, rest) = rest.split_at_checked(total)?;
            let slot = usize::from(class_and_slot & 0x0f);
            let tables = if class_and_slot >> 4 == 0 {
                &mut self.dc
            } else {
                &mut self.ac
            };
            *tables.get_mut(slot)? = Some(HuffmanTable::new(counts, symbols)?);
            body = rest;
        }
        Some(())
    }

    /// Only the DC step is of interest here.
    fn take_quantisation(&mut self, mut body: &[u8]) {
        while let [precision_and_slot, first, second, ..] = *body {
            let wide = precision_and_slot >> 4 != 0;
            let step = if wide {
                i32::from(u16::from_be_bytes([first, second]))
            } else {
                i32::from(first)
            };
            if let Some(slot) = self
                .quantisation
                .get_mut(usize::from(precision_and_slot & 0x0f))
            {
                *slot = step;
            }
            body = body.get(if wide { 129 } else { 65 }..).unwrap_or(&[]);
        }
    }

    fn take_restart(&mut self, body: &[u8]) -> Option<()> {
        let interval = body.first_chunk::<2>()?;
        self.restart_interval = usize::from(u16::from_be_bytes(*interval));
        Some(())
    }
}

impl Frame {
    /// Counts blocks and makes room for what progressive scans have to remember (8 bytes a block).
    fn lay_out(&mut self) {
        let (h_max, v_max) = self.sampling_max();
        let (mcus_x, mcus_y) = self.mcus();
        let (width, height, progressive) = (self.width, self.height, self.progressive);
        for part in &mut self.components {
            part.columns = mcus_x * part.h;
            part.own = (
                (width * part.h).div_ceil(h_max).div_ceil(8),
                (height * part.v).div_ceil(v_max).div_ceil(8),
            );
            if progressive {
                part.nonzero = vec![0; part.columns * mcus_y * part.v];
            }
        }
    }

    fn sampling_max(&self) -> (usize, usize) {
        let h_max = self.components.iter().map(|part| part.h).max();
        let v_max = self.components.iter().map(|part| part.v).max();
        (h_max.unwrap_or(1), v_max.unwrap_or(1))
    }

    fn mcus(&self) -> (usize, usize) {
        let (h_max, v_max) = self.sampling_max();
        (
            self.width.div_ceil(8 * h_max),
            self.height.div_ceil(8 * v_max),
        )
    }

    /// Every coefficient of every component is known to its last bit.
    fn is_whole(&self) -> bool {
        self.components
            .iter()
            .all(|part| part.lowest_bit.iter().all(|bit| *bit == 0))
    }

    fn scan(&self, body: &[u8]) -> Option<Scan> {
        let (count, rest) = body.split_first()?;
        let count = usize::from(*count);
        let mut parts = Vec::with_capacity(count.min(4));
        for pair in rest.get(..count * 2)?.chunks_exact(2) {
            let component = self.components.iter().position(|part| part.id == pair[0])?;
            parts.push((
                component,
                usize::from(pair[1] >> 4),
                usize::from(pair[1] & 0x0f),
            ));
        }
        let &[first, last, bits, ..] = rest.get(count * 2..)? else {
            return None;
        };
        let scan = if self.progressive {
            Scan {
                parts,
                first: usize::from(first),
                last: usize::from(last),
                high: bits >> 4,
                low: bits & 0x0f,
            }
        } else {
            Scan {
                parts,
                first: 0,
                last: 63,
                high: 0,
                low: 0,
            }
        };
        let bands_fit = scan.first <= scan.last && scan.last <= 63;
        let split_fits = !self.progressive || (scan.first == 0) == (scan.last == 0);
        let parts_fit = (1..=4).contains(&count) && (scan.first == 0 || count == 1);
        let bits_fit = scan.low <= 13;
        (bands_fit && split_fits && parts_fit && bits_fit).then_some(scan)
    }

    /// Walks one scan's data; returns where the marker after it begins.
    fn walk_scan(
        &mut self,
        bytes: &[u8],
        start: usize,
        tables: &Tables,
        scan: &Scan,
    ) -> Result<usize, Fault> {
        self.note_progress(scan)?;
        let (columns, rows) = match scan.parts[..] {
            [(only, ..)] => self.components[only].own,
            _ => self.mcus(),
        };
        let mut reader = BitReader::new(bytes, start);
        let mut end_of_band_run = 0;
        for mcu in 0..columns * rows {
            if tables.restart_interval > 0 && mcu > 0 && mcu % tables.restart_interval == 0 {
                let number = (mcu / tables.restart_interval - 1) % 8;
                reader = restart(bytes, reader, number as u8)?;
                end_of_band_run = 0;
                self.components.iter_mut().for_each(|part| part.dc = 0);
            }
            let place = Position {
                x: mcu % columns,
                y: mcu / columns,
            };
            self.walk_mcu(&mut reader, tables, scan, place, &mut end_of_band_run)?;
        }
        self.components.iter_mut().for_each(|part| part.dc = 0);
        reader.end(LEFT_OVER_MAX)
    }

    /// A first pass brings a coefficient down to bit `low`; a refinement takes it exactly one bit further.
    fn note_progress(&mut self, scan: &Scan) -> Result<(), Fault> {
        for (component, ..) in &scan.parts {
            for known in &mut self.components[*component].lowest_bit[scan.first..=scan.last] {
                let expected = if scan.high == 0 { UNSEEN } else { scan.high };
                if *known != expected || (scan.high != 0 && scan.low + 1 != scan.high) {
                    return Err(Fault::OutOfOrder);
                }
                *known = scan.low;
            }
        }
        Ok(())
    }

    fn walk_mcu(
        &mut self,
        reader: &mut BitReader<'_>,
        tables: &Tables,
        scan: &Scan,
        place: Position,
        end_of_band_run: &mut u32,
    ) -> Result<(), Fault> {
        let alone = scan.parts.len() == 1;
        for (component, dc, ac) in &scan.parts {
            let part = &mut self.components[*component];
            let (across, down) = if alone { (1, 1) } else { (part.h, part.v) };
            for block in 0..across * down {
                let column = place.x * across + block % across;
                let row = place.y * down + block / across;
                let at = row * part.columns + column;
                let tables = BlockTables {
                    dc: tables.dc.get(*dc).and_then(Option::as_ref),
                    ac: tables.ac.get(*ac).and_then(Option::as_ref),
                    dc_step: tables
                        .quantisation
                        .get(part.quantisation)
                        .copied()
                        .unwrap_or(0),
                };
                part.walk_block(reader, &tables, scan, at, end_of_band_run, self.progressive)?;
            }
        }
        Ok(())
    }
}

/// Where a group of blocks (the standard's MCU) stands, in such groups.
#[derive(Debug, Clone, Copy)]
struct Position {
    x: usize,
    y: usize,
}

/// Ends an interval and starts the next behind its restart marker.
fn restart<'a>(bytes: &'a [u8], reader: BitReader<'a>, number: u8) -> Result<BitReader<'a>, Fault> {
    let at = reader.end(LEFT_OVER_MAX)?;
    match next_marker(bytes, at) {
        Some((marker, after)) if marker == 0xd0 + number => Ok(BitReader::new(bytes, after)),
        Some(_) => Err(Fault::OutOfOrder),
        None => Err(Fault::Short),
    }
}

/// The tables of one block.
struct BlockTables<'a> {
    dc: Option<&'a HuffmanTable>,
    ac: Option<&'a HuffmanTable>,
    dc_step: i32,
}

impl Component {
    fn walk_block(
        &mut self,
        reader: &mut BitReader<'_>,
        tables: &BlockTables<'_>,
        scan: &Scan,
        at: usize,
        end_of_band_run: &mut u32,
        progressive: bool,
    ) -> Result<(), Fault> {
        if scan.first == 0 {
            if scan.high == 0 {
                self.walk_dc(reader, tables, scan.low)?;
            } else {
                reader.bits(1)?;
            }
            if progressive {
                return Ok(());
            }
        }
        let table = tables.ac.ok_or(Fault::Code)?;
        if !progressive {
            return walk_ac_sequential(reader, table);
        }
        let mut no_room = 0;
        let nonzero = self.nonzero.get_mut(at).unwrap_or(&mut no_room);
        if scan.high == 0 {
            walk_ac_first(reader, table, &scan.band(), nonzero, end_of_band_run)
        } else {
            walk_ac_refining(reader, table, &scan.band(), nonzero, end_of_band_run)
        }
    }

    fn walk_dc(
        &mut self,
        reader: &mut BitReader<'_>,
        tables: &BlockTables<'_>,
        low: u8,
    ) -> Result<(), Fault> {
        let size = reader.symbol(tables.dc.ok_or(Fault::Code)?)?;
        if size > 11 {
            return Err(Fault::Code);
        }
        self.dc += reader.signed(u32::from(size))?;
        let step = tables.dc_step.max(1);
        let dequantised = (self.dc << low).saturating_mul(step);
        if dequantised.abs() > DC_MAX + step {
            return Err(Fault::Code);
        }
        Ok(())
    }
}

//! The AC coefficients of one block, walked code by code: sequential, first progressive pass, refinement (T.81 F.2.2.2,
//! G.1.2.2 and G.1.2.3). `scans.rs` says which blocks there are and in which order.

use super::huffman::{BitReader, Fault, HuffmanTable};

/// Coefficients of a progressive scan, first and last in zigzag order.
pub(super) type Band = std::ops::RangeInclusive<usize>;

/// T.81 F.2.2.2.
pub(super) fn walk_ac_sequential(
    reader: &mut BitReader<'_>,
    table: &HuffmanTable,
) -> Result<(), Fault> {
    let mut k = 1;
    while k <= 63 {
        let symbol = reader.symbol(table)?;
        let (run, size) = (usize::from(symbol >> 4), u32::from(symbol & 0x0f));
        if size == 0 {
            if run != 15 {
                return Ok(());
            }
            k += 16;
            continue;
        }
        k += run;
        if k > 63 {
            return Err(Fault::Code);
        }
        reader.bits(size)?;
        k += 1;
    }
    Ok(())
}

/// T.81 G.1.2.2.
pub(super) fn walk_ac_first(
    reader: &mut BitReader<'_>,
    table: &HuffmanTable,
    band: &Band,
    nonzero: &mut u64,
    end_of_band_run: &mut u32,
) -> Result<(), Fault> {
    if *end_of_band_run > 0 {
        *end_of_band_run -= 1;
        return Ok(());
    }
    let mut k = *band.start();
    while k <= *band.end() {
        let symbol = reader.symbol(table)?;
        let (run, size) = (u32::from(symbol >> 4), u32::from(symbol & 0x0f));
        if size == 0 {
            if run != 15 {
                *end_of_band_run = (1 << run) - 1 + reader.bits(run)?;
                return Ok(());
            }
            k += 16;
            continue;
        }
        k += run as usize;
        if k > *band.end() {
            return Err(Fault::Code);
        }
        reader.bits(size)?;
        *nonzero |= 1 << k;
        k += 1;
    }
    Ok(())
}

/// T.81 G.1.2.3: a correction bit for every coefficient already not zero, new ones of magnitude 1 in between.
pub(super) fn walk_ac_refining(
    reader: &mut BitReader<'_>,
    table: &HuffmanTable,
    band: &Band,
    nonzero: &mut u64,
    end_of_band_run: &mut u32,
) -> Result<(), Fault> {
    let mut k = *band.start();
    while *end_of_band_run == 0 && k <= *band.end() {
        let symbol = reader.symbol(table)?;
        let (mut run, size) = (u32::from(symbol >> 4), symbol & 0x0f);
        match size {
            0 if run != 15 => {
                *end_of_band_run = (1 << run) + reader.bits(run)?;
                break;
            }
            0 => {}
            1 => {
                reader.bits(1)?;
            }
            _ => return Err(Fault::Code),
        }
        while k <= *band.end() {
            if *nonzero >> k & 1 == 1 {
                reader.bits(1)?;
            } else if run == 0 {
                break;
            } else {
                run -= 1;
            }
            k += 1;
        }
        if size == 1 {
            if k > *band.end() {
                return Err(Fault::Code);
            }
            *nonzero |= 1 << k;
        }
        k += 1;
    }
    if *end_of_band_run > 0 {
        for _ in (k..=*band.end()).filter(|k| *nonzero >> k & 1 == 1) {
            reader.bits(1)?;
        }
        *end_of_band_run -= 1;
    }
    Ok(())
}

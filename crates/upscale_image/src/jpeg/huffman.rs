//! Huffman codes and the bits they are read from (ITU-T T.81 annexes C and F.2.2), strictly: whatever runs out or does
//! not decode is a [`Fault`], nothing is made up.

/// What is wrong with entropy-coded data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The data ends, or a marker comes, before the scan is complete.
    Short,
    /// Bits that are no code, a table that is none, or a run past the end of its block.
    Code,
    /// A restart marker is missing or out of turn, or data is left over.
    OutOfOrder,
}

/// Codes up to this long are found by one look-up.
const FAST_BITS: u32 = 9;

/// One Huffman table.
pub(crate) struct HuffmanTable {
    /// `length << 8 | symbol` by the next [`FAST_BITS`] bits; 0 where the code is longer.
    fast: Vec<u16>,
    /// By length: the first code that is longer, left-aligned to 16 bits.
    limit: [u32; 17],
    /// By length: index of a code's symbol, less the code.
    offset: [i32; 17],
    symbols: Vec<u8>,
}

impl HuffmanTable {
    /// From the counts per length (1 to 16) and the symbols in order of their codes.
    pub(crate) fn new(counts: &[u8; 16], symbols: &[u8]) -> Option<Self> {
        let mut table = Self {
            fast: vec![0; 1 << FAST_BITS],
            limit: [0; 17],
            offset: [0; 17],
            symbols: symbols.to_vec(),
        };
        let (mut code, mut index) = (0_u32, 0_usize);
        for length in 1..=16_u32 {
            let count = usize::from(counts[length as usize - 1]);
            table.offset[length as usize] = index as i32 - code as i32;
            for symbol in symbols.get(index..index + count)? {
                table.enter(code, length, *symbol)?;
                code += 1;
            }
            index += count;
            table.limit[length as usize] = code << (16 - length);
            code <<= 1;
        }
        Some(table)
    }

    fn enter(&mut self, code: u32, length: u32, symbol: u8) -> Option<()> {
        if code >> length != 0 {
            return None;
        }
        if length <= FAST_BITS {
            let first = (code << (FAST_BITS - length)) as usize;
            let same = 1 << (FAST_BITS - length);
            let entry = (length as u16) << 8 | u16::from(symbol);
            self.fast.get_mut(first..first + same)?.fill(entry);
        }
        Some(())
    }
}

/// Reads bits up to the next marker; `0xFF00` is the byte `0xFF`.
pub(crate) struct BitReader<'a> {
    bytes: &'a [u8],
    at: usize,
    bits: u64,
    count: u32,
}

impl<'a> BitReader<'a> {
    pub(crate) fn new(bytes: &'a [u8], at: usize) -> Self {
        Self {
            bytes,
            at,
            bits: 0,
            count: 0,
        }
    }

    /// The next symbol.
    pub(crate) fn symbol(&mut self, table: &HuffmanTable) -> Result<u8, Fault> {
        self.fill();
        let next = if self.count >= 16 {
            (self.bits >> (self.count - 16)) as u32 & 0xffff
        } else {
            ((self.bits << (16 - self.count)) as u32) & 0xffff
        };
        let entry = table.fast[(next >> (16 - FAST_BITS)) as usize];
        let (length, symbol) = if entry != 0 {
            (u32::from(entry >> 8), entry as u8)
        } else {
            slow_symbol(table, next).ok_or(self.code_or_short())?
        };
        if length > self.count {
            return Err(Fault::Short);
        }
        self.count -= length;
        Ok(symbol)
    }

    /// The next `count` bits (at most 16) as a number.
    pub(crate) fn bits(&mut self, count: u32) -> Result<u32, Fault> {
        self.fill();
        if count > self.count {
            return Err(Fault::Short);
        }
        self.count -= count;
        Ok((self.bits >> self.count) as u32 & ((1 << count) - 1))
    }

    /// The next `count` bits as a signed value (T.81 figure F.12).
    pub(crate) fn signed(&mut self, count: u32) -> Result<i32, Fault> {
        let value = self.bits(count)? as i32;
        let negative = count > 0 && value >> (count - 1) == 0;
        Ok(if negative {
            value + 1 - (1 << count)
        } else {
            value
        })
    }

    /// Ends an interval: at most seven bits of padding, then a marker (or the end of the file). Returns where that
    /// marker begins.
    pub(crate) fn end(self, left_over_max: usize) -> Result<usize, Fault> {
        let rest = &self.bytes[self.at.min(self.bytes.len())..];
        let mut skipped = 0;
        while skipped < rest.len() {
            match rest[skipped..] {
                [0xff, 0x00, ..] => skipped += 2,
                [0xff, ..] => break,
                _ => skipped += 1,
            }
            if skipped > left_over_max + 1 {
                return Err(Fault::OutOfOrder);
            }
        }
        if self.count as usize / 8 + skipped > left_over_max {
            return Err(Fault::OutOfOrder);
        }
        Ok(self.at + skipped)
    }

    fn code_or_short(&self) -> Fault {
        if self.count >= 16 {
            Fault::Code
        } else {
            Fault::Short
        }
    }

    fn fill(&mut self) {
        while self.count <= 48 {
            let byte = match self.bytes.get(self.at..) {
                Some([0xff, 0x00, ..]) => {
                    self.at += 2;
                    0xff
                }
                Some([0xff, ..] | []) | None => return,
                Some([byte, ..]) => {
                    self.at += 1;
                    *byte
                }
            };
            self.bits = self.bits << 8 | u64::from(byte);
            self.count += 8;
        }
    }
}

fn slow_symbol(table: &HuffmanTable, next: u32) -> Option<(u32, u8)> {
    let length = (FAST_BITS + 1..=16).find(|length| next < table.limit[*length as usize])?;
    let code = (next >> (16 - length)) as i32;
    let index = usize::try_from(code + table.offset[length as usize]).ok()?;
    Some((length, *table.symbols.get(index)?))
}

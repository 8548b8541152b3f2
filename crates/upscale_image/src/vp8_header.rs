//! How coarsely a lossy WebP was quantised: the frame header of its VP8 stream (RFC 6386, sections 7, 9.2 to 9.6,
//! 19.2), read up to the quantiser and no further. `image-webp` reads the same header and keeps it to itself.

use upscale_core::{Compression, Subsampling};

/// Of the frame tag and the start code and size of a key frame; the header proper follows.
const START_BYTES: usize = 10;

/// What the file says of itself.
pub(crate) fn compression(file: &[u8]) -> Compression {
    match picture_chunk(file) {
        Some((b"VP8 ", frame)) => match quantiser_index(frame) {
            Some(index) => quantised(index),
            None => Compression::Unknown,
        },
        Some((b"VP8L", _)) => Compression::Lossless,
        _ => Compression::Unknown,
    }
}

/// How many times a VP8 step is as large as the mean of a JPEG's tables that does the same damage: its transform has
/// twice the gain, and prediction and the loop filter hide much of what is left. Measured, as is what it costs not to read the
/// step: docs/decisions/0009-what-a-file-says.md.
const STEPS_PER_MEAN: f32 = 4.0;

/// VP8 always stores a quarter of the chroma samples.
fn quantised(index: u8) -> Compression {
    let mean = ac_step(index) / STEPS_PER_MEAN;
    Compression::Quantised {
        luma_mean: mean,
        chroma_mean: mean,
        subsampling: Subsampling::Quarter,
    }
}

/// The chunk that holds the picture, by name.
fn picture_chunk(file: &[u8]) -> Option<(&[u8; 4], &[u8])> {
    let mut rest = file.get(12..)?;
    loop {
        let (name, after) = rest.split_first_chunk::<4>()?;
        let (size, body) = after.split_first_chunk::<4>()?;
        let size = usize::try_from(u32::from_le_bytes(*size)).ok()?;
        if name.starts_with(b"VP8") && name != b"VP8X" {
            return Some((name, &body[..size.min(body.len())]));
        }
        rest = body.get(size.checked_add(size % 2)?..)?;
    }
}

/// `y_ac_qi`, 0 to 127; none when the frame is cut off before it.
fn quantiser_index(frame: &[u8]) -> Option<u8> {
    let mut header = Bools::new(frame.get(START_BYTES..)?)?;
    // Colour space and clamping.
    header.skip(2);
    if header.flag() {
        skip_segments(&mut header);
    }
    // Loop filter: kind, level, sharpness.
    header.skip(10);
    if header.flag() && header.flag() {
        (0..8).for_each(|_| header.skip_optional(7));
    }
    // Number of partitions.
    header.skip(2);
    let index = header.number(7);
    (!header.ran_out()).then_some(index)
}

fn skip_segments(header: &mut Bools<'_>) {
    let (new_map, new_data) = (header.flag(), header.flag());
    if new_data {
        header.skip(1);
        (0..4).for_each(|_| header.skip_optional(8));
        (0..4).for_each(|_| header.skip_optional(7));
    }
    if new_map {
        (0..3).for_each(|_| header.skip_optional(8));
    }
}

/// RFC 6386, section 14.1, the table `ac_qlookup`, by its four slopes and a tail.
fn ac_step(index: u8) -> f32 {
    const TAIL: [u16; 11] = [234, 239, 245, 249, 254, 259, 264, 269, 274, 279, 284];
    let index = u16::from(index.min(127));
    f32::from(match index {
        0..=54 => index + 4,
        55..=83 => 60 + 2 * (index - 55),
        84..=102 => 119 + 3 * (index - 84),
        103..=116 => 177 + 4 * (index - 103),
        _ => TAIL[usize::from(index - 117)],
    })
}

/// The boolean decoder of RFC 6386, section 7.3, where both values are as likely: all that a frame header uses.
struct Bools<'a> {
    rest: &'a [u8],
    value: u32,
    range: u32,
    shifted: u32,
    /// Bytes made up after the end.
    missing: u32,
}

impl<'a> Bools<'a> {
    fn new(bytes: &'a [u8]) -> Option<Self> {
        let (first, rest) = bytes.split_first_chunk::<2>()?;
        Some(Self {
            rest,
            value: u16::from_be_bytes(*first).into(),
            range: 255,
            shifted: 0,
            missing: 0,
        })
    }

    fn flag(&mut self) -> bool {
        let split = 1 + (((self.range - 1) * 128) >> 8);
        let is_set = self.value >= split << 8;
        if is_set {
            self.range -= split;
            self.value -= split << 8;
        } else {
            self.range = split;
        }
        while self.range < 128 {
            self.range <<= 1;
            self.value <<= 1;
            self.shifted += 1;
            if self.shifted == 8 {
                self.shifted = 0;
                self.value |= u32::from(self.next_byte());
            }
        }
        is_set
    }

    fn next_byte(&mut self) -> u8 {
        let Some((&byte, rest)) = self.rest.split_first() else {
            self.missing += 1;
            return 0;
        };
        self.rest = rest;
        byte
    }

    /// At most 8 bits, the highest first.
    fn number(&mut self, bits: u32) -> u8 {
        (0..bits).fold(0, |number, _| number << 1 | u8::from(self.flag()))
    }

    fn skip(&mut self, bits: u32) {
        (0..bits).for_each(|_| {
            self.flag();
        });
    }

    /// A flag, and `bits` more when it is set.
    fn skip_optional(&mut self, bits: u32) {
        if self.flag() {
            self.skip(bits);
        }
    }

    /// Two bytes are read ahead; a third that is missing was needed.
    fn ran_out(&self) -> bool {
        self.missing > 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A boolean encoder for even odds (RFC 6386, section 7.3), in whole numbers as long as need be: the interval
    /// is kept exactly, so there is no carry to get wrong.
    fn encode(bits: &[bool]) -> Vec<u8> {
        let (mut low, mut range, mut shifted) = (0u128, 255u128, 0u32);
        for bit in bits {
            let split = 1 + (((range - 1) * 128) >> 8);
            if *bit {
                low += split;
                range -= split;
            } else {
                range = split;
            }
            while range < 128 {
                range <<= 1;
                low <<= 1;
                shifted += 1;
            }
        }
        let bytes = low << (120 - shifted);
        bytes.to_be_bytes().to_vec()
    }

    fn bits(number: u32, count: u32) -> Vec<bool> {
        (0..count).rev().map(|bit| number >> bit & 1 == 1).collect()
    }

    fn file(chunks: &[(&[u8; 4], Vec<u8>)]) -> Vec<u8> {
        let mut file = b"RIFF\0\0\0\0WEBP".to_vec();
        for (name, body) in chunks {
            file.extend_from_slice(*name);
            file.extend((body.len() as u32).to_le_bytes());
            file.extend_from_slice(body);
            file.extend(vec![0; body.len() % 2]);
        }
        file
    }

    fn frame(header: &[bool]) -> Vec<u8> {
        let mut frame = vec![0; START_BYTES];
        frame.extend(encode(header));
        frame
    }

    #[test]
    fn the_quantiser_is_found_behind_whatever_stands_before_it() {
        let plain = [bits(0, 3), bits(0b1010101011, 10), bits(0, 1), bits(3, 2)];
        let filters = [
            bits(0, 3),
            bits(0, 10),
            bits(0b11, 2),
            bits(0b10001010, 8),
            bits(0, 7),
            bits(0, 2),
        ];
        let segments = [
            bits(0b001, 3),
            bits(0b11, 2),
            bits(1, 1),
            bits(0b100011110, 9),
            bits(0, 3),
            bits(0, 4),
            bits(0b111110000, 9),
            bits(0, 2),
            bits(0, 11),
            bits(0, 2),
        ];
        for before in [plain.concat(), filters.concat(), segments.concat()] {
            for index in [0, 1, 54, 55, 99, 127] {
                let header = [before.clone(), bits(index, 7), bits(0b1011, 4)].concat();
                let bytes = file(&[(b"ICCP", vec![1; 5]), (b"VP8 ", frame(&header))]);
                assert_eq!(compression(&bytes), quantised(index as u8), "{index}");
            }
        }
    }

    /// libwebp's own file of a gradient of 16 x 16 pixels at quality 50, for which its formula
    /// `127 (1 - cbrt(2/3 * 0.5))` gives 38.
    #[test]
    fn a_real_file_says_what_its_writer_chose() {
        const FILE: &str = "52494646420000005745425056503820360000005001009d012a1000100002c04c25a40004740000febfbf\
            ff5effff5c92ff1f99fff8f4ffb6e1926f83645031cb4626b9fa227f380000";
        let digits: Vec<u32> = FILE.chars().filter_map(|c| c.to_digit(16)).collect();
        let file: Vec<u8> = digits.chunks(2).map(|d| (d[0] << 4 | d[1]) as u8).collect();
        assert_eq!(compression(&file), quantised(38));
    }

    #[test]
    fn a_lossless_stream_is_clean_and_a_broken_one_unknown() {
        assert_eq!(
            compression(&file(&[(b"VP8L", vec![0; 9])])),
            Compression::Lossless
        );
        assert_eq!(
            compression(&file(&[(b"VP8 ", vec![0; 9])])),
            Compression::Unknown
        );
        assert_eq!(
            compression(&file(&[(b"VP8X", vec![0; 10])])),
            Compression::Unknown
        );
        assert_eq!(compression(b"RIFF"), Compression::Unknown);
        let mut lying = file(&[(b"ALPH", Vec::new())]);
        lying[16..20].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(compression(&lying), Compression::Unknown);
        assert_eq!(
            compression(&file(&[(b"VP8 ", vec![255; 12])])),
            Compression::Unknown
        );
    }

    #[test]
    fn the_steps_are_the_table_of_the_standard() {
        let steps: Vec<f32> = [0, 54, 55, 83, 84, 102, 103, 116, 117, 127, 200]
            .map(ac_step)
            .to_vec();
        let standard = [4, 58, 60, 116, 119, 173, 177, 229, 234, 284, 284];
        assert_eq!(steps, standard.map(|step: u16| f32::from(step)));
    }
}

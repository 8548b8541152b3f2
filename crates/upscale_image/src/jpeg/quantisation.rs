//! How coarsely a JPEG was quantised: the tables of its DQT segments (ITU-T T.81, B.2.4.1) and the sampling of its
//! components. A file may lie about what was done to the picture before; `compression.rs` looks at the pixels.

use upscale_core::{Compression, Subsampling};

/// Means of the quantisation tables 0 to 3, of those that the file defines; a later definition of a table is for
/// later scans of the same picture, which writers leave alone.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TableMeans([Option<f32>; 4]);

impl TableMeans {
    /// Takes the tables of one segment; what is cut short or numbered wrongly the decoder refuses.
    pub(crate) fn take(&mut self, mut body: &[u8]) {
        while let Some((&what, rest)) = body.split_first() {
            let entry_bytes = if what >> 4 == 0 { 1 } else { 2 };
            let Some((entries, rest)) = rest.split_at_checked(64 * entry_bytes) else {
                return;
            };
            let values = entries.chunks_exact(entry_bytes).map(|entry| {
                let bytes = entry.iter();
                bytes.fold(0, |value: u32, byte| value << 8 | u32::from(*byte))
            });
            let mean = values.sum::<u32>() as f32 / 64.0;
            if let Some(table) = self.0.get_mut(usize::from(what & 0x0f)) {
                table.get_or_insert(mean);
            }
            body = rest;
        }
    }

    /// What the file says of itself by these and the specifications of its components; `Unknown` when it lacks a table that
    /// it names.
    pub(crate) fn compression(&self, specs: &[[u8; 3]]) -> Compression {
        let Some(luma) = specs.first() else {
            return Compression::Unknown;
        };
        let chroma = specs.get(1).unwrap_or(luma);
        match (self.of(luma), self.of(chroma)) {
            (Some(luma_mean), Some(chroma_mean)) => Compression::Quantised {
                luma_mean,
                chroma_mean,
                subsampling: subsampling(luma[1], chroma[1]),
            },
            _ => Compression::Unknown,
        }
    }

    fn of(&self, spec: &[u8; 3]) -> Option<f32> {
        *self.0.get(usize::from(spec[2]))?
    }
}

/// From sampling factors (`h << 4 | v`, each 1 to 4).
fn subsampling(luma: u8, chroma: u8) -> Subsampling {
    let area = |factors: u8| (factors >> 4) * (factors & 0x0f);
    match area(luma) / area(chroma).max(1) {
        0 | 1 => Subsampling::None,
        2 | 3 => Subsampling::Half,
        _ => Subsampling::Quarter,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_both_widths_are_read_and_the_first_of_a_name_counts() {
        let mut body = vec![0x00];
        body.extend([10; 64]);
        body.push(0x11);
        body.extend([1, 0].repeat(64));
        let mut means = TableMeans::default();
        means.take(&body);
        means.take(&[&[0x00][..], &[99; 64]].concat());
        assert_eq!(means.of(&[1, 0x11, 0]), Some(10.0));
        assert_eq!(means.of(&[2, 0x11, 1]), Some(256.0));
        assert_eq!(means.of(&[3, 0x11, 2]), None);
        assert_eq!(means.of(&[3, 0x11, 200]), None);
    }

    #[test]
    fn short_and_misnumbered_tables_are_passed_over() {
        let mut means = TableMeans::default();
        means.take(&[0x00; 64]);
        means.take(&[&[0x0f][..], &[5; 64]].concat());
        means.take(&[]);
        assert_eq!(means.0, [None; 4]);
    }

    #[test]
    fn sampling_is_counted_by_area() {
        assert_eq!(subsampling(0x11, 0x11), Subsampling::None);
        assert_eq!(subsampling(0x21, 0x11), Subsampling::Half);
        assert_eq!(subsampling(0x12, 0x11), Subsampling::Half);
        assert_eq!(subsampling(0x22, 0x11), Subsampling::Quarter);
        assert_eq!(subsampling(0x41, 0x11), Subsampling::Quarter);
        assert_eq!(subsampling(0x22, 0x22), Subsampling::None);
        assert_eq!(subsampling(0x22, 0x21), Subsampling::Half);
    }
}

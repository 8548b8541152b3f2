//! EXIF orientation (EXIF 2.32, tag 0x0112) baked into the samples, so that no one has to know of it again.

/// The eight ways a camera can be held, by what must be done to show the picture upright.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Orientation {
    /// Swap rows and columns first …
    pub(crate) transpose: bool,
    /// … then mirror left and right …
    pub(crate) mirror_x: bool,
    /// … and top and bottom.
    pub(crate) mirror_y: bool,
}

impl Orientation {
    pub(crate) const UPRIGHT: Self = Self::new(false, false, false);

    const fn new(transpose: bool, mirror_x: bool, mirror_y: bool) -> Self {
        Self {
            transpose,
            mirror_x,
            mirror_y,
        }
    }

    /// From the tag's value; anything but 1 to 8 is taken as upright, as every viewer does.
    pub(crate) fn from_exif(value: u32) -> Self {
        match value {
            2 => Self::new(false, true, false),
            3 => Self::new(false, true, true),
            4 => Self::new(false, false, true),
            5 => Self::new(true, false, false),
            6 => Self::new(true, true, false),
            7 => Self::new(true, true, true),
            8 => Self::new(true, false, true),
            _ => Self::UPRIGHT,
        }
    }

    /// Turns interleaved samples of `width × height` pixels; returns the new width, height and samples.
    pub(crate) fn apply(
        self,
        width: usize,
        height: usize,
        channels: usize,
        samples: Vec<f32>,
    ) -> (usize, usize, Vec<f32>) {
        if self == Self::UPRIGHT {
            return (width, height, samples);
        }
        let (out_width, out_height) = if self.transpose {
            (height, width)
        } else {
            (width, height)
        };
        let mut turned = Vec::with_capacity(samples.len());
        for out_y in 0..out_height {
            let along_y = mirrored(self.mirror_y, out_y, out_height);
            for out_x in 0..out_width {
                let along_x = mirrored(self.mirror_x, out_x, out_width);
                let (x, y) = if self.transpose {
                    (along_y, along_x)
                } else {
                    (along_x, along_y)
                };
                let at = (y * width + x) * channels;
                turned.extend_from_slice(&samples[at..at + channels]);
            }
        }
        (out_width, out_height, turned)
    }
}

fn mirrored(mirror: bool, position: usize, length: usize) -> usize {
    if mirror {
        length - 1 - position
    } else {
        position
    }
}

#[cfg(test)]
mod tests {
    use super::Orientation;

    /// Rows of the letter F seen upright, as each of the eight orientations stores it.
    #[test]
    fn every_orientation_comes_out_upright() {
        let upright = ["##", "#.", "##", "#."];
        let stored: [(u32, &[&str]); 8] = [
            (1, &["##", "#.", "##", "#."]),
            (2, &["##", ".#", "##", ".#"]),
            (3, &[".#", "##", ".#", "##"]),
            (4, &["#.", "##", "#.", "##"]),
            (5, &["####", "#.#."]),
            (6, &["#.#.", "####"]),
            (7, &[".#.#", "####"]),
            (8, &["####", ".#.#"]),
        ];
        for (value, rows) in stored {
            let (width, height) = (rows[0].len(), rows.len());
            let samples = rows.concat().bytes().map(f32::from).collect();
            let (w, h, turned) = Orientation::from_exif(value).apply(width, height, 1, samples);
            let wanted: Vec<f32> = upright.concat().bytes().map(f32::from).collect();
            assert_eq!((w, h, turned), (2, 4, wanted), "orientation {value}");
        }
    }

    #[test]
    fn values_outside_one_to_eight_mean_upright() {
        for value in [0, 9, 65_535] {
            assert_eq!(Orientation::from_exif(value), Orientation::UPRIGHT);
        }
    }
}

//! Pictures made by code, as files of the three formats, and the comparison of a result with its source.

use std::io::Cursor;

/// 8-bit RGB, row-major.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    pub width: u32,
    pub height: u32,
    pub rgb: Vec<u8>,
}

impl Picture {
    /// Slow waves in three colours, so that any decent upscaler keeps its averages; `seed` shifts them.
    pub fn render(width: u32, height: u32, seed: u32) -> Self {
        let wave = |at: u32, length: f64, phase: f64| {
            127.5 + 100.0 * (f64::from(at) / length + phase + f64::from(seed)).sin()
        };
        let mut rgb = Vec::with_capacity((width * height * 3) as usize);
        for row in 0..height {
            for column in 0..width {
                let red = wave(column, 9.0, 0.0);
                let green = wave(row, 7.0, 1.0);
                let blue = (wave(column, 15.0, 2.0) + wave(row, 11.0, 3.0)) / 2.0;
                rgb.extend([red, green, blue].map(|sample| sample.round() as u8));
            }
        }
        Self { width, height, rgb }
    }

    pub fn png(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, self.width, self.height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header().unwrap();
        writer.write_image_data(&self.rgb).unwrap();
        writer.finish().unwrap();
        bytes
    }

    pub fn jpeg(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let encoder = jpeg_encoder::Encoder::new(&mut bytes, 95);
        let (width, height) = (self.width as u16, self.height as u16);
        encoder
            .encode(&self.rgb, width, height, jpeg_encoder::ColorType::Rgb)
            .unwrap();
        bytes
    }

    pub fn webp(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let encoder = image_webp::WebPEncoder::new(&mut bytes);
        encoder
            .encode(
                &self.rgb,
                self.width,
                self.height,
                image_webp::ColorType::Rgb8,
            )
            .unwrap();
        bytes
    }

    /// By the suffix of the name it will be served under.
    pub fn encoded_for(&self, name: &str) -> Vec<u8> {
        match name.rsplit('.').next() {
            Some("png") => self.png(),
            Some("jpg" | "jpeg") => self.jpeg(),
            Some("webp") => self.webp(),
            other => panic!("no encoder for {other:?}"),
        }
    }

    /// Decodes an 8-bit RGB or RGBA PNG to its end; the colour alone.
    pub fn from_png(bytes: &[u8]) -> Result<Self, String> {
        let mut reader = png::Decoder::new(Cursor::new(bytes))
            .read_info()
            .map_err(|error| format!("no PNG: {error}"))?;
        let size = reader
            .output_buffer_size()
            .ok_or("the PNG is too large to hold")?;
        let mut samples = vec![0; size];
        let info = reader
            .next_frame(&mut samples)
            .map_err(|error| error.to_string())?;
        reader.finish().map_err(|error| error.to_string())?;
        let rgb = match (info.color_type, info.bit_depth) {
            (png::ColorType::Rgb, png::BitDepth::Eight) => samples,
            (png::ColorType::Rgba, png::BitDepth::Eight) => samples
                .chunks_exact(4)
                .flat_map(|pixel| [pixel[0], pixel[1], pixel[2]])
                .collect(),
            other => return Err(format!("a PNG of {other:?}")),
        };
        Ok(Self {
            width: info.width,
            height: info.height,
            rgb,
        })
    }

    /// Mean of each `factor` × `factor` block.
    pub fn shrunk(&self, factor: u32) -> Self {
        let (width, height) = (self.width / factor, self.height / factor);
        let mut rgb = Vec::with_capacity((width * height * 3) as usize);
        for (row, column) in (0..height).flat_map(|row| (0..width).map(move |at| (row, at))) {
            for channel in 0..3 {
                let block = (0..factor * factor).map(|at| {
                    let (y, x) = (row * factor + at / factor, column * factor + at % factor);
                    u32::from(self.rgb[((y * self.width + x) * 3 + channel) as usize])
                });
                rgb.push((block.sum::<u32>() / (factor * factor)) as u8);
            }
        }
        Self { width, height, rgb }
    }

    /// Mean absolute difference of the samples, 0 to 255.
    pub fn mean_difference(&self, other: &Self) -> f64 {
        assert_eq!((self.width, self.height), (other.width, other.height));
        let differences = self
            .rgb
            .iter()
            .zip(&other.rgb)
            .map(|(a, b)| f64::from(a.abs_diff(*b)));
        differences.sum::<f64>() / self.rgb.len() as f64
    }
}

#[test]
fn a_picture_survives_its_own_png_and_a_cut_one_is_noticed() {
    let picture = Picture::render(6, 4, 1);
    let bytes = picture.png();
    assert_eq!(Picture::from_png(&bytes).unwrap(), picture);
    assert!(Picture::from_png(&bytes[..bytes.len() - 20]).is_err());
    assert!(Picture::from_png(b"no picture").is_err());
}

#[test]
fn shrinking_undoes_doubling_and_differences_are_measured() {
    let doubled = Picture {
        width: 4,
        height: 2,
        rgb: [[10; 6], [30; 6], [10; 6], [30; 6]].concat(),
    };
    let small = doubled.shrunk(2);
    assert_eq!(small.rgb, [[10; 3], [30; 3]].concat());
    let other = Picture {
        rgb: vec![20; 6],
        ..small.clone()
    };
    assert_eq!(
        (small.mean_difference(&small), small.mean_difference(&other)),
        (0.0, 10.0)
    );
}

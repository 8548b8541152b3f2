//! JPEG files by code.

use jpeg_encoder::{ColorType, Encoder, PixelDensity, PixelDensityUnit, SamplingFactor};

/// What a JPEG is to be like.
pub struct Jpeg {
    pub color: ColorType,
    pub sampling: SamplingFactor,
    pub progressive: bool,
    pub restart_interval: u16,
    pub quality: u8,
    pub exif: Vec<u8>,
    pub icc: Vec<u8>,
    pub per_inch: Option<u16>,
}

impl Default for Jpeg {
    fn default() -> Self {
        Self {
            color: ColorType::Rgb,
            sampling: SamplingFactor::F_1_1,
            progressive: false,
            restart_interval: 0,
            quality: 92,
            exif: Vec::new(),
            icc: Vec::new(),
            per_inch: None,
        }
    }
}

impl Jpeg {
    pub fn encode(&self, width: usize, height: usize, samples: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut encoder = Encoder::new(&mut bytes, self.quality);
        encoder.set_sampling_factor(self.sampling);
        encoder.set_progressive(self.progressive);
        if self.restart_interval > 0 {
            encoder.set_restart_interval(self.restart_interval);
        }
        if let Some(per_inch) = self.per_inch {
            encoder.set_density(PixelDensity {
                density: (per_inch, per_inch),
                unit: PixelDensityUnit::Inches,
            });
        }
        if !self.exif.is_empty() {
            encoder.add_exif_metadata(&self.exif).expect("short enough");
        }
        if !self.icc.is_empty() {
            encoder.add_icc_profile(&self.icc).expect("short enough");
        }
        encoder
            .encode(samples, width as u16, height as u16, self.color)
            .expect("encodes");
        bytes
    }
}

//! What happened to a picture before the customer sent it.

use upscale_core::Pixels;
use upscale_image::{
    decode,
    raster::{Kernel, Rgb8, resize},
};

use super::{Dice, PIXELS_MAX, Trial, pixels};

/// Blur (standard deviation in source pixels), then noise (in levels), then JPEG.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Damage {
    pub blur: f32,
    pub noise: f32,
    pub jpeg: Option<u8>,
    /// Shrunk by a box instead of bicubic.
    pub boxed: bool,
}

const fn damage(blur: f32, noise: f32, jpeg: Option<u8>) -> Damage {
    Damage {
        blur,
        noise,
        jpeg,
        boxed: false,
    }
}

const CLEAN: Damage = damage(0.0, 0.0, None);

/// Every damage that the networks are judged by.
pub const ALL: [Damage; 18] = [
    CLEAN,
    Damage {
        boxed: true,
        ..CLEAN
    },
    damage(0.0, 0.0, Some(90)),
    damage(0.0, 0.0, Some(75)),
    damage(0.0, 0.0, Some(50)),
    damage(0.0, 0.0, Some(30)),
    damage(0.0, 3.0, None),
    damage(0.0, 5.0, None),
    damage(0.0, 10.0, None),
    damage(0.0, 20.0, None),
    damage(0.0, 10.0, Some(85)),
    damage(0.0, 10.0, Some(60)),
    damage(0.0, 20.0, Some(85)),
    damage(0.0, 20.0, Some(60)),
    damage(0.8, 0.0, None),
    damage(1.2, 0.0, None),
    damage(1.6, 0.0, None),
    damage(1.0, 5.0, Some(75)),
];

impl Damage {
    /// In words.
    pub fn name(&self) -> String {
        let mut words = Vec::new();
        if self.boxed {
            words.push("box".to_owned());
        }
        if self.blur > 0.0 {
            words.push(format!("blur {}", self.blur));
        }
        if self.noise > 0.0 {
            words.push(format!("noise {}", self.noise));
        }
        words.extend(self.jpeg.map(|quality| format!("JPEG {quality}")));
        if words.is_empty() {
            words.push("clean".to_owned());
        }
        words.join(" + ")
    }

    /// The source of a trial as the decoder would give it, gray ones in three equal channels.
    pub fn source(&self, trial: &Trial, seed: u64) -> Pixels {
        let source = decode(&self.file(trial, seed), PIXELS_MAX).expect("decodes");
        pixels(&Rgb8::of_source(&source))
    }

    /// The source of a trial as the customer would send it: a PNG or a JPEG.
    pub fn file(&self, trial: &Trial, seed: u64) -> Vec<u8> {
        let small = self.damaged(trial, seed);
        match self.jpeg {
            Some(quality) => compressed(&small, quality),
            None => small.to_png().expect("encodes"),
        }
    }

    /// All but the compression.
    fn damaged(&self, trial: &Trial, seed: u64) -> Rgb8 {
        let mut small = pixels(&trial.small);
        if self.boxed {
            let truth = Rgb8::of_pixels(&trial.truth);
            let (width, height) = (small.width(), small.height());
            small = pixels(&resize(&truth, width, height, Kernel::Box));
        }
        if self.blur > 0.0 {
            small = blurred(&small, self.blur);
        }
        if self.noise > 0.0 {
            let mut dice = Dice::new(seed);
            small = changed(&small, |sample| sample + self.noise / 255.0 * dice.normal());
        }
        Rgb8::of_pixels(&small)
    }
}

fn compressed(picture: &Rgb8, quality: u8) -> Vec<u8> {
    let (width, height) = (picture.width() as u16, picture.height() as u16);
    let mut file = Vec::new();
    jpeg_encoder::Encoder::new(&mut file, quality)
        .encode(
            picture.samples(),
            width,
            height,
            jpeg_encoder::ColorType::Rgb,
        )
        .expect("encodes");
    file
}

/// The picture with every sample changed.
pub fn changed(picture: &Pixels, change: impl FnMut(f32) -> f32) -> Pixels {
    let samples = picture.samples().iter().copied().map(change).collect();
    Pixels::new(
        picture.width(),
        picture.height(),
        picture.channels(),
        samples,
    )
    .expect("as many")
}

/// A Gaussian of standard deviation `sigma` pixels; the edges are repeated.
pub fn blurred(picture: &Pixels, sigma: f32) -> Pixels {
    let (width, height, channels) = (picture.width(), picture.height(), picture.channels());
    let reach = (3.0 * sigma).ceil() as isize;
    let weights: Vec<f32> = (-reach..=reach)
        .map(|at| (-0.5 * (at as f32 / sigma).powi(2)).exp())
        .collect();
    let sum: f32 = weights.iter().sum();
    let taps: Vec<(isize, f32)> = (-reach..).zip(weights.iter().map(|w| w / sum)).collect();
    let near =
        |at: usize, step: isize, length: usize| at.saturating_add_signed(step).min(length - 1);
    let mut tall = Vec::with_capacity(picture.samples().len());
    for y in 0..height {
        let mut line = vec![0.0; width * channels];
        for (step, weight) in &taps {
            let row = picture.row(near(y, *step, height));
            line.iter_mut()
                .zip(row)
                .for_each(|(sum, value)| *sum += weight * value);
        }
        tall.extend(line);
    }
    let mut samples = Vec::with_capacity(tall.len());
    let margin = reach as usize;
    for row in tall.chunks_exact(width * channels) {
        let mut wide = Vec::with_capacity(row.len() + 2 * margin * channels);
        (0..margin).for_each(|_| wide.extend_from_slice(&row[..channels]));
        wide.extend_from_slice(row);
        (0..margin).for_each(|_| wide.extend_from_slice(&row[row.len() - channels..]));
        let mut line = vec![0.0; row.len()];
        for (index, (_, weight)) in taps.iter().enumerate() {
            let from = &wide[index * channels..];
            line.iter_mut()
                .zip(from)
                .for_each(|(sum, value)| *sum += weight * value);
        }
        samples.extend(line);
    }
    Pixels::new(width, height, channels, samples).expect("as many")
}

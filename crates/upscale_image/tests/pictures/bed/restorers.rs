//! Networks, played by arithmetic.

use upscale_core::Pixels;

use super::{Trial, damage::blurred};

/// Who makes the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restorer {
    /// Finds the truth.
    Ideal,
    /// Finds it and sharpens it: the truth and half of its finest detail once more.
    Sharpening,
    /// Smears noise and detail away and enlarges what is left.
    Smearing,
    /// Enlarges what there is.
    Enlarging,
}

impl Restorer {
    pub const ALL: [Self; 4] = [
        Self::Ideal,
        Self::Sharpening,
        Self::Smearing,
        Self::Enlarging,
    ];

    /// The result, samples of rows `scale` times as wide as the source.
    pub fn restore(self, trial: &Trial, source: &Pixels) -> Pixels {
        match self {
            Self::Ideal => trial.truth.clone(),
            Self::Sharpening => sharpened(&trial.truth, 0.5 * trial.scale as f32),
            Self::Smearing => enlarged(&blurred(&median(source), 0.7), trial.scale),
            Self::Enlarging => enlarged(source, trial.scale),
        }
    }
}

fn sharpened(picture: &Pixels, sigma: f32) -> Pixels {
    let soft = blurred(picture, sigma);
    let pairs = picture.samples().iter().zip(soft.samples());
    let samples = pairs.map(|(own, soft)| own + 0.5 * (own - soft)).collect();
    Pixels::new(
        picture.width(),
        picture.height(),
        picture.channels(),
        samples,
    )
    .expect("as many")
}

/// The median of the 3 × 3 pixels around, channel by channel.
fn median(picture: &Pixels) -> Pixels {
    let (width, height, channels) = (picture.width(), picture.height(), picture.channels());
    let mut samples = Vec::with_capacity(picture.samples().len());
    for (y, x) in (0..height).flat_map(|y| (0..width).map(move |x| (y, x))) {
        let rows = [y.saturating_sub(1), y, (y + 1).min(height - 1)];
        let columns = [x.saturating_sub(1), x, (x + 1).min(width - 1)];
        for c in 0..channels {
            let mut around: [f32; 9] =
                std::array::from_fn(|at| picture.row(rows[at / 3])[columns[at % 3] * channels + c]);
            around.sort_unstable_by(f32::total_cmp);
            samples.push(around[4]);
        }
    }
    Pixels::new(width, height, channels, samples).expect("as many")
}

/// Cubic convolution (Keys, 1981), a = -0.5; the edges are repeated.
fn enlarged(picture: &Pixels, scale: usize) -> Pixels {
    let (width, height, channels) = (picture.width(), picture.height(), picture.channels());
    let taps: Vec<(isize, [f32; 4])> = (0..scale).map(|phase| taps(phase, scale)).collect();
    let mut wide: Vec<f32> = Vec::with_capacity(picture.samples().len() * scale);
    for y in 0..height {
        let row = picture.row(y);
        for (x, (first, weights)) in (0..width).flat_map(|x| taps.iter().map(move |t| (x, t))) {
            let near = |tap: usize| near(x, first + tap as isize, width) * channels;
            for c in 0..channels {
                wide.push((0..4).map(|tap| weights[tap] * row[near(tap) + c]).sum());
            }
        }
    }
    let stride = width * scale * channels;
    let mut samples = Vec::with_capacity(wide.len() * scale);
    for (y, (first, weights)) in (0..height).flat_map(|y| taps.iter().map(move |t| (y, t))) {
        let mut line = vec![0.0_f32; stride];
        for (tap, weight) in weights.iter().enumerate() {
            let from = near(y, first + tap as isize, height) * stride;
            let row = &wide[from..from + stride];
            line.iter_mut()
                .zip(row)
                .for_each(|(sum, value)| *sum += weight * value);
        }
        samples.extend(line);
    }
    Pixels::new(width * scale, height * scale, channels, samples).expect("as many")
}

fn near(at: usize, step: isize, length: usize) -> usize {
    at.saturating_add_signed(step).min(length - 1)
}

/// Where the four pixels begin, seen from the one that a result pixel lies in, and their weights.
fn taps(phase: usize, scale: usize) -> (isize, [f32; 4]) {
    let place = (phase as f32 + 0.5) / scale as f32 - 0.5;
    let first = place.floor() as isize - 1;
    let weight = |tap: usize| {
        let x = (place - (first + tap as isize) as f32).abs();
        if x <= 1.0 {
            (1.5 * x - 2.5) * x * x + 1.0
        } else {
            ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0
        }
    };
    (first, std::array::from_fn(weight))
}

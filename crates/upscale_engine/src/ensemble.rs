//! The mean of what a network makes of a picture in each of its eight orientations (self-ensemble; Timofte, Rothe and
//! Van Gool 2016): what it gets wrong in one, it gets wrong otherwise in another. Eight times the work.

use std::ops::ControlFlow;

use upscale_core::{Condition, Pixels, Rows, Scale};

use crate::engine::Engine;
use crate::error::UpscaleError;
use crate::orientation::Orientation;

impl Engine {
    /// What [`Engine::upscale`] makes, as the mean over the picture's eight orientations: all rows of the result, one
    /// after the other, in memory (12 bytes a pixel of colour, 4 of gray). `computed` hears how many output pixels
    /// each band of rows had, eight times the picture's in all.
    ///
    /// # Errors
    /// As [`Engine::upscale`]; [`UpscaleError::Memory`] when the result cannot be held.
    pub fn ensemble(
        &self,
        source: &Pixels,
        scale: Scale,
        condition: Condition,
        computed: &mut dyn FnMut(usize),
    ) -> Result<Vec<f32>, UpscaleError> {
        let (factor, channels) = (scale.factor(), source.channels());
        let size = (source.width() * factor, source.height() * factor);
        let mut sums = zeros(size.0 * size.1 * channels)?;
        for orientation in Orientation::ALL {
            let mut add = |rows: Rows<'_>| {
                for (y, row) in (rows.first_row..).zip(rows.samples.chunks_exact(rows.row_samples))
                {
                    orientation.add(row, y, &mut sums, size, channels);
                }
                computed(rows.samples.len() / channels);
                ControlFlow::Continue(())
            };
            self.upscale(&orientation.of(source), scale, condition, &mut add)?;
        }
        sums.iter_mut().for_each(|sum| *sum /= 8.0);
        Ok(sums)
    }
}

fn zeros(samples: usize) -> Result<Vec<f32>, UpscaleError> {
    let mut sums = Vec::new();
    sums.try_reserve_exact(samples)
        .map_err(|_| UpscaleError::Memory {
            bytes: samples.saturating_mul(size_of::<f32>()),
        })?;
    sums.resize(samples, 0.0);
    Ok(sums)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::EngineOptions;
    use crate::shapes::{Random, Shape};

    fn picture(width: usize, height: usize, channels: usize) -> Pixels {
        let mut random = Random(7);
        let samples = (0..width * height * channels).map(|_| random.unit());
        Pixels::new(width, height, channels, samples.collect()).unwrap()
    }

    #[test]
    fn the_eight_orientations_differ_and_lead_back() {
        let picture = picture(5, 3, 3);
        let turned = Orientation::ALL.map(|orientation| orientation.of(&picture));
        for (index, (one, orientation)) in turned.iter().zip(Orientation::ALL).enumerate() {
            assert!(turned[..index].iter().all(|other| other != one), "{index}");
            let mut sums = vec![0.0; picture.samples().len()];
            for y in 0..one.height() {
                orientation.add(one.row(y), y, &mut sums, (5, 3), 3);
            }
            assert_eq!(sums, picture.samples(), "{orientation:?}");
        }
        assert_eq!(
            Orientation::MIRRORED.of(&picture).row(1)[..3],
            picture.row(1)[12..]
        );
    }

    fn ensemble(engine: &Engine, source: &Pixels, scale: Scale) -> (Vec<f32>, usize) {
        let mut counted = 0;
        let mut count = |pixels| counted += pixels;
        let made = engine.ensemble(source, scale, Condition::UNKNOWN, &mut count);
        (made.expect("is upscaled"), counted)
    }

    /// The mean over all orientations has none of its own: turning the picture turns the result.
    #[test]
    fn a_turned_picture_gives_the_turned_result() {
        let shape = Shape::Residual {
            channels: 6,
            blocks: 2,
        };
        let options = EngineOptions {
            threads: 2,
            ..EngineOptions::default()
        };
        let engine = Engine::of(shape.network(2, 1), shape.network(4, 2), options).unwrap();
        for (channels, scale) in [(1, Scale::X4), (3, Scale::X2)] {
            let (source, factor) = (picture(21, 34, channels), scale.factor());
            let (upright, counted) = ensemble(&engine, &source, scale);
            assert_eq!(counted, 8 * 21 * 34 * factor * factor);
            let size = (21 * factor, 34 * factor);
            for orientation in Orientation::ALL {
                let turned = orientation.of(&source);
                let (result, _) = ensemble(&engine, &turned, scale);
                let mut back = vec![0.0; upright.len()];
                for (y, row) in result
                    .chunks_exact(turned.width() * factor * channels)
                    .enumerate()
                {
                    orientation.add(row, y, &mut back, size, channels);
                }
                let far = back.iter().zip(&upright).map(|(a, b)| (a - b).abs());
                assert!(far.fold(0.0, f32::max) < 1e-5, "{orientation:?}");
            }
        }
    }

    #[test]
    fn memory_that_is_not_there_is_an_error() {
        let samples = usize::MAX / 16;
        let bytes = samples * 4;
        assert_eq!(zeros(samples), Err(UpscaleError::Memory { bytes }));
    }
}

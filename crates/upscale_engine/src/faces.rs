//! Clearer faces: finds them, runs the face network on them alone, and lays its rows over those of the ordinary
//! network. Where no face is, not a bit of the ordinary output changes.

mod cascade;
mod detect;
mod guard;
mod plane;
mod region;

use std::ops::ControlFlow;

use upscale_core::{Condition, Pixels, Rows, Scale};

use crate::engine::{Engine, EngineOptions};
use crate::error::{ModelError, UpscaleError};
use crate::network::Network;
use crate::orientation::Orientation;
use crate::shipped::FACES;

pub use cascade::{Cascade, DETECTOR_MODEL, Window};
pub use detect::{Face, find_faces};
pub use plane::Plane;
use region::{Area, Veil, areas, crop};

/// The face networks, ready to run.
pub struct FaceEnhancer {
    engine: Engine,
}

/// What the face networks made of one picture. It belongs to that picture and scale.
#[derive(Debug, Clone, PartialEq)]
pub struct EnhancedFaces {
    faces: Vec<Face>,
    veils: Vec<Veil>,
    patches: Vec<Patch>,
    scale: usize,
    channels: usize,
    /// Of one output row.
    row_samples: usize,
}

/// The face network's output for one area, guarded.
#[derive(Debug, Clone, PartialEq)]
struct Patch {
    area: Area,
    /// Rows of `area.width * scale * channels` samples.
    samples: Vec<f32>,
}

impl FaceEnhancer {
    /// The face networks that this program carries; none where none ship.
    ///
    /// # Errors
    /// [`ModelError`] when the CPU lacks the kernels.
    pub fn shipped(options: EngineOptions) -> Result<Option<Self>, ModelError> {
        let Some(faces) = FACES else {
            return Ok(None);
        };
        let engine = Engine::of_shipped(faces, [None, None], options)?;
        Ok(Some(Self { engine }))
    }

    /// Face networks for both scales.
    ///
    /// # Errors
    /// [`ModelError`] as for [`Engine::of`].
    pub fn of(x2: Network, x4: Network, options: EngineOptions) -> Result<Self, ModelError> {
        let engine = Engine::of(x2, x4, options)?;
        Ok(Self { engine })
    }

    /// Finds the faces of `source` (1 or 3 channels) and upscales them. No face is no error: then the answer
    /// changes nothing.
    ///
    /// # Errors
    /// [`UpscaleError`] as for [`Engine::upscale`]; [`UpscaleError::Face`] when the detector fails or the network
    /// makes something that is no picture.
    pub fn enhance(
        &self,
        source: &Pixels,
        scale: Scale,
        condition: Condition,
    ) -> Result<EnhancedFaces, UpscaleError> {
        self.enhance_these(find_faces(source, condition)?, source, scale, condition)
    }

    /// As [`FaceEnhancer::enhance`], with faces that someone else has found.
    ///
    /// # Errors
    /// As [`FaceEnhancer::enhance`].
    pub fn enhance_these(
        &self,
        faces: Vec<Face>,
        source: &Pixels,
        scale: Scale,
        condition: Condition,
    ) -> Result<EnhancedFaces, UpscaleError> {
        let factor = scale.factor();
        let veiled = faces.into_iter().map(|face| {
            let veil = Veil::over(&face, factor);
            (face, veil)
        });
        let (faces, veils): (Vec<Face>, Vec<Veil>) =
            veiled.filter(|(_, veil)| veil.shows()).unzip();
        let areas = areas(&faces, source.width(), source.height());
        let patches: Result<_, _> = areas
            .into_iter()
            .map(|area| self.patch(area, source, scale, condition))
            .collect();
        Ok(EnhancedFaces {
            faces,
            veils,
            patches: patches?,
            scale: factor,
            channels: source.channels(),
            row_samples: source.width() * factor * source.channels(),
        })
    }

    /// One area, from the mean of what the network makes of it and of its mirror image: half of what it gets wrong
    /// it gets wrong otherwise there (0.05 dB on held-out faces).
    fn patch(
        &self,
        area: Area,
        source: &Pixels,
        scale: Scale,
        condition: Condition,
    ) -> Result<Patch, UpscaleError> {
        let (seen, factor) = (
            area.grown(
                self.engine.network(scale).reach(),
                source.width(),
                source.height(),
            ),
            scale.factor(),
        );
        let picture = crop(source, &seen);
        let inside = area.within(&seen);
        let mut samples = self.run(&picture, inside.enlarged(factor), scale, condition)?;
        let mirrored = inside.mirrored(seen.width).enlarged(factor);
        let other = self.run(
            &Orientation::MIRRORED.of(&picture),
            mirrored,
            scale,
            condition,
        )?;
        let stride = area.width * factor * source.channels();
        for (row, other) in samples
            .chunks_exact_mut(stride)
            .zip(other.chunks_exact(stride))
        {
            let pixels = other.chunks_exact(source.channels()).rev().flatten();
            for (sample, other) in row.iter_mut().zip(pixels) {
                *sample = 0.5 * (*sample + other);
            }
        }
        if let Some(broken) = samples.iter().find(|sample| !sample.is_finite()) {
            let reason = format!("the face network made {broken} of a face at {area:?}");
            return Err(UpscaleError::Face { reason });
        }
        guard::hold(&mut samples, &crop(source, &area), factor, condition);
        Ok(Patch { area, samples })
    }

    /// The part `inside` of what the network makes of `picture`.
    fn run(
        &self,
        picture: &Pixels,
        inside: Area,
        scale: Scale,
        condition: Condition,
    ) -> Result<Vec<f32>, UpscaleError> {
        let channels = picture.channels();
        let columns = inside.left * channels..inside.right() * channels;
        let mut samples = Vec::with_capacity(inside.width * inside.height * channels);
        let mut keep = |rows: Rows<'_>| {
            for (y, row) in (rows.first_row..).zip(rows.samples.chunks_exact(rows.row_samples)) {
                if (inside.top..inside.bottom()).contains(&y) {
                    samples.extend_from_slice(&row[columns.clone()]);
                }
            }
            ControlFlow::Continue(())
        };
        self.engine.upscale(picture, scale, condition, &mut keep)?;
        Ok(samples)
    }
}

impl EnhancedFaces {
    /// The faces that were found, best first.
    #[must_use]
    pub fn found(&self) -> &[Face] {
        &self.faces
    }

    /// Has `correct` change the picture made of each area in place; it is given that area of `source` as well.
    #[must_use]
    pub fn corrected(mut self, source: &Pixels, correct: impl Fn(&Pixels, &mut Vec<f32>)) -> Self {
        for patch in &mut self.patches {
            correct(&crop(source, &patch.area), &mut patch.samples);
        }
        self
    }

    /// Lays the faces over whole output rows, `first_row` and on, of the ordinary network. Where there is no face
    /// not a bit changes.
    pub fn lay_over(&self, first_row: usize, rows: &mut [f32]) {
        for patch in &self.patches {
            for (y, row) in (first_row..).zip(rows.chunks_exact_mut(self.row_samples)) {
                self.lay(patch, y, row);
            }
        }
    }

    /// Lays row `y` of a patch over `row`; both in output pixels.
    fn lay(&self, patch: &Patch, y: usize, row: &mut [f32]) {
        let area = patch.area.enlarged(self.scale);
        let Some(from) = y.checked_sub(area.top).filter(|&from| from < area.height) else {
            return;
        };
        let stride = area.width * self.channels;
        let patch_row = &patch.samples[from * stride..(from + 1) * stride];
        let row = &mut row[area.left * self.channels..area.right() * self.channels];
        let pixels = row
            .chunks_exact_mut(self.channels)
            .zip(patch_row.chunks_exact(self.channels));
        for (x, (pixel, face)) in (area.left..).zip(pixels) {
            let shares = self.veils.iter().map(|veil| veil.share(x, y));
            let share = shares.fold(0.0, f32::max);
            // Not even `v + 0 * d`: outside the faces every bit stays.
            if share > 0.0 {
                for (sample, &face) in pixel.iter_mut().zip(face) {
                    *sample += share * (face - *sample);
                }
            }
        }
    }
}

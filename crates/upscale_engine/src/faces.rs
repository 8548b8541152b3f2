//! Clearer faces: finds them, draws them alone, small ones by a network that learned faces, large ones crisper than the rest
//! of the picture, and lays the rows over those of the ordinary network. Where no face is, not a bit of the ordinary output
//! changes.

mod cascade;
mod detect;
mod enlarged;
mod features;
mod guard;
mod layer;
mod mean;
mod plane;
mod region;

use std::ops::ControlFlow;

use upscale_core::{Condition, Pixels, Rows, Scale};

use crate::engine::{Engine, EngineOptions};
use crate::error::{ModelError, UpscaleError};
use crate::network::Network;
use crate::orientation::Orientation;
use crate::shipped::{FACES, RESTORE_X2, RESTORE_X4};

pub use cascade::{Cascade, DETECTOR_MODEL, Window};
pub use detect::{Face, find_faces};
use features::Features;
use layer::{Layer, Patch, Stride};
pub use plane::Plane;
use region::{Area, Kind, Veil, areas, crop};

/// Share of the crisp weights that draws large faces. With 0.6 at 4x, those from JPEGs of quality 70 shrink back to their
/// sources 0.52 dB worse than without, with all at 2x 0.88 dB (`large_face_gates.py` allows 0.5); with 0.5 at 4x, faces from
/// JPEGs of quality 30 have 1.19 times the fine detail (1.2 asked).
pub(crate) const fn large_faces_share(scale: Scale) -> f32 {
    match scale {
        Scale::X2 => 0.45,
        Scale::X4 => 0.54,
    }
}

/// The networks that draw faces, ready to run.
pub struct FaceEnhancer {
    small: Engine,
    large: Engine,
}

/// What the networks made of the faces of one picture. It belongs to that picture and scale.
#[derive(Debug, Clone, PartialEq)]
pub struct EnhancedFaces {
    found: Vec<Face>,
    /// Small faces, and over them the large ones: those between are in both.
    layers: Vec<Layer>,
    stride: Stride,
}

/// One order: what is drawn from, how large, and what is known of it.
#[derive(Clone, Copy)]
struct Order<'a> {
    source: &'a Pixels,
    scale: Scale,
    condition: Condition,
}

impl FaceEnhancer {
    /// The networks that this program carries: the face networks for small faces, and for large ones those that restore, with
    /// some of their crisp weights. None where either do not ship.
    ///
    /// # Errors
    /// [`ModelError`] when the CPU lacks the kernels.
    pub fn shipped(options: EngineOptions) -> Result<Option<Self>, ModelError> {
        let (Some(faces), Some(x2), Some(x4)) = (FACES, RESTORE_X2, RESTORE_X4) else {
            return Ok(None);
        };
        let small = Engine::of_shipped(faces, [None, None], [0.0; 2], options.clone())?;
        let large = Engine::of_shipped(
            [x2, x4],
            [None, None],
            Scale::ALL.map(large_faces_share),
            options,
        )?;
        Ok(Some(Self { small, large }))
    }

    /// Networks for both scales, of small and of large faces.
    ///
    /// # Errors
    /// [`ModelError`] as for [`Engine::of`].
    pub fn of(
        [small_x2, small_x4]: [Network; 2],
        [large_x2, large_x4]: [Network; 2],
        options: EngineOptions,
    ) -> Result<Self, ModelError> {
        Ok(Self {
            small: Engine::of(small_x2, small_x4, options.clone())?,
            large: Engine::of(large_x2, large_x4, options)?,
        })
    }

    /// Finds the faces of `source` (1 or 3 channels) and upscales them. No face is no error: then the answer
    /// changes nothing.
    ///
    /// # Errors
    /// [`UpscaleError`] as for [`Engine::upscale`]; [`UpscaleError::Face`] when the detector fails or a network
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
        mut faces: Vec<Face>,
        source: &Pixels,
        scale: Scale,
        condition: Condition,
    ) -> Result<EnhancedFaces, UpscaleError> {
        let order = Order {
            source,
            scale,
            condition,
        };
        let kinds = [Kind::Small, Kind::Large];
        let shows = |face: &Face, kind: &Kind| Veil::over(face, scale, *kind).shows();
        faces.retain(|face| kinds.iter().any(|kind| shows(face, kind)));
        let layers = kinds.map(|kind| self.layer(kind, &faces, order));
        Ok(EnhancedFaces {
            layers: layers.into_iter().collect::<Result<_, _>>()?,
            found: faces,
            stride: Stride::of(source, scale.factor()),
        })
    }

    /// The faces of that kind.
    fn layer(&self, kind: Kind, faces: &[Face], order: Order<'_>) -> Result<Layer, UpscaleError> {
        let (width, height) = (order.source.width(), order.source.height());
        let veiled = faces
            .iter()
            .map(|face| (*face, Veil::over(face, order.scale, kind)));
        let (faces, veils): (Vec<Face>, Vec<Veil>) =
            veiled.filter(|(_, veil)| veil.shows()).unzip();
        let areas = areas(&faces, width, height).into_iter();
        let patches = areas.map(|area| {
            let samples = match kind {
                Kind::Small => self.small_face(area, order)?,
                Kind::Large => self.large_face(area, order)?,
            };
            guarded(kind, area, samples, order)
        });
        Ok(Layer {
            patches: patches.collect::<Result<_, _>>()?,
            veils,
        })
    }

    /// An area of small faces, from the mean of what the network makes of it and of its mirror image: half of what it gets
    /// wrong it gets wrong otherwise there (0.05 dB on held-out faces).
    fn small_face(&self, area: Area, order: Order<'_>) -> Result<Vec<f32>, UpscaleError> {
        let seen = seen(&self.small, area, order);
        let order = Order {
            condition: order.condition.for_small_faces(order.scale),
            ..order
        };
        let picture = crop(order.source, &seen);
        let (inside, factor) = (area.within(&seen), order.scale.factor());
        let mut samples = run(&self.small, &picture, inside.enlarged(factor), order)?;
        let channels = picture.channels();
        let stride = area.width * factor * channels;
        let mut add_mirrored = |y: usize, row: &[f32]| {
            let pixels = row.chunks_exact(channels).rev().flatten();
            for (sample, other) in samples[y * stride..].iter_mut().zip(pixels) {
                *sample = 0.5 * (*sample + other);
            }
        };
        let picture = Orientation::MIRRORED.of(&picture);
        let mirrored = inside.mirrored(seen.width).enlarged(factor);
        run_rows(&self.small, &picture, mirrored, order, &mut add_mirrored)?;
        Ok(samples)
    }

    /// An area of large faces, of which more is known: once, for a mean would be softer, and told to sharpen more.
    fn large_face(&self, area: Area, order: Order<'_>) -> Result<Vec<f32>, UpscaleError> {
        let seen = seen(&self.large, area, order);
        let inside = area.within(&seen).enlarged(order.scale.factor());
        let order = Order {
            condition: order.condition.for_large_faces(),
            ..order
        };
        run(&self.large, &crop(order.source, &seen), inside, order)
    }
}

/// An area with all that the engine's network looks at to draw it.
fn seen(engine: &Engine, area: Area, order: Order<'_>) -> Area {
    let reach = engine.network(order.scale).reach();
    area.grown(reach, order.source.width(), order.source.height())
}

/// The part `inside` of what the engine makes of `picture`.
fn run(
    engine: &Engine,
    picture: &Pixels,
    inside: Area,
    order: Order<'_>,
) -> Result<Vec<f32>, UpscaleError> {
    let mut samples = Vec::with_capacity(inside.width * inside.height * picture.channels());
    let mut keep = |_: usize, row: &[f32]| samples.extend_from_slice(row);
    run_rows(engine, picture, inside, order, &mut keep)?;
    Ok(samples)
}

/// The same row by row, each with its number in `inside`.
fn run_rows(
    engine: &Engine,
    picture: &Pixels,
    inside: Area,
    order: Order<'_>,
    take: &mut dyn FnMut(usize, &[f32]),
) -> Result<(), UpscaleError> {
    let channels = picture.channels();
    let columns = inside.left * channels..inside.right() * channels;
    let mut keep = |rows: Rows<'_>| {
        for (y, row) in (rows.first_row..).zip(rows.samples.chunks_exact(rows.row_samples)) {
            if (inside.top..inside.bottom()).contains(&y) {
                take(y - inside.top, &row[columns.clone()]);
            }
        }
        ControlFlow::Continue(())
    };
    engine.upscale(picture, order.scale, order.condition, &mut keep)
}

/// What a network made of an area, held to its source.
fn guarded(
    kind: Kind,
    area: Area,
    mut samples: Vec<f32>,
    order: Order<'_>,
) -> Result<Patch, UpscaleError> {
    if let Some(broken) = samples.iter().find(|sample| !sample.is_finite()) {
        let reason = format!("the face network made {broken} of a face at {area:?}");
        return Err(UpscaleError::Face { reason });
    }
    let source = crop(order.source, &area);
    guard::hold(&mut samples, &source, order.scale.factor(), order.condition);
    let features = match kind {
        Kind::Small => None,
        Kind::Large => Some(Features::of(&source, order.condition)),
    };
    Ok(Patch {
        area,
        samples,
        features,
    })
}

impl EnhancedFaces {
    /// The faces that were found and are drawn, best first.
    #[must_use]
    pub fn found(&self) -> &[Face] {
        &self.found
    }

    /// Has `correct` change the picture made of each area in place; it is given that area of `source` as well.
    #[must_use]
    pub fn corrected(mut self, source: &Pixels, correct: impl Fn(&Pixels, &mut [f32])) -> Self {
        for patch in self.layers.iter_mut().flat_map(|layer| &mut layer.patches) {
            correct(&crop(source, &patch.area), &mut patch.samples);
        }
        self
    }

    /// Lays the faces over a part of an output row of the ordinary network, from column and row `first` on. Where there is
    /// no face not a bit changes.
    pub fn lay_over(&self, first: [usize; 2], part: &mut [f32]) {
        for layer in &self.layers {
            layer.lay_over(first, part, self.stride);
        }
    }
}

//! The engine at work on the planes of one image: rows handed on, progress told, time taken.

use std::{ops::ControlFlow, time::Duration};

use upscale_core::{Condition, Pixels, Rows, Scale};
use upscale_engine::{Engine, Restorer, UpscaleError};
use upscale_image::{Source, WriteError};

use super::{Clock, PictureOptions, PipelineError, engine_failed};

/// The engine and how far it has come.
pub(super) struct Work<'a> {
    pub(super) engine: &'a Engine,
    pub(super) scale: Scale,
    ensemble: bool,
    /// Of the result; what is restored counts as much as its share of the multiplications.
    done_pixels: usize,
    all_pixels: usize,
    /// Result pixels that a restored source pixel counts as.
    per_restored: usize,
    progress: &'a mut dyn FnMut(f64),
    clock: Clock,
    /// Time in the engine, and in what its rows were handed to.
    pub(super) network: Duration,
    pub(super) handing_on: Duration,
}

impl<'a> Work<'a> {
    pub(super) fn new(
        engine: &'a Engine,
        source: &Source,
        options: &PictureOptions<'_>,
        progress: &'a mut dyn FnMut(f64),
    ) -> Self {
        let per_restored = per_restored(engine, options);
        let restored = source.color.width() * source.color.height() * per_restored;
        Self {
            engine,
            scale: options.parameters.scale,
            ensemble: options.ensemble,
            done_pixels: 0,
            all_pixels: all_pixels(source, options) + restored,
            per_restored,
            progress,
            clock: options.clock,
            network: Duration::ZERO,
            handing_on: Duration::ZERO,
        }
    }

    /// Upscales one plane; the first error of `take` ends it.
    pub(super) fn run(
        &mut self,
        plane: &Pixels,
        condition: Condition,
        take: &mut dyn FnMut(Rows<'_>) -> Result<(), WriteError>,
    ) -> Result<(), PipelineError> {
        let mut refused = None;
        let clock = self.clock;
        let (started, handed_on_before) = (clock(), self.handing_on);
        let held = match self.ensemble {
            true => Some(self.hold(plane, condition)?),
            false => None,
        };
        let mut sink = |rows: Rows<'_>| {
            let pixels = rows.samples.len() / plane.channels();
            let handed = clock();
            let taken = take(rows);
            self.handing_on += clock() - handed;
            match taken {
                Ok(()) => {
                    report(
                        &mut self.done_pixels,
                        pixels,
                        self.all_pixels,
                        self.progress,
                    );
                    ControlFlow::Continue(())
                }
                Err(error) => {
                    refused = Some(error);
                    ControlFlow::Break(())
                }
            }
        };
        let ended = match &held {
            None => self.engine.upscale(plane, self.scale, condition, &mut sink),
            Some(samples) => hand_on(samples, plane, self.scale, &mut sink),
        };
        self.network += clock() - started - (self.handing_on - handed_on_before);
        match (refused, ended) {
            (Some(error), _) => Err(PipelineError::Output(error)),
            (None, Err(error)) => Err(engine_failed(&error)),
            (None, Ok(())) => Ok(()),
        }
    }

    /// The picture at its own size, restored.
    pub(super) fn restore(
        &mut self,
        restorer: &Restorer,
        color: &Pixels,
    ) -> Result<Pixels, PipelineError> {
        let started = (self.clock)();
        let mut computed = |pixels: usize| {
            report(
                &mut self.done_pixels,
                pixels * self.per_restored,
                self.all_pixels,
                self.progress,
            )
        };
        let restored = restorer.restore(color, &mut computed);
        self.network += (self.clock)() - started;
        restored.map_err(|error| engine_failed(&error))
    }

    /// The whole of an upscaled plane.
    fn hold(&mut self, plane: &Pixels, condition: Condition) -> Result<Vec<f32>, PipelineError> {
        let mut computed = |pixels| {
            report(
                &mut self.done_pixels,
                pixels,
                self.all_pixels,
                self.progress,
            )
        };
        let held = self
            .engine
            .ensemble(plane, self.scale, condition, &mut computed);
        held.map_err(|error| engine_failed(&error))
    }
}

/// Pixels that the engine will compute and hand over: the picture's, twice where alpha is upscaled as well.
fn all_pixels(source: &Source, options: &PictureOptions<'_>) -> usize {
    let planes = 1 + usize::from(source.alpha.is_some());
    let times = if options.ensemble { 1 + 8 } else { 1 };
    let (width, height) = (source.color.width(), source.color.height());
    width
        * height
        * options.parameters.scale.factor()
        * options.parameters.scale.factor()
        * planes
        * times
}

/// Progress goes by the clock: a network of 1x may take longer than the one that enlarges.
fn per_restored(shipped: &Engine, options: &PictureOptions<'_>) -> usize {
    let Some(restoring) = options.restoring else {
        return 0;
    };
    let scale = options.parameters.scale;
    let enlarging = options
        .network
        .map_or(shipped.network(scale), AsRef::as_ref);
    let area = scale.factor() * scale.factor();
    (area * restoring.macs_per_pixel() / enlarging.macs_per_pixel().max(1)).max(1)
}

fn report(done: &mut usize, more: usize, all: usize, progress: &mut dyn FnMut(f64)) {
    *done += more;
    progress(*done as f64 / all as f64);
}

/// The rows that an upscaled `plane` has, those of one source row at a time.
fn hand_on(
    samples: &[f32],
    plane: &Pixels,
    scale: Scale,
    sink: &mut dyn FnMut(Rows<'_>) -> ControlFlow<()>,
) -> Result<(), UpscaleError> {
    let row_samples = plane.width() * scale.factor() * plane.channels();
    for (group, samples) in samples.chunks(row_samples * scale.factor()).enumerate() {
        let rows = Rows {
            first_row: group * scale.factor(),
            row_count: scale.factor(),
            row_samples,
            samples,
        };
        if sink(rows).is_break() {
            return Err(UpscaleError::Cancelled);
        }
    }
    Ok(())
}

//! Restore, then enlarge: a network that leaves a picture's size as it is, run before the one that enlarges.

use std::ops::ControlFlow;
use std::sync::Arc;

use upscale_core::{Condition, Pixels, Rows};

use crate::engine::{EngineOptions, Loaded, Running, check_source, usable_kernels};
use crate::error::{ModelError, UpscaleError};
use crate::kernel_set::KernelSet;
use crate::network::Network;

/// A network of 1x, ready to run.
pub struct Restorer {
    options: EngineOptions,
    kernels: KernelSet,
    loaded: Loaded,
}

impl Restorer {
    /// Makes a network of 1x ready.
    ///
    /// # Errors
    /// [`ModelError`] when it enlarges, or when the CPU lacks the kernels.
    pub fn of(
        network: impl Into<Arc<Network>>,
        options: EngineOptions,
    ) -> Result<Self, ModelError> {
        let network = network.into();
        if network.scale() != 1 {
            let (name, given) = (network.name(), network.scale());
            let reason = format!("{name} enlarges {given} times, 1 is needed");
            return Err(ModelError(reason));
        }
        Ok(Self {
            kernels: usable_kernels(&options)?,
            options,
            loaded: Loaded::new(network),
        })
    }

    /// The network.
    #[must_use]
    pub fn network(&self) -> &Network {
        &self.loaded.network
    }

    /// Name of the kernel set that runs.
    #[must_use]
    pub fn kernels(&self) -> &'static str {
        self.kernels.name()
    }

    /// Bytes that the maps of a source of that size take; 0 for the reference.
    #[must_use]
    pub fn memory_bytes(&self, width: usize, height: usize) -> usize {
        self.running().memory_bytes(width, height)
    }

    /// The picture, restored: of the same size and the same channels, whole in memory. `computed` hears how many of its
    /// pixels each band of rows had.
    ///
    /// # Errors
    /// [`UpscaleError`] when the picture is too large or of other channels, or has no memory.
    pub fn restore(
        &self,
        source: &Pixels,
        computed: &mut dyn FnMut(usize),
    ) -> Result<Pixels, UpscaleError> {
        check_source(source, &self.options)?;
        let count = source.samples().len();
        let mut samples = Vec::new();
        samples
            .try_reserve_exact(count)
            .map_err(|_| UpscaleError::Memory {
                bytes: count.saturating_mul(size_of::<f32>()),
            })?;
        let mut keep = |rows: Rows<'_>| {
            samples.extend_from_slice(rows.samples);
            computed(rows.samples.len() / source.channels());
            ControlFlow::Continue(())
        };
        self.running().upscale(source, &mut keep, &|| false)?;
        Ok(
            Pixels::new(source.width(), source.height(), source.channels(), samples)
                .unwrap_or_else(|_| unreachable!("as many samples as the source has")),
        )
    }

    fn running(&self) -> Running<'_> {
        Running {
            loaded: &self.loaded,
            condition: Condition::UNKNOWN,
            kernels: self.kernels,
            options: &self.options,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Base;
    use crate::reference;
    use crate::shapes::{Random, Shape};

    /// The three families as they are at 1x: Compact onto the source itself, SPAN without a shuffle, and both of
    /// ESRGAN's: without enlargements, and of squares of 4 x 4 pixels that are enlarged four times.
    fn networks() -> Vec<Network> {
        let compact = Shape::Compact {
            channels: 8,
            convs: 2,
        };
        let mut span = Shape::Span {
            channels: 8,
            blocks: 2,
        }
        .network(1, 3);
        span.base = Base::Zero;
        let squares = Shape::Rrdb {
            channels: 8,
            growth: 4,
            blocks: 1,
        };
        vec![compact.network(1, 3), span, squares.network(1, 3)]
    }

    fn picture(width: usize, height: usize, channels: usize) -> Pixels {
        let mut random = Random(3);
        let samples = (0..width * height * channels).map(|_| random.unit());
        Pixels::new(width, height, channels, samples.collect()).unwrap()
    }

    fn options(threads: usize, kernels: KernelSet) -> EngineOptions {
        EngineOptions {
            threads,
            kernels: Some(kernels),
            ..EngineOptions::default()
        }
    }

    #[test]
    fn a_restored_picture_is_the_definitions_whatever_the_threads_and_the_kernels() {
        for network in networks() {
            // Widths and heights that no square of pixels fills; the last lies on its side.
            for (width, height, channels) in [(37, 26, 3), (9, 50, 1), (2, 4_003, 3)] {
                let source = picture(width, height, channels);
                let expected = reference::upscale(&network, &source, &|| false);
                for (threads, kernels) in [(1, KernelSet::best()), (3, KernelSet::best())] {
                    let options = options(threads, kernels);
                    let restorer = Restorer::of(network.clone(), options).unwrap();
                    let mut reported = 0;
                    let made = restorer.restore(&source, &mut |pixels| reported += pixels);
                    let made = made.unwrap();
                    assert_eq!((made.width(), made.height()), (width, height));
                    assert_eq!((made.channels(), reported), (channels, width * height));
                    for (given, expected) in made.samples().iter().zip(&expected) {
                        let apart = (f64::from(*given) - expected).abs();
                        assert!(apart < 1e-5, "{} {width}: {apart}", network.name);
                    }
                }
            }
        }
    }

    #[test]
    fn what_enlarges_does_not_restore() {
        let network = Shape::parse("f").unwrap().network(2, 1);
        let refused = Restorer::of(network, options(1, KernelSet::best()));
        let message = refused.map(|_| ()).unwrap_err().to_string();
        assert!(
            message.contains("enlarges 2 times, 1 is needed"),
            "{message}"
        );
    }

    #[test]
    fn what_is_too_large_is_refused_before_any_work() {
        let options = EngineOptions {
            pixels_max: 11,
            ..options(1, KernelSet::best())
        };
        let restorer = Restorer::of(networks().remove(0), options).unwrap();
        let refused = restorer.restore(&picture(4, 3, 3), &mut |_| ());
        assert!(matches!(refused, Err(UpscaleError::TooLarge { .. })));
    }
}

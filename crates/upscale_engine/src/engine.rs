//! The room's door: which networks ship, how many threads, which kernels; one call upscales one picture.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use upscale_core::{Condition, Pixels, Rows, Scale};
use upscale_simd::Kernels;

use crate::calibrate::fast_plan;
use crate::error::{ModelError, UpscaleError};
use crate::kernel_set::KernelSet;
use crate::network::Network;
use crate::plan::Plan;
use crate::reference;
use crate::run::{Cancelled, Sink};
use crate::upscale::{memory_bytes, upscale};

/// The weights that ship, chosen by `build.rs`.
pub(crate) mod shipped {
    include!(concat!(env!("OUT_DIR"), "/shipped.rs"));
}

/// How the engine is to work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineOptions {
    /// Threads for one picture, the caller's among them; at least 1 is used.
    pub threads: usize,
    /// Which kernels to use; none: the fastest that the CPU can run.
    pub kernels: Option<KernelSet>,
    /// How exact the arithmetic has to be.
    pub precision: Precision,
    /// Largest source accepted, in pixels (width x height).
    pub pixels_max: usize,
}

/// How exact the arithmetic has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Precision {
    /// 32-bit floating point throughout: within 1e-5 of the reference.
    #[default]
    Exact,
    /// 16-bit integers in Winograd's domain where the CPU multiplies them faster and the network stands it: within
    /// half an 8-bit level of `Exact` on a rendered picture, see `words.rs`.
    Fast,
}

/// The networks that ship, ready to run. Calls may run at the same time from several threads.
pub struct Engine {
    options: EngineOptions,
    kernels: KernelSet,
    x2: Networks,
    x4: Networks,
}

/// The networks of one scale.
struct Networks {
    plain: Loaded,
    /// For pictures with noise or softness to undo ([`Condition::is_to_restore`]).
    restoring: Option<Loaded>,
}

/// A network, and its plan for the condition asked for last: a process that upscales one picture needs one of two.
struct Loaded {
    network: Arc<Network>,
    last: Mutex<Option<(Condition, Arc<Plan>)>>,
}

impl Loaded {
    fn new(network: Arc<Network>) -> Self {
        Self {
            network,
            last: Mutex::new(None),
        }
    }

    fn plan(&self, condition: Condition, kernels: Kernels, precision: Precision) -> Arc<Plan> {
        // Without conditioning all conditions have the same plan.
        let condition = match self.network.conditioning {
            Some(_) => condition,
            None => Condition::UNKNOWN,
        };
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((made_for, plan)) if *made_for == condition => Arc::clone(plan),
            _ => {
                let plan = precision.plan(&self.network.folded(condition), kernels);
                let plan = Arc::new(plan);
                *last = Some((condition, Arc::clone(&plan)));
                plan
            }
        }
    }
}

impl Precision {
    /// A network made ready.
    pub(crate) fn plan(self, network: &Network, kernels: Kernels) -> Plan {
        match self {
            Self::Exact => Plan::new(network, kernels),
            Self::Fast => fast_plan(network, kernels),
        }
    }
}

impl Default for EngineOptions {
    /// All cores on one picture, exact, 1.5 MP at most (the contract's largest source).
    fn default() -> Self {
        Self {
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            kernels: None,
            precision: Precision::Exact,
            pixels_max: 1_500_000,
        }
    }
}

impl Engine {
    /// The engine with the weights that this program carries.
    ///
    /// # Errors
    /// [`ModelError`] when the embedded weights do not fit this program.
    pub fn shipped(options: EngineOptions) -> Result<Self, ModelError> {
        let (x2, x4) = (Network::read(shipped::X2)?, Network::read(shipped::X4)?);
        let mut engine = Self::of(x2, x4, options)?;
        engine.x2.restoring = restoring(shipped::RESTORE_X2)?;
        engine.x4.restoring = restoring(shipped::RESTORE_X4)?;
        Ok(engine)
    }

    /// The engine that ships with `network` in the place of its own for that scale.
    ///
    /// # Errors
    /// As [`Engine::of`].
    pub fn shipped_but(network: Arc<Network>, options: EngineOptions) -> Result<Self, ModelError> {
        match network.scale() {
            2 => Self::of(network, Network::read(shipped::X4)?, options),
            _ => Self::of(Network::read(shipped::X2)?, network, options),
        }
    }

    /// An engine with other networks than those that ship.
    ///
    /// # Errors
    /// [`ModelError`] when `x2` does not enlarge twice or `x4` four times, or when the CPU lacks the kernels.
    pub fn of(
        x2: impl Into<Arc<Network>>,
        x4: impl Into<Arc<Network>>,
        options: EngineOptions,
    ) -> Result<Self, ModelError> {
        let (x2, x4) = (x2.into(), x4.into());
        for (network, scale) in [(&x2, 2), (&x4, 4)] {
            if network.scale() != scale {
                let (name, given) = (network.name(), network.scale());
                let reason = format!("{name} enlarges {given} times, {scale} is needed");
                return Err(ModelError(reason));
            }
        }
        let kernels = options.kernels.unwrap_or_else(KernelSet::best);
        if !kernels.is_available() {
            let reason = format!("this CPU has no {}", kernels.name());
            return Err(ModelError(reason));
        }
        let networks = |network| Networks {
            plain: Loaded::new(network),
            restoring: None,
        };
        Ok(Self {
            options,
            kernels,
            x2: networks(x2),
            x4: networks(x4),
        })
    }

    /// The network that enlarges clean pictures so many times.
    #[must_use]
    pub fn network(&self, scale: Scale) -> &Network {
        &self.networks(scale).plain.network
    }

    /// The network that enlarges pictures of this condition so many times: another one where there is noise or
    /// softness to undo.
    #[must_use]
    pub fn network_for(&self, scale: Scale, condition: Condition) -> &Network {
        &self.loaded(scale, condition).network
    }

    fn networks(&self, scale: Scale) -> &Networks {
        match scale {
            Scale::X2 => &self.x2,
            Scale::X4 => &self.x4,
        }
    }

    fn loaded(&self, scale: Scale, condition: Condition) -> &Loaded {
        let networks = self.networks(scale);
        match &networks.restoring {
            Some(restoring) if condition.is_to_restore() => restoring,
            _ => &networks.plain,
        }
    }

    /// Name of the kernel set that runs.
    #[must_use]
    pub fn kernels(&self) -> &'static str {
        self.kernels.name()
    }

    /// Bytes that the maps of a source of that size take at this scale, beside the weights, the source and the rows
    /// on their way; 0 for the reference, which keeps to a few rows.
    #[must_use]
    pub fn memory_bytes(&self, scale: Scale, width: usize, height: usize) -> usize {
        let loaded = self.loaded(scale, Condition::UNKNOWN);
        let Some(kernels) = self
            .kernels
            .kernels()
            .filter(|_| loaded.network.has_kernels())
        else {
            return 0;
        };
        let plan = loaded.plan(Condition::UNKNOWN, kernels, self.options.precision);
        memory_bytes(&plan, (width, height), self.options.threads.max(1))
    }

    /// Upscales `source` and hands its finished rows to `sink`, top to bottom, while later ones are computed.
    /// Networks that were trained for it are set by `condition`, which says how the source was compressed. Gray
    /// stays gray: the network runs on three equal channels and the mean of its output is taken.
    ///
    /// # Errors
    /// [`UpscaleError::Cancelled`] when `sink` breaks; the other variants before any row is made.
    pub fn upscale(
        &self,
        source: &Pixels,
        scale: Scale,
        condition: Condition,
        sink: &mut dyn FnMut(Rows<'_>) -> ControlFlow<()>,
    ) -> Result<(), UpscaleError> {
        self.upscale_until(source, scale, condition, sink, &|| false)
    }

    /// As [`Engine::upscale`]; also ends with [`UpscaleError::Cancelled`] soon after `cancelled` says true, which it
    /// must not take back. It is asked by every thread, about every tenth of a millisecond, by the reference every ten.
    ///
    /// # Errors
    /// As [`Engine::upscale`].
    pub fn upscale_until(
        &self,
        source: &Pixels,
        scale: Scale,
        condition: Condition,
        sink: &mut dyn FnMut(Rows<'_>) -> ControlFlow<()>,
        cancelled: &(dyn Fn() -> bool + Sync),
    ) -> Result<(), UpscaleError> {
        self.check(source)?;
        let loaded = self.loaded(scale, condition);
        let threads = self.options.threads.max(1);
        match self
            .kernels
            .kernels()
            .filter(|_| loaded.network.has_kernels())
        {
            None => {
                let network = loaded.network.folded(condition);
                run_bands(&network, source, threads, sink, cancelled)
            }
            Some(kernels) => {
                let plan = loaded.plan(condition, kernels, self.options.precision);
                upscale(&plan, source, threads, sink, cancelled)
            }
        }
    }

    fn check(&self, source: &Pixels) -> Result<(), UpscaleError> {
        let (width, height, channels) = (source.width(), source.height(), source.channels());
        let pixels_max = self.options.pixels_max;
        if width.saturating_mul(height) > pixels_max {
            return Err(UpscaleError::TooLarge {
                width,
                height,
                pixels_max,
            });
        }
        match channels {
            1 | 3 => Ok(()),
            _ => Err(UpscaleError::Channels { channels }),
        }
    }
}

fn restoring(file: Option<&[u8]>) -> Result<Option<Loaded>, ModelError> {
    let network = file.map(Network::read).transpose()?;
    Ok(network.map(|network| Loaded::new(network.into())))
}

/// Source rows per band of the reference executor; a multiple of every [`Network::unshuffle`].
const BAND_ROWS: usize = 16;

/// Runs the reference on bands with as many rows around them as an output row can see, so that memory stays
/// bounded and the rows are those of the whole picture.
fn run_bands(
    network: &Network,
    source: &Pixels,
    threads: usize,
    sink: Sink<'_>,
    cancelled: Cancelled<'_>,
) -> Result<(), UpscaleError> {
    let starts: Vec<usize> = (0..source.height()).step_by(BAND_ROWS).collect();
    for group in starts.chunks(threads) {
        let bands: Vec<Vec<f32>> = std::thread::scope(|scope| {
            let running = group
                .iter()
                .map(|&first| scope.spawn(move || band(network, source, first, cancelled)));
            let running: Vec<_> = running.collect();
            running
                .into_iter()
                .filter_map(|one| one.join().ok())
                .collect()
        });
        let row_samples = source.width() * network.scale * source.channels();
        for (&first, samples) in group.iter().zip(&bands) {
            let rows = Rows {
                first_row: first * network.scale,
                row_count: samples.len() / row_samples,
                row_samples,
                samples,
            };
            if cancelled() || sink(rows).is_break() {
                return Err(UpscaleError::Cancelled);
            }
        }
    }
    Ok(())
}

/// The output rows that belong to source rows `first .. first + BAND_ROWS`.
fn band(network: &Network, source: &Pixels, first: usize, cancelled: Cancelled<'_>) -> Vec<f32> {
    let above = first.saturating_sub(network.reach()) / network.unshuffle * network.unshuffle;
    let end = (first + BAND_ROWS).min(source.height());
    let below = (end + network.reach()).min(source.height());
    let (width, channels) = (source.width(), source.channels());
    let samples = source.samples()[above * width * channels..below * width * channels].to_vec();
    let Ok(crop) = Pixels::new(width, below - above, channels, samples) else {
        return Vec::new();
    };
    let row = width * network.scale * channels * network.scale;
    let output = reference::upscale(network, &crop, cancelled);
    let kept = &output[(first - above) * row..(end - above) * row];
    kept.iter().map(|&v| v as f32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shapes::{Random, Shape};

    /// RRDBNet: maps of three sizes, and at 2x squares of pixels that odd sizes do not fill.
    #[test]
    fn the_reference_gives_the_same_rows_in_bands_as_in_one() {
        let shape = Shape::Rrdb {
            channels: 4,
            growth: 2,
            blocks: 1,
        };
        let mut random = Random(5);
        let samples = (0..7 * 101 * 3).map(|_| random.unit()).collect();
        let source = Pixels::new(7, 101, 3, samples).unwrap();
        for scale in [2, 4] {
            let network = shape.network(scale, 1);
            assert!(network.reach() < 50, "{} rows", network.reach());
            let mut rows = Vec::new();
            let mut sink = |band: Rows<'_>| {
                rows.extend_from_slice(band.samples);
                ControlFlow::Continue(())
            };
            run_bands(&network, &source, 2, &mut sink, &|| false).unwrap();
            let whole = reference::upscale(&network, &source, &|| false);
            assert_eq!(rows.len(), whole.len());
            assert!(rows.iter().zip(&whole).all(|(&a, &b)| a == b as f32));
        }
    }

    /// A layer of Compact over this picture takes a minute: the test would time out, not fail.
    #[test]
    fn the_reference_stops_in_the_middle_of_a_row() {
        use std::sync::atomic::{AtomicUsize, Ordering};
        let network = Shape::parse("compact").unwrap().network(4, 1);
        let source = Pixels::new(100_000, 1, 3, vec![0.5; 300_000]).unwrap();
        let asked = AtomicUsize::new(0);
        let cancelled = || asked.fetch_add(1, Ordering::Relaxed) >= 5;
        let mut sink = |_: Rows<'_>| ControlFlow::Continue(());
        let ended = run_bands(&network, &source, 1, &mut sink, &cancelled);
        assert_eq!(ended, Err(UpscaleError::Cancelled));
    }
}

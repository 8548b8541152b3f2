//! What a CPU computes a picture with: the kernels, or the definition. Whether a device does it instead is decided before
//! anything is made here, in `engine.rs`; see `device.rs`.

use upscale_core::{Pixels, Rows};
use upscale_simd::Kernels;

use crate::calibrate::fast_plan;
use crate::error::UpscaleError;
use crate::folding::Folded;
use crate::kernel_set::KernelSet;
use crate::network::Network;
use crate::plan::Plan;
use crate::reference;
use crate::run::{Cancelled, Sink};
use crate::upscale::{memory_bytes, upscale};

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

/// A network without conditions, made ready for what will compute it.
pub(crate) enum Executor {
    /// The kernels of one set, as planned.
    Kernels(Plan),
    /// `reference.rs`.
    Reference(Network),
}

impl Executor {
    /// The kernels of that set, or the reference where the CPU has none or the network is of a kind they do not run.
    pub(crate) fn new(folded: Folded<'_>, set: KernelSet, precision: Precision) -> Self {
        match set.kernels().filter(|_| folded.network.has_kernels()) {
            Some(kernels) => Self::Kernels(precision.plan(&folded, kernels)),
            None => Self::Reference(folded.whole().into_owned()),
        }
    }

    /// Cuts pictures for cores that have so much of the last-level cache each.
    pub(crate) fn for_cache(mut self, share_bytes: Option<usize>) -> Self {
        if let Self::Kernels(plan) = &mut self {
            plan.cache_share_bytes = share_bytes;
        }
        self
    }

    /// Upscales one picture and hands its rows to `sink`, top to bottom, until `cancelled` says true.
    pub(crate) fn upscale(
        &self,
        source: &Pixels,
        threads: usize,
        sink: Sink<'_>,
        cancelled: Cancelled<'_>,
    ) -> Result<(), UpscaleError> {
        match self {
            Self::Kernels(plan) => upscale(plan, source, threads, sink, cancelled),
            Self::Reference(network) => run_bands(network, source, threads, sink, cancelled),
        }
    }

    /// Bytes that the maps of a source of that width and height take; 0 for the reference, which keeps to a few rows.
    pub(crate) fn memory_bytes(&self, size: (usize, usize), threads: usize) -> usize {
        match self {
            Self::Kernels(plan) => memory_bytes(plan, size, threads),
            Self::Reference(_) => 0,
        }
    }
}

impl Precision {
    /// A network made ready.
    pub(crate) fn plan(self, folded: &Folded<'_>, kernels: Kernels) -> Plan {
        match self {
            Self::Exact => Plan::new(folded, kernels),
            Self::Fast => fast_plan(folded, kernels),
        }
    }
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
    use std::ops::ControlFlow;

    use super::*;
    use crate::shapes::{Random, Shape};

    /// RRDBNet: maps of three sizes, and at 2x squares of pixels that odd sizes do not fill. EDSR: four maps as one.
    #[test]
    fn the_reference_gives_the_same_rows_in_bands_as_in_one() {
        let rrdb = Shape::Rrdb {
            channels: 4,
            growth: 2,
            blocks: 1,
        };
        let edsr = Shape::Edsr {
            channels: 4,
            blocks: 2,
        };
        let mut random = Random(5);
        let samples = (0..7 * 101 * 3).map(|_| random.unit()).collect();
        let source = Pixels::new(7, 101, 3, samples).unwrap();
        for (shape, scale) in [(rrdb, 2), (rrdb, 4), (edsr, 2), (edsr, 4)] {
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

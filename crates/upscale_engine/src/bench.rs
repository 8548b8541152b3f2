//! Measures one network on one size: median seconds, operations a second against what the CPU's multipliers
//! could do in the same run, memory. The command line prints what is found here.

use std::hint::black_box;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use upscale_core::{Condition, Pixels, Rows};
use upscale_simd::Kernels;

use crate::engine::EngineOptions;
use crate::error::{ModelError, UpscaleError};
use crate::kernel_set::KernelSet;
use crate::network::{Network, PICTURE};
use crate::plan::{Plan, PlanLayer};
use crate::shapes::{Random, Shape};
use crate::upscale::upscale;

/// Options of one measurement.
#[derive(Debug, Clone)]
pub struct Bench {
    /// The network; its scale decides the output's size.
    pub network: Network,
    /// Source columns, at least 1.
    pub width: usize,
    /// Source rows, at least 1.
    pub height: usize,
    /// Measured runs after one that is not counted; at least 1.
    pub runs: usize,
}

/// What was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// Median over the runs.
    pub seconds: f64,
    /// Fastest and slowest run.
    pub seconds_range: (f64, f64),
    /// Of all threads together, the mean of a run, in steps of 10 ms over all runs: on a busy machine steadier than
    /// `seconds`, but waiting threads count. 0 where the system does not tell.
    pub processor_seconds: f64,
    /// 10^9 operations a second, counted as the direct convolution needs them: 2 x multiply-accumulates.
    pub gflops: f64,
    /// The multiplies really done (Winograd needs 64 where the direct convolution needs 324) as a share of what
    /// `peak_gflops` allows.
    pub peak_share: f64,
    /// 10^9 operations a second of nothing but multiply-adds, measured on as many threads just before.
    pub peak_gflops: f64,
    /// Most memory the process ever held, in bytes; 0 where the system does not tell.
    pub peak_memory_bytes: u64,
    /// Seconds to make the network ready, its condition folded in, once per process and condition.
    pub plan_seconds: f64,
    /// The longest of five times from a cancellation, somewhere within a run, to its end.
    pub cancel_seconds: f64,
    /// Kernel set that ran.
    pub kernels: &'static str,
    /// What the products were taken in: a network may stay in single precision though 16-bit integers were allowed.
    pub precision: &'static str,
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The engine refused the options or the network.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The engine refused the picture.
    #[error(transparent)]
    Upscale(#[from] UpscaleError),
}

impl Bench {
    /// A benchmark of a shape with random weights at its usual scale: `compact` and `rrdb` at 4, the tiers at 2.
    #[must_use]
    pub fn of_shape(shape: Shape, width: usize, height: usize) -> Self {
        let scale = match shape {
            Shape::Compact { .. } | Shape::Rrdb { .. } => 4,
            Shape::Residual { .. }
            | Shape::Span { .. }
            | Shape::SpanPlus { .. }
            | Shape::Edsr { .. } => 2,
        };
        let network = shape.network(scale, 1);
        Self {
            // As what ships runs.
            network: match shape {
                Shape::Residual { .. } => network.in_bytes(),
                _ => network,
            },
            width,
            height,
            runs: 7,
        }
    }

    /// Runs it on `options.threads` threads; the engine's limit on pixels does not apply here.
    ///
    /// # Errors
    /// [`BenchError`] when the CPU lacks the kernels: the reference is not measured either.
    pub fn run(&self, options: &EngineOptions) -> Result<Measured, BenchError> {
        let set = options.kernels.unwrap_or_else(KernelSet::best);
        let Some(kernels) = set.kernels().filter(|_| self.network.has_kernels()) else {
            let reason = format!("there is nothing to measure for {}", set.name());
            return Err(ModelError(reason).into());
        };
        let threads = options.threads.max(1);
        let source = picture(self.width, self.height);
        let peak = peak_gflops(kernels, threads);
        let started = Instant::now();
        let folded = self.network.under(Condition::CLEAN);
        let plan = options.precision.plan(&folded, kernels);
        let plan_seconds = started.elapsed().as_secs_f64();
        pass(&plan, &source, threads)?;
        let before = processor_seconds();
        let mut seconds = Vec::new();
        for _ in 0..self.runs.max(1) {
            seconds.push(pass(&plan, &source, threads)?);
        }
        let processor = (processor_seconds() - before) / seconds.len() as f64;
        seconds.sort_by(f64::total_cmp);
        let in_words = plan.layers.iter().any(PlanLayer::is_in_integers);
        let precision = if in_words {
            "16-bit integers"
        } else {
            "single precision"
        };
        let cancel = cancel_seconds(&plan, &source, threads, seconds[0]);
        let took = (&seconds[..], processor, plan_seconds, cancel);
        Ok(self.measured(took, peak, (set.name(), precision)))
    }

    fn measured(
        &self,
        (sorted, processor_seconds, plan_seconds, cancel_seconds): (&[f64], f64, f64, f64),
        peak_gflops: f64,
        (kernels, precision): (&'static str, &'static str),
    ) -> Measured {
        let seconds = sorted[sorted.len() / 2];
        let pixels = (self.width * self.height) as f64;
        let direct = 2.0 * self.network.macs_per_pixel() as f64 * pixels;
        let done = 2.0 * multiplies_per_pixel(&self.network) * pixels;
        let share = done / seconds / 1e9 / peak_gflops;
        Measured {
            seconds,
            seconds_range: (sorted[0], sorted[sorted.len() - 1]),
            processor_seconds,
            gflops: direct / seconds / 1e9,
            peak_share: if peak_gflops > 0.0 { share } else { 0.0 },
            peak_gflops,
            peak_memory_bytes: peak_memory_bytes(),
            plan_seconds,
            cancel_seconds,
            kernels,
            precision,
        }
    }
}

/// Multiplies in matrix products: 64 for a tile of 36 pixels in a 3x3 layer over maps, all in the others.
fn multiplies_per_pixel(network: &Network) -> f64 {
    let layers = network.layers.iter().map(|layer| {
        let direct = layer.weights.len() as f64;
        let winograd = layer.side == 3 && layer.inputs[..] != [PICTURE];
        if winograd {
            direct / 9.0 * 64.0 / 36.0
        } else {
            direct
        }
    });
    layers.sum()
}

/// A smooth picture with a tenth of noise, as in the peers' comparison.
fn picture(width: usize, height: usize) -> Pixels {
    let mut random = Random(7);
    let mut samples = Vec::with_capacity(width * height * 3);
    for i in 0..width * height * 3 {
        let (x, y) = ((i / 3 % width) as f32, (i / 3 / width) as f32);
        let smooth = 0.5 + 0.5 * (x * 0.11).sin() * (y * 0.07 + (i % 3) as f32).cos();
        samples.push(0.9 * smooth + 0.1 * random.unit());
    }
    // One sample per place by the loop above.
    Pixels::new(width, height, 3, samples).unwrap_or_else(|_| unreachable!("three samples a pixel"))
}

/// Seconds of one pass.
fn pass(plan: &Plan, source: &Pixels, threads: usize) -> Result<f64, UpscaleError> {
    let started = Instant::now();
    let mut sink = |rows: Rows<'_>| {
        black_box(rows.samples);
        ControlFlow::Continue(())
    };
    upscale(plan, source, threads, &mut sink, &|| false)?;
    Ok(started.elapsed().as_secs_f64())
}

/// The longest time that five runs, cancelled at 1/6 to 5/6 of `seconds`, went on; those that were over are left out.
fn cancel_seconds(plan: &Plan, source: &Pixels, threads: usize, seconds: f64) -> f64 {
    let went_on = (1..=5).filter_map(|sixth| {
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let asking = scope.spawn(|| {
                std::thread::sleep(Duration::from_secs_f64(seconds * f64::from(sixth) / 6.0));
                stop.store(true, Ordering::Relaxed);
                Instant::now()
            });
            let mut sink = |_: Rows<'_>| ControlFlow::Continue(());
            let cancelled = || stop.load(Ordering::Relaxed);
            let ended = upscale(plan, source, threads, &mut sink, &cancelled);
            let went_on = (Instant::now(), asking.join().ok()?);
            ended
                .is_err()
                .then(|| (went_on.0 - went_on.1).as_secs_f64())
        })
    });
    went_on.fold(0.0, f64::max)
}

/// Dependent multiply-adds in as many chains as hide their latency, on every thread for 50 ms or so.
fn peak_gflops(kernels: Kernels, threads: usize) -> f64 {
    const ROUNDS: u64 = 4_000_000;
    let started = Instant::now();
    let operations: u64 = std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads)
            .map(|_| scope.spawn(|| kernels.spin(ROUNDS)))
            .collect();
        running
            .into_iter()
            .filter_map(|thread| thread.join().ok())
            .sum()
    });
    operations as f64 / started.elapsed().as_secs_f64() / 1e9
}

/// What all threads of this process ran, from fields 14 and 15 of proc_pid_stat(5), which counts hundredths; 0 where
/// the system does not tell.
#[must_use]
pub fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The second field is the program's name, in brackets, and may hold anything.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks = fields.split_whitespace().skip(11).take(2);
    ticks
        .filter_map(|field| field.parse::<f64>().ok())
        .sum::<f64>()
        / 100.0
}

/// `VmHWM` of Linux; 0 elsewhere.
fn peak_memory_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}

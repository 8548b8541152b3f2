//! The room's entry: which networks ship, how many threads, which kernels; one call upscales one picture.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use upscale_core::limits::SOURCE_PIXELS_MAX;
use upscale_core::{Condition, Look, Pixels, Rows, Scale};

use crate::device::{self, Device, DeviceWork};
use crate::error::{ModelError, UpscaleError};
use crate::executor::{Executor, Precision};
use crate::kernel_set::KernelSet;
use crate::network::Network;
use crate::run::{Cancelled, Sink};
use crate::shipped::{RESTORE_X2, RESTORE_X4, Shipped, X2, X4};
use crate::turned;

/// Smaller pictures are done in single precision, whatever is allowed: to make 16-bit integers of a network's weights takes
/// 5 ms of a processor, and they save 0.5 microseconds a pixel (S on a Xeon, `upscale-lab sizes`). So are lines of pixels
/// (`narrow.rs`).
const INTEGERS_PIXELS_MIN: usize = 8_192;
/// The same of networks whose ranges are known, where there are tile registers: bytes of weights take less to make.
const INTEGERS_PIXELS_MIN_ON_TILES: usize = 1_024;

/// How the engine is to work.
#[derive(Debug, Clone)]
pub struct EngineOptions {
    /// Threads for one picture, the caller's among them; at least 1 is used.
    pub threads: usize,
    /// Which kernels to use; none: the fastest that the CPU can run.
    pub kernels: Option<KernelSet>,
    /// How much of the last-level cache a core has when all of them work: bands of rows are cut so that they stay in it. None:
    /// not known, and they are cut for 12 MiB. The rows of a picture are the same, whatever the bands.
    pub cache_share_bytes: Option<usize>,
    /// How exact the arithmetic has to be.
    pub precision: Precision,
    /// Which of the networks that ship run.
    pub look: Look,
    /// Largest source accepted, in pixels (width x height).
    pub pixels_max: usize,
    /// What runs the networks in the place of the CPU; none: the CPU does. Where it fails so does the picture:
    /// [`UpscaleError::Device`].
    pub device: Option<Arc<dyn Device>>,
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
    plain: Shelved,
    /// For pictures with noise or softness to undo, and in finer looks for lossy files ([`Condition::is_restored_in`]).
    restoring: Option<Shelved>,
}

/// A network that is there, or one that ships and is read when it is first asked for.
enum Shelved {
    Given(Loaded),
    /// With this share of the crisp weights.
    Shipped(Shipped, f32, OnceLock<Loaded>),
}

/// A network, and what it is for the condition asked for last: a process that upscales one picture needs one of two.
pub(crate) struct Loaded {
    pub(crate) network: Arc<Network>,
    last: Mutex<Option<(Ready, Arc<Executor>)>>,
}

/// What an executor is ready for.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Ready {
    condition: Condition,
    /// Pictures that lie on their side: see `turned.rs`.
    is_turned: bool,
    precision: Precision,
}

impl Networks {
    fn given(network: Arc<Network>) -> Self {
        Self {
            plain: Shelved::Given(Loaded::new(network)),
            restoring: None,
        }
    }

    fn shipped(plain: Shipped, restoring: Option<Shipped>, crisp_share: f32) -> Self {
        let shelved = |shipped| Shelved::Shipped(shipped, crisp_share, OnceLock::new());
        Self {
            plain: shelved(plain),
            restoring: restoring.map(shelved),
        }
    }
}

impl Shelved {
    fn get(&self) -> &Loaded {
        match self {
            Self::Given(loaded) => loaded,
            Self::Shipped(shipped, crisp_share, read) => read.get_or_init(|| {
                // Constants of this program, which its tests read.
                let network = shipped.read(*crisp_share);
                Loaded::new(
                    network
                        .unwrap_or_else(|e| unreachable!("shipped: {e}"))
                        .into(),
                )
            }),
        }
    }
}

impl Loaded {
    pub(crate) fn new(network: Arc<Network>) -> Self {
        Self {
            network,
            last: Mutex::new(None),
        }
    }

    /// Ready for pictures of this condition that stand, or lie if the network is one that can: its answer says which.
    fn executor(
        &self,
        mut ready: Ready,
        kernels: KernelSet,
        cache_share_bytes: Option<usize>,
    ) -> (Arc<Executor>, bool) {
        // Without conditioning all conditions have the same.
        if self.network.conditioning.is_none() {
            ready.condition = Condition::UNKNOWN;
        }
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((made_for, executor)) = &*last
            && *made_for == ready
        {
            return (Arc::clone(executor), ready.is_turned);
        }
        let folded = || self.network.under(ready.condition);
        let turned = ready.is_turned.then(|| folded().whole().turned()).flatten();
        let network = turned.as_ref().map_or_else(folded, Network::unfolded);
        let executor = Executor::new(network, kernels, ready.precision);
        ready.is_turned = turned.is_some();
        let executor = Arc::new(executor.for_cache(cache_share_bytes));
        *last = Some((ready, Arc::clone(&executor)));
        (executor, ready.is_turned)
    }
}

/// A network, and how it is to run.
pub(crate) struct Running<'a> {
    pub(crate) loaded: &'a Loaded,
    pub(crate) condition: Condition,
    pub(crate) kernels: KernelSet,
    pub(crate) options: &'a EngineOptions,
}

impl Running<'_> {
    pub(crate) fn upscale(
        &self,
        source: &Pixels,
        sink: Sink<'_>,
        cancelled: Cancelled<'_>,
    ) -> Result<(), UpscaleError> {
        if let Some(device) = &self.options.device {
            return device::upscale(&**device, self, source, sink, cancelled);
        }
        let size = (source.width(), source.height());
        let (executor, is_turned) = self.executor(turned::suits(source), size);
        let (network, threads) = (&self.loaded.network, self.options.threads.max(1));
        if is_turned {
            let work = (&*executor, network.scale(), network.reach());
            return turned::upscale(work, source, threads, sink, cancelled);
        }
        executor.upscale(source, threads, sink, cancelled)
    }

    pub(crate) fn device_work<'b>(&'b self, source: &'b Pixels) -> DeviceWork<'b> {
        DeviceWork {
            network: &self.loaded.network,
            condition: self.condition,
            source,
        }
    }

    pub(crate) fn memory_bytes(&self, width: usize, height: usize) -> usize {
        let (executor, _) = self.executor(false, (width, height));
        executor.memory_bytes((width, height), self.options.threads.max(1))
    }

    fn executor(&self, is_turned: bool, (width, height): (usize, usize)) -> (Arc<Executor>, bool) {
        // One whose ranges are not known looks first whether integers suit it, with two pictures of 2,880 pixels.
        let is_known = self.loaded.network.ranges.is_some();
        let least = match self.kernels {
            KernelSet::Amx if is_known => INTEGERS_PIXELS_MIN_ON_TILES,
            _ => INTEGERS_PIXELS_MIN,
        };
        let is_line = width == 1 || height == 1;
        let precision = match is_line || width * height < least {
            true => Precision::Exact,
            false => self.options.precision,
        };
        let ready = Ready {
            condition: self.condition,
            is_turned,
            precision,
        };
        self.loaded
            .executor(ready, self.kernels, self.options.cache_share_bytes)
    }
}

impl Default for EngineOptions {
    /// All cores on one picture, exact, sources up to the contract's largest.
    fn default() -> Self {
        Self {
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            kernels: None,
            cache_share_bytes: None,
            precision: Precision::Exact,
            look: Look::default(),
            pixels_max: SOURCE_PIXELS_MAX as usize,
            device: None,
        }
    }
}

impl Engine {
    /// The engine with the weights that this program carries. Each is read when a picture first needs it.
    ///
    /// # Errors
    /// [`ModelError`] when no weights have this look, or when the CPU lacks the kernels.
    pub fn shipped(options: EngineOptions) -> Result<Self, ModelError> {
        let restoring = [RESTORE_X2, RESTORE_X4];
        let look = options.look;
        let shares = Scale::ALL.map(|scale| look.crisp_share(scale));
        let has_look =
            |(one, share): (&Option<Shipped>, &f32)| one.is_none_or(|one| one.has(*share));
        if !restoring.iter().zip(&shares).all(has_look) {
            return Err(ModelError(format!(
                "no weights of this program look {look}"
            )));
        }
        Self::of_shipped([X2, X4], restoring, shares, options)
    }

    /// The engine of these networks that ship, one a scale, and of those that restore, with these shares of crisp weights.
    pub(crate) fn of_shipped(
        [x2, x4]: [Shipped; 2],
        [restore_x2, restore_x4]: [Option<Shipped>; 2],
        [share_x2, share_x4]: [f32; 2],
        options: EngineOptions,
    ) -> Result<Self, ModelError> {
        Ok(Self {
            kernels: usable_kernels(&options)?,
            options,
            x2: Networks::shipped(x2, restore_x2, share_x2),
            x4: Networks::shipped(x4, restore_x4, share_x4),
        })
    }

    /// The engine that ships with `network` in the place of its own for that scale.
    ///
    /// # Errors
    /// [`ModelError`] when it enlarges neither twice nor four times, or when the CPU lacks the kernels.
    pub fn shipped_but(network: Arc<Network>, options: EngineOptions) -> Result<Self, ModelError> {
        let mut engine = Self::of_shipped([X2, X4], [None, None], [0.0; 2], options)?;
        let networks = match network.scale() {
            2 => &mut engine.x2,
            4 => &mut engine.x4,
            given => {
                let name = network.name();
                let reason = format!("{name} enlarges {given} times, 2 or 4 is needed");
                return Err(ModelError(reason));
            }
        };
        *networks = Networks::given(network);
        Ok(engine)
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
        let kernels = usable_kernels(&options)?;
        Ok(Self {
            options,
            kernels,
            x2: Networks::given(x2),
            x4: Networks::given(x4),
        })
    }

    /// The network that enlarges clean pictures so many times.
    #[must_use]
    pub fn network(&self, scale: Scale) -> &Network {
        &self.networks(scale).plain.get().network
    }

    /// The network that enlarges pictures of this condition so many times ([`Condition::is_restored_in`]).
    #[must_use]
    pub fn network_for(&self, scale: Scale, condition: Condition) -> &Network {
        &self.chosen(scale, condition).0.network
    }

    fn networks(&self, scale: Scale) -> &Networks {
        match scale {
            Scale::X2 => &self.x2,
            Scale::X4 => &self.x4,
        }
    }

    /// The network for pictures of this condition, and what it is told of them.
    fn chosen(&self, scale: Scale, condition: Condition) -> (&Loaded, Condition) {
        let (networks, look) = (self.networks(scale), self.options.look);
        match &networks.restoring {
            Some(restoring) if condition.is_restored_in(look) => {
                (restoring.get(), condition.for_look(look, scale))
            }
            _ => (networks.plain.get(), condition),
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
        let running = self.running(scale, Condition::UNKNOWN);
        running.memory_bytes(width, height)
    }

    fn running(&self, scale: Scale, condition: Condition) -> Running<'_> {
        let (loaded, condition) = self.chosen(scale, condition);
        Running {
            loaded,
            condition,
            kernels: self.kernels,
            options: &self.options,
        }
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
        check_source(source, &self.options)?;
        let running = self.running(scale, condition);
        running.upscale(source, sink, cancelled)
    }
}

/// The kernels that run, if the CPU has them.
pub(crate) fn usable_kernels(options: &EngineOptions) -> Result<KernelSet, ModelError> {
    let kernels = options.kernels.unwrap_or_else(KernelSet::best);
    if kernels.is_available() {
        return Ok(kernels);
    }
    let reason = format!("this CPU has no {}", kernels.name());
    Err(ModelError(reason))
}

pub(crate) fn check_source(source: &Pixels, options: &EngineOptions) -> Result<(), UpscaleError> {
    let (width, height, channels) = (source.width(), source.height(), source.channels());
    let pixels_max = options.pixels_max;
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

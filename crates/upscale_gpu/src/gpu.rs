//! One device, opened: its queue, its limits, the kernels made so far.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use wgpu::{
    BindGroupLayout, BindGroupLayoutDescriptor, BindGroupLayoutEntry, BindingType, Buffer,
    BufferBindingType, BufferDescriptor, BufferUsages, ComputePipeline, ComputePipelineDescriptor,
    Device, DeviceDescriptor, Limits, PipelineLayout, PipelineLayoutDescriptor, PollType, Queue,
    ShaderModuleDescriptor, ShaderSource, ShaderStages, SubmissionIndex,
};

use crate::{
    adapters::{AdapterFacts, AdapterKind, enumerate, facts, ready},
    error::GpuError,
    packed::{INPUTS_MAX, JOINS_MAX},
    programs::Programs,
};

const CONVOLVE: &str = include_str!("kernels/convolve.wgsl");
const FRAME: &str = include_str!("kernels/frame.wgsl");
const STORED_F32: &str = include_str!("kernels/stored_f32.wgsl");
const STORED_F16: &str = include_str!("kernels/stored_f16.wgsl");
/// What is waited for takes milliseconds on a device.
const HANG: Duration = Duration::from_secs(10);
/// A driver that computes on the processor took two slow cores 17 s for 8.6 * 10^9 multiply-accumulates with nothing beside it.
const HANG_OF_SOFTWARE: Duration = Duration::from_secs(60);
/// Multiply-accumulates that are handed over at a time: thousandths of a second of a device. A driver ends what takes too long,
/// and what was handed over cannot be cancelled.
const MACS_AT_A_TIME: usize = 2 << 30;
/// As often as that driver allows: some half a second of it.
const MACS_AT_A_TIME_OF_SOFTWARE: usize = 1 << 28;
/// How often the caller of a picture is asked, and so hears, whether it goes on.
const SIGN_EVERY: Duration = Duration::from_millis(250);
/// The most that the maps may take: more makes tiles larger that are large enough.
const ARENA_BYTES_MAX: u64 = 2 << 30;

/// How maps are kept on the device. Sums are always taken in single precision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Storage {
    /// Single precision: within 1e-5 of the definition.
    F32,
    /// Half precision: half the memory, and within half an 8-bit level.
    F16,
}

impl Storage {
    /// Of a vector of four channels.
    pub(crate) fn vector_bytes(self) -> usize {
        match self {
            Self::F32 => 16,
            Self::F16 => 8,
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::F32 => STORED_F32,
            Self::F16 => STORED_F16,
        }
    }
}

/// One of the programs that run on the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kernel {
    /// A convolution of that side; an invocation makes so many vectors of channels.
    Convolve { side: usize, out: usize },
    /// The source into map 0.
    Gather,
    /// The last map into the result.
    Spread,
}

/// A device that is open. Pictures run on it one after another.
pub struct Gpu {
    pub(crate) facts: AdapterFacts,
    pub(crate) device: Device,
    pub(crate) queue: Queue,
    pub(crate) bindings: BindGroupLayout,
    layout: PipelineLayout,
    kernels: Mutex<HashMap<(Kernel, Storage), ComputePipeline>>,
    /// The first thing that went wrong since it was last asked.
    trouble: Arc<Mutex<Option<String>>>,
    /// Bytes that the maps may take.
    pub(crate) arena_bytes_max: u64,
    /// How maps are kept; none: in single precision where that fits.
    pub(crate) storage: Option<Storage>,
    /// Held by the picture that runs.
    pub(crate) programs: Mutex<Programs>,
}

impl std::fmt::Debug for Gpu {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Gpu")
            .field("facts", &self.facts)
            .finish_non_exhaustive()
    }
}

impl Gpu {
    /// Opens the device of that number in [`crate::adapters`].
    ///
    /// # Errors
    /// [`GpuError`] where there is none, or its driver does not open it.
    pub fn open(index: usize) -> Result<Self, GpuError> {
        let adapters = enumerate();
        let adapter = adapters.get(index).ok_or(GpuError::NoAdapter {
            index,
            count: adapters.len(),
        })?;
        let facts = facts(index, adapter);
        let offered = adapter.limits();
        let opened = adapter.request_device(&DeviceDescriptor {
            required_limits: Limits {
                max_storage_buffer_binding_size: offered.max_storage_buffer_binding_size,
                max_buffer_size: offered.max_buffer_size,
                ..Limits::downlevel_defaults()
            },
            ..DeviceDescriptor::default()
        });
        let (device, queue) = ready(opened).map_err(|e| GpuError::Unusable(e.to_string()))?;
        let trouble = Arc::new(Mutex::new(None));
        note_trouble(&device, &trouble);
        let (bindings, layout) = layouts(&device);
        let gpu = Self {
            arena_bytes_max: facts.buffer_bytes_max.min(ARENA_BYTES_MAX),
            facts,
            device,
            queue,
            bindings,
            layout,
            kernels: Mutex::new(HashMap::new()),
            trouble,
            storage: None,
            programs: Mutex::default(),
        };
        gpu.check().map_err(|e| GpuError::Unusable(e.to_string()))?;
        Ok(gpu)
    }

    /// The same with less memory for maps, in bytes: tiles get smaller, results stay the same bits.
    #[must_use]
    pub fn with_arena_bytes(mut self, bytes: u64) -> Self {
        self.arena_bytes_max = self.arena_bytes_max.min(bytes);
        self
    }

    /// The same with maps kept so, whatever fits.
    #[must_use]
    pub fn with_storage(self, storage: Storage) -> Self {
        Self {
            storage: Some(storage),
            ..self
        }
    }

    /// What it is.
    #[must_use]
    pub fn facts(&self) -> &AdapterFacts {
        &self.facts
    }

    /// # Errors
    /// The first thing that the driver complained of since this was last asked.
    pub(crate) fn check(&self) -> Result<(), GpuError> {
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        trouble
            .take()
            .map_or(Ok(()), |what| Err(GpuError::Failed(what)))
    }

    pub(crate) fn buffer(&self, bytes: u64, usage: BufferUsages) -> Result<Buffer, GpuError> {
        let buffer = self.device.create_buffer(&BufferDescriptor {
            label: None,
            size: bytes.max(16).next_multiple_of(16),
            usage,
            mapped_at_creation: false,
        });
        self.check().map(|()| buffer)
    }

    fn is_software(&self) -> bool {
        self.facts.kind == AdapterKind::Software
    }

    /// Multiply-accumulates to hand over at a time.
    pub(crate) fn macs_at_a_time(&self) -> usize {
        if self.is_software() {
            return MACS_AT_A_TIME_OF_SOFTWARE;
        }
        MACS_AT_A_TIME
    }

    /// Waits until the device has done that, and asks `cancelled` meanwhile.
    ///
    /// # Errors
    /// [`GpuError::Cancelled`]; [`GpuError::Failed`] where it takes too long.
    pub(crate) fn wait(
        &self,
        submission: SubmissionIndex,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<(), GpuError> {
        let hang = if self.is_software() {
            HANG_OF_SOFTWARE
        } else {
            HANG
        };
        let began = Instant::now();
        while began.elapsed() < hang {
            let waited = self.device.poll(PollType::Wait {
                submission_index: Some(submission.clone()),
                timeout: Some(SIGN_EVERY),
            });
            self.check()?;
            if waited.is_ok() {
                return Ok(());
            }
            if cancelled() {
                return Err(GpuError::Cancelled);
            }
        }
        let seconds = hang.as_secs();
        Err(GpuError::Failed(format!(
            "it did not answer for {seconds} seconds"
        )))
    }

    /// The kernel, made when it is first asked for.
    pub(crate) fn kernel(
        &self,
        kernel: Kernel,
        storage: Storage,
    ) -> Result<ComputePipeline, GpuError> {
        let mut kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = kernels.get(&(kernel, storage)) {
            return Ok(made.clone());
        }
        let made = self.make(kernel, storage);
        self.check()?;
        kernels.insert((kernel, storage), made.clone());
        Ok(made)
    }

    fn make(&self, kernel: Kernel, storage: Storage) -> ComputePipeline {
        let (constants, text, entry) = match kernel {
            Kernel::Convolve { side, out } => {
                let sizes = [
                    ("SIDE", side),
                    ("OUT", out),
                    ("INPUTS_MAX", INPUTS_MAX),
                    ("JOINS_MAX", JOINS_MAX),
                ];
                let lines = sizes.map(|(name, value)| format!("const {name} = {value}u;\n"));
                (lines.concat(), CONVOLVE, "main")
            }
            Kernel::Gather => (String::new(), FRAME, "gather"),
            Kernel::Spread => (String::new(), FRAME, "spread"),
        };
        let source = [&constants, storage.text(), text].concat();
        let module = self.device.create_shader_module(ShaderModuleDescriptor {
            label: None,
            source: ShaderSource::Wgsl(source.into()),
        });
        self.device
            .create_compute_pipeline(&ComputePipelineDescriptor {
                label: None,
                layout: Some(&self.layout),
                module: &module,
                entry_point: Some(entry),
                compilation_options: Default::default(),
                cache: None,
            })
    }
}

/// wgpu panics where no one listens to its errors.
fn note_trouble(device: &Device, trouble: &Arc<Mutex<Option<String>>>) {
    let note = |trouble: &Mutex<Option<String>>, what: String| {
        let mut first = trouble.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(what);
    };
    let errors = Arc::clone(trouble);
    device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
        note(&errors, error.to_string())
    }));
    let lost = Arc::clone(trouble);
    device.set_device_lost_callback(move |reason, words| {
        note(&lost, format!("it is lost ({reason:?}): {words}"))
    });
}

/// One set of bindings for all kernels: the maps, the network's numbers, what a step is to do, the source, the result.
fn layouts(device: &Device) -> (BindGroupLayout, PipelineLayout) {
    let storage = |read_only| BufferBindingType::Storage { read_only };
    let kinds = [
        (storage(false), false),
        (storage(true), false),
        (BufferBindingType::Uniform, true),
        (storage(true), false),
        (storage(false), false),
    ];
    let entries: Vec<_> = (0..)
        .zip(kinds)
        .map(|(binding, (ty, has_dynamic_offset))| BindGroupLayoutEntry {
            binding,
            visibility: ShaderStages::COMPUTE,
            ty: BindingType::Buffer {
                ty,
                has_dynamic_offset,
                min_binding_size: None,
            },
            count: None,
        })
        .collect();
    let bindings = device.create_bind_group_layout(&BindGroupLayoutDescriptor {
        label: None,
        entries: &entries,
    });
    let layout = device.create_pipeline_layout(&PipelineLayoutDescriptor {
        label: None,
        bind_group_layouts: &[Some(&bindings)],
        immediate_size: 0,
    });
    (bindings, layout)
}

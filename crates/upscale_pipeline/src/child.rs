//! The process that alone reads untrusted bytes: one job and one source on standard input, progress and
//! one answer on standard output, then the end. A panic or an abort here costs one attempt and nothing else.

use std::{
    fs::File,
    io::{self, BufReader, BufWriter, Read, Write},
    mem::ManuallyDrop,
    sync::Arc,
};

use upscale_engine::{Device, KernelSet, Network};

use crate::{
    Answer, Facts, FallbackLevel, Job, PictureOptions, PipelineError, Upscaled,
    cache::cache_share_bytes,
    device::{RemoteDevice, receive_end},
    kernels::{self, KernelsError},
    models::{ChildModels, ModelPaths, ModelsError},
    read_job, read_source,
    sandbox::{self, Entry, Limits, SandboxError},
    status_bytes, upscale_image, wall, write_answer, write_progress,
};

/// Why a child ends without an answer; everything about the image is an answer.
#[derive(Debug, thiserror::Error)]
pub enum ChildError {
    /// The environment names no kernels.
    #[error(transparent)]
    Kernels(#[from] KernelsError),
    /// A model that the parent named is not there.
    #[error(transparent)]
    Models(#[from] ModelsError),
    /// What came on standard input is no job.
    #[error("the job: {0}")]
    Job(io::Error),
    /// The sandbox was not entered.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// It lacks parts that the job requires: [`sandbox::EXIT_WEAK_SANDBOX`].
    #[error("this machine's sandbox lacks {0}")]
    WeakSandbox(String),
    /// No one reads standard output.
    #[error("the answer: {0}")]
    Answer(io::Error),
}

/// What a child is told on its command line.
#[derive(Debug, Default)]
pub struct ChildSetup {
    /// In place of our own networks.
    pub models: ModelPaths,
    /// The user to become; none to stay who it is.
    pub uid: Option<u32>,
    /// The process that started it.
    pub parent: Option<u32>,
    /// Whether an end of a socket to a device comes before the job, on standard input.
    pub has_device: bool,
}

/// Does the job that stands on standard input.
///
/// # Errors
/// When the pipes break, the job is none or the sandbox lacks what it requires; everything about the image is an answer.
pub fn run_child(setup: ChildSetup) -> Result<(), ChildError> {
    // Opened while a file can be: what it holds is read at the end. Never closed, for a debug build asks whether the
    // descriptor is open first, by a call that the sandbox forbids.
    let status = File::open("/proc/self/status").ok().map(ManuallyDrop::new);
    // Read while the environment's words can still be complained about.
    let processor = (kernels::from_environment()?, cache_share_bytes());
    let models = ChildModels::open(setup.models)?;
    let device = match setup.has_device {
        true => receive_device().map_err(ChildError::Job)?,
        false => None,
    };
    // The job is the parent's own word; the source behind it is untrusted and waits for the sandbox.
    let mut input = BufReader::new(io::stdin().lock());
    let (job, source_bytes) = read_job(&mut input).map_err(ChildError::Job)?;
    let entered = sandbox::enter(&Entry {
        uid: setup.uid,
        parent: setup.parent,
        limits: Some(Limits {
            memory_bytes: job.memory_bytes_max,
            cpu_seconds: job.cpu_seconds_max,
        }),
    })?;
    if let Some(lacking) = entered.lacks(job.required) {
        return Err(ChildError::WeakSandbox(lacking));
    }
    let source = read_source(&mut input, source_bytes).map_err(ChildError::Job)?;
    drop(input);
    #[cfg(debug_assertions)]
    crate::fault::commit();
    let mut out = BufWriter::new(io::stdout().lock());
    let network = models.read(job.parameters.scale)?;
    let restoring = models.read_restoring()?;
    let brought = (restoring.as_ref(), network.as_ref());
    let options = options(&job, processor, brought, device.as_ref());
    let mut answer = work(&job, &options, source, &mut out);
    if let Answer::Done { facts, .. } = &mut answer {
        facts.memory_bytes = status.as_deref().and_then(largest_memory).unwrap_or(0);
    }
    write_answer(&mut out, &answer).map_err(ChildError::Answer)
}

/// Before the sandbox closes: what receives an end of a socket is no call that it knows.
fn receive_device() -> io::Result<Option<Arc<dyn Device>>> {
    let Some(end) = receive_end(rustix::stdio::stdin())? else {
        return Ok(None);
    };
    let device: Arc<dyn Device> = Arc::new(RemoteDevice::new(end)?);
    Ok(Some(device))
}

fn options<'a>(
    job: &Job,
    (kernels, cache_share_bytes): (Option<KernelSet>, Option<usize>),
    (restoring, network): (Option<&'a Arc<Network>>, Option<&'a Arc<Network>>),
    device: Option<&'a Arc<dyn Device>>,
) -> PictureOptions<'a> {
    PictureOptions {
        parameters: job.parameters,
        look: job.look,
        threads: job.threads.into(),
        kernels,
        cache_share_bytes,
        pixels_max: job.source_pixels_max,
        network,
        restoring,
        device,
        ensemble: false,
        clock: wall,
        with_thumbnail: true,
    }
}

fn work(job: &Job, options: &PictureOptions<'_>, source: Vec<u8>, out: &mut impl Write) -> Answer {
    let mut last = 0;
    let mut progress = |share: f64| {
        let permille = (share * 1_000.0) as u16;
        if permille > last {
            last = permille;
            // A parent that does not listen any more is noticed when the answer is written.
            let _ = write_progress(out, permille);
        }
    };
    match upscale_image(source, options, &mut progress) {
        Ok(upscaled) if upscaled.png.len() as u64 > job.result_bytes_max => Answer::Broke(format!(
            "the PNG has {} bytes, more than {}",
            upscaled.png.len(),
            job.result_bytes_max
        )),
        Ok(upscaled) => Answer::Done {
            facts: facts(&upscaled),
            thumbnail: upscaled.thumbnail.unwrap_or_default(),
            png: upscaled.png,
        },
        Err(PipelineError::Image(error)) => Answer::Refused(error.to_string()),
        Err(error @ PipelineError::Output(_)) => Answer::Unfaithful(error.to_string()),
        Err(error) => Answer::Broke(error.to_string()),
    }
}

/// The most memory this process ever had resident.
fn largest_memory(mut status: &File) -> Option<u64> {
    // One plain read: `read_to_string` asks for the size first, by a call that the sandbox forbids. The file has 1.5 KB.
    let mut text = [0; 4_096];
    let length = status.read(&mut text).ok()?;
    status_bytes(&String::from_utf8_lossy(&text[..length]), "VmHWM:")
}

fn facts(upscaled: &Upscaled) -> Facts {
    Facts {
        source_width: upscaled.source_size.0,
        source_height: upscaled.source_size.1,
        width: upscaled.facts.width,
        height: upscaled.facts.height,
        source_format: upscaled.source_format,
        by_brought_model: upscaled.by_brought_model,
        by_reference: upscaled.level == FallbackLevel::Reference,
        device: upscaled.device,
        focus_permille: upscaled.facts.focus_permille,
        spent: upscaled.spent,
        memory_bytes: 0,
    }
}

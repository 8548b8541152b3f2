//! A GPU in this process: for `file` and `bench`, and as `upscale gpu`, the process that the worker starts for its children.
//! Which GPU, and whether it is worth it, is decided here.

#[cfg_attr(not(feature = "gpu"), path = "gpu/none.rs")]
mod drivers;
mod measure;

use std::{os::unix::net::UnixStream, sync::Arc};

use anyhow::{Context, anyhow};
use upscale_engine::Device;
use upscale_pipeline::{Announcement, DeviceFacts, KnownNetworks, announce, sandbox, serve_device};

use crate::args::{DeviceChoice, GpuArgs};

/// A GPU that a driver offers.
pub(crate) struct Found {
    index: usize,
    facts: DeviceFacts,
    /// The smaller the likelier to be the fastest; none for a driver that computes on the processor.
    rank: Option<u8>,
}

/// A GPU in use.
pub(crate) struct Opened {
    pub(crate) device: Arc<dyn Device>,
    facts: DeviceFacts,
    /// What speaks for it.
    pub(crate) words: String,
}

impl Found {
    /// As `doctor` shows it.
    pub(crate) fn words(&self) -> String {
        let Self { index, facts, .. } = self;
        let mib = facts.buffer_bytes >> 20;
        format!(
            "gpu:{index} is {} ({}, {}, buffers of {mib} MiB)",
            facts.name, facts.driver, facts.kind
        )
    }
}

impl Opened {
    /// The GPU and its driver.
    pub(crate) fn name(&self) -> String {
        format!("{} ({})", self.facts.name, self.facts.driver)
    }
}

/// All that this machine's drivers offer.
pub(crate) fn found() -> Vec<Found> {
    drivers::list()
}

/// The GPU that was chosen; none for the CPU. An image would have `threads` of that.
///
/// # Errors
/// In words: there is none, it does not open, it makes wrong pictures, or `auto` finds the CPU faster.
pub(crate) fn open(choice: DeviceChoice, threads: usize) -> Result<Option<Opened>, String> {
    let found = match choice {
        DeviceChoice::Cpu => return Ok(None),
        DeviceChoice::Auto => best(found())?,
        DeviceChoice::Gpu(index) => {
            let mut all = found();
            let count = all.len();
            all.drain(..)
                .nth(index)
                .ok_or_else(|| format!("gpu:{index} does not exist: {count} found"))?
        }
    };
    let device = drivers::open(found.index)?;
    let words = match choice {
        // The operator has decided.
        DeviceChoice::Gpu(index) => {
            measure::check(&device, threads)?;
            format!("gpu:{index} produces what the CPU produces")
        }
        _ => {
            let (gpu, cpu) = measure::measure(&device, threads)?;
            let index = found.index;
            let words = format!("gpu:{index} takes {gpu:.3} s where the CPU takes {cpu:.3} s");
            if gpu >= cpu {
                return Err(words);
            }
            words
        }
    };
    Ok(Some(Opened {
        device,
        facts: found.facts,
        words,
    }))
}

fn best(mut found: Vec<Found>) -> Result<Found, String> {
    if found.is_empty() {
        return Err("no Vulkan driver offers a GPU".to_owned());
    }
    found.retain(|one| one.rank.is_some());
    let best = found.into_iter().min_by_key(|one| one.rank);
    best.ok_or_else(|| "all drivers compute on the processor".to_owned())
}

/// For a command that someone waits for: `auto` goes on with the CPU, a GPU that was named must be there.
pub(crate) fn open_for_command(
    choice: DeviceChoice,
    threads: usize,
) -> anyhow::Result<Option<Arc<dyn Device>>> {
    match (choice, open(choice, threads)) {
        (_, Ok(opened)) => Ok(opened.map(|opened| opened.device)),
        (DeviceChoice::Auto, Err(_)) => Ok(None),
        (_, Err(why)) => Err(anyhow!(why)),
    }
}

/// The worker's process for a GPU: says over standard input, which is a socket, whether it has one, and takes children's
/// ends of sockets from there until that closes.
///
/// # Errors
/// When the worker is gone, or the GPU broke.
pub(crate) fn gpu(args: &GpuArgs) -> anyhow::Result<()> {
    sandbox::die_with(args.parent)?;
    let control = rustix::stdio::stdin().try_clone_to_owned();
    let mut control = UnixStream::from(control.context("standard input")?);
    let (opened, known) = match prepare(args) {
        Ok(prepared) => prepared,
        Err(why) => return Ok(announce(&mut control, &Announcement::Declined(why))?),
    };
    sandbox::confine_device_process()?;
    announce(&mut control, &Announcement::Ready(opened.facts))?;
    serve_device(&control, &opened.device, known).context("the GPU")
}

fn prepare(args: &GpuArgs) -> Result<(Opened, KnownNetworks), String> {
    let opened = open(args.device, args.threads as usize)?;
    let opened = opened.ok_or_else(|| "no GPU is to be used".to_owned())?;
    let known =
        KnownNetworks::load(args.look, args.models.paths()).map_err(|error| error.to_string())?;
    Ok((opened, known))
}

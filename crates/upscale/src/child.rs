//! The process that alone looks at a stranger's bytes: one order and one source on standard input, progress and
//! one answer on standard output, then the end. A panic or an abort here costs one attempt and nothing else.

use std::{
    fs::File,
    io::{self, BufReader, BufWriter, Read, Write},
    mem::ManuallyDrop,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, anyhow};
use upscale_engine::{KernelSet, Network};
use upscale_image::Format;
use upscale_worker::{
    Answer, Facts, Order, SourceFormat, Spent, read_order, write_answer, write_progress,
};

use crate::{
    args::ChildArgs,
    kernels,
    model::Handed,
    output,
    pipeline::{self, PipelineError, Rung, Upscaled, upscale_image},
    sandbox,
};

/// Does what the order says; with `--probe`, only says what the cage lacks on this kernel, as a JSON list.
///
/// # Errors
/// When the pipes break or the order is none; everything about the image is an answer.
pub(crate) fn child(args: &ChildArgs) -> anyhow::Result<()> {
    // Opened while a file can be: what it holds is read at the end. Never closed, for a debug build asks whether the
    // descriptor is open first, by a call that the cage forbids.
    let status = File::open("/proc/self/status").ok().map(ManuallyDrop::new);
    // Read while the environment's words can still be complained about.
    let kernels = kernels::from_environment()?;
    let handed = Handed::open(args)?;
    let missing = sandbox::enter();
    if args.probe {
        return output::json(&missing);
    }
    let (order, source) =
        read_order(&mut BufReader::new(io::stdin().lock())).context("the order")?;
    sandbox::limit(order.memory_bytes_max, order.cpu_seconds_max.into())
        .map_err(|reason| anyhow!("the limit {reason}"))?;
    #[cfg(debug_assertions)]
    crate::fault::commit();
    let mut out = BufWriter::new(io::stdout().lock());
    let network = handed.read(order.parameters.scale)?;
    let mut answer = work(&order, (kernels, network.as_ref()), &source, &mut out);
    drop(source);
    if let Answer::Done { facts, .. } = &mut answer {
        facts.spent.memory_bytes = status.as_deref().and_then(largest_memory).unwrap_or(0);
    }
    write_answer(&mut out, &answer).context("the answer")
}

fn work(
    order: &Order,
    (kernels, network): (Option<KernelSet>, Option<&Arc<Network>>),
    source: &[u8],
    out: &mut impl Write,
) -> Answer {
    let pipeline_order = pipeline::Order {
        parameters: order.parameters,
        threads: order.threads.into(),
        kernels,
        pixels_max: order.source_pixels_max,
        network,
        ensemble: false,
        clock: pipeline::wall,
    };
    let mut last = 0;
    let mut progress = |share: f64| {
        let permille = (share * 1_000.0) as u16;
        if permille > last {
            last = permille;
            // A parent that does not listen any more is noticed when the answer is written.
            let _ = write_progress(out, permille);
        }
    };
    match upscale_image(source, &pipeline_order, &mut progress) {
        Ok(upscaled) if upscaled.png.len() as u64 > order.result_bytes_max => {
            Answer::Broke(format!(
                "the PNG has {} bytes, more than {}",
                upscaled.png.len(),
                order.result_bytes_max
            ))
        }
        Ok(upscaled) => Answer::Done {
            facts: facts(&upscaled),
            png: upscaled.png,
        },
        Err(PipelineError::Image(error)) => Answer::Refused(error.to_string()),
        Err(error @ PipelineError::Output(_)) => Answer::Unfaithful(error.to_string()),
        Err(error) => Answer::Broke(error.to_string()),
    }
}

/// The most memory this process ever had resident.
fn largest_memory(mut status: &File) -> Option<u64> {
    // One plain read: `read_to_string` asks for the size first, by a call that the cage forbids. The file has 1.5 KB.
    let mut text = [0; 4_096];
    let length = status.read(&mut text).ok()?;
    status_bytes(&String::from_utf8_lossy(&text[..length]), "VmHWM:")
}

/// A size in the text of a `/proc/…/status` file, which counts in KiB (proc_pid_status(5)).
pub(crate) fn status_bytes(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

fn facts(upscaled: &Upscaled) -> Facts {
    Facts {
        source_width: upscaled.source_size.0,
        source_height: upscaled.source_size.1,
        width: upscaled.facts.width,
        height: upscaled.facts.height,
        source_format: match upscaled.source_format {
            Format::Jpeg => SourceFormat::Jpeg,
            Format::Png => SourceFormat::Png,
            Format::WebP => SourceFormat::WebP,
        },
        by_reference: upscaled.rung == Rung::Plain,
        spent: Spent {
            decode_micros: micros(upscaled.spent.decode),
            network_micros: micros(upscaled.spent.network),
            check_micros: micros(upscaled.spent.check),
            encode_micros: micros(upscaled.spent.encode),
            memory_bytes: 0,
        },
    }
}

fn micros(took: Duration) -> u32 {
    u32::try_from(took.as_micros()).unwrap_or(u32::MAX)
}

//! The process that alone looks at a stranger's bytes: one order and one source on standard input, progress and
//! one answer on standard output, then the end. A panic or an abort here costs one attempt and nothing else.

use std::io::{self, BufReader, BufWriter, Write};

use anyhow::{Context, anyhow};
use upscale_engine::KernelSet;
use upscale_image::Format;
use upscale_worker::{
    Answer, Facts, Order, SourceFormat, read_order, write_answer, write_progress,
};

use crate::{
    kernels, output,
    pipeline::{self, PipelineError, Rung, Upscaled, upscale_image},
    sandbox,
};

/// For the customer; which check failed, and by how much, is for the log.
const UNFAITHFUL: &str = "The upscaled image did not pass the check against its source";

/// Does what the order says; with `probe`, only says what the cage lacks on this kernel, as a JSON list.
///
/// # Errors
/// When the pipes break or the order is none; everything about the image is an answer.
pub(crate) fn child(probe: bool) -> anyhow::Result<()> {
    // Read while the environment's words can still be complained about.
    let kernels = kernels::from_environment()?;
    let missing = sandbox::enter();
    if probe {
        return output::json(&missing);
    }
    let (order, source) =
        read_order(&mut BufReader::new(io::stdin().lock())).context("the order")?;
    sandbox::limit(order.memory_bytes_max, order.cpu_seconds_max.into())
        .map_err(|reason| anyhow!("the limit {reason}"))?;
    #[cfg(debug_assertions)]
    crate::fault::commit();
    let mut out = BufWriter::new(io::stdout().lock());
    let answer = work(&order, kernels, &source, &mut out);
    drop(source);
    write_answer(&mut out, &answer).context("the answer")
}

fn work(order: &Order, kernels: Option<KernelSet>, source: &[u8], out: &mut impl Write) -> Answer {
    let pipeline_order = pipeline::Order {
        scale: order.scale,
        threads: order.threads.into(),
        kernels,
        pixels_max: order.source_pixels_max,
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
        // Both rungs failed, and a third attempt would be the same arithmetic: better no result than a wrong one.
        Err(error @ PipelineError::Output(_)) => {
            eprintln!("{error}");
            Answer::Refused(UNFAITHFUL.to_owned())
        }
        Err(error) => Answer::Broke(error.to_string()),
    }
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
    }
}

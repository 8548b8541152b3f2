//! `upscale child`: the process that alone looks at a stranger's bytes, as a command that `serve` and `worker` start.

use upscale_pipeline::{ModelPaths, run_child, sandbox};

use crate::{args::ChildArgs, output};

/// Does the job on standard input; with `--probe`, only says what the sandbox lacks on this kernel, as a JSON list.
///
/// # Errors
/// When the pipes break or the job is none; everything about the image is an answer.
pub(crate) fn child(args: &ChildArgs) -> anyhow::Result<()> {
    if args.probe {
        return output::json(&sandbox::enter());
    }
    Ok(run_child(ModelPaths {
        x2: args.model_2x.clone(),
        x4: args.model_4x.clone(),
    })?)
}

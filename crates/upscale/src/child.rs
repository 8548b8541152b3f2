//! `upscale child`: the process that alone reads untrusted bytes, as a command that `serve` and `worker` start.

use std::process::ExitCode;

use upscale_pipeline::{
    ChildError, ChildSetup, run_child,
    sandbox::{self, EXIT_WEAK_SANDBOX, Entry},
};

use crate::{args::ChildArgs, output};

/// Does the job on standard input; with `--probe`, only says which parts of the sandbox hold here and
/// which are missing, as JSON.
///
/// # Errors
/// When the pipes break or the job is none; everything about the image is an answer.
pub(crate) fn child(args: &ChildArgs) -> anyhow::Result<ExitCode> {
    let (uid, parent) = (args.sandbox_uid, args.parent);
    if args.probe {
        let limits = None;
        output::json(&sandbox::enter(&Entry {
            uid,
            parent,
            limits,
        })?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let setup = ChildSetup {
        models: args.models.paths(),
        uid,
        parent,
        has_device: args.device_end,
    };
    match run_child(setup) {
        Err(error @ ChildError::WeakSandbox(_)) => {
            eprintln!("upscale: {error}");
            Ok(ExitCode::from(EXIT_WEAK_SANDBOX))
        }
        done => Ok(done.map(|()| ExitCode::SUCCESS)?),
    }
}

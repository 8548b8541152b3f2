//! `upscale storage check`: tries everything the service will ask of a bucket, and says in words what does not work.

use std::process::ExitCode;

use anyhow::bail;
use serde::Serialize;
use upscale_store::CheckStep;

use crate::{
    args::{StorageCheckArgs, StorageCommand},
    bucket::bucket,
    data::block_on,
    output,
};

#[derive(Serialize)]
struct CheckBody<'a> {
    ok: bool,
    steps: Vec<StepBody<'a>>,
}

#[derive(Serialize)]
struct StepBody<'a> {
    what: &'a str,
    problem: Option<&'a str>,
}

impl<'a> From<&'a CheckStep> for StepBody<'a> {
    fn from(step: &'a CheckStep) -> Self {
        Self {
            what: step.what,
            problem: step.problem.as_deref(),
        }
    }
}

/// Success only when everything works.
pub(crate) fn storage(command: &StorageCommand) -> anyhow::Result<ExitCode> {
    let StorageCommand::Check(args) = command;
    let Some(results) = bucket(&args.storage)? else {
        bail!("--storage s3://bucket/prefix is needed: a folder needs no check");
    };
    let steps = block_on(async { Ok(results.check().await?) })?;
    let ok = steps.iter().all(|step| step.problem.is_none());
    print(args, &steps, ok)?;
    Ok(if ok {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn print(args: &StorageCheckArgs, steps: &[CheckStep], ok: bool) -> anyhow::Result<()> {
    if args.json {
        let steps = steps.iter().map(StepBody::from).collect();
        return output::json(&CheckBody { ok, steps });
    }
    for step in steps {
        match &step.problem {
            None => output::line(&format!("ok      {}", step.what))?,
            Some(problem) => output::line(&format!("FAILED  {}: {problem}", step.what))?,
        }
    }
    let verdict = if ok {
        "The storage works: all operations that the service needs succeeded."
    } else {
        "The service cannot use this storage. Fix what failed above and run the check again."
    };
    output::line(verdict)
}

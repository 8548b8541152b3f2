//! `upscale storage check`: tries everything the service will ask of a bucket, and says in words what does not work.
//! Also opens the bucket that the flags name.

use std::process::ExitCode;

use anyhow::{Context, bail};
use serde::Serialize;
use upscale_store::{BucketOptions, CheckStep, Results};

use crate::{
    args::{StorageArgs, StorageCheckArgs, StorageCommand},
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

/// The bucket of `--storage`; none without the flag.
pub(crate) fn bucket(args: &StorageArgs) -> anyhow::Result<Option<Results>> {
    let Some(url) = &args.storage else {
        return Ok(None);
    };
    let is_ours = |(name, _): &(String, String)| name.starts_with("AWS_");
    let options = BucketOptions {
        url: url.clone(),
        // A variable that is no text is none of the AWS tools'.
        variables: std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .filter(is_ours)
            .collect(),
        public_endpoint: args.storage_public_url.clone(),
    };
    let results = Results::bucket(&options).context("--storage")?;
    Ok(Some(results))
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
        "The storage does all that the service needs."
    } else {
        "The service cannot use this storage."
    };
    output::line(verdict)
}

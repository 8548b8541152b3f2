//! `upscale submit`, `status` and `wait`: the API from the customer's side. A batch goes on where a killed run stopped.

mod batch;
mod client;
mod journal;
mod orders;

use std::process::ExitCode;

use serde_json::{Value, json};
use upscale_client::{Status, Task};
use upscale_core::Credits;

pub(crate) use self::batch::submit;
use self::client::client;
use crate::{
    args::{StatusArgs, WaitArgs},
    data::block_on,
    output,
    whole_file::write_whole,
};

/// `upscale status`: one reading.
pub(crate) fn status(args: &StatusArgs) -> anyhow::Result<()> {
    block_on(async {
        let polled = client(&args.call)?.read(&args.id).await?;
        show(&polled.task, args.call.json)
    })
}

/// `upscale wait`: until the task is over; exit status 1 when it failed.
pub(crate) fn wait(args: &WaitArgs) -> anyhow::Result<ExitCode> {
    block_on(async {
        let client = client(&args.call)?;
        let task = match client.wait(&args.id).await {
            Err(upscale_client::Error::Failed { .. }) => client.read(&args.id).await?.task,
            task => task?,
        };
        show(&task, args.call.json)?;
        if !matches!(task.status, Status::Succeeded(_)) {
            return Ok(ExitCode::FAILURE);
        }
        if let Some(out) = &args.out {
            write_whole(out, &client.download(&task).await?)?;
        }
        Ok(ExitCode::SUCCESS)
    })
}

fn show(task: &Task, as_json: bool) -> anyhow::Result<()> {
    if as_json {
        return output::json(&body(task));
    }
    let charged = Credits::from_thousandths(task.thousandths_charged);
    output::line(&match &task.status {
        Status::Processing { .. } => format!(
            "{}  processing, {} reserved",
            task.id,
            Credits::from_thousandths(task.thousandths_reserved)
        ),
        Status::Succeeded(outcome) => {
            format!("{}  succeeded, {charged} charged\n{}", task.id, outcome.url)
        }
        Status::Failed(failure) => format!(
            "{}  failed, {charged} charged, {}: {}",
            task.id, failure.refund_status, failure.message
        ),
    })
}

/// The task for scripts, in the contract's words.
fn body(task: &Task) -> Value {
    let credits = |thousandths: i64| thousandths as f64 / 1000.0;
    let charged = credits(task.thousandths_charged);
    match &task.status {
        Status::Processing { .. } => json!({
            "id": task.id, "status": "processing",
            "credits_reserved": credits(task.thousandths_reserved), "credits_charged": charged,
        }),
        Status::Succeeded(outcome) => json!({
            "id": task.id, "status": "succeeded", "url": outcome.url,
            "sha256": outcome.sha256, "credits_charged": charged,
        }),
        Status::Failed(failure) => json!({
            "id": task.id, "status": "failed", "code": failure.code, "message": failure.message,
            "refund_status": failure.refund_status, "credits_charged": charged,
        }),
    }
}

//! `upscale submit`, `status` and `wait`: the API from the customer's side. A batch goes on where a killed run stopped.

mod batch;
mod client;
mod journal;
mod orders;

use std::process::ExitCode;

use serde_json::{Value, json};
use upscale_client::{ErrorKind, Task};
use upscale_core::Credits;

pub(crate) use self::batch::submit;
use self::client::client;
use crate::{
    args::{StatusArgs, WaitArgs},
    data::block_on,
    output,
    whole_file::{check_writable, write_whole},
};

/// `upscale status`: one reading.
pub(crate) fn status(args: &StatusArgs) -> anyhow::Result<()> {
    block_on(async {
        let task = client(&args.call)?.upscales().retrieve(&args.id).await?;
        show(&task, args.call.json)
    })
}

/// `upscale wait`: until the task is over; exit status 1 when it failed.
pub(crate) fn wait(args: &WaitArgs) -> anyhow::Result<ExitCode> {
    args.out.as_deref().map(check_writable).transpose()?;
    block_on(async {
        let client = client(&args.call)?;
        let done = match client.upscales().wait(&args.id).await {
            Ok(done) => done,
            Err(error) if matches!(*error.kind, ErrorKind::TaskFailed { .. }) => {
                let failed = client.upscales().retrieve(&args.id).await?;
                show(&failed, args.call.json)?;
                return Ok(ExitCode::FAILURE);
            }
            Err(error) => return Err(error.into()),
        };
        show(&Task::Succeeded(done.clone()), args.call.json)?;
        if let Some(out) = &args.out {
            write_whole(out, &client.upscales().download(&done).await?)?;
        }
        Ok(ExitCode::SUCCESS)
    })
}

fn show(task: &Task, as_json: bool) -> anyhow::Result<()> {
    if as_json {
        return output::json(&body(task));
    }
    let credits = Credits::from_thousandths;
    output::line(&match task {
        Task::Processing(task) => format!(
            "{}  processing, {} reserved",
            task.id,
            credits(task.thousandths_reserved)
        ),
        Task::Succeeded(task) => format!(
            "{}  succeeded, {} charged\n{}",
            task.id,
            credits(task.thousandths_charged),
            task.result_url
        ),
        Task::Failed(task) => format!(
            "{}  failed, 0 charged, {}: {}",
            task.id, task.failure.refund_status, task.failure.message
        ),
    })
}

/// The task for scripts, in the contract's words.
fn body(task: &Task) -> Value {
    let credits = |thousandths: i64| thousandths as f64 / 1000.0;
    match task {
        Task::Processing(task) => json!({
            "id": task.id, "status": "processing",
            "credits_reserved": credits(task.thousandths_reserved), "credits_charged": credits(0),
        }),
        Task::Succeeded(task) => json!({
            "id": task.id, "status": "succeeded", "url": task.result_url,
            "sha256": task.sha256, "credits_charged": credits(task.thousandths_charged),
        }),
        Task::Failed(task) => json!({
            "id": task.id, "status": "failed", "code": task.failure.code, "message": task.failure.message,
            "refund_status": task.failure.refund_status, "credits_charged": credits(0),
        }),
    }
}

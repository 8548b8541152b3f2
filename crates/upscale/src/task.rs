//! `upscale task …`: the operator's view of tasks, anyone who's they are. A source is shown without its query, which may
//! be a secret of the customer's.

use anyhow::bail;
use serde::Serialize;
use upscale_core::{RefundStatus, RequestId, TaskId, TaskState};
use upscale_store::{OperatorTask, OperatorTaskFilter, RefundOutcome, Store};

use crate::{
    args::{ActionArgs, DataArgs, TaskCommand},
    data::{account_id, block_on, open_existing_store},
    on_behalf::on_behalf,
    output,
    shown::{Amount, OrderedParameters, time, time_if_any},
};

/// Tasks that one create request can have made.
const OF_ONE_REQUEST_MAX: u32 = 10;

/// Runs one of the task commands.
pub(crate) fn task(command: &TaskCommand) -> anyhow::Result<()> {
    block_on(async {
        match command {
            TaskCommand::List {
                account,
                refund_pending,
                limit,
                data,
            } => list(account.as_deref(), *refund_pending, *limit, data).await,
            TaskCommand::Show { id, data } => show(id, data).await,
            TaskCommand::Refund { task, action, data } => refund(task, action, data).await,
        }
    })
}

#[derive(Serialize)]
struct TaskBody {
    task: String,
    account: String,
    request: String,
    status: &'static str,
    refund: Option<&'static str>,
    message: Option<String>,
    source: String,
    #[serde(flatten)]
    parameters: OrderedParameters,
    price: Amount,
    created_at: String,
    finished_at: Option<String>,
    attempts: Option<u32>,
    crashes: Option<u32>,
    worker: Option<String>,
}

impl From<&OperatorTask> for TaskBody {
    fn from(found: &OperatorTask) -> Self {
        let (status, refund, message) = match &found.task.state {
            TaskState::Processing => ("processing", None, None),
            TaskState::Succeeded(_) => ("succeeded", None, None),
            TaskState::Failed { message, refund } => (
                "failed",
                Some(refund.as_str()),
                Some(message.as_str().to_owned()),
            ),
        };
        let job = found.job.as_ref();
        Self {
            task: found.task.id.to_string(),
            account: found.task.account_id.to_string(),
            request: found.request_id.to_string(),
            status,
            refund,
            message,
            source: without_query(&found.source_url).to_owned(),
            parameters: OrderedParameters(found.task.parameters),
            price: Amount(found.task.price),
            created_at: time(found.task.created_at),
            finished_at: time_if_any(found.finished_at),
            attempts: job.map(|job| job.attempt),
            crashes: job.map(|job| job.crashes),
            worker: job.and_then(|job| job.worker.clone()),
        }
    }
}

fn without_query(url: &str) -> &str {
    url.split('?').next().unwrap_or_default()
}

async fn list(
    account: Option<&str>,
    refund_pending: bool,
    limit: u32,
    data: &DataArgs,
) -> anyhow::Result<()> {
    let store = open_existing_store(&data.location).await?;
    let filter = match account {
        Some(account) => OperatorTaskFilter::OfAccount(account_id(account)?),
        None if refund_pending => OperatorTaskFilter::RefundPending,
        None => OperatorTaskFilter::Processing,
    };
    print(
        &store.operator().list_tasks(&filter, limit).await?,
        data.json,
    )
}

async fn show(id: &str, data: &DataArgs) -> anyhow::Result<()> {
    let store = open_existing_store(&data.location).await?;
    let found = find(&store, id.trim()).await?;
    if found.is_empty() {
        bail!("task {id} does not exist");
    }
    print(&found, data.json)
}

/// By its own id or its create request's.
async fn find(store: &Store, id: &str) -> anyhow::Result<Vec<OperatorTask>> {
    if let Some(request) = RequestId::parse(id) {
        let filter = OperatorTaskFilter::OfRequest(request);
        return Ok(store
            .operator()
            .list_tasks(&filter, OF_ONE_REQUEST_MAX)
            .await?);
    }
    match TaskId::parse(id) {
        Some(task) => Ok(store
            .operator()
            .find_task(&task)
            .await?
            .into_iter()
            .collect()),
        None => bail!("{id} is neither a task ID (ups_…) nor a request ID (req_…)"),
    }
}

async fn refund(task: &str, action: &ActionArgs, data: &DataArgs) -> anyhow::Result<()> {
    let store = open_existing_store(&data.location).await?;
    let Some(id) = TaskId::parse(task.trim()) else {
        bail!("task {task} does not exist");
    };
    let by = on_behalf(&action.reason, action.operator.as_deref());
    let already = match store.operator().retry_refund(&id, &by).await? {
        RefundOutcome::Refunded => false,
        RefundOutcome::AlreadyRefunded => true,
        RefundOutcome::NotFailed => bail!("{id} has not failed: nothing is owed"),
        RefundOutcome::NoSuchTask => bail!("task {task} does not exist"),
    };
    let refund = RefundStatus::Refunded.as_str();
    if data.json {
        let body = serde_json::json!({ "task": id.as_str(), "refund": refund, "already_refunded": already });
        return output::json(&body);
    }
    if already {
        return output::line("Already refunded; nothing changed.");
    }
    output::line(&format!("The credits of {id} are refunded."))
}

fn print(found: &[OperatorTask], as_json: bool) -> anyhow::Result<()> {
    let tasks: Vec<TaskBody> = found.iter().map(TaskBody::from).collect();
    if as_json {
        return output::json(&serde_json::json!({ "tasks": tasks }));
    }
    let row = |task: &TaskBody| {
        let state = match task.refund {
            Some(refund) => format!("{}, {refund}", task.status),
            None => task.status.to_owned(),
        };
        vec![
            task.task.clone(),
            task.account.clone(),
            task.request.clone(),
            state,
            task.parameters.0.to_string(),
            task.created_at.clone(),
            task.finished_at.clone().unwrap_or_default(),
            task.attempts
                .map(|count| count.to_string())
                .unwrap_or_default(),
            task.message.clone().unwrap_or_else(|| task.source.clone()),
        ]
    };
    let names = [
        "TASK",
        "ACCOUNT",
        "REQUEST",
        "STATE",
        "SCALE",
        "CREATED",
        "ENDED",
        "ATTEMPT",
        "MESSAGE OR SOURCE",
    ];
    output::table(&names, &tasks.iter().map(row).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_shown_without_its_query() {
        assert_eq!(
            without_query("https://a.example/b.png?token=c"),
            "https://a.example/b.png"
        );
        assert_eq!(
            without_query("https://a.example/b.png"),
            "https://a.example/b.png"
        );
    }
}

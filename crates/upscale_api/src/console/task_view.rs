//! One task as its page and the playground show it: both pictures, sizes, where the time went, and the lines that order
//! the same from a program.

use upscale_core::{ResultFile, TaskState};
use upscale_store::{Link, TaskRecord};

use super::{
    error::ConsoleError,
    form::origin,
    page::Sources,
    shown::{self, Moment, money, state_word},
    snippets::{Snippet, snippets},
    state::ConsoleState,
};
use crate::error::ApiError;

/// A token that names no file.
const ANY_NAME: &str = "00000000000000000000000000";

/// What the templates need.
pub(crate) struct TaskView {
    pub(crate) id: String,
    pub(crate) source: String,
    /// Whose server the browser asks for the picture before.
    pub(crate) source_host: String,
    pub(crate) parameters: String,
    pub(crate) state: &'static str,
    pub(crate) created: Moment,
    pub(crate) finished: Option<Moment>,
    pub(crate) request_id: String,
    pub(crate) money: String,
    pub(crate) failure: Option<String>,
    pub(crate) result: Option<ResultView>,
    pub(crate) stages: Vec<Stage>,
    pub(crate) snippets: [Snippet; 4],
}

/// A result, whether its bytes are still there or not.
pub(crate) struct ResultView {
    /// Good for an hour; none when retention has removed the file.
    pub(crate) url: Option<String>,
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) source_width: u32,
    pub(crate) source_height: u32,
    pub(crate) size: String,
    pub(crate) sha256: String,
}

/// A row of the table of times; `share` of 1,000 for its bar.
pub(crate) struct Stage {
    pub(crate) name: &'static str,
    pub(crate) took: String,
    pub(crate) share: i64,
}

impl TaskView {
    pub(crate) async fn of(
        state: &ConsoleState,
        record: &TaskRecord,
    ) -> Result<Self, ConsoleError> {
        let task = &record.task;
        let result = match &task.state {
            TaskState::Succeeded(file) => Some(result_view(state, record, file).await?),
            _ => None,
        };
        let url = record.source_url.url();
        Ok(Self {
            id: task.id.to_string(),
            source: record.source_url.as_str().to_owned(),
            source_host: url.host_str().unwrap_or_default().to_owned(),
            parameters: task.parameters.to_string(),
            state: state_word(&task.state),
            created: Moment::of(task.created_at),
            finished: record.finished_at.map(Moment::of),
            request_id: record.request_id.clone(),
            money: money(task),
            failure: match &task.state {
                TaskState::Failed { message, .. } => Some(message.as_str().to_owned()),
                _ => None,
            },
            result,
            stages: stages(record),
            snippets: snippets(
                &state.api.base_url,
                record.source_url.as_str(),
                task.parameters,
            ),
        })
    }

    /// The page loads the customer's own picture from their server, and the result from ours; nothing else.
    pub(crate) async fn sources(&self, state: &ConsoleState) -> Result<Sources, ConsoleError> {
        let mut sources = state.result_pictures().await?;
        if self
            .result
            .as_ref()
            .is_some_and(|result| result.url.is_some())
        {
            sources
                .pictures
                .push(format!("https://{}", self.source_host));
        }
        Ok(sources)
    }
}

impl ConsoleState {
    /// A new URL for the result's file.
    pub(crate) async fn result_url(&self, file: &ResultFile) -> Result<String, ConsoleError> {
        let minted = self.api.mint_result_url(file).await;
        minted.map_err(|error| match error {
            ApiError::Unavailable { detail, .. } => ConsoleError::Busy(detail),
            error => ConsoleError::Broken(error.to_string()),
        })
    }

    /// Pages with pictures load them from where results are served, which sends the browser on to the bucket, where
    /// there is one. Signing a link to any name says where that is; nothing is asked of it.
    pub(crate) async fn result_pictures(&self) -> Result<Sources, ConsoleError> {
        let mut pictures = vec![origin(&self.api.result_url).to_owned()];
        let link = Link {
            is_head: false,
            file_name: "result.png",
            seconds: 60,
        };
        let elsewhere = self.api.results.link(ANY_NAME, &link).await?;
        pictures.extend(elsewhere.map(|url| origin(&url).to_owned()));
        Ok(Sources {
            pictures,
            forms: Vec::new(),
        })
    }
}

async fn result_view(
    state: &ConsoleState,
    record: &TaskRecord,
    file: &ResultFile,
) -> Result<ResultView, ConsoleError> {
    let url = if record.result_removed {
        None
    } else {
        Some(state.result_url(file).await?)
    };
    let factor = record.task.parameters.scale.factor() as u32;
    Ok(ResultView {
        url,
        width: file.width,
        height: file.height,
        source_width: file.width / factor,
        source_height: file.height / factor,
        size: shown::bytes(file.size_bytes),
        sha256: file.sha256.clone(),
    })
}

/// What no stage of the last attempt took was waiting: for a worker, or between attempts.
fn stages(record: &TaskRecord) -> Vec<Stage> {
    let (Some(stages), Some(finished)) = (record.stages, record.finished_at) else {
        return Vec::new();
    };
    let total = (finished.micros() - record.task.created_at.micros()).max(1);
    let measured = stages.download_micros + stages.picture_micros + stages.storing_micros;
    let row = |name, micros: i64| Stage {
        name,
        took: shown::duration(micros),
        share: (micros.clamp(0, total)) * 1_000 / total,
    };
    vec![
        row("Waiting for its turn", total - measured),
        row("Downloading the source", stages.download_micros),
        row(
            "Decoding, enlarging, checking, encoding",
            stages.picture_micros,
        ),
        row("Storing the result", stages.storing_micros),
    ]
}

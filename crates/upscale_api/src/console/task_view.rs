//! One task as its page and the playground show it: both pictures, sizes, where the time went, and the lines that order
//! the same from a program.

use upscale_core::{ResultFile, Sample, Scale, TaskState};
use upscale_store::TaskRecord;

use super::{
    error::ConsoleError,
    form::origin,
    page::Sources,
    shown::{self, Moment, money, state_word},
    snippets::{Snippet, snippets},
    state::ConsoleState,
    tasks::other_scale,
    title::{file_name, title},
};
use crate::error::ApiError;

/// What the templates need.
pub(crate) struct TaskView {
    pub(crate) id: String,
    /// What the task is called.
    pub(crate) title: String,
    pub(crate) source: String,
    /// Where the browser finds the picture before: a sample is ours.
    pub(crate) before: String,
    pub(crate) is_sample: bool,
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
    /// The scale that the same source can be ordered at instead.
    pub(crate) again: Option<Scale>,
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
    /// What a download is called.
    pub(crate) file_name: String,
    /// Where to look first, in thousandths of the sides.
    pub(crate) focus: [u16; 2],
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
        let source = record.source_url.as_str().to_owned();
        let sample = Sample::of(&record.source_url);
        Ok(Self {
            id: task.id.to_string(),
            title: title(&record.source_url),
            before: match sample {
                Some(sample) => format!("/samples/{}", sample.file_name),
                None => source.clone(),
            },
            is_sample: sample.is_some(),
            source,
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
            again: other_scale(record),
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
        // A page that watches a task shows its pictures as soon as it has ended, under the policy it began with.
        let is_shown = match &self.result {
            Some(result) => result.url.is_some(),
            None => self.state == "processing",
        };
        if is_shown && !self.is_sample {
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

    /// Pages with pictures load them from where results are served, which may send the browser on to the bucket.
    pub(crate) async fn result_pictures(&self) -> Result<Sources, ConsoleError> {
        let mut pictures = vec![origin(&self.api.result_url).to_owned()];
        let elsewhere = self.api.elsewhere().await?;
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
        file_name: file_name(record),
        focus: file
            .preview
            .map_or([500; 2], |preview| preview.focus_permille),
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
        row("Waiting for a worker", total - measured),
        row("Downloading the source", stages.download_micros),
        row("Upscaling", stages.picture_micros),
        row("Storing the result", stages.storing_micros),
    ]
}

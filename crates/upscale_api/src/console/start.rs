//! The way from an empty account to its first image, in three steps, each with whether it is done.

use upscale_core::{AccountId, SAMPLES, Sample};
use upscale_store::{TaskFilter, TaskRecord};

use super::{error::ConsoleError, state::ConsoleState};

/// What a new account has done of it.
pub(crate) struct Start {
    pub(crate) is_open: bool,
    pub(crate) has_key: bool,
    pub(crate) has_task: bool,
    /// To try it with.
    pub(crate) sample: Sample,
}

impl Start {
    /// None once all is done: the list is for beginners alone.
    pub(crate) async fn of(
        state: &ConsoleState,
        account: &AccountId,
        is_open: bool,
    ) -> Result<Option<Self>, ConsoleError> {
        let store = &state.api.store;
        let keys = store.accounts().list_keys(account, None, 1).await?;
        let tasks: Vec<TaskRecord> = store
            .tasks()
            .list(account, TaskFilter::All, None, 1)
            .await?;
        let start = Self {
            is_open,
            has_key: !keys.is_empty(),
            has_task: !tasks.is_empty(),
            sample: SAMPLES[0],
        };
        let is_done = start.is_open && start.has_key && start.has_task;
        Ok(Some(start).filter(|_| !is_done))
    }
}

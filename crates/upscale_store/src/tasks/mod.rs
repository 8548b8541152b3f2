//! Tasks and the queue behind them, from the order to the settlement.

mod claim;
mod create;
mod due_job;
mod ended;
pub(crate) mod history;
mod lease;
mod order;
mod pace;
pub(crate) mod queue;
mod reap;
pub(crate) mod row;
pub(crate) mod settle;
pub(crate) mod used_key;

use crate::Store;

/// The verbs of tasks, their queue and the workers that empty it; of [`Store::tasks`].
#[derive(Debug, Clone, Copy)]
pub struct Tasks<'a> {
    pub(crate) store: &'a Store,
}

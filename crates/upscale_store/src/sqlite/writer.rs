//! The one thread that writes: whatever waits becomes one transaction, each operation in its own savepoint,
//! and no one is answered before the commit is on the disk. A disk that syncs 200 times a second so carries
//! thousands of operations.

use std::sync::{
    Arc,
    mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
};

use tokio::sync::oneshot;
use upscale_core::Clock;

use super::{Connection, abort::AbortOnPanic, opened_file::OpenedFile};
use crate::{
    StoreError, StoreOptions,
    tx::{Driver, Tx},
};

/// Operations that may wait; one more is refused at once instead of piling up.
const WAITING_MAX: usize = 1_024;
/// Operations in one transaction: bounds how long the first waits for the last.
const BATCH_MAX: usize = 256;

/// Runs in the transaction, or is told why it cannot.
type Operation = Box<dyn FnOnce(Result<&mut Tx, StoreError>) -> Ran + Send>;
/// Answers the caller once the commit has ended.
type Answer = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

/// What an operation leaves behind.
struct Ran {
    keep: bool,
    answer: Answer,
}

/// Where operations are handed to the writing thread. Cheap to clone; the thread ends with the last clone.
#[derive(Debug, Clone)]
pub(super) struct Writer {
    queue: SyncSender<Operation>,
}

/// What the writing thread owns.
pub(super) struct Writing {
    pub(super) connection: Arc<Connection>,
    pub(super) file: OpenedFile,
    pub(super) clock: Clock,
    pub(super) options: StoreOptions,
    #[cfg(test)]
    pub(super) faults: crate::faults::Faults,
}

impl Writer {
    /// Starts the thread.
    pub(super) fn start(writing: Writing) -> Result<Self, StoreError> {
        let (queue, waiting) = sync_channel(WAITING_MAX);
        std::thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || writing.run(&waiting))
            .map_err(|error| StoreError::Unavailable(format!("no writing thread: {error}")))?;
        Ok(Self { queue })
    }

    /// Runs the operation in a savepoint and answers after the commit. An error of the operation undoes its
    /// savepoint alone, whatever becomes of the commit.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        operation: impl FnOnce(&mut Tx) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (sender, answered) = oneshot::channel();
        let queued: Operation = Box::new(move |tx| {
            let result = tx.and_then(operation);
            let keep = result.is_ok();
            let answer: Answer = Box::new(move |committed| {
                // A caller that went away needs no answer.
                let _ = sender.send(result.and_then(|value| committed.map(|()| value)));
            });
            Ran { keep, answer }
        });
        self.queue.try_send(queued).map_err(|error| match error {
            TrySendError::Full(_) => {
                StoreError::Unavailable(format!("{WAITING_MAX} writes are waiting already"))
            }
            TrySendError::Disconnected(_) => StoreError::Unavailable(STOPPED.to_owned()),
        })?;
        let lost = |_| StoreError::OutcomeUnknown(STOPPED.to_owned());
        answered.await.map_err(lost)?
    }
}

const STOPPED: &str = "the writing thread has stopped";

impl Writing {
    fn run(self, waiting: &Receiver<Operation>) {
        let _loudly = AbortOnPanic;
        while let Ok(first) = waiting.recv() {
            let rest = waiting.try_iter().take(BATCH_MAX - 1);
            self.commit_together(std::iter::once(first).chain(rest));
        }
    }

    fn commit_together(&self, operations: impl Iterator<Item = Operation>) {
        let begun = self.file.check().and_then(|()| self.begin());
        let answers: Vec<Answer> = operations
            .map(|operation| match &begun {
                Ok(()) => self.in_savepoint(operation),
                Err(error) => operation(Err(error.clone())).answer,
            })
            .collect();
        let committed = begun.and_then(|()| self.commit());
        if let Err(error) = &committed {
            tracing::error!(%error, operations = answers.len(), "a commit failed");
        }
        for answer in answers {
            answer(committed.clone());
        }
    }

    /// Immediate: the lock is taken before anything is read, so no operation decides on stale rows.
    fn begin(&self) -> Result<(), StoreError> {
        let begun = self
            .roll_back()
            .and_then(|()| self.control("BEGIN IMMEDIATE"));
        begun.map_err(StoreError::Unavailable)
    }

    fn in_savepoint(&self, operation: Operation) -> Answer {
        if let Err(reason) = self
            .in_transaction()
            .and_then(|()| self.control("SAVEPOINT one"))
        {
            return operation(Err(StoreError::Unavailable(reason))).answer;
        }
        let mut tx = Tx::new(
            Driver::Sqlite(Arc::clone(&self.connection)),
            self.clock.now(),
            self.options,
            #[cfg(test)]
            self.faults.clone(),
        );
        let ran = operation(Ok(&mut tx));
        let undone = if ran.keep {
            Ok(())
        } else {
            self.control("ROLLBACK TO one")
        };
        if undone.and_then(|()| self.control("RELEASE one")).is_err() {
            // What could not be undone must not be committed: in_transaction() tells the rest of the batch.
            let _ = self.roll_back();
        }
        ran.answer
    }

    /// A full disk or an I/O error may make SQLite roll back everything on its own.
    fn in_transaction(&self) -> Result<(), String> {
        if self.connection.is_autocommit() {
            return Err("the transaction was rolled back".to_owned());
        }
        Ok(())
    }

    fn commit(&self) -> Result<(), StoreError> {
        let committed = self
            .in_transaction()
            .map_err(StoreError::Unavailable)
            .and_then(|()| self.try_commit());
        if committed.is_err() {
            let _ = self.roll_back();
        }
        committed
    }

    /// Ends a transaction that is still open. Tried again before the next one begins: a disk that fails even
    /// the rollback must not leave the store useless once it is well again.
    fn roll_back(&self) -> Result<(), String> {
        if self.connection.is_autocommit() {
            return Ok(());
        }
        self.control("ROLLBACK")
    }

    fn try_commit(&self) -> Result<(), StoreError> {
        #[cfg(test)]
        self.faults.pass_before_commit()?;
        self.connection.commit()?;
        #[cfg(test)]
        self.faults.pass_after_commit()?;
        Ok(())
    }

    fn control(&self, sql: &str) -> Result<(), String> {
        self.connection.control(sql)
    }
}

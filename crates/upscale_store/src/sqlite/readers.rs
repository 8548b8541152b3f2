//! The few threads that read: connections that cannot write, each answer from one snapshot of what is
//! committed, by whichever process.

use std::sync::{
    Arc, Mutex, PoisonError,
    mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
};

use tokio::sync::oneshot;
use upscale_core::Clock;

use super::{Connection, abort::AbortOnPanic};
use crate::{
    StoreError, StoreOptions,
    tx::{Driver, Tx},
};

/// Reads that may wait; one more is refused at once.
const WAITING_MAX: usize = 1_024;

type Query = Box<dyn FnOnce(&Connection, &mut Tx) + Send>;

/// Where queries are handed to the reading threads. Cheap to clone; the threads end with the last clone.
#[derive(Debug, Clone)]
pub(super) struct Readers {
    queue: SyncSender<Query>,
}

/// What one reading thread owns.
pub(super) struct Reading {
    pub(super) connection: Arc<Connection>,
    pub(super) clock: Clock,
    pub(super) options: StoreOptions,
}

impl Readers {
    /// Starts one thread a connection.
    pub(super) fn start(connections: Vec<Reading>) -> Result<Self, StoreError> {
        let (queue, waiting) = sync_channel(WAITING_MAX);
        let waiting = Arc::new(Mutex::new(waiting));
        for reading in connections {
            let waiting = Arc::clone(&waiting);
            std::thread::Builder::new()
                .name("store-reader".to_owned())
                .spawn(move || reading.run(&waiting))
                .map_err(|error| StoreError::Unavailable(format!("no reading thread: {error}")))?;
        }
        Ok(Self { queue })
    }

    /// Runs the query on a snapshot.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        query: impl FnOnce(&mut Tx) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (answer, answered) = oneshot::channel();
        let queued: Query = Box::new(move |connection, tx| {
            // A caller that went away needs no answer.
            let _ = answer.send(in_snapshot(connection, tx, query));
        });
        self.queue.try_send(queued).map_err(|error| match error {
            TrySendError::Full(_) => {
                StoreError::Unavailable(format!("{WAITING_MAX} reads are waiting already"))
            }
            TrySendError::Disconnected(_) => stopped(),
        })?;
        answered.await.map_err(|_| stopped())?
    }
}

fn stopped() -> StoreError {
    StoreError::Unavailable("the reading threads have stopped".to_owned())
}

fn in_snapshot<T>(
    connection: &Connection,
    tx: &mut Tx,
    query: impl FnOnce(&mut Tx) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    connection.execute("BEGIN", &[])?;
    let answer = query(tx);
    let ended = connection.execute("ROLLBACK", &[]);
    answer.and_then(|answer| ended.map(|_| answer))
}

impl Reading {
    fn run(self, waiting: &Mutex<Receiver<Query>>) {
        let _loudly = AbortOnPanic;
        while let Some(query) = next(waiting) {
            let mut tx = Tx::new(
                Driver::Sqlite(Arc::clone(&self.connection)),
                self.clock.now(),
                self.options,
                // Faults are for writes: a reading thread's own never strike.
                #[cfg(test)]
                crate::faults::Faults::default(),
            );
            query(&self.connection, &mut tx);
        }
    }
}

/// Anyone who holds the lock waits for the next query; the others wait for the lock.
fn next(waiting: &Mutex<Receiver<Query>>) -> Option<Query> {
    let waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
    waiting.recv().ok()
}

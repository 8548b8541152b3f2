//! Threads over a schedule: each takes the next segment, waits until its input is there, computes it. The calling
//! thread works like the others and, between segments, hands finished rows to the sink.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use upscale_core::Rows;
use upscale_simd::FlushDenormals;

use crate::error::UpscaleError;
use crate::job::{Job, Output, Ticket};
use crate::schedule::{Task, Work};
use crate::task::{Computing, Scratch};
use crate::winograd::TILE;

/// Rounds of a waiting loop before the thread offers its core to others: other threads are rarely late by more
/// than a few microseconds, unless the machine is busy with something else.
const SPINS: u32 = 2_000;

/// Anyone who takes finished rows.
pub(crate) type Sink<'a> = &'a mut dyn FnMut(Rows<'_>) -> ControlFlow<()>;

/// Asked by every thread before every segment.
pub(crate) type Cancelled<'a> = &'a (dyn Fn() -> bool + Sync);

/// Where a job stands.
struct Progress {
    next: AtomicUsize,
    /// Finished segments of every task.
    finished: Vec<AtomicU32>,
    /// Rows of tiles that the sink has taken.
    delivered: AtomicUsize,
    stop: AtomicBool,
}

/// The calling thread's other duty.
struct Delivery<'a, 'b> {
    sink: Sink<'a>,
    output: &'b Output,
    next: usize,
}

/// Runs a job. Without `sink` its rows stay where they are in the output.
pub(crate) fn run(
    job: &Job<'_>,
    output: &Output,
    threads: usize,
    sink: Option<Sink<'_>>,
    cancelled: Cancelled<'_>,
) -> Result<(), UpscaleError> {
    let progress = Progress {
        next: AtomicUsize::new(0),
        finished: job
            .schedule
            .tasks
            .iter()
            .map(|_| AtomicU32::new(0))
            .collect(),
        delivered: AtomicUsize::new(if sink.is_some() { 0 } else { usize::MAX / 2 }),
        stop: AtomicBool::new(false),
    };
    let delivery = sink.map(|sink| Delivery {
        sink,
        output,
        next: 0,
    });
    std::thread::scope(|scope| {
        for _ in 1..threads {
            let work = || Worker::new(job, output, &progress, None, cancelled).work();
            // A process in a sandbox may be refused threads: then those that there are do the work.
            let _started = std::thread::Builder::new().spawn_scoped(scope, work);
        }
        Worker::new(job, output, &progress, delivery, cancelled).work();
    });
    if progress.stop.load(Ordering::Relaxed) {
        return Err(UpscaleError::Cancelled);
    }
    Ok(())
}

struct Worker<'a, 'b> {
    job: &'b Job<'b>,
    progress: &'b Progress,
    places: usize,
    delivery: Option<Delivery<'a, 'b>>,
    cancelled: Cancelled<'b>,
    /// Tasks that are finished, all before it included.
    finished: usize,
}

/// Stops the others when a thread panics: they would wait for its segment forever.
struct StopOnPanic<'a>(&'a Progress);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop.store(true, Ordering::Relaxed);
        }
    }
}

impl<'a, 'b> Worker<'a, 'b> {
    fn new(
        job: &'b Job<'b>,
        output: &'b Output,
        progress: &'b Progress,
        delivery: Option<Delivery<'a, 'b>>,
        cancelled: Cancelled<'b>,
    ) -> Self {
        Self {
            job,
            progress,
            places: output.places,
            delivery,
            cancelled,
            finished: 0,
        }
    }

    /// Works until nothing is left or someone said stop.
    fn work(mut self) {
        let _stop = StopOnPanic(self.progress);
        let _flush = FlushDenormals::begin();
        let mut scratch = Scratch::new(self.job);
        // One ticket more than is being worked on: what it reads is fetched ahead.
        let mut counted = (0, 0);
        let mut upcoming = self.take(&mut counted);
        while let Some((task, ticket)) = upcoming {
            if !self.ready(task) {
                break;
            }
            upcoming = self.take(&mut counted);
            scratch.ahead.clear();
            if let Some((_, next)) = &upcoming {
                self.job.look_ahead(next, true, &mut scratch.ahead);
            }
            self.job.look_ahead(&ticket, false, &mut scratch.ahead);
            self.job.plan.kernels.call(Computing {
                job: self.job,
                scratch: &mut scratch,
                ticket: &ticket,
            });
            self.progress.finished[task].fetch_add(1, Ordering::Release);
            self.deliver();
        }
        let last = self.job.schedule.last_tasks.len();
        self.wait(|worker| {
            worker
                .delivery
                .as_ref()
                .is_none_or(|delivery| delivery.next == last)
        });
    }

    /// The next segment no one has taken, with its task; `counted` are the tasks before it and their segments.
    fn take(&self, (task, first): &mut (usize, usize)) -> Option<(usize, Ticket)> {
        let tasks = &self.job.schedule.tasks;
        let index = self.progress.next.fetch_add(1, Ordering::Relaxed);
        while *task < tasks.len() && index >= *first + tasks[*task].segments.len() {
            *first += tasks[*task].segments.len();
            *task += 1;
        }
        let found = tasks.get(*task)?;
        let ticket = Ticket {
            layer: found.layer,
            work: found.work,
            weights_slot: found.weights_slot,
            segment: found.segments.start + index - *first,
        };
        Some((*task, ticket))
    }

    /// Waits for what a task needs; false when the job is to stop.
    fn ready(&mut self, task: usize) -> bool {
        let Task {
            needs, layer, work, ..
        } = self.job.schedule.tasks[task];
        let last_row = match work {
            Work::Rows { tile_row, count } if layer + 1 == self.job.plan.layers.len() => {
                tile_row + count - 1
            }
            _ => 0,
        };
        let places = self.places;
        self.wait(|worker| {
            let delivered = worker.progress.delivered.load(Ordering::Acquire);
            delivered + places > last_row && worker.has_finished(needs)
        })
    }

    /// Whether the first `needs` tasks are finished.
    fn has_finished(&mut self, needs: usize) -> bool {
        let tasks = &self.job.schedule.tasks;
        while self.finished < needs {
            let done = self.progress.finished[self.finished].load(Ordering::Acquire);
            if (done as usize) < tasks[self.finished].segments.len() {
                return false;
            }
            self.finished += 1;
        }
        true
    }

    /// Spins until `there` holds; false when the job is to stop.
    fn wait(&mut self, there: impl Fn(&mut Self) -> bool) -> bool {
        let mut spins = 0;
        loop {
            if self.should_stop() {
                return false;
            }
            if there(self) {
                return true;
            }
            self.deliver();
            spins += 1;
            if spins < SPINS {
                std::hint::spin_loop();
            } else {
                std::thread::yield_now();
            }
        }
    }

    fn should_stop(&self) -> bool {
        if (self.cancelled)() {
            self.progress.stop.store(true, Ordering::Relaxed);
        }
        self.progress.stop.load(Ordering::Relaxed)
    }

    /// Hands on the rows that are finished, if that is this thread's duty.
    fn deliver(&mut self) {
        let Some(mut delivery) = self.delivery.take() else {
            return;
        };
        let tasks = &self.job.schedule.last_tasks;
        while delivery.next < tasks.len() && self.has_finished_task(tasks[delivery.next]) {
            if delivery.hand_on(self.job).is_break() {
                self.progress.stop.store(true, Ordering::Relaxed);
                break;
            }
            self.progress
                .delivered
                .store(delivery.next, Ordering::Release);
        }
        self.delivery = Some(delivery);
    }

    fn has_finished_task(&self, task: usize) -> bool {
        let done = self.progress.finished[task].load(Ordering::Acquire);
        done as usize == self.job.schedule.tasks[task].segments.len()
    }
}

impl Delivery<'_, '_> {
    fn hand_on(&mut self, job: &Job<'_>) -> ControlFlow<()> {
        let (scale, side) = (job.plan.scale, job.plan.shuffle);
        let tile_row = self.next;
        let first_row = tile_row * TILE * side;
        // Squares of source pixels may reach below the source: their rows are cut.
        let row_count = (TILE * side).min((job.source.height() * scale).saturating_sub(first_row));
        self.next += 1;
        if row_count == 0 {
            return ControlFlow::Continue(());
        }
        let samples = self.output.read(tile_row, row_count);
        let rows = Rows {
            first_row,
            row_count,
            row_samples: job.source.width() * scale * job.source.channels(),
            samples: &samples,
        };
        (self.sink)(rows)
    }
}

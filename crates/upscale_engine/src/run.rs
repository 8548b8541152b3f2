//! Threads over a schedule: each takes the next segment, waits until its input is there, computes it. The calling
//! thread works like the others and, between segments, hands finished rows to the sink.

use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use upscale_core::{Pixels, Rows};
use upscale_simd::FlushDenormals;

use crate::error::UpscaleError;
use crate::job::{Job, Output, Ticket};
use crate::plan::Plan;
use crate::schedule::{Task, Work};
use crate::scratch::Scratch;
use crate::sleepers::{Need, Sleepers};
use crate::task::Computing;
use crate::winograd::TILE;

/// Rounds of a waiting loop before the thread sleeps: other threads are rarely late by more than a few microseconds, unless the
/// machine is busy with something else or has fewer cores than there are threads.
const SPINS: u32 = 500;

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
    sleepers: Sleepers,
}

impl Progress {
    fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.sleepers.wake_all();
    }

    fn has_finished(&self, tasks: &[Task], task: usize) -> bool {
        let segments = tasks.get(task).map(|task| task.segments.len());
        segments.is_some_and(|all| self.finished[task].load(Ordering::Acquire) as usize == all)
    }
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
        sleepers: Sleepers::default(),
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
            self.0.stop();
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
        let mut upcoming = None;
        while let Some((task, ticket)) = upcoming.take().or_else(|| self.take(&mut counted)) {
            if !self.ready(task) {
                break;
            }
            // Rows are handed on with no ticket in hand: the others would soon wait for that one, and did while the sink worked
            // (S at 4x to a PNG, two threads: 0.406 s, and 0.388 without).
            if !self.is_delivery_due() {
                upcoming = self.take(&mut counted);
            }
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
            self.finish_segment(task);
            if upcoming.is_none() {
                self.deliver();
            }
        }
        while let Some(tasks) = self.next_delivery() {
            let need = Need {
                tasks,
                delivered: 0,
            };
            if !self.wait(need) {
                break;
            }
            self.deliver();
        }
    }

    fn finish_segment(&self, task: usize) {
        let before = self.progress.finished[task].fetch_add(1, Ordering::Release);
        // Others wait for whole tasks.
        if before as usize + 1 == self.job.schedule.tasks[task].segments.len() {
            self.wake();
        }
    }

    fn wake(&self) {
        let (progress, tasks) = (self.progress, &self.job.schedule.tasks);
        let delivered = progress.delivered.load(Ordering::Acquire);
        let has_finished = |task| progress.has_finished(tasks, task);
        progress.sleepers.wake(has_finished, delivered);
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
        self.wait(Need {
            tasks: needs,
            delivered: (last_row + 1).saturating_sub(self.places),
        })
    }

    /// Whether the first `needs` tasks are finished.
    fn has_finished(&mut self, needs: usize) -> bool {
        let tasks = &self.job.schedule.tasks;
        while self.finished < needs {
            if !self.progress.has_finished(tasks, self.finished) {
                return false;
            }
            self.finished += 1;
        }
        true
    }

    /// Waits until the need is met; false when the job is to stop.
    fn wait(&mut self, need: Need) -> bool {
        let mut spins = 0;
        loop {
            if self.should_stop() {
                return false;
            }
            if self.is_met(need) {
                return true;
            }
            if self.presses(need) {
                self.deliver();
            }
            spins += 1;
            if spins < SPINS {
                std::hint::spin_loop();
                continue;
            }
            let (progress, need) = (self.progress, self.next_need(need));
            progress.sleepers.sleep(need, || {
                progress.stop.load(Ordering::Relaxed) || self.is_met(need)
            });
        }
    }

    fn is_met(&mut self, need: Need) -> bool {
        !self.is_out_of_rows(need) && self.has_finished(need.tasks)
    }

    /// Whether the rows of the output are all in use, so that it waits for the sink.
    fn is_out_of_rows(&self, need: Need) -> bool {
        self.progress.delivered.load(Ordering::Acquire) < need.delivered
    }

    /// Tasks after which a thread that waits, a ticket in its hand, hands rows on all the same: there are none left for it to
    /// write to, or half of them wait for the sink. Were all of them left to wait, the thread that it waits for could wait for a
    /// row itself.
    fn pressing(&self, need: Need) -> Option<usize> {
        let delivery = self.delivery.as_ref()?;
        let more = if self.is_out_of_rows(need) {
            0
        } else {
            self.places / 2
        };
        let tasks = &self.job.schedule.last_tasks;
        tasks.get(delivery.next + more).map(|task| task + 1)
    }

    fn presses(&self, need: Need) -> bool {
        self.pressing(need)
            .is_some_and(|tasks| self.is_finished(tasks - 1))
    }

    /// What a thread sleeps for: the one that delivers waits for no one else to deliver.
    fn next_need(&self, need: Need) -> Need {
        match self.pressing(need) {
            Some(row) if self.is_out_of_rows(need) => Need {
                tasks: row,
                delivered: 0,
            },
            Some(row) => Need {
                tasks: row.min(need.tasks),
                ..need
            },
            None => need,
        }
    }

    /// Tasks that must be finished before the next row of tiles is surely there; none where this thread has none to deliver.
    fn next_delivery(&self) -> Option<usize> {
        let tasks = &self.job.schedule.last_tasks;
        let delivery = self.delivery.as_ref()?;
        tasks.get(delivery.next).map(|task| task + 1)
    }

    fn should_stop(&self) -> bool {
        if (self.cancelled)() {
            self.progress.stop();
        }
        self.progress.stop.load(Ordering::Relaxed)
    }

    /// Hands on the rows that are finished, if that is this thread's duty.
    fn deliver(&mut self) {
        let Some(mut delivery) = self.delivery.take() else {
            return;
        };
        let tasks = &self.job.schedule.last_tasks;
        while delivery.next < tasks.len() && self.is_finished(tasks[delivery.next]) {
            if delivery.hand_on(self.job).is_break() {
                self.progress.stop();
                break;
            }
            let delivered = &self.progress.delivered;
            delivered.store(delivery.next, Ordering::Release);
            self.wake();
        }
        self.delivery = Some(delivery);
    }

    /// Whether rows wait for this thread to hand them on.
    fn is_delivery_due(&self) -> bool {
        let next = self.next_delivery();
        next.is_some_and(|tasks| self.is_finished(tasks - 1))
    }

    fn is_finished(&self, task: usize) -> bool {
        self.progress.has_finished(&self.job.schedule.tasks, task)
    }
}

impl Delivery<'_, '_> {
    fn hand_on(&mut self, job: &Job<'_>) -> ControlFlow<()> {
        let tile_row = self.next;
        self.next += 1;
        let rows = rows_made(job.plan, job.source, tile_row);
        if rows.is_empty() {
            return ControlFlow::Continue(());
        }
        (self.sink)(Rows {
            first_row: rows.start,
            row_count: rows.len(),
            row_samples: row_samples(job.plan, job.source),
            samples: &self.output.read(tile_row, &(0..rows.len())),
        })
    }
}

/// Hands on the rows of strips, all of them there: those of one source row at a time, whose memory is then given back.
pub(crate) fn hand_on_strips(
    plan: &Plan,
    source: &Pixels,
    output: &Output,
    sink: Sink<'_>,
) -> Result<(), UpscaleError> {
    let _flush = FlushDenormals::begin();
    for tile_row in 0..output.places {
        let rows = rows_made(plan, source, tile_row);
        for first in (0..rows.len()).step_by(plan.scale) {
            let part = first..(first + plan.scale).min(rows.len());
            let handed = sink(Rows {
                first_row: rows.start + first,
                row_count: part.len(),
                row_samples: row_samples(plan, source),
                samples: &output.read(tile_row, &part),
            });
            output.discard(tile_row, &part);
            if handed.is_break() {
                return Err(UpscaleError::Cancelled);
            }
        }
    }
    Ok(())
}

/// Result rows of a row of tiles. Squares of source pixels may reach below the source: their rows are cut.
fn rows_made(plan: &Plan, source: &Pixels, tile_row: usize) -> Range<usize> {
    let height = source.height() * plan.scale;
    let [start, end] = [tile_row, tile_row + 1].map(|row| (row * TILE * plan.shuffle).min(height));
    start..end
}

/// Samples of a result row.
pub(crate) fn row_samples(plan: &Plan, source: &Pixels) -> usize {
    source.width() * plan.scale * source.channels()
}

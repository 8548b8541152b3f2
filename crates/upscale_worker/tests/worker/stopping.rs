//! The loop as a whole: it keeps its slots busy, looks after the house, and stops in order.

use std::time::Duration;

use tokio::{sync::oneshot, task::JoinHandle, time::timeout};
use upscale_worker::{MaintenanceOptions, WorkerOptions, maintain};

use crate::{
    children::{assert_gone, wait_for_file},
    world::{World, quick_maintenance},
};

const LONG: Duration = Duration::from_secs(30);

/// A worker that runs until it is told to stop.
struct Running {
    stop: oneshot::Sender<()>,
    ended: JoinHandle<()>,
}

impl Running {
    fn start(world: &World, options: WorkerOptions) -> Self {
        let worker = world.worker(options);
        let (stop, stopped) = oneshot::channel();
        let ended = tokio::spawn(worker.run(async {
            let _ = stopped.await;
        }));
        Self { stop, ended }
    }

    async fn stop(self) {
        self.stop.send(()).unwrap();
        timeout(LONG, self.ended).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn jobs_are_done_as_they_come_and_no_more_at_a_time_than_there_are_slots() {
    let world = World::start().await;
    let mut tasks = vec![world.order("/before.png", World::gated_source()).await];
    let running = Running::start(&world, world.options(world.good_child()));
    for path in ["/1.png", "/2.png", "/3.png", "/4.png"] {
        tasks.push(world.order(path, World::gated_source()).await);
    }
    world.source.wait_until_open(2).await;
    world
        .wait_for("a report", |glance| glance.live_slots == 2)
        .await;
    assert_eq!(world.glance().await.claimed, 2);
    world.source.open_gate();
    world
        .wait_for("an empty queue", |glance| {
            glance.claimed + glance.waiting == 0
        })
        .await;
    for task in &tasks {
        assert_eq!(world.result(task).await.width, 80);
    }
    assert_eq!(world.source.open_max(), 2);
    running.stop().await;
    assert_eq!(world.glance().await.live_slots, 0);
    world.assert_books(5).await;
}

#[tokio::test]
async fn what_is_under_way_at_shutdown_ends_and_nothing_new_begins() {
    let world = World::start().await;
    let mut options = world.options(world.good_child());
    options.slots = 1;
    let running = Running::start(&world, options);
    let first = world.order("/first.png", World::gated_source()).await;
    world.source.wait_until_open(1).await;
    // Before its first report a worker counts as signed off too, and the gate would open before it is told to stop.
    world
        .wait_for("a report", |glance| glance.live_slots == 1)
        .await;
    world.order("/second.png", World::gated_source()).await;
    let stopping = running.stop();
    let opening = async {
        world
            .wait_for("signing off", |glance| glance.live_slots == 0)
            .await;
        world.source.open_gate();
    };
    tokio::join!(stopping, opening);
    assert_eq!(world.result(&first).await.width, 80);
    let glance = world.glance().await;
    assert_eq!((glance.waiting, glance.claimed), (1, 0));
    assert_eq!(world.source.requests().len(), 1);
    world.assert_books(1).await;
}

#[tokio::test]
async fn what_does_not_end_while_draining_is_given_back_unharmed() {
    let world = World::start().await;
    let mut options = world.options(world.stage.child("echo $$ > pid; exec sleep 1000"));
    options.drain = Duration::from_millis(50);
    let running = Running::start(&world, options);
    world.order("/a.png", World::good_source()).await;
    let pid = world.stage.path("pid");
    wait_for_file(&pid).await;
    running.stop().await;
    assert_gone(&pid).await;
    let claim = world.claim().await;
    assert_eq!(
        (claim.attempt, claim.crashes, claim.transient_failures),
        (2, 0, 0)
    );
    world.assert_books(0).await;
}

#[tokio::test]
async fn a_worker_that_is_dropped_leaves_no_child() {
    let world = World::start().await;
    let child = world.stage.child("echo $$ > pid; exec sleep 1000");
    let running = Running::start(&world, world.options(child));
    world.order("/a.png", World::good_source()).await;
    let pid = world.stage.path("pid");
    wait_for_file(&pid).await;
    running.ended.abort();
    assert_gone(&pid).await;
    // As after a kill of the whole process: the lease runs out, and the image is not blamed.
    world.clock.advance_seconds(61);
    let claim = world.claim().await;
    assert_eq!((claim.interruptions, claim.crashes), (1, 0));
    world.assert_books(0).await;
}

#[tokio::test]
async fn what_a_dead_worker_had_claimed_is_done_by_another_before_any_lease_ends() {
    let world = World::start().await;
    let owners = world.folder.path().join("owners");
    let mut options = world.options(world.stage.child("echo $$ > pid; exec sleep 1000"));
    options.slots = 1;
    options.owners = Some(owners.clone());
    let doomed = Running::start(&world, options);
    let task = world.order("/a.png", World::good_source()).await;
    wait_for_file(&world.stage.path("pid")).await;
    let mut options = world.options(world.good_child());
    options.owners = Some(owners.clone());
    options.maintenance = Some(MaintenanceOptions {
        owners: Some(owners.clone()),
        ..quick_maintenance()
    });
    let heir = Running::start(&world, options);
    let other = world.order("/b.png", World::good_source()).await;
    world
        .wait_for("the other task", |glance| {
            (glance.claimed, glance.waiting) == (1, 0)
        })
        .await;
    doomed.ended.abort();
    world
        .wait_for("an empty queue", |glance| {
            glance.claimed + glance.waiting == 0
        })
        .await;
    for task in [task, other] {
        assert_eq!(world.result(&task).await.width, 80);
    }
    heir.stop().await;
    assert_eq!(std::fs::read_dir(&owners).unwrap().count(), 0, "no litter");
    world.assert_books(2).await;
}

#[tokio::test]
async fn overdue_tasks_are_failed_and_refunded_whether_or_not_anyone_worked_at_them() {
    let world = World::start().await;
    let mut options = world.options(world.stage.child("exec sleep 1000"));
    options.slots = 1;
    options.drain = Duration::from_millis(50);
    options.maintenance = Some(quick_maintenance());
    let running = Running::start(&world, options);
    let worked_at = world.order("/a.png", World::gated_source()).await;
    world.source.wait_until_open(1).await;
    let waiting = world.order("/b.png", World::gated_source()).await;
    world.clock.advance_seconds(271);
    world.wait_until_nothing_is_reserved().await;
    running.stop().await;
    for task in [worked_at, waiting] {
        let failure = world.failure(&task).await;
        assert!(failure.contains("within 270 seconds"), "{failure}");
    }
    world.assert_books(0).await;
}

#[tokio::test]
async fn results_past_retention_are_swept_and_the_record_stays() {
    let world = World::start().await;
    let mut options = world.options(world.good_child());
    options.maintenance = Some(quick_maintenance());
    let running = Running::start(&world, options);
    let task = world.order("/a.png", World::good_source()).await;
    world
        .wait_for("the end", |glance| glance.claimed + glance.waiting == 0)
        .await;
    assert_eq!(world.result_files(), 1);
    let name = world.result(&task).await.name;
    world.clock.advance_seconds(49 * 3_600);
    let swept = timeout(LONG, async {
        // The clock stepped, so the service has to run for an hour, and for another from the sweep that notes the result.
        while world.result_files() > 0 {
            world.clock.advance_seconds(60);
            world.store.look_at_clock().await.unwrap();
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        while !world
            .store
            .tasks()
            .find_result(&name)
            .await
            .unwrap()
            .unwrap()
            .removed
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    swept.await.unwrap();
    running.stop().await;
    world.assert_books(1).await;
}

#[tokio::test]
async fn a_process_without_a_worker_ends_overdue_tasks_too() {
    let world = World::start().await;
    let task = world.order("/a.png", World::good_source()).await;
    world.clock.advance_seconds(271);
    let ended = world.wait_until_nothing_is_reserved();
    maintain(&world.store, &world.results, quick_maintenance(), ended).await;
    assert!(world.failure(&task).await.contains("within 270 seconds"));
    world.assert_books(0).await;
}

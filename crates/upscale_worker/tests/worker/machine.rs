//! What is the machine's fault is not the picture's: a child that was killed, one whose sandbox is not whole, and what a
//! child leaves behind.

use std::time::Duration;

use tokio::sync::watch;
use upscale_core::{AttemptFailure, Parameters, Scale, limits::INTERRUPTIONS_BEFORE_ALONE};
use upscale_pipeline::{ChildEnd, ChildOptions};
use upscale_worker::{AttemptEnd, AttemptError};

use crate::{
    attempts::RETRY_SECONDS,
    children::{assert_gone, wait_for_file},
    fake_child::{Stage, done, frames},
    world::World,
};

async fn end_of(child: &ChildOptions) -> ChildEnd {
    let job = child.job(Parameters::at(Scale::X2));
    child.upscale(&job, b"source").await.unwrap_err()
}

#[tokio::test]
async fn a_child_that_was_killed_from_outside_is_not_the_pictures_fault() {
    let stage = Stage::new();
    stage.put("answer", &frames(&done(Scale::X2, 100)));
    for script in [
        "cat > job; kill -KILL $$",
        "cat > job; cat answer; kill -KILL $$",
    ] {
        let end = end_of(&stage.child(script)).await;
        assert!(matches!(end, ChildEnd::Killed(_)), "{end}");
        let error = AttemptError::from(end);
        assert_eq!(error.failure, AttemptFailure::Transient, "{error}");
        assert!(error.detail.contains("signal: 9"), "{error}");
    }
}

#[tokio::test]
async fn a_child_whose_sandbox_is_not_whole_is_the_machines_fault() {
    let stage = Stage::new();
    let end = end_of(&stage.child("echo 'it lacks landlock' >&2; exit 71")).await;
    assert!(matches!(end, ChildEnd::WeakSandbox(_)), "{end}");
    let error = AttemptError::from(end);
    assert_eq!(error.failure, AttemptFailure::Transient, "{error}");
    assert_eq!(
        error.message,
        "The image could not be processed at the moment. Try again with a new Idempotency-Key."
    );
}

#[tokio::test]
async fn a_child_killed_for_memory_is_tried_again_alone_and_counts_as_nothing() {
    let world = World::start().await;
    world.stage.put("answer", &frames(&done(Scale::X2, 5_000)));
    // The first is killed once the second runs; the third looks whether the second is over.
    let script = "
        if mkdir first 2>/dev/null; then
          while [ ! -d second ]; do sleep 0.01; done
          kill -KILL $$
        elif mkdir second 2>/dev/null; then
          cat > job; sleep 0.5; touch over; cat answer
        else
          cat > job; [ -e over ] && echo alone > how || echo beside > how; cat answer
        fi";
    let worker = world.worker_of(world.stage.child(script));
    let tasks = [
        world.order("/a.png", World::good_source()).await,
        world.order("/b.png", World::good_source()).await,
    ];
    let claims = world.store.tasks().claim("a test", 2, &[]).await.unwrap();
    let (_release, released) = watch::channel(false);
    let attempts = tokio::join!(
        worker.work_once(&claims[0], released.clone()),
        worker.work_once(&claims[1], released)
    );
    assert_eq!(attempts, (AttemptEnd::Succeeded, AttemptEnd::Succeeded));
    for task in &tasks {
        assert_eq!(world.result(task).await.width, 80);
    }
    let how = std::fs::read_to_string(world.stage.path("how")).unwrap();
    assert_eq!(how.trim(), "alone");
}

#[tokio::test]
async fn an_image_that_was_interrupted_twice_has_no_other_beside_it() {
    let world = World::start().await;
    world.stage.put("answer", &frames(&done(Scale::X2, 5_000)));
    let script = "
        cat > job;
        if mkdir first 2>/dev/null; then
          echo yes > begun; sleep 0.5; touch over
        else
          [ -e over ] && echo alone > how || echo beside > how
        fi;
        cat answer";
    let worker = world.worker_of(world.stage.child(script));
    for path in ["/a.png", "/b.png"] {
        world.order(path, World::good_source()).await;
    }
    let mut claims = world.store.tasks().claim("a test", 2, &[]).await.unwrap();
    claims[1].interruptions = INTERRUPTIONS_BEFORE_ALONE;
    let (_release, released) = watch::channel(false);
    let second = async {
        wait_for_file(&world.stage.path("begun")).await;
        worker.work_once(&claims[1], released.clone()).await
    };
    let attempts = tokio::join!(worker.work_once(&claims[0], released.clone()), second);
    assert_eq!(attempts, (AttemptEnd::Succeeded, AttemptEnd::Succeeded));
    let how = std::fs::read_to_string(world.stage.path("how")).unwrap();
    assert_eq!(how.trim(), "alone");
}

#[tokio::test]
async fn a_child_killed_even_alone_is_tried_later_and_is_no_crash() {
    let world = World::start().await;
    world.order("/a.png", World::good_source()).await;
    let worker = world.worker_of(world.stage.child("cat > job; kill -KILL $$"));
    let claim = world.claim().await;
    let (_release, released) = watch::channel(false);
    assert_eq!(
        worker.work_once(&claim, released).await,
        AttemptEnd::RetryLater
    );
    world.clock.advance_seconds(RETRY_SECONDS);
    let next = world.claim().await;
    assert_eq!((next.crashes, next.transient_failures), (0, 1));
}

/// A script that leaves a process of its own behind, deaf to everything, and says which.
const LEAVE: &str = "(trap '' HUP INT TERM; exec sleep 1000) > /dev/null 2>&1 < /dev/null &
    echo $! > left;";

#[tokio::test]
async fn what_a_child_started_ends_with_its_answer() {
    let stage = Stage::new();
    stage.put("answer", &frames(&done(Scale::X2, 100)));
    let child = stage.child(&format!("{LEAVE} cat > job; cat answer"));
    let job = child.job(Parameters::at(Scale::X2));
    assert!(child.upscale(&job, b"source").await.is_ok());
    assert_gone(&stage.path("left")).await;
}

#[tokio::test]
async fn what_a_child_started_ends_with_its_crash_and_at_the_wall_clock() {
    for last in ["exit 3", "exec sleep 1000"] {
        let stage = Stage::new();
        let mut child = stage.child(&format!("{LEAVE} cat > job; {last}"));
        child.wall_clock = Duration::from_millis(1_500);
        let end = end_of(&child).await;
        let as_expected = match last {
            "exit 3" => matches!(end, ChildEnd::Crashed(_)),
            _ => matches!(end, ChildEnd::OutOfTime { .. }),
        };
        assert!(as_expected, "{last}: {end}");
        assert_gone(&stage.path("left")).await;
    }
}

#[tokio::test]
async fn what_a_child_started_ends_when_the_child_is_no_longer_wanted() {
    let stage = Stage::new();
    let child = stage.child(&format!("{LEAVE} exec sleep 1000"));
    let job = child.job(Parameters::at(Scale::X2));
    let left = stage.path("left");
    tokio::select! {
        outcome = child.upscale(&job, b"source") => panic!("{outcome:?}"),
        () = wait_for_file(&left) => {}
    }
    assert_gone(&left).await;
}

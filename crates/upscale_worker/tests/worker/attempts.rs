//! One attempt against the real store: how each kind of end is settled, and that an attempt which lost
//! its claim changes nothing.

use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};
use upscale_core::{Scale, hex};
use upscale_pipeline::{Answer, read_job};
use upscale_worker::AttemptEnd;

use crate::{
    children::{assert_gone, wait_for_file},
    fake_child::done,
    source::{Step, answer},
    world::World,
};

/// Longer than any delay before another attempt, shorter than a lease.
pub(crate) const RETRY_SECONDS: i64 = 21;
const LEASE_SECONDS: i64 = 60;

#[tokio::test]
async fn a_good_image_is_stored_charged_and_described_truly() {
    let world = World::start().await;
    let task = world.order("/a.png", World::good_source()).await;
    let worker = world.worker_of(world.good_child());
    assert_eq!(world.attempt(&worker).await, AttemptEnd::Succeeded);

    let Answer::Done { png, thumbnail, .. } = done(Scale::X2, 5_000) else {
        unreachable!()
    };
    let file = world.result(&task).await;
    assert_eq!((file.width, file.height), (80, 60));
    assert_eq!(file.size_bytes, png.len() as u64);
    assert_eq!(file.sha256, hex(&Sha256::digest(&png)));
    let stored = world.folder.path().join("results");
    let stored = std::fs::read(stored.join(format!("{}.png", file.name))).unwrap();
    assert!(stored == png, "other bytes were stored");
    let preview = file.preview.unwrap();
    assert_eq!(preview.thumbnail_bytes as usize, thumbnail.len());
    assert_eq!(preview.focus_permille, [250, 750]);
    let stored = world.folder.path().join("results");
    let stored = std::fs::read(stored.join(format!("{}.thumb.png", file.name))).unwrap();
    assert!(stored == thumbnail, "another thumbnail was stored");
    world.assert_books(1).await;
}

#[tokio::test]
async fn a_sample_is_at_hand_and_no_one_is_asked_for_it() {
    let world = World::start().await;
    let sample = upscale_core::SAMPLES[1];
    let task = world.order_url(&sample.url()).await;
    let worker = world.worker_of(world.good_child());
    assert_eq!(world.attempt(&worker).await, AttemptEnd::Succeeded);
    assert_eq!(world.result(&task).await.width, 80);
    let job = std::fs::read(world.stage.path("job")).unwrap();
    let mut job = job.as_slice();
    let (_, bytes) = read_job(&mut job).unwrap();
    let given = upscale_pipeline::read_source(&mut job, bytes).unwrap();
    assert!(
        given == sample.bytes,
        "another picture was given to the child"
    );
    world.assert_books(1).await;
}

#[tokio::test]
async fn an_image_alone_is_ordered_with_all_cores() {
    let world = World::start().await;
    world.order("/a.png", World::good_source()).await;
    let mut options = world.options(world.good_child());
    options.cores = Some(6);
    let worker = world.worker(options);
    assert_eq!(world.attempt(&worker).await, AttemptEnd::Succeeded);
    let job = std::fs::read(world.stage.path("job")).unwrap();
    let (job, _) = read_job(&mut job.as_slice()).unwrap();
    assert_eq!(job.threads, 6);
}

#[tokio::test]
async fn a_permanent_failure_ends_the_task_at_the_first_attempt() {
    let world = World::start().await;
    let missing = vec![Step::Send(answer("404 Not Found", "", b""))];
    let task = world.order("/a.png", missing).await;
    let worker = world.worker_of(world.good_child());
    assert_eq!(world.attempt(&worker).await, AttemptEnd::Failed);
    assert_eq!(
        world.failure(&task).await,
        "The image URL returned 404. No credits were charged."
    );
    world.assert_books(0).await;
}

#[tokio::test]
async fn what_the_child_refuses_fails_in_its_words() {
    let world = World::start().await;
    let task = world.order("/a.png", World::good_source()).await;
    let refusal = Answer::Refused("The source is not a JPEG, PNG or WebP".to_owned());
    let worker = world.worker_of(world.stage.answering(&refusal));
    assert_eq!(world.attempt(&worker).await, AttemptEnd::Failed);
    assert_eq!(
        world.failure(&task).await,
        "The source is not a JPEG, PNG or WebP. No credits were charged."
    );
    world.assert_books(0).await;
}

#[tokio::test]
async fn a_source_is_asked_for_ninety_seconds_and_no_longer() {
    let world = World::start().await;
    let busy = vec![Step::Send(answer("503 Busy", "", b""))];
    let task = world.order("/a.png", busy).await;
    let worker = world.worker_of(world.good_child());
    // At 0, 21, 42, 63 and 84 s; the sixth try is after the ninetieth.
    for _ in 0..5 {
        assert_eq!(world.attempt(&worker).await, AttemptEnd::RetryLater);
        world.clock.advance_seconds(RETRY_SECONDS);
    }
    assert_eq!(world.attempt(&worker).await, AttemptEnd::Failed);
    assert!(world.failure(&task).await.contains("returned 503"));
    assert_eq!(world.source.requests().len(), 6);
    world.assert_books(0).await;
}

#[tokio::test]
async fn a_source_that_names_a_time_is_not_asked_before() {
    let world = World::start().await;
    let lines = "Retry-After: 40\r\n";
    let busy = vec![Step::Send(answer("503 Busy", lines, b""))];
    world.order("/a.png", busy).await;
    let worker = world.worker_of(world.good_child());
    assert_eq!(world.attempt(&worker).await, AttemptEnd::RetryLater);
    world.clock.advance_seconds(39);
    assert_eq!(
        world.store.tasks().claim("another", 1, &[]).await.unwrap(),
        []
    );
    world.source.set("/a.png", World::good_source());
    world.clock.advance_seconds(1);
    assert_eq!(world.attempt(&worker).await, AttemptEnd::Succeeded);
    world.assert_books(1).await;
}

#[tokio::test]
async fn an_account_with_all_its_downloads_under_way_gets_its_claim_back_unharmed() {
    let world = World::start().await;
    let task = world.order("/a.png", World::good_source()).await;
    let mut options = world.options(world.good_child());
    options.fetch.budgets.per_account = 1;
    let worker = world.worker(options);
    let first = world.claim().await;
    world.order("/b.png", World::gated_source()).await;
    let second = world.claim().await;
    let (_release, released) = watch::channel(false);
    let (end, ()) = tokio::join!(worker.work_once(&second, released.clone()), async {
        world.source.wait_until_open(1).await;
        assert_eq!(
            worker.work_once(&first, released).await,
            AttemptEnd::Released
        );
        world.source.open_gate();
    });
    assert_eq!(end, AttemptEnd::Succeeded);
    let again = world.claim().await;
    assert_eq!((again.crashes, again.transient_failures), (0, 0));
    let (_release, released) = watch::channel(false);
    assert_eq!(
        worker.work_once(&again, released).await,
        AttemptEnd::Succeeded
    );
    assert_eq!(world.result(&task).await.width, 80);
    world.assert_books(2).await;
}

#[tokio::test]
async fn a_transient_failure_that_passes_costs_nothing_but_time() {
    let world = World::start().await;
    let busy = vec![Step::Send(answer("429 Slow down", "", b""))];
    let task = world.order("/a.png", busy).await;
    let worker = world.worker_of(world.good_child());
    assert_eq!(world.attempt(&worker).await, AttemptEnd::RetryLater);
    world.source.set("/a.png", World::good_source());
    world.clock.advance_seconds(RETRY_SECONDS);
    assert_eq!(world.attempt(&worker).await, AttemptEnd::Succeeded);
    assert_eq!(world.result(&task).await.width, 80);
    world.assert_books(1).await;
}

#[tokio::test]
async fn the_second_crash_of_a_child_is_the_last() {
    let world = World::start().await;
    let task = world.order("/a.png", World::good_source()).await;
    let worker = world.worker_of(world.stage.child("cat > job; kill -SEGV $$"));
    assert_eq!(world.attempt(&worker).await, AttemptEnd::RetryLater);
    world.clock.advance_seconds(RETRY_SECONDS);
    assert_eq!(world.attempt(&worker).await, AttemptEnd::Failed);
    assert_eq!(
        world.failure(&task).await,
        "The image could not be processed. No credits were charged."
    );
    world.assert_books(0).await;
}

#[tokio::test]
async fn a_result_that_cannot_be_stored_is_stored_later_and_not_made_again() {
    let world = World::start().await;
    let task = world.order("/a.png", World::good_source()).await;
    let worker = world.worker_of(world.good_child());
    let results = world.folder.path().join("results");
    std::fs::remove_dir_all(&results).unwrap();
    std::fs::write(&results, "in the way").unwrap();
    let job = world.stage.path("job");
    let mending = async {
        while !job.exists() {
            sleep(Duration::from_millis(5)).await;
        }
        sleep(Duration::from_millis(600)).await;
        std::fs::remove_file(&results).unwrap();
        std::fs::create_dir(&results).unwrap();
    };
    let (end, ()) = tokio::join!(world.attempt(&worker), mending);
    assert_eq!(end, AttemptEnd::Succeeded);
    assert_eq!(world.source.requests().len(), 1);
    assert_eq!(world.result(&task).await.height, 60);
    world.assert_books(1).await;
}

#[tokio::test]
async fn a_result_that_cannot_be_stored_until_the_deadline_fails_the_task() {
    let world = World::start().await;
    let task = world.order("/a.png", World::good_source()).await;
    let results = world.folder.path().join("results");
    std::fs::remove_dir_all(&results).unwrap();
    std::fs::write(&results, "in the way").unwrap();
    let mut claim = world.claim().await;
    claim.deadline_at = world.store.now().plus_seconds(5);
    let worker = world.worker_of(world.good_child());
    let (_release, released) = watch::channel(false);
    assert_eq!(worker.work_once(&claim, released).await, AttemptEnd::Failed);
    let failure = world.failure(&task).await;
    assert!(failure.contains("still being stored"), "{failure}");
    std::fs::remove_file(&results).unwrap();
    std::fs::create_dir(&results).unwrap();
    world.assert_books(0).await;
}

#[tokio::test]
async fn heartbeats_keep_a_claim_as_long_as_the_work_takes() {
    let world = World::start().await;
    let task = world.order("/a.png", World::gated_source()).await;
    let mut options = world.options(world.good_child());
    options.heartbeat_every = Duration::from_millis(20);
    let worker = world.worker(options);
    let watching = async {
        world.source.wait_until_open(1).await;
        for _ in 0..3 {
            // Without a heartbeat the lease is over now; with one it is alive again.
            world.clock.advance_seconds(LEASE_SECONDS + 1);
            world
                .wait_for("a heartbeat", |glance| glance.claimed == 1)
                .await;
        }
        assert_eq!(
            world.store.tasks().claim("another", 1, &[]).await.unwrap(),
            []
        );
        world.source.open_gate();
    };
    let (end, ()) = tokio::join!(world.attempt(&worker), watching);
    assert_eq!(end, AttemptEnd::Succeeded);
    assert_eq!(world.result(&task).await.width, 80);
    world.assert_books(1).await;
}

#[tokio::test]
async fn an_attempt_whose_claim_went_to_another_is_stopped_by_its_heartbeat() {
    let world = World::start().await;
    let task = world.order("/a.png", World::good_source()).await;
    let mut options = world.options(world.stage.child("echo $$ > pid; exec sleep 1000"));
    options.heartbeat_every = Duration::from_millis(300);
    let slow = world.worker(options);
    let claim = world.claim().await;
    let (_release, released) = watch::channel(false);
    let pid = world.stage.path("pid");
    let stealing = async {
        wait_for_file(&pid).await;
        // As if this process had been stopped for longer than a lease; a beat in between would renew it.
        let second = loop {
            world.clock.advance_seconds(LEASE_SECONDS + 1);
            let claims = world.store.tasks().claim("another", 1, &[]).await.unwrap();
            if let Some(claim) = claims.into_iter().next() {
                break claim;
            }
        };
        assert_eq!((second.attempt, second.interruptions), (2, 1));
        let (_release, released) = watch::channel(false);
        let quick = world.worker_of(world.good_child());
        quick.work_once(&second, released).await
    };
    let (lost, done) = tokio::join!(slow.work_once(&claim, released), stealing);
    assert_eq!((lost, done), (AttemptEnd::Lost, AttemptEnd::Succeeded));
    assert_gone(&pid).await;
    assert_eq!(world.result(&task).await.width, 80);
    world.assert_books(1).await;
}

#[tokio::test]
async fn a_late_settlement_changes_nothing_and_leaves_an_orphan() {
    let world = World::start().await;
    let task = world.order("/a.png", World::good_source()).await;
    let worker = world.worker_of(world.good_child());
    let stale = world.claim().await;
    world.clock.advance_seconds(LEASE_SECONDS + 1);
    assert_eq!(world.attempt(&worker).await, AttemptEnd::Succeeded);
    let file = world.result(&task).await;

    let (_release, released) = watch::channel(false);
    assert_eq!(worker.work_once(&stale, released).await, AttemptEnd::Lost);
    assert_eq!(world.result(&task).await, file);
    assert_eq!(world.result_files(), 2);
    world.assert_books(1).await;
}

#[tokio::test]
async fn a_late_failure_takes_nothing_back() {
    let world = World::start().await;
    let task = world.order("/a.png", World::good_source()).await;
    let stale = world.claim().await;
    world.clock.advance_seconds(LEASE_SECONDS + 1);
    let good = world.worker_of(world.good_child());
    assert_eq!(world.attempt(&good).await, AttemptEnd::Succeeded);
    let refusing = world.worker_of(world.stage.answering(&Answer::Refused("no".to_owned())));
    let (_release, released) = watch::channel(false);
    assert_eq!(refusing.work_once(&stale, released).await, AttemptEnd::Lost);
    assert_eq!(world.result(&task).await.width, 80);
    world.assert_books(1).await;
}

#[tokio::test]
async fn a_released_attempt_kills_its_child_and_gives_the_job_back_unharmed() {
    let world = World::start().await;
    let task = world.order("/a.png", World::good_source()).await;
    let worker = world.worker_of(world.stage.child("echo $$ > pid; exec sleep 1000"));
    let claim = world.claim().await;
    let (release, released) = watch::channel(false);
    let pid = world.stage.path("pid");
    let stopping = async {
        wait_for_file(&pid).await;
        release.send_replace(true);
    };
    let (end, ()) = tokio::join!(worker.work_once(&claim, released), stopping);
    assert_eq!(end, AttemptEnd::Released);
    assert_gone(&pid).await;

    let next = world.claim().await;
    assert_eq!(
        (next.attempt, next.crashes, next.transient_failures),
        (2, 0, 0)
    );
    let (_release, released) = watch::channel(false);
    let worker = world.worker_of(world.good_child());
    assert_eq!(
        worker.work_once(&next, released).await,
        AttemptEnd::Succeeded
    );
    assert_eq!(world.result(&task).await.width, 80);
    world.assert_books(1).await;
}

#[tokio::test]
async fn work_is_cut_before_the_deadline_and_the_customer_is_told() {
    let world = World::start().await;
    let task = world.order("/a.png", World::gated_source()).await;
    let mut claim = world.claim().await;
    // Two seconds are the margin; what is left is gone at once.
    claim.deadline_at = world.store.now().plus_seconds(2);
    let worker = world.worker_of(world.good_child());
    let (_release, released) = watch::channel(false);
    assert_eq!(worker.work_once(&claim, released).await, AttemptEnd::Failed);
    assert_eq!(
        world.failure(&task).await,
        "The image could not be processed within 270 seconds: the image host had not responded. \
         No credits were charged."
    );
    world.assert_books(0).await;
}

#[tokio::test]
async fn who_waits_for_the_images_host_until_the_deadline_is_told_so() {
    let world = World::start().await;
    let mut options = world.options(world.good_child());
    options.fetch.budgets.per_destination = 1;
    let worker = world.worker(options);
    world.order("/a.png", World::gated_source()).await;
    let first = world.claim().await;
    let task = world.order("/b.png", World::good_source()).await;
    let mut second = world.claim().await;
    second.deadline_at = world.store.now().plus_seconds(2);
    let (_release, released) = watch::channel(false);
    let cut = async {
        world.source.wait_until_open(1).await;
        assert_eq!(
            worker.work_once(&second, released.clone()).await,
            AttemptEnd::Failed
        );
        world.source.open_gate();
    };
    tokio::join!(worker.work_once(&first, released.clone()), cut);
    let failure = world.failure(&task).await;
    assert!(
        failure.contains("waiting to download from the image host"),
        "{failure}"
    );
    world.assert_books(1).await;
}

#[tokio::test]
async fn a_download_that_is_cut_says_how_many_bytes_had_arrived() {
    let world = World::start().await;
    let half = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\npicture".to_vec();
    let task = world
        .order("/a.png", vec![Step::Send(half), Step::Hang])
        .await;
    let mut claim = world.claim().await;
    claim.deadline_at = world.store.now().plus_seconds(6);
    let worker = world.worker_of(world.good_child());
    let (_release, released) = watch::channel(false);
    assert_eq!(worker.work_once(&claim, released).await, AttemptEnd::Failed);
    let failure = world.failure(&task).await;
    assert!(
        failure.contains("7 of 100 bytes had been downloaded"),
        "{failure}"
    );
    world.assert_books(0).await;
}

#[tokio::test]
async fn a_retry_that_could_not_end_before_the_deadline_is_not_begun() {
    let world = World::start().await;
    let busy = vec![Step::Send(answer("500 Oops", "", b""))];
    let task = world.order("/a.png", busy).await;
    let mut claim = world.claim().await;
    let mut options = world.options(world.good_child());
    options.deadline_margin = Duration::from_secs(269);
    // A clock that stands still leaves one second of the 270, and no delay is shorter than none.
    claim.deadline_at = world.store.now().plus_seconds(270);
    let worker = world.worker(options);
    let (_release, released) = watch::channel(false);
    let end = timeout(Duration::from_secs(30), worker.work_once(&claim, released)).await;
    assert_eq!(end.unwrap(), AttemptEnd::Failed);
    // Whether the source or the clock was first, the customer has an answer now.
    let failure = world.failure(&task).await;
    assert!(
        failure.contains("500") || failure.contains("270"),
        "{failure}"
    );
    world.assert_books(0).await;
}

#[tokio::test]
async fn a_turn_that_panics_or_is_dropped_leaves_a_claim_that_runs_out() {
    let world = World::start().await;
    let task = world.order("/a.png", World::gated_source()).await;
    let worker = world.worker_of(world.good_child());
    tokio::select! {
        end = world.attempt(&worker) => panic!("{end:?}"),
        () = world.source.wait_until_open(1) => {}
    }
    assert_eq!(
        world.store.tasks().claim("another", 1, &[]).await.unwrap(),
        []
    );
    world.clock.advance_seconds(LEASE_SECONDS + 1);
    world.source.open_gate();
    sleep(Duration::from_millis(1)).await;
    assert_eq!(world.attempt(&worker).await, AttemptEnd::Succeeded);
    assert_eq!(world.result(&task).await.width, 80);
    world.assert_books(1).await;
}

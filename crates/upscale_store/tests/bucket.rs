//! Result files in a bucket: the same verbs as in a directory, links that the storage honours, faults that pass.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

#[allow(
    dead_code,
    unreachable_pub,
    reason = "shared with the tests of the whole service"
)]
#[path = "../../upscale/tests/harness/bucket.rs"]
mod storage;

use bytes::Bytes;
use futures_util::TryStreamExt;
use storage::{Bucket, Fault};
use tempfile::TempDir;
use upscale_core::{
    Clock, Credits, IdempotencyKey, NewTask, Parameters, RequestId, ResultFile, Scale, SourceUrl,
    Timestamp, random_token,
};
use upscale_store::{
    BucketOptions, CreateOutcome, Link, Results, Settlement, Store, StoreError, StoreOptions,
};

fn open(bucket: &Bucket) -> Results {
    Results::bucket(&options(bucket)).unwrap()
}

fn options(bucket: &Bucket) -> BucketOptions {
    BucketOptions {
        url: bucket.url(),
        variables: bucket.variables(),
        public_endpoint: None,
    }
}

async fn read(results: &Results, name: &str, range: Option<std::ops::Range<u64>>) -> Vec<u8> {
    let body = results.open(name, range).await.unwrap().unwrap();
    let chunks: Vec<Bytes> = body.stream.try_collect().await.unwrap();
    chunks.concat()
}

#[tokio::test]
async fn a_file_is_put_read_linked_and_removed_under_the_prefix() {
    let folder = TempDir::new().unwrap();
    let bucket = Bucket::start(folder.path());
    let results = open(&bucket);
    let name = random_token().unwrap();
    let bytes: Vec<u8> = (0..300_000).map(|at| (at % 241) as u8).collect();
    results.put(&name, bytes.clone().into()).await.unwrap();
    assert_eq!(bucket.objects(), [format!("{name}.png")]);
    assert_eq!(read(&results, &name, None).await, bytes);
    assert_eq!(read(&results, &name, Some(5..9)).await, bytes[5..9]);
    let link = Link {
        is_head: false,
        file_name: "ups_1.png",
        seconds: 300,
    };
    let url = results.link(&name, &link).await.unwrap().unwrap();
    assert!(
        url.contains("/results/kept/") && url.contains("X-Amz-Expires=300"),
        "{url}"
    );
    assert!(
        url.contains("response-content-disposition=attachment%3B%20filename%3D%22ups_1.png%22"),
        "{url}"
    );
    results.delete(&name).await.unwrap();
    results.delete(&name).await.unwrap();
    assert!(results.open(&name, None).await.unwrap().is_none());
    assert!(matches!(
        results.put("../up", Bytes::new()).await,
        Err(StoreError::Refused(_))
    ));
}

#[tokio::test]
async fn a_check_tries_everything_and_leaves_nothing() {
    let folder = TempDir::new().unwrap();
    let bucket = Bucket::start(folder.path());
    let steps = open(&bucket).check().await.unwrap();
    let problems: Vec<_> = steps.iter().filter(|step| step.problem.is_some()).collect();
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!(steps.len(), 10);
    assert_eq!(bucket.objects(), Vec::<String>::new());

    let mut wrong = options(&bucket);
    wrong
        .variables
        .retain(|(name, _)| name != "AWS_SECRET_ACCESS_KEY");
    wrong
        .variables
        .push(("AWS_SECRET_ACCESS_KEY".to_owned(), "another".to_owned()));
    let steps = Results::bucket(&wrong).unwrap().check().await.unwrap();
    assert_eq!(steps.len(), 1, "it ends where nothing can be written");
    let problem = steps[0].problem.clone().unwrap();
    assert!(problem.starts_with("the secret key is wrong"), "{problem}");
    assert!(!problem.contains("another"), "{problem}");

    wrong.variables = bucket.variables();
    wrong.variables[0].1 = "http://127.0.0.1:9".to_owned();
    let steps = Results::bucket(&wrong).unwrap().check().await.unwrap();
    let problem = steps[0].problem.clone().unwrap();
    assert!(problem.starts_with("nothing answers"), "{problem}");
}

#[tokio::test]
async fn faults_that_pass_are_retried_and_others_are_said() {
    let folder = TempDir::new().unwrap();
    let bucket = Bucket::start(folder.path());
    let results = open(&bucket);
    for fault in [Fault::Refuses, Fault::HangsUp, Fault::LosesAnswer] {
        let name = random_token().unwrap();
        bucket.fail_next_puts(&[fault]);
        results
            .put(&name, Bytes::from_static(b"bytes"))
            .await
            .unwrap();
        assert_eq!(read(&results, &name, None).await, b"bytes", "{fault:?}");
    }
    bucket.fail_all(Some(Fault::Refuses));
    let name = random_token().unwrap();
    let refused = results.put(&name, Bytes::from_static(b"bytes")).await;
    assert!(
        matches!(refused, Err(StoreError::Unavailable(_))),
        "{refused:?}"
    );
    bucket.fail_all(None);
    assert!(results.open(&name, None).await.unwrap().is_none());
}

/// A store with one finished task, whose file has this name.
async fn one_success(folder: &TempDir, clock: &Clock, name: &str) -> Store {
    let options = StoreOptions::default();
    let store = Store::open_sqlite(folder.path(), clock.clone(), options)
        .await
        .unwrap();
    let account = store.accounts().create("A customer").await.unwrap().id;
    let credits = Credits::from_thousandths(700);
    store
        .accounts()
        .credit(&account, credits, "payment")
        .await
        .unwrap();
    let key = IdempotencyKey::parse(b"the-only-key").unwrap();
    let task = NewTask {
        source_url: SourceUrl::parse("https://pictures.example.org/a.png").unwrap(),
        parameters: Parameters::at(Scale::X2),
    };
    let request = RequestId::random().unwrap();
    let created = store
        .tasks()
        .create(&account, &key, &task, &request)
        .await
        .unwrap();
    assert!(matches!(created, CreateOutcome::Created(_)), "{created:?}");
    let claim = store
        .tasks()
        .claim("worker", 1, &[])
        .await
        .unwrap()
        .remove(0);
    let file = ResultFile {
        name: name.to_owned(),
        sha256: "0".repeat(64),
        size_bytes: 5,
        width: 2,
        height: 2,
        preview: None,
        look: None,
    };
    let succeeded = Settlement::Succeeded(file);
    store
        .tasks()
        .settle(
            &claim.task_id,
            claim.attempt,
            succeeded,
            upscale_store::Spent::slot(1.0),
        )
        .await
        .unwrap();
    store
}

/// As the service does: it looks at the clock every minute.
async fn run_for_an_hour(store: &Store, clock: &Clock) {
    for _ in 0..60 {
        clock.advance_seconds(60);
        store.look_at_clock().await.unwrap();
    }
}

#[tokio::test]
async fn retention_removes_what_is_due_and_orphans_of_every_part() {
    let folder = TempDir::new().unwrap();
    let bucket = Bucket::start(folder.path());
    let results = open(&bucket);
    let name = random_token().unwrap();
    results
        .put(&name, Bytes::from_static(b"bytes"))
        .await
        .unwrap();
    let clock = Clock::manual(Clock::System.now());
    let store = one_success(&folder, &clock, &name).await;
    // An orphan in each of the eight parts, and a file of others that is none of ours.
    for part in 0..8 {
        let orphan = format!("{part}{}", &random_token().unwrap()[1..]);
        results
            .put(&orphan, Bytes::from_static(b"orphan"))
            .await
            .unwrap();
    }
    let kept = Bytes::from_static(b"small");
    results.put_thumbnail(&name, kept).await.unwrap();
    assert!(bucket.file(&format!("{name}.thumb.png")).exists());
    // A thumbnail whose result an older program removed is an orphan by itself.
    let lone = format!("3{}", &random_token().unwrap()[1..]);
    let small = Bytes::from_static(b"small");
    results.put_thumbnail(&lone, small).await.unwrap();
    std::fs::write(bucket.file("0-not-ours.png"), b"x").unwrap();
    assert_eq!(
        store.sweep(&results).await.unwrap(),
        0,
        "nothing is old yet"
    );
    run_for_an_hour(&store, &clock).await;
    clock.advance_seconds(100);
    let mut removed = 0;
    for _ in 0..8 {
        removed += store.sweep(&results).await.unwrap();
        clock.advance_seconds(3_600);
    }
    assert_eq!(removed, 9, "each part once, and the lone thumbnail");
    assert!(!bucket.file(&format!("{lone}.thumb.png")).exists());
    assert!(bucket.file(&format!("{name}.thumb.png")).exists());
    let mut left = bucket.objects();
    left.sort();
    let mut expected = [format!("{name}.png"), "0-not-ours.png".to_owned()];
    expected.sort();
    assert_eq!(left, expected);
    assert!(
        store
            .audit(Some(&results))
            .await
            .unwrap()
            .breaches
            .is_empty()
    );
    clock.advance_seconds(48 * 3_600);
    for expected in [0, 0, 1] {
        assert_eq!(store.sweep(&results).await.unwrap(), expected);
        run_for_an_hour(&store, &clock).await;
    }
    assert_eq!(bucket.objects(), ["0-not-ours.png"]);
    let thumbnail = bucket.file(&format!("{name}.thumb.png"));
    assert!(!thumbnail.exists(), "it went along");
}

#[tokio::test]
async fn an_audit_finds_a_result_that_the_bucket_lost() {
    let folder = TempDir::new().unwrap();
    let bucket = Bucket::start(folder.path());
    let results = open(&bucket);
    let name = random_token().unwrap();
    let clock = Clock::manual(Timestamp::from_micros(1_767_268_800_000_000));
    let store = one_success(&folder, &clock, &name).await;
    let report = store.audit(Some(&results)).await.unwrap();
    assert_eq!(report.breaches.len(), 1, "{report:?}");
    assert_eq!(report.breaches[0].invariant, "I7");
}

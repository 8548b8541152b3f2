//! A panic of the writing or a reading thread ends the process. Each test runs itself again as the process that dies.

use std::{
    env,
    os::unix::process::ExitStatusExt,
    process::{Command, Stdio},
    time::Duration,
};

use crate::{Store, StoreError, conformance::setting::sqlite, tx::Tx};

const IS_CHILD: &str = "UPSCALE_TEST_DIES";
const SIGABRT: i32 = 6;

/// Runs the test of this name in a process of its own; whether that aborted, and what it said.
fn die_elsewhere(test: &str) -> (bool, String) {
    let child = Command::new(env::current_exe().unwrap())
        .args([
            "--exact",
            &format!("sqlite::tests::panics::{test}"),
            "--nocapture",
        ])
        .env(IS_CHILD, "1")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let reported = String::from_utf8_lossy(&child.stderr).into_owned();
    (child.status.signal() == Some(SIGABRT), reported)
}

/// In the process that is to die.
async fn panic_in(verb: impl AsyncFnOnce(&Store) -> Result<(), StoreError>) {
    let at = sqlite().await;
    let answer = verb(&at.store).await;
    // The answer is lost a moment before the end.
    tokio::time::sleep(Duration::from_secs(60)).await;
    panic!("still alive: {answer:?}");
}

#[tokio::test]
async fn a_writing_thread_that_panics_ends_the_process() {
    if env::var_os(IS_CHILD).is_some() {
        let panics = async |_: &mut Tx| -> Result<(), StoreError> { panic!("a bug in a verb") };
        panic_in(async move |store: &Store| store.write(panics).await).await;
    }
    let (aborted, reported) = die_elsewhere("a_writing_thread_that_panics_ends_the_process");
    assert!(
        aborted && reported.contains("a bug in a verb"),
        "{reported}"
    );
}

#[tokio::test]
async fn a_reading_thread_that_panics_ends_the_process() {
    if env::var_os(IS_CHILD).is_some() {
        let panics = async |_: &mut Tx| -> Result<(), StoreError> { panic!("a bug in a verb") };
        panic_in(async move |store: &Store| store.read(panics).await).await;
    }
    let (aborted, reported) = die_elsewhere("a_reading_thread_that_panics_ends_the_process");
    assert!(
        aborted && reported.contains("a bug in a verb"),
        "{reported}"
    );
}

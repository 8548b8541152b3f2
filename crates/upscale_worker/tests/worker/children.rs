//! Whatever a child does, the parent gets a checked PNG or one clear failure, and no process stays behind.

use std::{
    io::{BufRead, BufReader, Write},
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{ChildStdout, Stdio},
    time::Duration,
};

use tokio::time::{sleep, timeout};
use upscale_core::{AttemptFailure, Look, Parameters, Scale};
use upscale_pipeline::{Answer, CheckedResult, ChildOptions, read_job, read_source};
use upscale_worker::AttemptError;

use crate::fake_child::{Stage, done, facts, frames, png};

const X2: Scale = Scale::X2;

async fn upscale(child: &ChildOptions, source: &[u8]) -> Result<CheckedResult, AttemptError> {
    let job = child.job(Parameters::at(X2));
    Ok(child.upscale(&job, source).await?)
}

/// Asserts that the script counts as a crash, and what the logs are told of it.
async fn assert_crashes(child: &ChildOptions, says: &str) {
    let error = upscale(child, b"source").await.unwrap_err();
    assert_eq!(error.failure, AttemptFailure::Crash, "{error}");
    assert_eq!(error.message, "The image could not be processed");
    assert!(error.detail.contains(says), "{error}: {says:?} is missing");
}

/// Asserts that the script is over for good, and what the customer and the logs are told of it.
async fn assert_out_of_time(child: &ChildOptions, message: &str, says: &str) {
    let error = upscale(child, b"source").await.unwrap_err();
    assert_eq!(error.failure, AttemptFailure::Permanent, "{error}");
    assert_eq!(error.message, message);
    assert!(error.detail.contains(says), "{error}: {says:?} is missing");
}

#[tokio::test]
async fn a_child_gets_its_job_and_its_png_comes_back() {
    let stage = Stage::new();
    let Answer::Done {
        facts,
        png,
        thumbnail,
    } = done(X2, 3 * 1024 * 1024)
    else {
        unreachable!()
    };
    let child = stage.answering(&Answer::Done {
        facts,
        png: png.clone(),
        thumbnail: thumbnail.clone(),
    });
    let source = vec![9; 5 * 1024 * 1024];
    let upscaled = upscale(&child, &source).await.unwrap();
    assert_eq!(
        upscaled,
        CheckedResult {
            facts,
            png,
            thumbnail,
            look: Some(Look::Faithful),
        }
    );
    let job = std::fs::read(stage.path("job")).unwrap();
    let mut job = job.as_slice();
    let (read, source_bytes) = read_job(&mut job).unwrap();
    let (job, given) = (read, read_source(&mut job, source_bytes).unwrap());
    assert_eq!(job, child.job(Parameters::at(X2)));
    assert_eq!((job.threads, job.source_pixels_max), (2, 1_500_000));
    assert_eq!(given, source);
}

#[tokio::test]
async fn a_refusal_is_permanent_in_the_childs_words() {
    let stage = Stage::new();
    let reported = "The image is 2000 x 2000 = 4.00 MP, at most 1.50 MP";
    let child = stage.answering(&Answer::Refused(reported.to_owned()));
    let error = upscale(&child, b"source").await.unwrap_err();
    assert_eq!(error, AttemptError::permanent(reported));
}

#[tokio::test]
async fn a_child_may_refuse_before_it_has_read_its_source() {
    let stage = Stage::new();
    stage.put("answer", &frames(&Answer::Refused("no".to_owned())));
    let error = upscale(&stage.child("cat answer"), &vec![0; 20 * 1024 * 1024]).await;
    assert_eq!(error.unwrap_err(), AttemptError::permanent("no"));
}

#[tokio::test]
async fn a_child_that_broke_says_so_to_the_logs_only() {
    let stage = Stage::new();
    let child = stage.answering(&Answer::Broke("no weights".to_owned()));
    assert_crashes(&child, "no weights").await;
}

#[tokio::test]
async fn ends_without_an_answer_are_crashes() {
    let stage = Stage::new();
    for (script, says) in [
        ("cat > job", "exit status: 0"),
        ("exit 3", "exit status: 3"),
        ("cat > job; kill -SEGV $$", "signal: 11"),
        ("cat > job; kill -ABRT $$", "signal: 6"),
    ] {
        assert_crashes(&stage.child(script), says).await;
    }
}

#[tokio::test]
async fn half_an_answer_is_a_crash() {
    let stage = Stage::new();
    let whole = frames(&done(X2, 100_000));
    stage.put("half", &whole[..whole.len() / 2]);
    assert_crashes(
        &stage.child("cat > job; cat half; exit 1"),
        "exit status: 1",
    )
    .await;
}

#[tokio::test]
async fn a_child_that_hangs_is_killed_at_the_wall_clock_and_not_tried_again() {
    let stage = Stage::new();
    for script in [
        "echo $$ > pid; exec sleep 1000",
        "echo $$ > pid; cat > job; printf '\\002\\377\\377'; exec sleep 1000",
    ] {
        let mut child = stage.child(script);
        child.wall_clock = Duration::from_millis(1_500);
        let message = "The image could not be processed within 1.5 seconds.";
        assert_out_of_time(&child, message, "no answer within 1.5s").await;
        assert_gone(&stage.path("pid")).await;
    }
}

/// As the kernel ends it: SIGXCPU.
#[tokio::test]
async fn a_child_that_has_used_up_its_processor_time_is_not_tried_again() {
    let child = Stage::new().child("cat > job; ulimit -c 0; kill -XCPU $$");
    let message = "The image could not be processed within 60 seconds of processor time.";
    assert_out_of_time(&child, message, "signal: 24").await;
}

#[tokio::test]
async fn a_child_that_is_busy_and_deaf_crashes() {
    let stage = Stage::new();
    // Its side of the pipe is closed.
    let mut child = stage.child("echo $$ > pid; exec cat > /dev/null < /dev/zero");
    child.wall_clock = Duration::from_millis(1_500);
    assert_crashes(&child, "it still runs and is killed").await;
    assert_gone(&stage.path("pid")).await;
}

#[tokio::test]
async fn garbage_is_a_crash() {
    let stage = Stage::new();
    for (script, says) in [
        ("cat > job; echo hello world", "a frame of 1819043176 bytes"),
        ("cat > job; exec cat /dev/zero", "a frame of nothing known"),
        (
            "cat > job; printf '\\377\\377\\377\\377'",
            "a frame of 4294967295 bytes",
        ),
        (
            "cat > job; printf '\\001\\000\\000\\000\\007'",
            "a frame of nothing known",
        ),
    ] {
        assert_crashes(&stage.child(script), says).await;
    }
}

#[tokio::test]
async fn an_answer_counts_only_with_a_clean_end_behind_it() {
    let stage = Stage::new();
    stage.put("answer", &frames(&done(X2, 100)));
    for (script, says) in [
        ("cat > job; cat answer; echo more", "spoke on"),
        ("cat > job; cat answer; exit 1", "exit status: 1"),
        ("cat > job; cat answer; kill -SEGV $$", "signal: 11"),
    ] {
        assert_crashes(&stage.child(script), says).await;
    }
}

#[tokio::test]
async fn a_child_that_lingers_after_its_answer_is_killed() {
    let stage = Stage::new();
    stage.put("answer", &frames(&done(X2, 100)));
    let child = stage.child("echo $$ > pid; cat > job; cat answer; exec sleep 1000");
    assert_crashes(&child, "did not end within").await;
    assert_gone(&stage.path("pid")).await;
}

#[tokio::test]
async fn results_that_do_not_fit_the_job_are_crashes() {
    let stage = Stage::new();
    let four_times = done(Scale::X4, 100);
    let other_size = Answer::Done {
        facts: facts(40, 30, X2),
        png: png(80, 61, 100),
        thumbnail: Vec::new(),
    };
    let too_many = Answer::Done {
        facts: facts(2_000, 1_000, X2),
        png: png(4_000, 2_000, 100),
        thumbnail: Vec::new(),
    };
    let no_png = Answer::Done {
        facts: facts(40, 30, X2),
        png: b"GIF89a".to_vec(),
        thumbnail: Vec::new(),
    };
    let large_thumbnail = Answer::Done {
        facts: facts(40, 30, X2),
        png: png(80, 60, 100),
        thumbnail: png(200, 60, 100),
    };
    let no_thumbnail = Answer::Done {
        facts: facts(40, 30, X2),
        png: png(80, 60, 100),
        thumbnail: b"<svg onload=alert()>".to_vec(),
    };
    for (answer, says) in [
        (four_times, "not 80 x 60"),
        (other_size, "header says"),
        (too_many, "at most 1500000 pixels"),
        (no_png, "does not begin as a PNG"),
        (large_thumbnail, "the thumbnail's header"),
        (no_thumbnail, "thumbnail does not begin as a PNG"),
    ] {
        assert_crashes(&stage.answering(&answer), says).await;
    }
    let mut job = stage.child("").job(Parameters::at(X2));
    job.result_bytes_max = 1_000;
    let child = stage.answering(&done(X2, 1_000));
    let end = child.upscale(&job, b"source").await.unwrap_err();
    let error = AttemptError::from(end);
    assert!(error.detail.contains("a result of"), "{error}");
}

#[tokio::test]
async fn a_child_that_babbles_on_standard_error_is_read_in_part_and_not_stopped() {
    let stage = Stage::new();
    stage.put("answer", &frames(&done(X2, 100)));
    let babble =
        "cat > job; head -c 1000000 /dev/zero >&2; cat answer; head -c 1000000 /dev/zero >&2";
    assert!(upscale(&stage.child(babble), b"source").await.is_ok());
}

#[tokio::test]
async fn a_dropped_child_is_killed_and_waited_for() {
    let stage = Stage::new();
    let child = stage.child("echo $$ > pid; exec sleep 1000");
    let pid = stage.path("pid");
    tokio::select! {
        outcome = upscale(&child, b"source") => panic!("{outcome:?}"),
        () = wait_for_file(&pid) => {}
    }
    assert_gone(&pid).await;
}

#[tokio::test]
async fn a_child_inherits_no_variable_no_folder_and_no_process_group() {
    let stage = Stage::new();
    stage.put("answer", &frames(&done(X2, 100)));
    // The shell itself adds PWD and the like; what cargo sets for every test must not be there.
    let script = "read -r a b c d group rest < /proc/$$/stat; cat > job;
        [ \"$UPSCALE_CPU\" = scalar ] && [ -z \"$CARGO_MANIFEST_DIR$HOME\" ] && [ \"$OLDPWD\" = / ] &&
        [ \"$group\" = $$ ] && cat answer";
    let upscaled = upscale(&stage.child(script), b"source").await;
    assert!(upscaled.is_ok(), "{upscaled:?}");
}

#[tokio::test]
async fn a_program_that_is_not_there_is_transient() {
    let mut child = Stage::new().child("");
    child.program = "/no/such/program".into();
    let error = upscale(&child, b"source").await.unwrap_err();
    assert_eq!(error.failure, AttemptFailure::Transient);
    assert!(error.detail.contains("not started"), "{error}");
}

/// Holds a write lease (fcntl(2)): anyone who opens the file waits until it is given up, 45 s at most. Says when it has it,
/// and for each line that it reads, whether it still has it.
const LEASE_HOLDER: &str = "\
import fcntl, signal, sys
signal.signal(signal.SIGIO, signal.SIG_IGN)
file = open(sys.argv[1], 'r+b')
fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print('held', flush=True)
for line in sys.stdin:
    # While another waits, the kernel names what the lease is to become.
    print('held' if fcntl.fcntl(file, fcntl.F_GETLEASE) == fcntl.F_WRLCK else 'waited for', flush=True)
";

#[tokio::test]
async fn a_program_that_cannot_be_opened_yet_holds_nothing_up_but_its_own_task() {
    let stage = Stage::new();
    stage.put("program", b"#!/bin/sh\nexit 0\n");
    let mut child = stage.child("");
    child.program = stage.path("program");
    let mut permissions = std::fs::metadata(&child.program).unwrap().permissions();
    permissions.set_mode(0o755);
    std::fs::set_permissions(&child.program, permissions).unwrap();
    let mut holder = Holder::start(&child.program);
    assert_eq!(holder.next_line(), "held");

    let job = child.job(Parameters::at(X2));
    let cut = timeout(Duration::from_millis(500), child.upscale(&job, b"source")).await;
    assert!(cut.is_err(), "it was started: {cut:?}");
    assert_eq!(holder.asked(), "waited for");
}

/// A process that holds a lease on a file; it ends with this value.
struct Holder(std::process::Child, BufReader<ChildStdout>);

impl Holder {
    fn start(file: &Path) -> Self {
        let mut python = std::process::Command::new("python3");
        python.args(["-c", LEASE_HOLDER]).arg(file);
        let mut process = python
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let words = BufReader::new(process.stdout.take().unwrap());
        Self(process, words)
    }

    fn asked(&mut self) -> String {
        self.0.stdin.as_mut().unwrap().write_all(b"?\n").unwrap();
        self.next_line()
    }

    fn next_line(&mut self) -> String {
        let mut line = String::new();
        self.1.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn the_largest_legal_result_has_room() {
    let job = Stage::new().child("").job(Parameters::at(Scale::X4));
    // 12 megapixels of 16-bit RGBA, and a filter byte for each of at most 3 million rows.
    assert!(job.result_bytes_max >= 96_000_000 + 3_000_000);
    assert!(job.result_bytes_max < 128 * 1024 * 1024);
}

pub(crate) async fn wait_for_file(path: &Path) {
    while std::fs::read_to_string(path)
        .unwrap_or_default()
        .trim()
        .is_empty()
    {
        sleep(Duration::from_millis(5)).await;
    }
}

/// Neither running nor a zombie.
pub(crate) async fn assert_gone(pid_file: &Path) {
    let pid = std::fs::read_to_string(pid_file).unwrap();
    let process = Path::new("/proc").join(pid.trim());
    let gone = timeout(Duration::from_secs(20), async {
        while process.exists() {
            sleep(Duration::from_millis(5)).await;
        }
    });
    assert!(gone.await.is_ok(), "process {} is still there", pid.trim());
}

//! The order of the system calls: the row is written, the disk has it, only then the customer hears of it.

use std::{fs, process::Command};

use rustix::process::Signal;

use crate::harness::{
    World,
    client::order,
    figure::print_figure,
    serve::{signal, upscale},
};

const CALLS: &str = "trace=read,recvfrom,write,writev,sendto,pwrite64,fsync,fdatasync";

/// Whether processes can be traced here at all.
pub(crate) fn can_trace() -> bool {
    let tried = Command::new("strace")
        .args(["-o", "/dev/null", "true"])
        .output();
    tried.is_ok_and(|output| output.status.success())
}

/// What a line of the trace means for the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Asked,
    Written,
    Synced,
    Answered,
}

fn step(line: &str) -> Option<Step> {
    let is_sync = line.contains("fsync") || line.contains("fdatasync");
    if line.contains("POST /api/v1/upscales ") {
        Some(Step::Asked)
    } else if line.contains("HTTP/1.1 202") {
        Some(Step::Answered)
    } else if is_sync && line.trim_end().ends_with("= 0") {
        Some(Step::Synced)
    } else if line.contains("pwrite64(") && line.contains("-wal>") {
        Some(Step::Written)
    } else {
        None
    }
}

#[test]
fn a_task_is_on_the_disk_before_its_202_is_sent() {
    if !can_trace() {
        eprintln!(
            "left out: strace is not installed or may not trace, so the order of syncs is not seen"
        );
        return;
    }
    let mut world = World::prepare(&[]);
    let trace = world.path("trace.txt");
    let mut command = Command::new("strace");
    command
        .args(["-f", "-qq", "-y", "-s", "48", "-e", CALLS, "-o"])
        .arg(&trace);
    command.arg(upscale().get_program());
    // Without workers nothing else writes between the request and its answer.
    let serve = world.serve_beside(command, &["--workers", "0"]);
    world.direct_customers_to(&serve.api);
    let customer = world.customer("1");
    let url = world.picture("/small.png", 8, 8);
    customer
        .create("traced-key", &order(&url, 2))
        .expect(202, "");
    // The tracer itself takes no notice of signals; the service below it does, and both end.
    let traced = serve.children();
    assert_eq!(traced.len(), 1);
    assert!(signal(traced[0], Signal::TERM));
    assert_eq!(serve.stop().code(), Some(0));

    let text = fs::read_to_string(&trace).unwrap();
    let steps: Vec<Step> = text.lines().filter_map(step).collect();
    let asked = steps
        .iter()
        .position(|step| *step == Step::Asked)
        .expect("the request is traced");
    let between: Vec<Step> = steps[asked..]
        .iter()
        .copied()
        .take_while(|step| *step != Step::Answered)
        .collect();
    assert!(between.len() < steps[asked..].len(), "the answer is traced");
    let written = between.iter().rposition(|step| *step == Step::Written);
    let synced = between.iter().rposition(|step| *step == Step::Synced);
    let written = written.expect("the task is written between the request and its answer");
    assert!(
        synced.is_some_and(|synced| synced > written),
        "nothing is synced after it: {between:?}"
    );
    print_figure(
        "the order of system calls of a create",
        "fsync before 202",
        "fsync before 202",
        "1 traced create",
    );
}

#[test]
fn the_trace_reader_knows_the_steps() {
    for (line, expected) in [
        (
            r#"7 recvfrom(12<TCP>, "POST /api/v1/upscales HTTP/1.1\r"..., 64) = 64"#,
            Some(Step::Asked),
        ),
        (
            r#"7 pwrite64(9</data/upscale.db-wal>, "7"..., 24, 0) = 24"#,
            Some(Step::Written),
        ),
        (
            r#"7 pwrite64(8</data/upscale.db>, "7"..., 24, 0) = 24"#,
            None,
        ),
        (
            r"7 fdatasync(9</data/upscale.db-wal>) = 0",
            Some(Step::Synced),
        ),
        (
            r"7 fdatasync(9</data/upscale.db-wal> <unfinished ...>",
            None,
        ),
        (r"7 <... fdatasync resumed>)       = 0", Some(Step::Synced)),
        (
            r"7 fdatasync(9</data/upscale.db-wal>) = -1 EIO (Input/output error)",
            None,
        ),
        (
            r#"7 writev(12<TCP>, [{iov_base="HTTP/1.1 202 Accepted\r"..., iov_len=9}], 1) = 9"#,
            Some(Step::Answered),
        ),
    ] {
        assert_eq!(step(line), expected, "{line}");
    }
}

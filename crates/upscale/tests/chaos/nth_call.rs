//! The N-th call of a kind fails, for one N after the other: system calls of the real service while a task is created,
//! claimed, finished, refunded (`strace` attaches, fails the N-th of each thread, and lets go), of the command that
//! records a purchase, and writes to the bucket. The short form takes a few N, `UPSCALE_NTH_CALLS=N` all up to there
//! until a life ends before the N-th call. Statements and commits are failed in the store's own tests.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use rustix::process::Signal;
use tempfile::TempDir;

use super::{
    dice::Dice,
    load::{is_long, rounds_and_dice},
    sync_order::can_trace,
};
use crate::harness::{
    World,
    bucket::{Bucket, Fault},
    client::{Client, order},
    figure::print_figure,
    image_host::Behaviour,
    postgres_server::start_if_installed,
    serve::{signal, upscale},
};

const VARIABLE: &str = "UPSCALE_NTH_CALLS";
const WAIT_MAX: Duration = Duration::from_secs(120);

/// What is failed, and how: calls as strace names them (those that a processor lacks are passed over).
#[derive(Debug, Clone, Copy)]
struct Kind {
    name: &'static str,
    calls: &'static str,
    error: &'static str,
    which: Which,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    /// The N-th call of a thread, once.
    Nth,
    /// The first N calls one after the other: an attempt has one of these, so N attempts fail.
    FirstN,
}

const fn nth(name: &'static str, calls: &'static str, error: &'static str) -> Kind {
    let which = Which::Nth;
    Kind {
        name,
        calls,
        error,
        which,
    }
}

const fn first_n(name: &'static str, calls: &'static str, error: &'static str) -> Kind {
    let which = Which::FirstN;
    Kind {
        name,
        calls,
        error,
        which,
    }
}

const RENAMES: Kind = first_n("rename", "?rename,?renameat,?renameat2", "EIO");
/// Of the new process: anyone who spawned it hears of it.
const SPAWNS: Kind = first_n("spawn", "execve", "EAGAIN");
/// Attempts at most, and one more.
const FIRST_N_MAX: u64 = 6;
const FILES: [Kind; 3] = [
    nth("sync", "fsync,fdatasync", "EIO"),
    nth("write at a place", "pwrite64", "ENOSPC"),
    nth("open", "openat", "EMFILE"),
];
const SOCKETS: [Kind; 3] = [
    nth("send", "sendto", "ECONNRESET"),
    nth("gathered send", "writev", "ECONNRESET"),
    nth("receive", "recvfrom", "ECONNRESET"),
];

/// A running strace.
struct Tracer {
    strace: Child,
    trace: PathBuf,
}

fn strace(kind: Kind, n: u64, trace: &Path) -> Command {
    let Kind { calls, error, .. } = kind;
    let when = match kind.which {
        Which::Nth => n.to_string(),
        Which::FirstN => "1+".to_owned(),
    };
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-e", &format!("trace={calls}"), "-o"]);
    strace.arg(trace).arg("-e");
    strace.arg(format!("inject={calls}:error={error}:when={when}"));
    strace
}

fn struck(trace: &Path) -> usize {
    let trace = fs::read_to_string(trace).unwrap_or_default();
    trace.matches("(INJECTED)").count()
}

impl Tracer {
    /// Counting begins once every thread is traced.
    fn attach(kind: Kind, n: u64, pid: u32, trace: &Path) -> Self {
        let mut strace = strace(kind, n, trace);
        let strace = strace.args(["-p", &pid.to_string()]).stderr(Stdio::null());
        let strace = strace.spawn().unwrap();
        let begun = Instant::now();
        while !is_traced(pid) {
            assert!(begun.elapsed() < WAIT_MAX, "strace does not attach");
            thread::sleep(Duration::from_millis(2));
        }
        let trace = trace.to_owned();
        Self { strace, trace }
    }

    /// Lets go; how many calls failed.
    fn detach(mut self) -> usize {
        signal(self.strace.id(), Signal::TERM);
        let begun = Instant::now();
        while self.strace.try_wait().unwrap().is_none() {
            // It waits for a thread that waits for its new process, which waits for strace: its own end frees them all.
            if begun.elapsed() > Duration::from_secs(1) {
                self.strace.kill().unwrap();
            }
            thread::sleep(Duration::from_millis(5));
        }
        struck(&self.trace)
    }
}

fn is_traced(pid: u32) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let status = threads
        .flatten()
        .map(|thread| fs::read_to_string(thread.path().join("status")).unwrap_or_default());
    { status }.all(|status| !status.contains("TracerPid:\t0\n"))
}

/// Asks until it is accepted, as the contract tells clients to.
fn insist(customer: &Client, key: &str, url: &str) -> String {
    let begun = Instant::now();
    loop {
        match customer.try_create(key, &order(url, 2)) {
            Some(answer) if answer.status == 202 => return answer.id(),
            Some(answer) if !matches!(answer.status, 503 | 504) => panic!("{answer:?}"),
            _ => thread::sleep(Duration::from_millis(100)),
        }
        assert!(begun.elapsed() < WAIT_MAX, "{key} was not accepted");
    }
}

/// One task that can succeed and one that cannot, each from its order to its end.
fn live(world: &World, customer: &Client, urls: &[String; 2]) {
    for (n, url) in urls.iter().enumerate() {
        let id = insist(customer, &format!("key-of-life-{n}"), url);
        let begun = Instant::now();
        loop {
            let read = customer.try_read(&id);
            let is_over = |status: &str| status != "processing";
            let read = read.filter(|answer| answer.status == 200);
            if read.is_some_and(|answer| answer.json()["status"].as_str().is_some_and(is_over)) {
                break;
            }
            assert!(
                begun.elapsed() < WAIT_MAX,
                "{id} is not over\n{}",
                world.logs()
            );
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// A life during which calls fail, until enough have.
fn live_traced(world: &World, kind: Kind, n: u64, life: impl FnOnce()) -> usize {
    let trace = world.path("trace");
    let tracer = Tracer::attach(kind, n, world.serve().pid(), &trace);
    let enough = match kind.which {
        Which::Nth => 1,
        Which::FirstN => n as usize,
    };
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let watching = scope.spawn(|| {
            while struck(&trace) < enough && !over.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(2));
            }
            tracer.detach()
        });
        life();
        over.store(true, Ordering::Relaxed);
        watching.join().unwrap()
    })
}

/// The N that are tried: a few by chance, or all.
fn ns(kind: Kind, most: u64, dice: &mut Dice) -> Vec<u64> {
    let most = match kind.which {
        Which::Nth => most,
        Which::FirstN => most.min(FIRST_N_MAX),
    };
    if is_long(VARIABLE) {
        return (1..=most).collect();
    }
    vec![1, dice.between(2, most)]
}

/// Fails one call after the other of a service; calls that failed, of each kind.
fn fail_calls(world: &World, kinds: &[Kind], most: u64, dice: &mut Dice) -> Vec<(String, usize)> {
    let gone = world.host.set("/gone.png", Behaviour::Status(404));
    let urls = [world.picture("/small.png", 12, 9), gone];
    let mut failed = Vec::new();
    for &kind in kinds {
        let (mut lives, mut calls) = (0, 0);
        for n in ns(kind, most, dice) {
            let customer = world.customer("2");
            let struck = live_traced(world, kind, n, || live(world, &customer, &urls));
            (lives, calls) = (lives + 1, calls + struck);
            assert_eq!(world.operator.audit_breaches(), Vec::<String>::new());
            if struck == 0 && n > 1 {
                break;
            }
        }
        println!(
            "{:<18} {lives:>4} lives, {calls:>4} calls failed",
            kind.name
        );
        failed.push((kind.name.to_owned(), calls));
    }
    failed
}

fn print_calls(place: &str, failed: &[(String, usize)]) {
    assert!(failed.iter().any(|(_, calls)| *calls > 0), "nothing failed");
    let calls: usize = failed.iter().map(|(_, calls)| calls).sum();
    let each: Vec<String> = failed
        .iter()
        .map(|(kind, calls)| format!("{kind} {calls}"))
        .collect();
    print_figure(
        &format!("the N-th system call fails, create to refund ({place})"),
        "every point; nothing lost, nothing charged twice",
        "0 lost, 0 doubled",
        &format!("{calls} calls failed: {}", each.join(", ")),
    );
}

#[test]
fn the_nth_call_of_a_service_on_files_fails_and_nothing_is_lost() {
    if !can_trace() {
        eprintln!("left out: failing system calls, for strace is not installed or may not trace");
        return;
    }
    let (most, mut dice) = rounds_and_dice(VARIABLE, 12);
    let mut world = World::start_with(&["--workers", "1", "--lease", "5"]);
    let kinds = [&FILES[..], &[RENAMES, SPAWNS]].concat();
    let failed = fail_calls(&world, &kinds, most, &mut dice);
    world.finish();
    let happened = |kind: &str| {
        failed
            .iter()
            .any(|(name, calls)| name == kind && *calls > 0)
    };
    for kind in ["sync", "write at a place", "rename", "spawn"] {
        assert!(happened(kind), "no {kind} ever failed");
    }
    print_calls("SQLite, files", &failed);
}

#[test]
fn the_nth_call_of_a_service_on_a_server_and_a_bucket_fails_and_nothing_is_lost() {
    let Some(postgres) = start_if_installed().filter(|_| can_trace()) else {
        eprintln!("left out: failing system calls beside PostgreSQL");
        return;
    };
    let (most, mut dice) = rounds_and_dice(VARIABLE, 12);
    let folder = TempDir::new().unwrap();
    let bucket = Bucket::start(folder.path());
    postgres.create_database("nth", None);
    let database = format!("postgres://upscale@127.0.0.1:{}/nth", postgres.port());
    let mut variables = bucket.place();
    variables.push(("UPSCALE_DATABASE".to_owned(), database));
    let flags = ["--workers", "1", "--lease", "5"];
    let mut world = World::prepare_in(folder, &flags, variables);
    world.serve_again();
    let kinds = [&SOCKETS[..], &[SPAWNS]].concat();
    let failed = fail_calls(&world, &kinds, most, &mut dice);
    world.finish();
    print_calls("PostgreSQL, S3", &failed);
}

#[test]
fn the_nth_call_of_a_purchase_fails_and_it_is_credited_once() {
    if !can_trace() {
        eprintln!(
            "left out: failing calls of a purchase, for strace is not installed or may not trace"
        );
        return;
    }
    let (most, mut dice) = rounds_and_dice(VARIABLE, 12);
    let world = World::start_with(&["--workers", "0"]);
    let visitor = world.visitor();
    let trace = world.path("trace");
    let (mut purchases, mut calls) = (0, 0);
    for kind in [&FILES[..], &[RENAMES]].concat() {
        for n in ns(kind, most, &mut dice) {
            purchases += 1;
            let reference = format!("payment {purchases}");
            let arguments = [
                "account",
                "credit",
                &visitor.account,
                "1",
                "--reference",
                &reference,
            ];
            let mut command = strace(kind, n, &trace);
            command.arg(upscale().get_program()).args(arguments);
            let first = run(command.arg("--data").arg(world.data()));
            calls += struck(&trace);
            // Whatever was said: the same reference again.
            world.credit(&visitor.account, "1", &reference);
            let (available, ..) = world.operator.money(&visitor.account);
            assert_eq!(available, purchases * 1_000, "{kind:?} {n}: {first:?}");
            if struck(&trace) == 0 && n > 1 {
                break;
            }
        }
    }
    drop(world);
    assert!(calls > 0, "nothing failed");
    print_figure(
        "the N-th system call of a purchase fails (SQLite)",
        "credited once",
        "credited once",
        &format!("{purchases} purchases, {calls} calls failed"),
    );
}

fn run(command: &mut Command) -> Output {
    command.stdin(Stdio::null()).output().unwrap()
}

/// A fault of each kind at each of three results' writes: once, which is tried again at once, and three times, which
/// costs an attempt.
#[test]
fn the_nth_write_to_a_bucket_fails_and_nothing_is_lost() {
    const RESULTS: usize = 3;
    let (_, mut dice) = rounds_and_dice(VARIABLE, 12);
    let (bucket, mut world) = World::start_in_bucket(&["--workers", "1"]);
    let url = world.picture("/small.png", 12, 9);
    let kinds = [Fault::Refuses, Fault::HangsUp, Fault::LosesAnswer];
    let points = (0..RESULTS).flat_map(|n| [1, 3].map(|times| (n, times)));
    let mut points: Vec<_> = points
        .flat_map(|(n, times)| kinds.map(|kind| (n, times, kind)))
        .collect();
    while !is_long(VARIABLE) && points.len() > 4 {
        points.swap_remove(dice.below(points.len() as u64) as usize);
    }
    for (n, times, kind) in &points {
        let customer = world.customer("3");
        let plan = [vec![None; *n], vec![Some(*kind); *times]].concat();
        bucket.plan_puts(plan);
        for result in 0..RESULTS {
            let id = insist(&customer, &format!("key-of-result-{result}"), &url);
            assert_eq!(customer.wait(&id).json()["status"], "succeeded");
        }
        let money = world.operator.money(&customer.account);
        assert_eq!(money, (900, 0, 2_100), "{n} {times} {kind:?}");
    }
    world.finish();
    let faulty = bucket.requests().1;
    print_figure(
        "the N-th PUT to the bucket fails",
        "every point; nothing lost, nothing charged twice",
        "0 lost, 0 doubled",
        &format!("{} points, {faulty} PUTs failed", points.len()),
    );
}

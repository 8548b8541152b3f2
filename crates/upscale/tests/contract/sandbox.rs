//! The child's sandbox: a child that breaks out, eats memory or processor time, hangs or dies costs its own task,
//! refunded; the service goes on. The output check: what broken kernels make is made again by the plain ones, and never
//! charged where they are broken, too. The faults are ordered by a flag that release builds do not have.

use std::{
    cell::RefCell,
    fs,
    process::{Command, Stdio},
};

use serde_json::Value;
use tempfile::TempDir;

use crate::{
    harness::{
        World,
        child::is_root,
        client::{order, send},
        pictures::Picture,
        serve::{Serve, upscale, wait_for},
    },
    metrics::scrape,
};

/// A child that does this on every attempt: the customer is told nothing of it and pays nothing, and the
/// service answers as before.
fn commit_fault(fault: &str, flags: &[&str], log_says: &str) {
    let all = [&["--child-fault", fault, "--workers", "1"][..], flags].concat();
    let mut world = World::start_with(&all);
    let customer = world.customer("1");
    let url = world.picture("/a.png", 16, 16);
    let message = customer.fail("sandbox-key", &order(&url, 2));
    assert!(message.ends_with("No credits were charged."), "{message}");
    for secret in [fault, "signal", "syscall", "memory"] {
        assert!(!message.contains(secret), "{message}");
    }
    let account = customer.account.clone();
    assert_eq!(world.operator.money(&account), (1_000, 0, 0));
    assert_eq!(customer.read("ups_00000000000000000000000000").status, 404);
    let logs = world.logs();
    assert!(logs.contains(log_says), "no {log_says:?} in {logs}");
    world.finish();
}

#[test]
fn a_child_that_opens_a_file_is_killed_by_the_kernel() {
    commit_fault("file", &[], "signal: 31");
}

#[test]
fn a_child_that_opens_a_socket_is_killed_by_the_kernel() {
    commit_fault("socket", &[], "signal: 31");
}

#[test]
fn a_child_that_makes_another_forbidden_system_call_is_killed_by_the_kernel() {
    commit_fault("system-call", &[], "signal: 31");
}

#[test]
fn a_child_that_stops_or_kills_the_service_is_killed_itself() {
    for signal in [libc::SIGSTOP, libc::SIGKILL] {
        let order = format!("call {} parent parent {signal}", libc::SYS_tgkill);
        commit_fault(&order, &[], "signal: 31");
    }
}

#[test]
fn a_child_that_forks_or_outlives_its_parent_on_purpose_is_killed_by_the_kernel() {
    for order in [
        format!("call {} {}", libc::SYS_clone, libc::SIGCHLD),
        format!("call {} {} 0", libc::SYS_prctl, libc::PR_SET_PDEATHSIG),
    ] {
        commit_fault(&order, &[], "signal: 31");
    }
}

#[test]
fn a_childs_threads_give_memory_back() {
    let mut world = World::start_with(&["--child-fault", "give-memory-back", "--workers", "1"]);
    let url = world.picture("/a.png", 16, 16);
    let customer = world.customer("1");
    customer.upscale("memory-key-0001", &order(&url, 2));
    world.finish();
}

#[test]
fn a_child_that_takes_all_memory_ends_at_its_limit() {
    commit_fault("memory", &[], "memory allocation of");
}

#[test]
fn a_child_that_aborts_costs_its_own_task_alone() {
    commit_fault("abort", &[], "signal: 6");
}

#[test]
fn a_child_that_burns_the_processor_ends_at_its_limit_or_at_the_wall_clock() {
    commit_fault(
        "cpu",
        &["--deadline", "8", "--threads", "1"],
        "\"attempt\":1",
    );
}

#[test]
fn a_child_that_hangs_is_ended_by_the_clock() {
    commit_fault("hang", &["--deadline", "6"], "\"attempt\":1");
}

/// Kernels that err: first the fast ones alone, then the plain ones as well.
fn kernels_err(fault: &str) {
    for (fault, path, charged) in [
        (fault.to_owned(), "plain", 700),
        (format!("{fault}-always"), "none", 0),
    ] {
        let flags = ["--child-fault", &fault, "--metrics-listen", "127.0.0.1:0"];
        let mut world = World::start_with(&flags);
        let customer = world.customer("1");
        let tiles = Picture {
            width: 96,
            height: 96,
            rgb: (0..96 * 96)
                .flat_map(|at| [at % 96 / 5, at / 96 / 7, (at % 96 + at / 96) / 9])
                .map(|step| (step % 3 * 80 + 40) as u8)
                .collect(),
        };
        let url = world.serve_bytes("/a.png", tiles.png(), (96, 96));
        if charged > 0 {
            customer.upscale("kernel-key", &order(&url, 2));
        } else {
            let message = customer.fail("kernel-key", &order(&url, 2));
            assert!(message.ends_with("No credits were charged."), "{message}");
        }
        let account = customer.account.clone();
        assert_eq!(
            world.operator.money(&account),
            (1_000 - charged, 0, charged)
        );
        let (_, samples) = scrape(&world);
        let count = |path| {
            let series = format!("upscale_output_check_total{{path=\"{path}\"}}");
            samples.get(&series).copied().unwrap_or(0.0)
        };
        assert_eq!(count("fast"), 0.0, "{fault}");
        assert!(count(path) >= 1.0, "{fault}: no result of the path {path}");
        world.finish();
    }
}

#[test]
fn kernels_that_make_nan_are_caught_and_never_charged() {
    kernels_err("nan");
}

#[test]
fn kernels_that_make_a_flat_field_are_caught_and_never_charged() {
    kernels_err("flat");
}

#[test]
fn kernels_that_shift_the_picture_are_caught_and_never_charged() {
    kernels_err("shifted");
}

#[test]
fn kernels_that_leave_out_a_tile_are_caught_and_never_charged() {
    kernels_err("tile");
}

/// The line of `/proc/PID/status` of this name.
fn status(pid: u32, name: &str) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn a_child_at_work_has_its_sandbox_and_dies_with_a_service_that_is_killed() {
    let mut world = World::start_with(&["--child-fault", "hang", "--deadline", "8"]);
    let customer = world.customer("1");
    let url = world.picture("/a.png", 16, 16);
    customer
        .create("sandbox-key", &order(&url, 2))
        .expect(202, "");
    // Those of the golden image hang as well: any of them will do.
    let closed = |pid: &u32| {
        let path = format!("/proc/{pid}/status");
        fs::read_to_string(path).is_ok_and(|status| status.contains("Seccomp:\t2"))
    };
    // Seen and taken in one look: its clock may end it, and another begins, between two.
    let seen = RefCell::new(None);
    wait_for("a child in its sandbox", || {
        let children = world.serve().children();
        let child = children.iter().copied().find(|pid| closed(pid));
        let mut seen = seen.borrow_mut();
        *seen = child.map(|child| (child, children));
        seen.is_some()
    });
    let (child, children) = seen.into_inner().unwrap();
    assert_eq!(status(child, "NoNewPrivs:"), "1");
    let score = fs::read_to_string(format!("/proc/{child}/oom_score_adj"));
    assert_eq!(score.unwrap().trim(), "1000");
    if is_root() {
        for name in ["Uid:", "Gid:"] {
            assert_eq!(status(child, name), "65531 65531 65531 65531");
        }
        assert_eq!(status(child, "Groups:"), "");
        assert_eq!(status(child, "CapEff:"), "0000000000000000");
    }
    world.take_serve().kill();
    for child in children {
        let process = format!("/proc/{child}/stat");
        wait_for("the end of a child whose parent was killed", || {
            let stat = fs::read_to_string(&process).unwrap_or_default();
            stat.is_empty() || stat.contains(") Z ")
        });
    }
    world.finish();
}

/// `serve` where root has no other user to become: in a user namespace that holds no one but it.
fn alone_in_a_user_namespace() -> Option<Command> {
    let mut unshare = Command::new("unshare");
    unshare.args(["--user", "--map-root-user"]);
    let tried = unshare.arg("true").status();
    if !tried.is_ok_and(|status| status.success()) {
        eprintln!("left out: this machine makes no user namespaces");
        return None;
    }
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user"]);
    command.arg(upscale().get_program());
    Some(command)
}

#[test]
fn serve_does_not_start_where_a_required_part_of_the_sandbox_is_missing() {
    let Some(mut command) = alone_in_a_user_namespace() else {
        return;
    };
    let folder = TempDir::new().unwrap();
    let refused = command
        .args(["serve", "--listen", "127.0.0.1:0", "--results-listen"])
        .args(["127.0.0.1:0", "--data"])
        .arg(folder.path().join("data"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let reported = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && refused.stdout.is_empty());
    for words in ["own user", "--allow-weak-sandbox"] {
        assert!(reported.contains(words), "{reported}");
    }
}

fn ready(serve: &Serve) -> Value {
    let url = format!("{}/readyz", serve.api);
    let ready = || send("GET", &url, &[], None).filter(|answer| answer.status == 200);
    wait_for("readiness", || ready().is_some());
    ready().unwrap().json()
}

#[test]
fn a_sandbox_that_is_allowed_to_be_weak_is_named_in_the_readiness_and_upscales() {
    let Some(command) = alone_in_a_user_namespace() else {
        return;
    };
    let mut world = World::prepare(&["--allow-weak-sandbox"]);
    let serve = world.serve_beside(command, &[]);
    let sandbox = &ready(&serve)["sandbox"];
    assert_eq!(sandbox["missing"], serde_json::json!(["own user"]));
    assert!(
        sandbox["holds"]
            .as_array()
            .unwrap()
            .contains(&"seccomp".into())
    );
    world.direct_customers_to(&serve.api);
    let customer = world.customer("1");
    let url = world.picture("/a.png", 16, 16);
    customer.upscale("sandbox-key", &order(&url, 4));
    assert!(serve.stop().success());
    let logs = world.logs();
    assert!(logs.contains("the sandbox lacks a part"), "{logs}");
    world.finish();
}

#[test]
fn every_part_of_the_sandbox_is_named_by_the_probe_the_log_and_the_readiness() {
    let probe = upscale().args(["child", "--probe"]).output().unwrap();
    assert!(probe.status.success());
    let report: Value = serde_json::from_slice(&probe.stdout).unwrap();
    assert_eq!(report["missing"], serde_json::json!([]), "{report}");
    let world = World::start();
    let sandbox = &ready(world.serve())["sandbox"];
    assert_eq!(sandbox["missing"], serde_json::json!([]));
    let holds = sandbox["holds"].as_array().unwrap();
    for part in [
        "death signal",
        "no_new_privs",
        "landlock",
        "seccomp",
        "oom score",
    ] {
        assert!(holds.contains(&part.into()), "{sandbox}");
    }
    let logs = world.logs();
    assert!(logs.contains("images are decoded in a sandbox"), "{logs}");
}

#[test]
fn a_child_of_another_parent_says_that_its_own_is_gone() {
    let probe = upscale()
        .args(["child", "--probe", "--parent", "1"])
        .output()
        .unwrap();
    let reported = String::from_utf8_lossy(&probe.stderr);
    assert!(
        !probe.status.success() && reported.contains("1 that started"),
        "{reported}"
    );
}

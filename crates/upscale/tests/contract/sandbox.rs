//! The child's cage: a child that breaks out, eats memory or processor time, hangs or dies costs its own task,
//! refunded; the service goes on. The output check: what broken kernels make is made again by the plain ones, and never
//! charged where they are broken, too. The misdeeds are ordered by a flag that release builds do not have.

use crate::{
    harness::{World, client::order, pictures::Picture, serve::upscale},
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
    for (fault, rung, charged) in [
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
        let count = |rung| {
            let series = format!("upscale_output_check_total{{rung=\"{rung}\"}}");
            samples.get(&series).copied().unwrap_or(0.0)
        };
        assert_eq!(count("fast"), 0.0, "{fault}");
        assert!(count(rung) >= 1.0, "{fault}: no result of rung {rung}");
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

#[test]
fn serve_starts_with_require_sandbox_exactly_where_the_kernel_lacks_nothing() {
    let probe = upscale().args(["child", "--probe"]).output().unwrap();
    assert!(probe.status.success());
    let missing: Vec<String> = serde_json::from_slice(&probe.stdout).unwrap();
    if missing.is_empty() {
        let world = World::start_with(&["--require-sandbox"]);
        let customer = world.customer("1");
        let url = world.picture("/a.png", 16, 16);
        customer.upscale("sandbox-key", &order(&url, 4));
    } else {
        eprintln!("this kernel lacks {missing:?}: only the refusal to start is tested");
        let folder = tempfile::TempDir::new().unwrap();
        let refused = upscale()
            .args([
                "serve",
                "--require-sandbox",
                "--listen",
                "127.0.0.1:0",
                "--data",
            ])
            .arg(folder.path())
            .output()
            .unwrap();
        assert!(!refused.status.success() && refused.stdout.is_empty());
    }
}

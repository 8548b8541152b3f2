//! System calls that a child is made to do after its sandbox has closed: each ends it, or is refused, and neither its
//! parent nor the machine notices. The parent is this very test. Each call by number, with arguments, so that no library
//! stands between; ordered in the environment, in debug builds only.

use rustix::process::{Resource, getrlimit};
use upscale_core::{Parameters, Scale};
use upscale_pipeline::{
    BadEnd, ChildEnd, ChildOptions,
    fault::{CALL, CALL_DONE, CALL_REFUSED, VARIABLE},
    sandbox::{Part, Parts, UID_DEFAULT},
};

use crate::harness::child::{is_root, sandboxed};

/// What a thread of the C library is made of.
const THREAD: i32 = libc::CLONE_VM
    | libc::CLONE_FS
    | libc::CLONE_FILES
    | libc::CLONE_SIGHAND
    | libc::CLONE_THREAD
    | libc::CLONE_SYSVSEM
    | libc::CLONE_SETTLS
    | libc::CLONE_PARENT_SETTID
    | libc::CLONE_CHILD_CLEARTID;

/// How a child ended that made this call.
async fn inject(options: &ChildOptions, call: i64, arguments: &str) -> BadEnd {
    let mut options = options.clone();
    let order = format!("{CALL}{call} {arguments}");
    options.environment.push((VARIABLE.into(), order.into()));
    let job = options.job(Parameters::at(Scale::X2));
    match options.upscale(&job, b"source").await {
        Err(ChildEnd::Crashed(end)) => end,
        other => panic!("call {call} {arguments}: {other:?}"),
    }
}

async fn assert_forbidden(calls: &[(i64, String)]) {
    let options = sandboxed();
    for (call, arguments) in calls {
        let end = inject(&options, *call, arguments).await;
        assert_eq!(
            end.cause, "forbidden_call",
            "call {call} {arguments}: {end}"
        );
    }
}

fn calls<const N: usize>(calls: [(i64, &str); N]) -> Vec<(i64, String)> {
    let owned = |(call, arguments): (i64, &str)| (call, arguments.to_owned());
    calls.into_iter().map(owned).collect()
}

#[tokio::test]
async fn signals_to_the_service_and_to_all_others_end_the_child() {
    let mut all = Vec::new();
    for signal in [libc::SIGSTOP, libc::SIGKILL, 0] {
        all.push((libc::SYS_tgkill, format!("parent parent {signal}")));
        all.push((libc::SYS_tkill, format!("parent {signal}")));
        all.push((libc::SYS_kill, format!("parent {signal}")));
    }
    // Even its own, but for the one that an abort sends.
    all.push((libc::SYS_tgkill, format!("self self {}", libc::SIGSTOP)));
    all.extend(calls([
        (libc::SYS_kill, "-1 0"),
        (libc::SYS_rt_sigqueueinfo, "parent 9 buffer"),
        (libc::SYS_rt_tgsigqueueinfo, "parent parent 9 buffer"),
        (libc::SYS_pidfd_open, "parent 0"),
        (libc::SYS_pidfd_send_signal, "0 9 0 0"),
    ]));
    assert_forbidden(&all).await;
}

#[tokio::test]
async fn limits_of_the_service_and_new_ones_of_its_own_end_the_child() {
    let before = getrlimit(Resource::Nofile);
    let files = libc::RLIMIT_NOFILE;
    assert_forbidden(&[
        (libc::SYS_prlimit64, format!("parent {files} buffer 0")),
        (libc::SYS_prlimit64, format!("parent {files} 0 buffer")),
        (libc::SYS_prlimit64, format!("0 {files} buffer 0")),
        (libc::SYS_prlimit64, format!("0 {files} 0 buffer")),
        (libc::SYS_setrlimit, format!("{files} buffer")),
    ])
    .await;
    assert_eq!(getrlimit(Resource::Nofile), before);
}

#[tokio::test]
async fn processes_programs_and_namespaces_end_the_child() {
    let spawn = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    let mut all: Vec<(i64, String)> = [
        libc::SIGCHLD,
        spawn,
        libc::CLONE_NEWUSER | libc::SIGCHLD,
        THREAD | libc::CLONE_NEWUSER,
        THREAD | libc::CLONE_NEWPID,
        THREAD | libc::CLONE_PARENT,
        THREAD & !libc::CLONE_SIGHAND,
    ]
    .into_iter()
    .map(|flags| (libc::SYS_clone, format!("{flags} 0 buffer buffer 0")))
    .collect();
    #[cfg(target_arch = "x86_64")]
    all.extend(calls([(libc::SYS_fork, ""), (libc::SYS_vfork, "")]));
    all.push((libc::SYS_unshare, libc::CLONE_NEWUSER.to_string()));
    all.extend(calls([
        (libc::SYS_setns, "0 0"),
        (libc::SYS_execve, "text=/bin/true 0 0"),
        (libc::SYS_setsid, ""),
        (libc::SYS_setpgid, "0 0"),
        (libc::SYS_setresuid, "0 0 0"),
        (libc::SYS_ptrace, "16 parent 0 0"),
        (libc::SYS_process_vm_readv, "parent buffer 1 buffer 1 0"),
        (libc::SYS_process_vm_writev, "parent buffer 1 buffer 1 0"),
        (libc::SYS_sched_setaffinity, "parent 8 buffer"),
        (libc::SYS_setpriority, "0 parent 19"),
        (libc::SYS_personality, "0"),
        (libc::SYS_bpf, "0 buffer 64"),
        (libc::SYS_io_uring_setup, "1 buffer"),
        (libc::SYS_userfaultfd, "0"),
        (libc::SYS_perf_event_open, "buffer 0 -1 -1 0"),
        (libc::SYS_keyctl, "0 0"),
    ]));
    assert_forbidden(&all).await;
}

#[tokio::test]
async fn what_would_loosen_the_sandbox_ends_the_child() {
    let operations = [
        (libc::PR_SET_PDEATHSIG, "0"),
        (libc::PR_SET_DUMPABLE, "1"),
        (libc::PR_SET_PTRACER, "parent"),
        (libc::PR_SET_CHILD_SUBREAPER, "1"),
        (libc::PR_SET_KEEPCAPS, "1"),
        (libc::PR_SET_MM, "1"),
        (libc::PR_SET_SECCOMP, "0"),
        (libc::PR_SET_NAME, "text=another"),
    ];
    let all: Vec<(i64, String)> = operations
        .into_iter()
        .map(|(operation, argument)| (libc::SYS_prctl, format!("{operation} {argument} 0 0 0")))
        .collect();
    assert_forbidden(&all).await;
}

#[tokio::test]
async fn files_and_what_is_known_of_them_end_the_child() {
    let (here, empty) = (libc::AT_FDCWD, libc::AT_EMPTY_PATH);
    let mut all = vec![(libc::SYS_openat, format!("{here} text=/etc/shadow 0"))];
    for flags in [0, empty] {
        let order = format!("{here} text=/etc/shadow buffer {flags}");
        all.push((libc::SYS_newfstatat, order));
        let order = format!("{here} text=/etc/shadow {flags} 2047 buffer");
        all.push((libc::SYS_statx, order));
    }
    all.extend(calls([
        (libc::SYS_faccessat, "-100 text=/etc/shadow 0"),
        (libc::SYS_readlinkat, "-100 text=/proc/self/exe buffer 64"),
        (libc::SYS_chdir, "text=/"),
        (libc::SYS_memfd_create, "text=a 0"),
        (libc::SYS_ioctl, "0 21531 buffer"),
        (libc::SYS_socket, "1 1 0"),
        (libc::SYS_socketpair, "1 1 0 buffer"),
        (libc::SYS_mount, "text=a text=/ text=tmpfs 0 0"),
    ]));
    assert_forbidden(&all).await;
}

#[tokio::test]
async fn memory_that_is_executable_or_a_files_ends_the_child() {
    let (exec, write) = (libc::PROT_EXEC, libc::PROT_READ | libc::PROT_WRITE);
    let anonymous = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let (read, private) = (libc::PROT_READ, libc::MAP_PRIVATE);
    let both = write | exec;
    assert_forbidden(&[
        (libc::SYS_mmap, format!("0 4096 {both} {anonymous} -1 0")),
        (libc::SYS_mmap, format!("0 4096 {exec} {anonymous} -1 0")),
        (libc::SYS_mmap, format!("0 4096 {read} {private} 0 0")),
        (libc::SYS_mprotect, format!("buffer 4096 {both}")),
        (libc::SYS_mprotect, format!("buffer 4096 {exec}")),
        (libc::SYS_pkey_mprotect, format!("buffer 4096 {exec} -1")),
    ])
    .await;
}

/// How each of these ended.
async fn assert_exits(calls: &[(i64, String)], status: i32) {
    let options = sandboxed();
    for (call, arguments) in calls {
        let end = inject(&options, *call, arguments).await;
        let says = format!("exit status: {status}");
        assert!(end.reason.contains(&says), "call {call} {arguments}: {end}");
    }
}

#[tokio::test]
async fn clone3_whose_arguments_no_filter_sees_is_unknown_here() {
    assert_exits(&calls([(libc::SYS_clone3, "buffer 88")]), CALL_REFUSED).await;
}

/// Or the tests above would show nothing.
#[tokio::test]
async fn what_a_child_may_do_it_can() {
    let all = calls([(libc::SYS_getpid, ""), (libc::SYS_getrandom, "buffer 8 0")]);
    assert_exits(&all, CALL_DONE).await;
    let abort = format!("self self {}", libc::SIGABRT);
    let end = inject(&sandboxed(), libc::SYS_tgkill, &abort).await;
    assert_eq!(end.cause, "abort", "{end}");
}

#[tokio::test]
async fn a_child_whose_parent_is_not_the_one_that_started_it_ends_at_once() {
    let mut options = sandboxed();
    options.arguments = vec!["child".into(), "--parent".into(), "1".into()];
    let job = options.job(Parameters::at(Scale::X2));
    match options.upscale(&job, b"source").await {
        Err(ChildEnd::Crashed(end)) => assert!(end.reason.contains("status: 1"), "{end}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_child_without_a_required_part_looks_at_nothing() {
    let mut options = sandboxed();
    options.arguments = vec!["child".into()];
    options.required = Parts::REQUIRED.with(Part::OwnUser);
    let job = options.job(Parameters::at(Scale::X2));
    let end = options.upscale(&job, b"source").await.unwrap_err();
    assert!(matches!(end, ChildEnd::WeakSandbox(_)), "{end}");
    options.required = Parts::NONE;
    let job = options.job(Parameters::at(Scale::X2));
    let end = options.upscale(&job, b"source").await.unwrap_err();
    assert!(matches!(end, ChildEnd::Refused(_)), "{end}");
}

#[test]
fn the_tests_above_run_in_a_sandbox_that_is_whole() {
    let options = sandboxed();
    let is_own = options.arguments.contains(&UID_DEFAULT.to_string().into());
    assert_eq!(
        is_own,
        is_root(),
        "children of root have a user of their own"
    );
}

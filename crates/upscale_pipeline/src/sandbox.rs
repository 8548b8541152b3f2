//! The sandbox a child puts itself into before it looks at a stranger's bytes: death with its parent, no new
//! privileges, no file and no network (landlock), a short list of system calls (seccomp), and then limits of
//! memory, processor time and files. What it needs is open already. Safe wrappers only.

use std::collections::BTreeMap;

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr,
    RulesetCreated, RulesetStatus,
};
use rustix::{
    process::{Resource, Rlimit, Signal, set_parent_process_death_signal, setrlimit},
    thread::set_no_new_privs,
};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch};

/// Files open at a time: standard input, output, error, and a few to spare.
const OPEN_FILES_MAX: u64 = 16;
/// The newest landlock rules known here; older kernels enforce those they have.
const LANDLOCK_ABI: ABI = ABI::V5;

/// Enters the sandbox for good. Must run before any thread is started: threads inherit it. Returns what this
/// kernel lacks, in words.
pub fn enter() -> Vec<String> {
    let parts: [(&str, Result<(), String>); 4] = [
        (
            "death signal",
            set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| error.to_string()),
        ),
        (
            "no_new_privs",
            set_no_new_privs(true).map_err(|error| error.to_string()),
        ),
        ("landlock", forbid_files_and_network()),
        ("seccomp", forbid_system_calls()),
    ];
    let missing = parts
        .into_iter()
        .filter_map(|(part, done)| done.err().map(|reason| format!("{part}: {reason}")));
    missing.collect()
}

/// Bounds memory (bytes of address space) and processor time (seconds over all threads), 0 for no bound; and
/// no file may be written but the pipes that are open, no core left.
///
/// # Errors
/// When the kernel refuses a limit.
pub fn limit(memory_bytes: u64, cpu_seconds: u64) -> Result<(), String> {
    let some = |most: u64| (most > 0).then_some(most);
    for (resource, most) in [
        (Resource::As, some(memory_bytes)),
        (Resource::Cpu, some(cpu_seconds)),
        (Resource::Nofile, Some(OPEN_FILES_MAX)),
        (Resource::Fsize, Some(0)),
        (Resource::Core, Some(0)),
    ] {
        let Some(most) = most else { continue };
        // At the limit of processor time the kernel sends SIGXCPU, which says so, unless it is the final one as well:
        // then SIGKILL, which says nothing (setrlimit(2)).
        let is_cpu = matches!(resource, Resource::Cpu);
        let limit = Rlimit {
            current: Some(most),
            maximum: Some(most + u64::from(is_cpu)),
        };
        setrlimit(resource, limit).map_err(|error| format!("{resource:?} of {most}: {error}"))?;
    }
    Ok(())
}

/// Handles every right that landlock knows and grants none: no file can be opened, made or removed, no TCP
/// port bound or connected to.
fn forbid_files_and_network() -> Result<(), String> {
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(LANDLOCK_ABI))
        .and_then(|rules| rules.handle_access(AccessNet::from_all(LANDLOCK_ABI)))
        .and_then(Ruleset::create)
        .and_then(RulesetCreated::restrict_self)
        .map_err(|error| error.to_string())?;
    match status.ruleset {
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
        RulesetStatus::NotEnforced => Err("the kernel does not enforce it".to_owned()),
    }
}

/// Arithmetic between pipes needs these; any other call ends the process.
const ALLOWED_CALLS: &[i64] = &[
    // Pipes that are open, and nothing new.
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_close,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_lseek,
    libc::SYS_ppoll,
    // Memory.
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_brk,
    // Threads.
    libc::SYS_clone,
    libc::SYS_clone3,
    libc::SYS_futex,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_getcpu,
    libc::SYS_membarrier,
    libc::SYS_exit,
    libc::SYS_exit_group,
    // Signals: a panic aborts, an overflowing stack is reported.
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_tgkill,
    libc::SYS_restart_syscall,
    // Time, randomness for hash maps, names of threads, limits.
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_getrandom,
    libc::SYS_prctl,
    libc::SYS_prlimit64,
];

fn forbid_system_calls() -> Result<(), String> {
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|error| error.to_string())?;
    let rules: BTreeMap<i64, Vec<_>> = ALLOWED_CALLS
        .iter()
        .map(|&call| (call, Vec::new()))
        .collect();
    let filter = SeccompFilter::new(
        rules,
        SeccompAction::KillProcess,
        SeccompAction::Allow,
        arch,
    )
    .map_err(|error| error.to_string())?;
    let program = BpfProgram::try_from(filter).map_err(|error| error.to_string())?;
    seccompiler::apply_filter(&program).map_err(|error| error.to_string())
}

//! The sandbox a child puts itself into before it looks at a byte of the source: a user of its own, death with its
//! parent, limits of memory, processor time, files and threads, no new privileges, no file, no network and no signal to
//! others (landlock), and a short list of system calls with their arguments (seccomp, `calls.rs`). What it needs is open
//! already. Safe wrappers only.

pub mod calls;
mod parts;

use std::{fs, hint::black_box, thread};

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, LandlockStatus, Ruleset,
    RulesetAttr, RulesetCreated, RulesetStatus, Scope,
};
use rustix::{
    process::{
        Gid, Pid, Resource, Rlimit, Signal, Uid, getppid, set_parent_process_death_signal,
        setrlimit,
    },
    thread::{set_no_new_privs, set_thread_groups, set_thread_res_gid, set_thread_res_uid},
    time::{ClockId, clock_gettime},
};

use upscale_engine::KernelSet;

pub use self::parts::{Missing, Part, Parts, Report};

/// The exit status of a child whose sandbox lacks a part that its order requires: the machine's fault, not the picture's
/// (EX_OSERR of sysexits(3)).
pub const EXIT_WEAK_SANDBOX: u8 = 71;
/// The user that children run as where the service runs as root: unused in systemd's table of users, and among the 65,536
/// that a container's user namespace usually maps.
pub const UID_DEFAULT: u32 = 65_531;
/// Files open at a time: standard input, output, error, and a few to spare.
const OPEN_FILES_MAX: u64 = 16;
/// Processes and threads of the children's own user, those of all services of the machine together. Far more than a
/// machine of 256 cores needs, far fewer than what starves one.
const THREADS_MAX: u64 = 4_096;
/// After the signal that says so, a process that went on computing has this many seconds of processor time.
const CPU_GRACE_SECONDS: u64 = 5;
/// The first to go when memory is out (proc_pid_oom_score_adj(5)): the service, which holds the tasks, comes last.
const OOM_SCORE_ADJ: &str = "1000";
/// The newest landlock rules known here; older kernels enforce those they have.
const LANDLOCK_ABI: ABI = ABI::V6;

/// Who a child is, whose it is, and how much it may use.
#[derive(Debug, Clone, Copy, Default)]
pub struct Entry {
    /// The user and group to become; none to stay who it is.
    pub uid: Option<u32>,
    /// The process that started it, where it is known: another parent means that this one is dead already.
    pub parent: Option<u32>,
    /// None where a program only looks at what the kernel has, or at what its operator brought.
    pub limits: Option<Limits>,
}

/// What a child may use; beside it 16 open files, no file written, no core left.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Address space in bytes; 0 for no limit.
    pub memory_bytes: u64,
    /// Processor time over all threads in seconds; 0 for no limit.
    pub cpu_seconds: u32,
}

/// Why the sandbox was not entered at all.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The process that started this one died before the kernel was asked to end both together.
    #[error("the process {0} that started this one is gone")]
    Orphan(u32),
    /// The kernel refuses a limit.
    #[error("the limit {0}")]
    Limit(String),
}

/// Enters the sandbox for good. Must run before any thread is started: threads inherit it. Says which parts hold and
/// which this machine lacks.
///
/// # Errors
/// [`SandboxError`]: the process must end.
pub fn enter(entry: &Entry) -> Result<Report, SandboxError> {
    let mut report = Report::default();
    // A file, so first; and a new user loses the death signal (prctl(2)), so that comes after it.
    report.add(Part::MemoryLast, become_first_to_go());
    find_clock();
    find_overcommit();
    find_kernels();
    if let Some(uid) = entry.uid {
        report.add(Part::OwnUser, become_user(uid));
    }
    report.add(Part::DeathSignal, die_with_parent(entry.parent)?);
    if let Some(limits) = entry.limits {
        limit(limits, entry.uid)?;
    }
    let privileges = set_no_new_privs(true).map_err(|error| error.to_string());
    report.add(Part::NoNewPrivileges, privileges);
    forbid_files_and_network(&mut report);
    report.add(Part::SystemCalls, calls::forbid_others());
    Ok(report)
}

/// For a process that opens devices: it ends with the one that started it, and when memory is out it goes first.
///
/// # Errors
/// When that one is gone already.
pub fn die_with(parent: Option<u32>) -> Result<(), SandboxError> {
    let _ = become_first_to_go();
    die_with_parent(parent).map(|_| ())
}

/// What a process does without once its devices are open: new privileges, a core, TCP, signals to others. Drivers open files
/// and make calls as they please, each its own, so that these stay free; the process reads no picture's file, only samples.
///
/// # Errors
/// When the kernel refuses the limit; what it does not know is left out.
pub fn confine_device_process() -> Result<(), SandboxError> {
    let _ = set_no_new_privs(true);
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    setrlimit(Resource::Core, none)
        .map_err(|error| SandboxError::Limit(format!("{:?}: {error}", Resource::Core)))?;
    let _ = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessNet::from_all(LANDLOCK_ABI))
        .and_then(|rules| rules.scope(Scope::from_all(LANDLOCK_ABI)))
        .and_then(Ruleset::create)
        .and_then(RulesetCreated::restrict_self);
    Ok(())
}

/// Kernels on tile registers ask the system for them (arch_prctl(2)), once a process: afterwards that call is forbidden.
fn find_kernels() {
    black_box(KernelSet::best());
}

/// The first look at a clock finds the kernel's own page for it (vDSO), before Linux 6.4 by opening `/proc/self/auxv`: in
/// the sandbox that would be the end.
fn find_clock() {
    let _ = clock_gettime(ClockId::Monotonic);
}

/// glibc's allocator opens `/proc/sys/vm/overcommit_memory` once, when a thread other than the first gives memory back to the
/// system (malloc/arena.c, `shrink_heap`). In the sandbox that was the end of SRResNet at 4x, so one gives some back before.
/// Where no thread can be started, the picture's cannot either, and say so.
fn find_overcommit() {
    let thread = thread::Builder::new().spawn(give_memory_back);
    let _ = thread.map(thread::JoinHandle::join);
}

/// Blocks below the size that is mapped by itself and together above the size that is kept: 128 KiB each.
pub(crate) fn give_memory_back() {
    let blocks: Vec<Vec<u8>> = (0..16).map(|_| Vec::with_capacity(96 << 10)).collect();
    drop(black_box(blocks));
}

fn become_first_to_go() -> Result<(), String> {
    fs::write("/proc/self/oom_score_adj", OOM_SCORE_ADJ).map_err(|error| error.to_string())
}

/// No group, no capability and no way back: all three ids are the new user's.
fn become_user(uid: u32) -> Result<(), String> {
    let (user, group) = (Uid::from_raw(uid), Gid::from_raw(uid));
    set_thread_groups(&[])
        .and_then(|()| set_thread_res_gid(group, group, group))
        .and_then(|()| set_thread_res_uid(user, user, user))
        .map_err(|error| format!("user {uid}: {error}"))
}

/// A parent that died before the signal was armed sends none.
fn die_with_parent(parent: Option<u32>) -> Result<Result<(), String>, SandboxError> {
    let armed = set_parent_process_death_signal(Some(Signal::KILL));
    let now = Pid::as_raw(getppid()).unsigned_abs();
    match parent {
        Some(parent) if parent != now => Err(SandboxError::Orphan(parent)),
        _ => Ok(armed.map_err(|error| error.to_string())),
    }
}

/// Bounds memory, processor time and, for a user of its own, threads; and no file may be written but the pipes that are
/// open, no core left.
fn limit(limits: Limits, own_uid: Option<u32>) -> Result<(), SandboxError> {
    let some = |most: u64| (most > 0).then_some(most);
    for (resource, most, grace) in [
        (Resource::As, some(limits.memory_bytes), 0),
        // The kernel kills without a word at the hard limit, and tells of the soft one by SIGXCPU.
        (
            Resource::Cpu,
            some(limits.cpu_seconds.into()),
            CPU_GRACE_SECONDS,
        ),
        // Counted by user: beside those of the service it would bound the service's own threads.
        (Resource::Nproc, own_uid.map(|_| THREADS_MAX), 0),
        (Resource::Nofile, Some(OPEN_FILES_MAX), 0),
        (Resource::Fsize, Some(0), 0),
        (Resource::Core, Some(0), 0),
    ] {
        let Some(most) = most else { continue };
        let limit = Rlimit {
            current: Some(most),
            maximum: Some(most + grace),
        };
        setrlimit(resource, limit)
            .map_err(|error| SandboxError::Limit(format!("{resource:?} of {most}: {error}")))?;
    }
    Ok(())
}

/// Handles every right that landlock knows and grants none: no file can be opened, made or removed, no TCP port bound or
/// connected to, no process outside signalled, no abstract socket reached.
fn forbid_files_and_network(report: &mut Report) {
    let restricted = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(LANDLOCK_ABI))
        .and_then(|rules| rules.handle_access(AccessNet::from_all(LANDLOCK_ABI)))
        .and_then(|rules| rules.scope(Scope::from_all(LANDLOCK_ABI)))
        .and_then(Ruleset::create)
        .and_then(RulesetCreated::restrict_self)
        .map_err(|error| error.to_string());
    let has = |since: ABI| match &restricted {
        Err(reason) => Err(reason.clone()),
        Ok(status) => match status.landlock {
            LandlockStatus::Available { effective_abi, .. }
                if status.ruleset != RulesetStatus::NotEnforced && effective_abi >= since =>
            {
                Ok(())
            }
            LandlockStatus::Available { effective_abi, .. } => Err(format!(
                "needs version {}, the kernel has {}",
                since as i32, effective_abi as i32
            )),
            LandlockStatus::NotEnabled => Err("the kernel has it switched off".to_owned()),
            LandlockStatus::NotImplemented => Err("the kernel does not have it".to_owned()),
        },
    };
    report.add(Part::Files, has(ABI::V1));
    report.add(Part::Network, has(ABI::V4));
    report.add(Part::Scopes, has(ABI::V6));
}

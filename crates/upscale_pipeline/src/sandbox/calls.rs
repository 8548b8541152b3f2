//! The system calls of a child after its sandbox has closed, each with the arguments that it may have; any other ends the
//! process. The list is held to what children really do: `traced.txt` beside it is what strace saw of them on Linux for
//! x86-64 with glibc, `checks/system_calls.sh` makes it anew, and every call that is not in it says here why it is needed
//! all the same.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

/// What [`ALLOWED`] is held to, a call a line.
pub const TRACED: &str = include_str!("traced.txt");

/// One call that a child may make.
#[derive(Debug)]
pub struct Call {
    /// As the kernel names it.
    pub name: &'static str,
    number: i64,
    /// Alternatives; every condition of one of them must hold. None for any arguments.
    rules: &'static [&'static [Condition]],
    /// Why it is needed although not every trace shows it.
    pub untraced: Option<&'static str>,
}

/// `argument & mask == value`.
#[derive(Debug, Clone, Copy)]
struct Condition {
    argument: u8,
    mask: u64,
    value: Value,
}

#[derive(Debug, Clone, Copy)]
enum Value {
    Number(u64),
    /// This process, which is known when it runs.
    OwnProcess,
}

/// An `int` or `unsigned int`: the kernel looks at the lower half of the register.
const INT: u64 = 0xffff_ffff;

/// Calls with any arguments: they act on what is open, or on this process' own memory and threads.
const fn any(name: &'static str, number: i64) -> Call {
    only(name, number, &[])
}

const fn only(name: &'static str, number: i64, rules: &'static [&'static [Condition]]) -> Call {
    let untraced = None;
    Call {
        name,
        number,
        rules,
        untraced,
    }
}

const fn masked(argument: u8, mask: u64, value: u64) -> Condition {
    let value = Value::Number(value);
    Condition {
        argument,
        mask,
        value,
    }
}

impl Call {
    const fn because(mut self, why: &'static str) -> Self {
        self.untraced = Some(why);
        self
    }
}

/// No page may become a program's: neither made executable nor mapped so.
const NOT_EXECUTABLE: Condition = masked(2, libc::PROT_EXEC as u64, 0);
/// tgkill's process: this one, and the signal: that of an abort.
const OWN_PROCESS: Condition = Condition {
    argument: 0,
    mask: INT,
    value: Value::OwnProcess,
};
const ABORT: Condition = masked(2, INT, libc::SIGABRT as u64);
/// Of no file, not even of one that is open.
const ANONYMOUS: Condition = masked(3, libc::MAP_ANONYMOUS as u64, libc::MAP_ANONYMOUS as u64);
/// What pthread_create asks for (glibc 2.2 to 2.42, musl 1.0 to 1.2), and nothing beside it: a thread of this process,
/// no process, no namespace.
const THREAD: u64 = (libc::CLONE_VM
    | libc::CLONE_FS
    | libc::CLONE_FILES
    | libc::CLONE_SIGHAND
    | libc::CLONE_THREAD
    | libc::CLONE_SYSVSEM
    | libc::CLONE_SETTLS
    | libc::CLONE_PARENT_SETTID
    | libc::CLONE_CHILD_CLEARTID) as u64;
/// Without a meaning since Linux 2.6, but musl sets it.
const NO_MEANING: u64 = libc::CLONE_DETACHED as u64;
/// Arithmetic between pipes needs these.
pub const ALLOWED: &[Call] = &[
    // Pipes that are open, and nothing new.
    any("read", libc::SYS_read),
    any("write", libc::SYS_write),
    // Memory: to be read and written, of no file.
    only("mmap", libc::SYS_mmap, &[&[NOT_EXECUTABLE, ANONYMOUS]]),
    only("mprotect", libc::SYS_mprotect, &[&[NOT_EXECUTABLE]]),
    any("munmap", libc::SYS_munmap),
    any("mremap", libc::SYS_mremap),
    any("madvise", libc::SYS_madvise),
    any("brk", libc::SYS_brk),
    // Threads of this process.
    only(
        "clone",
        libc::SYS_clone,
        &[&[masked(0, INT & !NO_MEANING, THREAD)]],
    ),
    any("clone3", libc::SYS_clone3),
    any("futex", libc::SYS_futex)
        .because("threads that meet at a lock wait there; a trace sees it now and then"),
    any("set_robust_list", libc::SYS_set_robust_list),
    any("rseq", libc::SYS_rseq),
    any("sched_yield", libc::SYS_sched_yield),
    any("sched_getaffinity", libc::SYS_sched_getaffinity),
    any("getpid", libc::SYS_getpid),
    any("gettid", libc::SYS_gettid),
    any("exit", libc::SYS_exit),
    any("exit_group", libc::SYS_exit_group),
    any("restart_syscall", libc::SYS_restart_syscall)
        .because("the kernel goes on so with a wait that SIGSTOP and SIGCONT interrupted"),
    // Signals: a panic aborts, an overflowing stack is reported.
    any("rt_sigaction", libc::SYS_rt_sigaction),
    any("rt_sigprocmask", libc::SYS_rt_sigprocmask),
    any("rt_sigreturn", libc::SYS_rt_sigreturn)
        .because("the handler that reports an overflowing stack returns from every other fault"),
    any("sigaltstack", libc::SYS_sigaltstack),
    only("tgkill", libc::SYS_tgkill, &[&[OWN_PROCESS, ABORT]]),
    // Time, randomness for hash maps.
    any("clock_gettime", libc::SYS_clock_gettime).because(
        "a clock that the kernel's own page (vDSO) does not serve, as on some virtual machines",
    ),
    any("getrandom", libc::SYS_getrandom),
];

/// Closes the process to all calls but these.
///
/// # Errors
/// In the kernel's words, when it takes no filter.
pub(super) fn forbid_others() -> Result<(), String> {
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|error| error.to_string())?;
    // Its arguments lie in memory, where no filter sees them. The C library takes this answer of a kernel before Linux 5.3,
    // and asks clone(2). The strictest of two filters' answers counts, and this one is stricter than leave.
    let clone3 = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    let unknown = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    apply(SeccompFilter::new(
        clone3,
        SeccompAction::Allow,
        unknown,
        arch,
    ))?;
    let rules: Result<BTreeMap<i64, Vec<SeccompRule>>, String> = ALLOWED
        .iter()
        .map(|call| Ok((call.number, rules_of(call)?)))
        .collect();
    apply(SeccompFilter::new(
        rules?,
        SeccompAction::KillProcess,
        SeccompAction::Allow,
        arch,
    ))
}

fn apply(filter: Result<SeccompFilter, seccompiler::BackendError>) -> Result<(), String> {
    let program = filter
        .and_then(BpfProgram::try_from)
        .map_err(|error| error.to_string())?;
    seccompiler::apply_filter(&program).map_err(|error| error.to_string())
}

fn rules_of(call: &Call) -> Result<Vec<SeccompRule>, String> {
    let rule = |conditions: &&[Condition]| {
        let conditions: Result<Vec<_>, _> = conditions.iter().map(seccomp_condition).collect();
        SeccompRule::new(conditions?)
    };
    let rules: Result<Vec<_>, seccompiler::BackendError> = call.rules.iter().map(rule).collect();
    rules.map_err(|error| format!("{}: {error}", call.name))
}

fn seccomp_condition(condition: &Condition) -> Result<SeccompCondition, seccompiler::BackendError> {
    let value = match condition.value {
        Value::Number(value) => value,
        Value::OwnProcess => std::process::id().into(),
    };
    let length = if condition.mask > INT {
        SeccompCmpArgLen::Qword
    } else {
        SeccompCmpArgLen::Dword
    };
    let equal = SeccompCmpOp::MaskedEq(condition.mask);
    SeccompCondition::new(condition.argument, length, equal, value)
}

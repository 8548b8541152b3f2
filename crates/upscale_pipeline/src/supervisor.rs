//! Supervises the child that reads untrusted bytes: starts it, feeds it, reads its answer, and ends it
//! at the wall clock, on cancellation and after every answer. Trusts nothing it says. What the child does
//! with the bytes is `child.rs`'s.

use std::{
    ffi::OsString,
    io,
    os::{
        fd::OwnedFd,
        unix::{net::UnixStream as StdStream, process::ExitStatusExt},
    },
    path::PathBuf,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use metrics::counter;
use tokio::{
    io::AsyncReadExt,
    net::UnixStream,
    process::{ChildStdin, ChildStdout, Command},
    time::timeout,
};
use upscale_core::{Look, Parameters, Scale, limits::source_pixels_max};

use crate::{
    Answer, Facts, Job,
    check_png::{check_png, check_thumbnail},
    device::{DeviceLink, send_end},
    frame::{read_answer, write_job},
    output::Output,
    running::Running,
    sandbox::{EXIT_WEAK_SANDBOX, Parts},
};

/// After its answer a child has this long to end by itself.
const ENDING: Duration = Duration::from_secs(5);
/// After a child ended badly its last words have this long to arrive.
pub(crate) const LAST_OUTPUT: Duration = Duration::from_millis(500);
/// Beside the samples of a result that does not compress: a filter byte for each of at most 3,000,000 rows, the profile
/// (at most 4 MiB), and 0.1 % for blocks and chunks ([`upscale_image::store_if_smaller`]).
const RESULT_OVERHEAD_BYTES: u64 = 8 * 1024 * 1024;

/// Has glibc map blocks of 2 MiB and more by themselves, so that they go back when they are freed. Left alone it moves that
/// limit up to 32 MiB: a picture one row high then held 45 MiB of 400 that were free (`upscale-lab shapes --noise`).
pub const ALLOCATOR: (&str, &str) = ("MALLOC_MMAP_THRESHOLD_", "2097152");

/// Causes of an end by a clock: the parent's, and the kernel's count of processor time.
const WALL_CLOCK: &str = "wall_clock";
const CPU_LIMIT: &str = "cpu_limit";
/// Ends that are not the picture's fault, as metrics name them.
const WEAK_SANDBOX: &str = "weak_sandbox";
const KILLED: &str = "killed";

/// How children are started and bounded.
#[derive(Debug, Clone)]
pub struct ChildOptions {
    /// The program, usually this binary itself.
    pub program: PathBuf,
    /// Arguments that start the child, without the program's name.
    pub arguments: Vec<OsString>,
    /// All of its environment beside [`ALLOCATOR`]: nothing is inherited.
    pub environment: Vec<(OsString, OsString)>,
    /// A child that has not answered after this long is killed.
    pub wall_clock: Duration,
    /// Threads of one child, unless its job says otherwise.
    pub threads: u16,
    /// Address space of one child in bytes; 0 for no limit. The child sets it on itself.
    pub memory_bytes_max: u64,
    /// Processor time of one child in seconds; 0 for no limit. The child sets it on itself.
    pub cpu_seconds_max: u32,
    /// Parts of the sandbox without which a child must not look at its source.
    pub required: Parts,
    /// The look of the restoring networks, see [`Look`].
    pub look: Look,
    /// Where children get a device from; none: there is none.
    pub device: Option<DeviceLink>,
}

/// A result that the parent has checked as far as it can without decoding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedResult {
    /// What the child said, consistent with the PNG's header and the job.
    pub facts: Facts,
    /// The whole PNG.
    pub png: Vec<u8>,
    /// A small PNG of it; empty where there is none that may be kept.
    pub thumbnail: Vec<u8>,
    /// The look of our networks that made it; none where a brought model did.
    pub look: Option<Look>,
}

impl ChildOptions {
    /// The job of one task.
    #[must_use]
    pub fn job(&self, parameters: Parameters) -> Job {
        let source_pixels_max = source_pixels_max(parameters);
        Job {
            parameters,
            look: self.look,
            threads: self.threads.max(1),
            source_pixels_max,
            result_bytes_max: result_bytes_max(parameters.scale, source_pixels_max),
            memory_bytes_max: self.memory_bytes_max,
            cpu_seconds_max: self.cpu_seconds_max,
            required: self.required,
        }
    }

    /// Runs one child to its end. When this future is dropped the child is killed; either way it is waited for, and
    /// nothing that it started lives on.
    ///
    /// # Errors
    /// [`ChildEnd`].
    pub async fn upscale(&self, job: &Job, source: &[u8]) -> Result<CheckedResult, ChildEnd> {
        let mut cause = Cause("not_started");
        let (command, input, device) = self.command().map_err(ChildEnd::NotStarted)?;
        let started = Running::start(command).await;
        let mut child = started.map_err(ChildEnd::NotStarted)?;
        // Until it is known better: this future may be dropped at any await.
        cause.0 = "cancelled";
        let mut talk = Talk {
            output: Output::new(child.child.stderr.take()),
            progress: 0,
        };
        let talked = timeout(self.wall_clock, talk.run(&mut child, input, job, source)).await;
        // Dead and waited for before anything else happens, whatever came of the talk.
        child.kill().await;
        let answered = talked.unwrap_or_else(|_| {
            let reason = format!("no answer within {:?}", self.wall_clock);
            Err(BadEnd::new(WALL_CLOCK, reason))
        });
        let outcome = match answered.and_then(|answer| judge(answer, job, &mut cause)) {
            Ok(judged) => judged,
            Err(end) => {
                cause.0 = end.cause;
                Err(self.bad_end(end, job))
            }
        };
        match (&outcome, &self.device) {
            (Err(error), _) => talk.log(error).await,
            (Ok(result), Some(link)) => link.reported(result.facts.device, device),
            _ => {}
        }
        outcome
    }

    /// What a clock ended would be ended by it again.
    fn bad_end(&self, end: BadEnd, job: &Job) -> ChildEnd {
        let limit = match end.cause {
            WALL_CLOCK => format!("{} seconds", self.wall_clock.as_secs_f64()),
            CPU_LIMIT => format!("{} seconds of processor time", job.cpu_seconds_max),
            _ => return end.of_whom(),
        };
        ChildEnd::OutOfTime { limit, end }
    }

    /// The command, and where its job is written to unless that is the pipe which comes with it. A child with a device gets
    /// its job over a socket, for only a socket can bring it the device's end as well; the number is the device's process'.
    fn command(&self) -> io::Result<(Command, Option<UnixStream>, u64)> {
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .env_clear()
            .env(ALLOCATOR.0, ALLOCATOR.1)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            // Its own group: what it starts ends with it, and an interrupt at the terminal is for the service, which drains.
            .process_group(0);
        let Some((end, device)) = self.device.as_ref().and_then(DeviceLink::connect) else {
            return Ok((command, None, 0));
        };
        let (ours, theirs) = StdStream::pair()?;
        send_end(&ours, end)?;
        ours.set_nonblocking(true)?;
        command.arg("--device-end").stdin(OwnedFd::from(theirs));
        Ok((command, Some(UnixStream::from_std(ours)?), device))
    }
}

/// The largest PNG that the job can lead to: 16-bit RGBA that does not compress.
fn result_bytes_max(scale: Scale, source_pixels_max: u64) -> u64 {
    let factor = scale.factor() as u64;
    source_pixels_max * factor * factor * 8 + RESULT_OVERHEAD_BYTES
}

/// Why a child ended, counted when it is dropped.
struct Cause(&'static str);

impl Drop for Cause {
    fn drop(&mut self) {
        counter!("upscale_child_ends_total", "cause" => self.0).increment(1);
    }
}

/// Why a child made no result.
#[derive(Debug, thiserror::Error)]
pub enum ChildEnd {
    /// It could not be started: it may go better another time.
    #[error("the child was not started: {0}")]
    NotStarted(io::Error),
    /// It refuses the source: the same bytes will be refused again. The text is for the customer.
    #[error("{0}")]
    Refused(String),
    /// No kernels passed the output check; the text is for the logs.
    #[error("the output check: {0}")]
    Unfaithful(String),
    /// A clock ended it: the same image would take as long again.
    #[error("{end}")]
    OutOfTime {
        /// How much it had, such as `120 seconds`.
        limit: String,
        /// Which clock.
        end: BadEnd,
    },
    /// Its sandbox lacks what the job requires, and it looked at nothing: the machine's fault.
    #[error("{0}")]
    WeakSandbox(BadEnd),
    /// Someone else killed it, as the kernel does when memory is out: it may go better alone.
    #[error("{0}")]
    Killed(BadEnd),
    /// It ended without an answer, or answered what cannot be.
    #[error("{0}")]
    Crashed(BadEnd),
}

/// An end without a result.
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
pub struct BadEnd {
    /// As metrics name it.
    pub cause: &'static str,
    /// Text for the logs; never shown to customers.
    pub reason: String,
}

impl BadEnd {
    fn new(cause: &'static str, reason: impl Into<String>) -> Self {
        Self {
            cause,
            reason: reason.into(),
        }
    }

    /// The machine's fault, or the picture's.
    fn of_whom(self) -> ChildEnd {
        match self.cause {
            WEAK_SANDBOX => ChildEnd::WeakSandbox(self),
            KILLED => ChildEnd::Killed(self),
            _ => ChildEnd::Crashed(self),
        }
    }
}

/// What an answer that keeps to the protocol is worth.
fn judge(
    answer: Answer,
    job: &Job,
    cause: &mut Cause,
) -> Result<Result<CheckedResult, ChildEnd>, BadEnd> {
    match answer {
        Answer::Done {
            facts,
            png,
            thumbnail,
        } => {
            check_png(&png, &facts, job).map_err(|reason| BadEnd::new("unfit", reason))?;
            check_thumbnail(&thumbnail).map_err(|reason| BadEnd::new("unfit", reason))?;
            cause.0 = "done";
            Ok(Ok(CheckedResult {
                facts,
                png,
                thumbnail,
                look: (!facts.by_brought_model).then_some(job.look),
            }))
        }
        Answer::Refused(message) => {
            cause.0 = "refused";
            Ok(Err(ChildEnd::Refused(message)))
        }
        Answer::Unfaithful(reason) => {
            cause.0 = "refused";
            counter!("upscale_output_check_total", "path" => "none").increment(1);
            Ok(Err(ChildEnd::Unfaithful(reason)))
        }
        Answer::Broke(reason) => Err(BadEnd::new("broke", reason)),
    }
}

/// What is remembered of one child.
struct Talk {
    output: Output,
    progress: u16,
}

impl Talk {
    async fn run(
        &mut self,
        child: &mut Running,
        input: Option<UnixStream>,
        job: &Job,
        source: &[u8],
    ) -> Result<Answer, BadEnd> {
        let pipe = child.child.stdin.take().map(Input::Pipe);
        let inputs = (input.map(Input::Socket).or(pipe), child.child.stdout.take());
        let (Some(input), Some(stdout)) = inputs else {
            return Err(BadEnd::new("not_started", "the child has no pipes"));
        };
        tokio::select! {
            ended = converse(child, stdout, job, &mut self.progress) => ended,
            never = feed(input, job, source) => never,
            never = self.output.listen() => never,
        }
    }

    /// One line with what the child said about it; its words are untrusted and are shown escaped.
    async fn log(&mut self, error: &ChildEnd) {
        let _ = timeout(LAST_OUTPUT, self.output.capture()).await;
        let words = self.output.text();
        if let ChildEnd::WeakSandbox(_) = error {
            tracing::error!(child_output = ?words, "this machine cannot decode images safely");
        }
        tracing::info!(
            %error,
            permille = self.progress,
            child_output = ?words,
            "a child did not do its image"
        );
    }
}

async fn converse(
    child: &mut Running,
    mut stdout: ChildStdout,
    job: &Job,
    progress: &mut u16,
) -> Result<Answer, BadEnd> {
    match read_answer(&mut stdout, job.result_bytes_max, progress).await {
        Ok(answer) => ended_well(child, &mut stdout).await.map(|()| answer),
        Err(error) => {
            let end = ending(child).await;
            Err(BadEnd::new(end.cause, format!("{error}; {}", end.reason)))
        }
    }
}

/// What a child's standard input is on this side.
enum Input {
    Pipe(ChildStdin),
    Socket(UnixStream),
}

/// Never ends. A child may refuse before it has read everything, so a broken pipe is not yet a failure:
/// the answer, or its absence, decides.
async fn feed<T>(input: Input, job: &Job, source: &[u8]) -> T {
    let written = match input {
        Input::Pipe(mut pipe) => write_job(&mut pipe, job, source).await,
        Input::Socket(mut socket) => write_job(&mut socket, job, source).await,
    };
    if let Err(error) = written {
        tracing::debug!(%error, "the child did not read its job to the end");
    }
    std::future::pending().await
}

/// After an answer there is nothing but the end, with status 0.
async fn ended_well(child: &mut Running, stdout: &mut ChildStdout) -> Result<(), BadEnd> {
    let ending = timeout(ENDING, async {
        if stdout.read(&mut [0; 1]).await.is_ok_and(|bytes| bytes > 0) {
            return Err(BadEnd::new("protocol", "it spoke on after its answer"));
        }
        match child.wait().await {
            Ok(status) if status.success() => Ok(()),
            ended => {
                let end = describe(ended);
                Err(BadEnd::new(
                    end.cause,
                    format!("it answered, but {}", end.reason),
                ))
            }
        }
    });
    ending.await.unwrap_or_else(|_| {
        let reason = format!("it did not end within {ENDING:?} after its answer");
        Err(BadEnd::new("protocol", reason))
    })
}

/// How a child that spoiled its answer ended, if it did.
async fn ending(child: &mut Running) -> BadEnd {
    match timeout(LAST_OUTPUT, child.wait()).await {
        Ok(ended) => describe(ended),
        Err(_) => BadEnd::new("protocol", "it still runs and is killed"),
    }
}

fn describe(ended: io::Result<ExitStatus>) -> BadEnd {
    let status = match ended {
        Ok(status) => status,
        Err(error) => return BadEnd::new("protocol", format!("its end is unknown: {error}")),
    };
    // Signal numbers of Linux on x86-64 and ARM64, signal(7).
    let cause = match status.signal() {
        None if status.success() => "protocol",
        None if status.code() == Some(EXIT_WEAK_SANDBOX.into()) => WEAK_SANDBOX,
        None => "exit",
        Some(31) => "forbidden_call",
        Some(6) => "abort",
        Some(24) => CPU_LIMIT,
        // Not by this parent, which has waited until now; nor at the limit of processor time, which tells first.
        Some(9) => KILLED,
        Some(_) => "signal",
    };
    BadEnd::new(cause, format!("it ended with {status}"))
}

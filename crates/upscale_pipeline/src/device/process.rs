//! The worker's side: a device's process is started, watched and started again; children get their ends of sockets here.

use std::{
    ffi::OsString,
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream as StdStream,
    },
    path::PathBuf,
    process::Stdio,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use metrics::{counter, gauge};
use tokio::{
    io::AsyncReadExt,
    net::UnixStream,
    process::Command,
    sync::Notify,
    time::{sleep, timeout},
};

use super::{
    ends::send_end,
    wire::{Announcement, DeviceFacts},
};
use crate::{
    frame::{DeviceUse, frame_bytes, from_frame},
    output::Output,
    running::Running,
    supervisor::LAST_OUTPUT,
};

/// To open a device, make its programs ready and measure it takes a second or two; a driver on its knees gets this long.
const START_MAX: Duration = Duration::from_secs(60);
/// Before it is started again: doubled each time, up to the second, until one has made a picture.
const RESTART_AFTER: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(300)];
/// A process that hangs is found by those who wait for it in vain.
const FAILURES_MAX: u32 = 2;

/// Where children get their ends; shared by all who start children.
#[derive(Debug, Clone, Default)]
pub struct DeviceLink(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// To the process that is ready.
    control: Mutex<Option<OwnedFd>>,
    /// Which process it is to: children of the one before may still be at work.
    number: AtomicU64,
    /// Pictures in a row that it failed.
    failures: AtomicU32,
    /// Whether it made one.
    has_made: AtomicBool,
    is_bad: Notify,
}

impl DeviceLink {
    /// A new socket to the device's process, and the process' number; none while there is no process, or it takes no more.
    pub(crate) fn connect(&self) -> Option<(OwnedFd, u64)> {
        let control = self.control();
        let (ours, theirs) = StdStream::pair().ok()?;
        send_end(control.as_ref()?, &theirs).ok()?;
        Some((ours.into(), self.0.number.load(Ordering::Relaxed)))
    }

    /// What a child says came of the device, which the process of that number had. One picture may have had its own reasons;
    /// more have one together.
    pub(crate) fn reported(&self, device: DeviceUse, number: u64) {
        let path = match device {
            DeviceUse::None => "cpu",
            DeviceUse::Made => "device",
            DeviceUse::Refused | DeviceUse::Failed => "fallback",
        };
        counter!("upscale_device_pictures_total", "path" => path).increment(1);
        match device {
            _ if number != self.0.number.load(Ordering::Relaxed) => {}
            DeviceUse::None | DeviceUse::Refused => {}
            DeviceUse::Made => {
                self.0.failures.store(0, Ordering::Relaxed);
                self.0.has_made.store(true, Ordering::Relaxed);
            }
            DeviceUse::Failed => {
                if self.0.failures.fetch_add(1, Ordering::Relaxed) + 1 >= FAILURES_MAX {
                    self.0.is_bad.notify_one();
                }
            }
        }
    }

    /// Resolves once too many pictures in a row failed; what is left of the process before wakes it in vain.
    async fn is_bad(&self) {
        while self.0.failures.load(Ordering::Relaxed) < FAILURES_MAX {
            self.0.is_bad.notified().await;
        }
    }

    fn control(&self) -> MutexGuard<'_, Option<OwnedFd>> {
        let control = self.0.control.lock();
        control.unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, control: Option<OwnedFd>) {
        gauge!("upscale_device_up").set(if control.is_some() { 1.0 } else { 0.0 });
        let mut open = self.control();
        self.0.failures.store(0, Ordering::Relaxed);
        self.0.number.fetch_add(1, Ordering::Relaxed);
        *open = control;
    }
}

/// How a device's process is started.
#[derive(Debug, Clone)]
pub struct DeviceProcess {
    /// The program, usually this binary itself.
    pub program: PathBuf,
    /// Arguments, without the program's name.
    pub arguments: Vec<OsString>,
    /// All of its environment: nothing is inherited.
    pub environment: Vec<(OsString, OsString)>,
    /// Whether it is started again after it declined; else that is the end of it.
    pub insists: bool,
}

/// How a process came to its end.
enum End {
    Declined(String),
    Died(String),
}

impl DeviceProcess {
    /// Keeps a process for `link` until this future is dropped, which ends it; resolves only when it declined and no one
    /// insists.
    pub async fn keep(&self, link: &DeviceLink) {
        let [mut pause, longest] = RESTART_AFTER;
        loop {
            let end = self.run(link).await;
            link.set(None);
            match end {
                Ok(End::Declined(why)) if !self.insists => {
                    tracing::info!(why, "no GPU is used");
                    return;
                }
                Ok(End::Declined(why)) => tracing::warn!(why, "the GPU is not used for now"),
                Ok(End::Died(why)) => {
                    tracing::warn!(why, "the GPU's process ended; the CPU does its pictures");
                }
                Err(error) => tracing::warn!(%error, "the GPU's process did not start"),
            }
            counter!("upscale_device_restarts_total").increment(1);
            if link.0.has_made.swap(false, Ordering::Relaxed) {
                pause = RESTART_AFTER[0];
            }
            sleep(pause).await;
            pause = (pause * 2).min(longest);
        }
    }

    /// One process from its start to its end.
    async fn run(&self, link: &DeviceLink) -> io::Result<End> {
        let (ours, theirs) = StdStream::pair()?;
        let mut child = Running::start(self.command(theirs)).await?;
        let mut output = Output::new(child.child.stderr.take());
        let control = ours.as_fd().try_clone_to_owned()?;
        ours.set_nonblocking(true)?;
        let mut ours = UnixStream::from_std(ours)?;
        let announced = tokio::select! {
            announced = timeout(START_MAX, announcement(&mut ours)) => announced,
            never = output.listen() => never,
        };
        let facts = match announced {
            Ok(Ok(Announcement::Ready(facts))) => facts,
            Ok(Ok(Announcement::Declined(why))) => return Ok(End::Declined(why)),
            Ok(Err(error)) => {
                let _ = timeout(LAST_OUTPUT, output.capture()).await;
                return Ok(End::Died(format!("{error}: {}", output.text())));
            }
            Err(_) => return Ok(End::Died(format!("it was not ready within {START_MAX:?}"))),
        };
        tell(&facts);
        link.set(Some(control));
        let ended = tokio::select! {
            ended = child.wait() => ended,
            () = link.is_bad() => {
                return Ok(End::Died(format!("{FAILURES_MAX} pictures in a row failed on it")));
            }
            never = output.listen() => never,
        };
        let _ = timeout(LAST_OUTPUT, output.capture()).await;
        Ok(End::Died(format!("{}: {}", ended?, output.text())))
    }

    fn command(&self, control: StdStream) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(control)))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .process_group(0);
        command
    }
}

fn tell(facts: &DeviceFacts) {
    let DeviceFacts {
        name,
        driver,
        kind,
        buffer_bytes,
    } = facts;
    tracing::info!(name, driver, kind, buffer_bytes, "a GPU upscales pictures");
    gauge!("upscale_device_buffer_bytes").set(*buffer_bytes as f64);
}

async fn announcement(control: &mut UnixStream) -> io::Result<Announcement> {
    let mut length = [0; 4];
    control.read_exact(&mut length).await?;
    let mut frame = vec![0; frame_bytes(length)?];
    control.read_exact(&mut frame).await?;
    from_frame(&frame)
}

//! A child that runs, with all that it may have started: one process group, which ends as one. In its sandbox a child
//! starts nothing; where a part of that is missing, what it started must not outlive its picture either.

use std::{io, process::ExitStatus, thread};

use rustix::{
    io::retry_on_intr,
    process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid},
};
use tokio::{
    process::{Child, Command},
    runtime::Handle,
    sync::oneshot,
};

/// A child at the head of its own process group. Dropping it kills the group; it is waited for then.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) child: Child,
    /// Resolves when the child has ended, before it is waited for; none once it did.
    ended: Option<oneshot::Receiver<()>>,
}

impl Running {
    /// On a thread of its own, which stays until the child has ended. The process that forks stands still until the child
    /// runs its program (vfork(2)): a child stopped before that, or a disk that does not answer, would take a thread of
    /// the runtime with it. And a child dies with the thread that started it (PR_SET_PDEATHSIG).
    pub(crate) async fn start(mut command: Command) -> io::Result<Self> {
        let runtime = Handle::current();
        let (send_running, started) = oneshot::channel();
        let (says_end, ended) = oneshot::channel();
        thread::Builder::new()
            .name("child".to_owned())
            .spawn(move || {
                let _entered = runtime.enter();
                let running = command.spawn().map(|child| Self {
                    child,
                    ended: Some(ended),
                });
                // It keeps the ends of what the child was given, which would never close.
                drop(command);
                let pid = running.as_ref().ok().and_then(Self::pid);
                // A child that is no longer waited for is killed as it is dropped.
                let _ = send_running.send(running);
                if let Some(pid) = pid {
                    wait_for_end(pid);
                }
                // Dropping it says as much.
                let _ = says_end.send(());
            })?;
        started.await.map_err(io::Error::other)?
    }

    /// Waits until the child has ended, ends what it left behind, and only then gives its number back: a group whose
    /// number was given back may be another's.
    pub(crate) async fn wait(&mut self) -> io::Result<ExitStatus> {
        if let Some(ended) = &mut self.ended {
            let _ = ended.await;
            self.ended = None;
            self.kill_group();
        }
        self.child.wait().await
    }

    /// Ends it and all that it started, and waits for it.
    pub(crate) async fn kill(&mut self) {
        self.kill_group();
        // Killing what has ended already is no error that matters.
        let _ = self.child.kill().await;
    }

    /// None once it was waited for.
    fn pid(&self) -> Option<Pid> {
        Pid::from_raw(self.child.id()?.cast_signed())
    }

    fn kill_group(&self) {
        if let Some(pid) = self.pid() {
            // A group of nothing but a child that has ended is no error that matters either.
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill_group();
    }
}

/// Leaves it to be waited for (WNOWAIT). An error means that it was, already.
fn wait_for_end(pid: Pid) {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    let _ = retry_on_intr(|| waitid(WaitId::Pid(pid), options));
}

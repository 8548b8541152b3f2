//! A worker process of its own: it listens nowhere, so all there is to it is that it says it is ready, and ends.

use std::{
    fs::OpenOptions,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
};

use rustix::process::Signal;

use crate::harness::serve::{children_of, signal, tail};

/// A running `upscale worker`.
pub(crate) struct Worker {
    child: Child,
}

impl Worker {
    /// Waits for its ready line.
    pub(crate) fn start(mut command: Command, log: &Path) -> Self {
        let stderr = OpenOptions::new().create(true).append(true).open(log);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.stderr(stderr.unwrap()).spawn().unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        let worker = Self { child };
        assert!(line.contains("ready"), "{line}\n{}", tail(log));
        worker
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn children(&self) -> Vec<u32> {
        children_of(self.pid())
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks it to stop and waits: it drains for 25 s at most.
    pub(crate) fn stop(mut self) -> ExitStatus {
        signal(self.pid(), Signal::TERM);
        self.child.wait().unwrap()
    }
}

impl Drop for Worker {
    /// Nothing outlives its test. Both are errors once it is gone, and harmless.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

//! A service of this same program as a process of its own, for the demo and the benchmark of the API: started on
//! free ports, found by its ready line, operated by the command line, stopped by SIGTERM.

use std::{
    ffi::OsStr,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use anyhow::{Context, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// A service that has not said it is ready after this long never will.
const START: Duration = Duration::from_secs(30);

/// A running service. Dropping it kills it.
pub(crate) struct Running {
    process: Child,
    data: PathBuf,
    /// Where the API listens, such as `http://127.0.0.1:4242`.
    pub(crate) api: String,
    /// Where `/metrics` is served, if it is on.
    pub(crate) metrics: Option<String>,
}

impl Running {
    /// Starts `serve` on the directory, on free ports of loopback, with further flags.
    pub(crate) fn start(data: &Path, flags: &[&OsStr]) -> anyhow::Result<Self> {
        let ports = ["serve", "--listen", "127.0.0.1:0"];
        let mut command = itself();
        command.args(ports).arg("--data").arg(data).args(flags);
        let mut process = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("the service did not start")?;
        let line = first_line(&mut process);
        let mut running = Self {
            process,
            data: data.to_owned(),
            api: String::new(),
            metrics: None,
        };
        let ready: Value =
            serde_json::from_str(&line.context("the service did not say that it is ready")?)?;
        running.api = ready["api"]
            .as_str()
            .context("the ready line names no address")?
            .to_owned();
        running.metrics = ready["metrics"].as_str().map(str::to_owned);
        Ok(running)
    }

    /// Runs one of the operator's commands on the same data and gives what it prints.
    pub(crate) fn operate(&self, arguments: &[&str]) -> anyhow::Result<Value> {
        let output = self.command(arguments).arg("--json").output()?;
        let reported = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success(),
            "{arguments:?} failed: {}",
            reported.trim()
        );
        serde_json::from_slice(&output.stdout).with_context(|| format!("{arguments:?}"))
    }

    /// The same for people: its table.
    pub(crate) fn show(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let output = self.command(arguments).output()?;
        ensure!(output.status.success(), "{arguments:?} failed");
        Ok(String::from_utf8(output.stdout)?)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = itself();
        command.args(arguments).arg("--data").arg(&self.data);
        command
    }

    /// Process id, to look at its memory.
    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Asks it to stop and waits; it must end with 0.
    pub(crate) fn stop(mut self) -> anyhow::Result<()> {
        let pid = i32::try_from(self.process.id())
            .ok()
            .and_then(Pid::from_raw);
        kill_process(pid.context("the service has no process id")?, Signal::TERM)?;
        let status = self.process.wait()?;
        if !status.success() {
            bail!("the service ended with {status}");
        }
        Ok(())
    }
}

impl Drop for Running {
    /// Both are errors once it has ended, and harmless.
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// This very program, even after its file was replaced by a newer one, free of what the caller's environment
/// configures.
pub(crate) fn itself() -> Command {
    let mut command = Command::new("/proc/self/exe");
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("UPSCALE_") {
            command.env_remove(name);
        }
    }
    command
}

fn first_line(process: &mut Child) -> anyhow::Result<String> {
    let stdout = process
        .stdout
        .take()
        .context("the service has no standard output")?;
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut lines = BufReader::new(stdout).lines();
        // Anyone who waited too long has gone; the pipe is read on so that it never fills.
        let _ = sender.send(lines.next());
        lines.for_each(drop);
    });
    let line = receiver.recv_timeout(START).context("it took too long")?;
    Ok(line.context("it ended")??)
}

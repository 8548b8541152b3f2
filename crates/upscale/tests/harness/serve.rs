//! The real `upscale serve` as a child process: started, found by its ready line, signalled, killed.

use std::{
    fs::{self, OpenOptions},
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex, mpsc},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// A start or an end that takes longer than this has failed. A bound against hanging, not a promise of speed.
const WAIT_MAX: Duration = Duration::from_secs(90);

/// A command of the binary under test, free of what the developer's own environment configures.
pub fn upscale() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_upscale"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("UPSCALE_") {
            command.env_remove(name);
        }
    }
    // Most tests count children, and none but those of the GPU has use for another process at every start.
    command.env("UPSCALE_DEVICE", "cpu");
    command
}

/// Whether a Vulkan driver is there; with CI=true one has to be.
pub fn has_gpu() -> bool {
    let tried = upscale()
        .args(["bench", "--device", "gpu:0", "--network", "f"])
        .args(["--size", "8x8", "--runs", "1"])
        .output()
        .unwrap();
    let is_needed = std::env::var("CI").is_ok_and(|value| value == "true");
    let words = String::from_utf8_lossy(&tried.stderr).into_owned();
    assert!(tried.status.success() || !is_needed, "no GPU: {words}");
    if !tried.status.success() {
        eprintln!("left out, no Vulkan driver: {words}");
    }
    tried.status.success()
}

/// A service that said it is ready.
pub struct Serve {
    child: Child,
    pub api: String,
    pub results: String,
    /// Where the console is served, if it is on.
    pub console: Option<String>,
    /// Where the operators' console is served, if it is on: an address, or `unix:FILE`.
    pub admin: Option<String>,
    /// Where `/metrics` is served, if it is on.
    pub metrics: Option<String>,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Serve {
    /// Starts on free ports and waits for the ready line. Standard error is appended to `log`.
    pub fn start(data: &Path, flags: &[String], log: &Path) -> Self {
        Self::start_as(upscale(), data, flags, log)
    }

    /// As [`Serve::start`], with another command in front that runs the binary.
    pub fn start_as(mut command: Command, data: &Path, flags: &[String], log: &Path) -> Self {
        command.args(["serve", "--data"]).arg(data).args(flags);
        Self::start_front(command, log)
    }

    /// Starts a command that has a front, on free ports.
    pub fn start_front(mut command: Command, log: &Path) -> Self {
        let stderr = OpenOptions::new()
            .create(true)
            .append(true)
            .open(log)
            .unwrap();
        let mut child = command
            .args(["--listen", "127.0.0.1:0"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .unwrap();
        let (lines, first_line) = read_lines(&mut child);
        let Ok(line) = first_line.recv_timeout(WAIT_MAX) else {
            drop(child.kill());
            let status = child.wait().unwrap();
            panic!(
                "serve said nothing on standard output ({status}):\n{}",
                tail(log)
            );
        };
        let ready: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(ready["event"], "ready", "{line}");
        let optional = |name: &str| ready.get(name).map(|url| url.as_str().unwrap().to_owned());
        let [console, admin, metrics] = ["console", "admin", "metrics"].map(optional);
        let fields = 3 + [&console, &admin, &metrics].into_iter().flatten().count();
        assert_eq!(ready.as_object().unwrap().len(), fields, "{line}");
        let address = |name: &str| ready[name].as_str().unwrap().to_owned();
        Self {
            api: address("api"),
            results: address("results"),
            console,
            admin,
            metrics,
            child,
            lines,
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills it as a power cut would, and waits until it is gone.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks it to stop (SIGTERM); how it ended. It must have said one line on standard output, no more.
    pub fn stop(self) -> ExitStatus {
        signal(self.pid(), Signal::TERM);
        self.ended()
    }

    /// How it ended, once it was asked to.
    pub fn ended(mut self) -> ExitStatus {
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if begun.elapsed() > WAIT_MAX {
                drop(self.child.kill());
                panic!("serve did not stop within {WAIT_MAX:?} of SIGTERM");
            }
            thread::sleep(Duration::from_millis(10));
        };
        let lines = self.lines.lock().unwrap();
        assert_eq!(
            lines.len(),
            1,
            "standard output holds the ready line alone: {lines:?}"
        );
        status
    }

    /// Processes that this one has started and that still run.
    pub fn children(&self) -> Vec<u32> {
        children_of(self.pid())
    }

    /// The process of its GPU, if there is one just now.
    pub fn gpu(&self) -> Option<u32> {
        self.children().into_iter().find(|pid| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.split(|&byte| byte == 0).nth(1) == Some(b"gpu")
        })
    }
}

impl Drop for Serve {
    /// Nothing outlives its test. Both are errors once it is gone, and harmless.
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Collects standard output; the receiver gets the first line.
fn read_lines(child: &mut Child) -> (Arc<Mutex<Vec<String>>>, mpsc::Receiver<String>) {
    let stdout = child.stdout.take().unwrap();
    let lines = Arc::new(Mutex::new(Vec::new()));
    let (sender, receiver) = mpsc::channel();
    let collected = Arc::clone(&lines);
    thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            collected.lock().unwrap().push(line.clone());
            // Only the first has a listener.
            drop(sender.send(line));
        }
    });
    (lines, receiver)
}

/// Sends a signal to a process that the caller started; false when it is gone already.
pub fn signal(pid: u32, signal: Signal) -> bool {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    kill_process(pid, signal).is_ok()
}

/// Waits until it is so; the test fails when that takes longer than anything here may.
pub fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        let waited = begun.elapsed();
        assert!(waited < WAIT_MAX * 3, "{what}: not in {waited:?}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Direct children that run their own program, by the kernel's own table; zombies left out.
pub fn children_of(parent: u32) -> Vec<u32> {
    // Between fork and exec a child still has its parent's command line, and stopping it then would stop the thread that
    // forks: vfork(2).
    let command_line = |pid: u32| fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let forked = command_line(parent);
    let mut children = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else {
            continue;
        };
        // "pid (name) state ppid …"; the name may hold spaces and brackets.
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let mut fields = stat
            .rsplit(')')
            .next()
            .unwrap_or_default()
            .split_whitespace();
        let (state, ppid) = (fields.next(), fields.next());
        if state != Some("Z")
            && ppid == Some(parent.to_string().as_str())
            && command_line(pid) != forked
        {
            children.push(pid);
        }
    }
    children
}

/// The end of a log, for a failure's message.
pub fn tail(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(30)..].join("\n")
}

/// Where the n-th start of a service writes its standard error.
pub fn log_path(folder: &Path, number: usize) -> PathBuf {
    folder.join(format!("serve-{number}.log"))
}

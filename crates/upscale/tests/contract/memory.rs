//! Memory that runs out: the service with 32 slots in a cgroup of 2 GB. The kernel kills children, never the service, and
//! every task ends; without a word on slots there are as many as fit. The long one runs when `checks/memory.sh` asks.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::Duration,
};

use crate::harness::{World, client::order, serve::upscale};

const LIMIT_BYTES: u64 = 2 << 30;
/// Set to run what takes minutes of processor time.
const ASK: &str = "UPSCALE_MEMORY_CHECK";
const IMAGES: usize = 16;
/// The largest square of 1.5 megapixels.
const SIDE: u32 = 1_224;

/// A cgroup of this test's own, removed at its end.
struct Cgroup(PathBuf);

impl Cgroup {
    /// None where this machine lets us make none.
    fn make(name: &str) -> Option<Self> {
        let old = Path::new("/sys/fs/cgroup/memory");
        let (parent, file) = if old.is_dir() {
            (old, "memory.limit_in_bytes")
        } else {
            (Path::new("/sys/fs/cgroup"), "memory.max")
        };
        let path = parent.join(format!("upscale-{name}-{}", std::process::id()));
        let made = fs::create_dir(&path)
            .and_then(|()| fs::write(path.join(file), LIMIT_BYTES.to_string()));
        match made {
            Ok(()) => Some(Self(path)),
            Err(error) => {
                eprintln!(
                    "left out: no cgroup can be made at {}: {error}",
                    path.display()
                );
                drop(Self(path));
                None
            }
        }
    }

    /// The binary, in this cgroup from its first step on.
    fn command(&self) -> Command {
        let mut command = Command::new("sh");
        let script = format!(
            "echo $$ > {}/cgroup.procs; exec \"$0\" \"$@\"",
            self.0.display()
        );
        command.args(["-c", &script]).arg(upscale().get_program());
        command
    }
}

impl Drop for Cgroup {
    /// Its last processes may be on their way out.
    fn drop(&mut self) {
        for _ in 0..100 {
            if fs::remove_dir(&self.0).is_ok() || !self.0.exists() {
                return;
            }
            thread::sleep(Duration::from_millis(50));
        }
        eprintln!("{} could not be removed", self.0.display());
    }
}

#[test]
fn no_more_images_at_a_time_than_fit_into_the_cgroup() {
    let Some(cgroup) = Cgroup::make("slots") else {
        return;
    };
    let output = cgroup
        .command()
        .args(["doctor", "--json", "--outside", "localhost"])
        .output()
        .unwrap();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let parts = report["parts"].as_array().unwrap();
    let images = parts.iter().find(|part| part["part"] == "images").unwrap();
    let words = images["words"].as_str().unwrap();
    let limit = format!("2048 MiB of memory ({}", cgroup.0.display());
    assert!(words.contains(&limit), "{words}");
    assert!(words.contains("hold 3 images of 512 MiB"), "{words}");
    assert_eq!(images["health"], "good");
}

#[test]
fn thirty_two_slots_in_two_gigabytes_kill_children_only_and_all_tasks_end() {
    if std::env::var_os(ASK).is_none() {
        eprintln!("left out: large images on 32 slots in 2 GB; checks/memory.sh runs it");
        return;
    }
    let Some(cgroup) = Cgroup::make("load") else {
        return;
    };
    let mut world = World::prepare(&["--workers", "32", "--deadline", "240"]);
    let serve = world.serve_beside(cgroup.command(), &[]);
    world.direct_customers_to(&serve.api);
    let customers = [world.customer("100"), world.customer("100")];
    let url = world.picture("/large.png", SIDE, SIDE);
    let mut tasks = Vec::new();
    for number in 0..IMAGES {
        let customer = &customers[number % customers.len()];
        let created = customer.create(&format!("memory-key-{number}"), &order(&url, 2));
        // What could not be done in time is refused, and costs nothing.
        if created.status == 202 {
            tasks.push((customer, created.id()));
        } else {
            created.expect(503, "service_unavailable");
        }
    }
    let mut done = 0;
    for (customer, id) in &tasks {
        let ended = customer.wait(id).json();
        done += usize::from(ended["status"] == "succeeded");
    }
    let logs = world.logs();
    let killed = logs.matches("tried again alone").count();
    println!(
        "{} tasks, {done} succeeded, {killed} children killed for memory",
        tasks.len()
    );
    assert!(done > 0 && killed > 0, "{logs}");
    // It is the process that was started: nothing starts it again.
    assert!(serve.stop().success(), "the service did not live");
    world.finish();
}

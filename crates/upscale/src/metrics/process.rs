//! What Prometheus' own libraries say of every process, under the names that every dashboard knows
//! (<https://prometheus.io/docs/instrumenting/writing_clientlibs/#process-metrics>). Children are processes of their own and
//! not counted here.

use std::{fs, io};

use metrics::{counter, gauge};
use rustix::{
    process::{Resource, getrlimit},
    time::{ClockId, clock_gettime},
};
use upscale_pipeline::status_bytes;

/// Notes when this process started; once.
pub(super) fn note_start() {
    let now = upscale_core::Clock::System.now();
    gauge!("process_start_time_seconds").set(now.unix_seconds() as f64);
}

/// Looks at this process. What Linux does not say now stays as it was.
pub(super) fn look() {
    // Never negative; whole seconds are what a counter of ours holds.
    let cpu_seconds = clock_gettime(ClockId::ProcessCPUTime).tv_sec;
    counter!("process_cpu_seconds_total").absolute(cpu_seconds.unsigned_abs());
    if let Some(limit) = getrlimit(Resource::Nofile).current {
        gauge!("process_max_fds").set(limit as f64);
    }
    if let Ok(open) = count_open_files() {
        gauge!("process_open_fds").set(open as f64);
    }
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    if let Some(bytes) = status_bytes(&status, "VmRSS:") {
        gauge!("process_resident_memory_bytes").set(bytes as f64);
    }
    if let Some(bytes) = status_bytes(&status, "VmSize:") {
        gauge!("process_virtual_memory_bytes").set(bytes as f64);
    }
}

/// Without the one that the counting itself opens.
fn count_open_files() -> io::Result<usize> {
    Ok(fs::read_dir("/proc/self/fd")?.count().saturating_sub(1))
}

//! Children of a test: the real program, started by the test itself as the service starts it.

use std::{ffi::OsString, time::Duration};

use rustix::process::geteuid;
use upscale_core::Look;
use upscale_pipeline::{
    ChildOptions,
    sandbox::{Part, Parts, UID_DEFAULT},
};

/// Whether tests may take another user.
pub fn is_root() -> bool {
    geteuid().is_root()
}

/// As `serve` starts its children.
pub fn sandboxed() -> ChildOptions {
    let mut arguments: Vec<OsString> = vec!["child".into(), "--parent".into()];
    arguments.push(std::process::id().to_string().into());
    let mut required = Parts::REQUIRED;
    if is_root() {
        arguments.push("--sandbox-uid".into());
        arguments.push(UID_DEFAULT.to_string().into());
        required = required.with(Part::OwnUser);
    }
    ChildOptions {
        program: env!("CARGO_BIN_EXE_upscale").into(),
        arguments,
        environment: Vec::new(),
        wall_clock: Duration::from_secs(60),
        threads: 2,
        memory_bytes_max: 2 << 30,
        cpu_seconds_max: 60,
        required,
        look: Look::Faithful,
        device: None,
    }
}

//! A device of another process. Children of the sandbox open none: each is given one end of a socket when it starts and
//! asks over that (`remote.rs`); the device's process has the other end and answers (`serve.rs`); the worker starts that
//! process, watches it and passes the ends on (`process.rs`).
//!
//! Samples go through the socket itself. A largest picture's 150 MB take some 0.06 s so (two busy cores). To share memory
//! would save a part of that; it would need `unsafe`, a sandbox that maps files, and care for what the other side changes meanwhile. What has been read from a
//! socket is the reader's own.

mod ends;
mod known;
mod process;
mod remote;
mod serve;
mod wire;

pub(crate) use ends::{receive_end, send_end};
pub use known::KnownNetworks;
pub use process::{DeviceLink, DeviceProcess};
pub(crate) use remote::RemoteDevice;
pub use serve::{announce, serve_device};
pub use wire::{Announcement, DeviceFacts};

#[cfg(test)]
mod tests;

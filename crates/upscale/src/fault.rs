//! Misdeeds that a child commits on order, in debug builds only, so that tests see each limit of its cage at
//! work. The order comes in the environment, which the service fills and no stranger can.

use std::{
    fs::File,
    hint::black_box,
    net::{Ipv4Addr, TcpStream},
    thread,
    time::Duration,
};

/// Names the misdeed.
pub(crate) const VARIABLE: &str = "UPSCALE_CHILD_FAULT";
/// More threads than the processor time was reckoned for.
const SPINNERS: usize = 8;
const CHUNK_BYTES: usize = 64 << 20;

/// Does what the environment says, if it says anything.
pub(crate) fn commit() {
    match std::env::var(VARIABLE).as_deref() {
        Ok("memory") => {
            let mut held = Vec::new();
            loop {
                held.push(black_box(vec![1u8; CHUNK_BYTES]));
            }
        }
        Ok("cpu") => thread::scope(|scope| {
            for _ in 0..SPINNERS {
                scope.spawn(|| {
                    loop {
                        black_box(());
                    }
                });
            }
        }),
        Ok("hang") => thread::sleep(Duration::from_secs(3_600)),
        Ok("system-call") => drop(std::env::current_dir()),
        Ok("file") => drop(File::open("/etc/hostname")),
        Ok("socket") => drop(TcpStream::connect((Ipv4Addr::LOCALHOST, 9))),
        Ok("abort") => std::process::abort(),
        _ => {}
    }
}

//! The child's side: the device at the other end of a socket. It believes nothing that comes from there: rows are counted,
//! every wait ends, and what the rows hold the engine and the output check look at.

use std::{
    fs::File,
    io::{self, Read, Write},
    mem::ManuallyDrop,
    ops::ControlFlow,
    os::fd::OwnedFd,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use upscale_core::Rows;
use upscale_engine::{Device, DeviceError, DeviceWork};

use super::wire::{Order, Reply, receive, send};
use crate::wall;

/// A device that says nothing for so long hangs, or has so much to do that the CPU is faster.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// For one picture, waiting included: what is left of an attempt's time then is enough for the CPU.
const PICTURE_MAX: Duration = Duration::from_secs(40);

/// A socket to a device's process.
#[derive(Debug)]
pub(crate) struct RemoteDevice {
    /// None once the other side failed: what comes after that has no meaning. Never closed, for a debug build would ask first
    /// whether it is open, by a call that the sandbox forbids.
    socket: Mutex<Option<Socket>>,
}

/// A socket on which no read and no write waits longer than that. The kernel's own limit is for one call, and one that wrote
/// a part before it ran out is no error to it.
#[derive(Debug)]
struct Socket {
    file: ManuallyDrop<File>,
    silence_max: Duration,
}

impl Socket {
    fn in_time(&self, began: Duration, done: io::Result<usize>) -> io::Result<usize> {
        match done {
            Ok(_) if wall() - began >= self.silence_max => Err(io::ErrorKind::WouldBlock.into()),
            other => other,
        }
    }
}

impl Read for Socket {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let began = wall();
        let done = self.file.read(to);
        self.in_time(began, done)
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let began = wall();
        let done = self.file.write(bytes);
        self.in_time(began, done)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl RemoteDevice {
    /// Must be made before the sandbox closes, which lets no one set how long a socket waits.
    ///
    /// # Errors
    /// When the end is no socket.
    pub(crate) fn new(end: OwnedFd) -> io::Result<Self> {
        Self::with_silence(end, SILENCE_MAX)
    }

    pub(super) fn with_silence(end: OwnedFd, most: Duration) -> io::Result<Self> {
        for timeout in [Timeout::Recv, Timeout::Send] {
            set_socket_timeout(&end, timeout, Some(most))?;
        }
        // `File` reads and writes by the calls that the sandbox knows; a socket of the standard library has others.
        let socket = Socket {
            file: ManuallyDrop::new(File::from(end)),
            silence_max: most,
        };
        Ok(Self {
            socket: Mutex::new(Some(socket)),
        })
    }
}

impl Device for RemoteDevice {
    fn upscale(
        &self,
        work: &DeviceWork<'_>,
        sink: &mut dyn FnMut(Rows<'_>) -> ControlFlow<()>,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<(), DeviceError> {
        let mut socket = self.socket.lock().unwrap_or_else(PoisonError::into_inner);
        // Taken until the exchange is over: whatever ends it early leaves a half of it in the socket.
        let Some(mut open) = socket.take() else {
            return Err(DeviceError::Refused("it failed before".to_owned()));
        };
        let done = exchange(&mut open, work, sink, cancelled);
        if matches!(done, Ok(()) | Err(DeviceError::Refused(_))) {
            *socket = Some(open);
        }
        done
    }
}

fn exchange(
    socket: &mut Socket,
    work: &DeviceWork<'_>,
    sink: &mut dyn FnMut(Rows<'_>) -> ControlFlow<()>,
    cancelled: &dyn Fn() -> bool,
) -> Result<(), DeviceError> {
    let began = wall();
    order(socket, work).map_err(broken)?;
    let scale = work.network.scale();
    let row_samples = work.source.width() * scale * work.source.channels();
    let (mut next, height) = (0, work.source.height() * scale);
    loop {
        if cancelled() {
            return Err(DeviceError::Cancelled);
        }
        if wall() - began > PICTURE_MAX {
            let seconds = PICTURE_MAX.as_secs();
            return Err(DeviceError::Failed(format!(
                "it is not done after {seconds} seconds"
            )));
        }
        match receive(socket).map_err(broken)? {
            Reply::Working => {}
            Reply::Rows(count) => {
                let count = count as usize;
                if count == 0 || count > height - next {
                    return Err(DeviceError::Failed(format!(
                        "{count} rows after {next} of {height}"
                    )));
                }
                let mut samples = vec![0.0_f32; count * row_samples];
                socket
                    .read_exact(bytemuck::cast_slice_mut(&mut samples))
                    .map_err(broken)?;
                let rows = Rows {
                    first_row: next,
                    row_count: count,
                    row_samples,
                    samples: &samples,
                };
                if sink(rows).is_break() {
                    return Err(DeviceError::Cancelled);
                }
                next += count;
            }
            Reply::Done if next == height => return Ok(()),
            Reply::Done => {
                return Err(DeviceError::Failed(format!("only {next} of {height} rows")));
            }
            Reply::Refused(why) if next == 0 => return Err(DeviceError::Refused(why)),
            Reply::Refused(why) | Reply::Failed(why) => return Err(DeviceError::Failed(why)),
        }
    }
}

fn order(socket: &mut Socket, work: &DeviceWork<'_>) -> io::Result<()> {
    let source = work.source;
    let size = |side: usize| u32::try_from(side).map_err(io::Error::other);
    let order = Order {
        network: work.network.fingerprint(),
        condition: work.condition.into(),
        width: size(source.width())?,
        height: size(source.height())?,
        channels: source.channels() as u8,
    };
    send(socket, &order)?;
    socket.write_all(bytemuck::cast_slice(source.samples()))
}

fn broken(error: io::Error) -> DeviceError {
    DeviceError::Failed(match error.kind() {
        io::ErrorKind::WouldBlock => "its process says nothing".to_owned(),
        io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe => {
            "its process is gone".to_owned()
        }
        _ => error.to_string(),
    })
}

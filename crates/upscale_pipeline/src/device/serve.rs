//! The side of the device's process: children's orders, each of them hostile. A picture is read whole before it waits for
//! its turn, and its result is whole before a row is sent, so that a child that is slow keeps no other from the device.

use std::{
    fs::File,
    io::{self, Read, Write},
    ops::ControlFlow,
    os::fd::{AsFd, OwnedFd},
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use rustix::net::{
    Shutdown, shutdown,
    sockopt::{Timeout, set_socket_timeout},
};
use upscale_core::{Pixels, limits::SOURCE_PIXELS_MAX};
use upscale_engine::{Device, DeviceError, DeviceWork};

use super::{
    ends::receive_end,
    known::KnownNetworks,
    wire::{Announcement, Order, Reply, receive, send},
};
use crate::wall;

/// Children that are connected at a time; each has a thread that mostly waits.
const CHILDREN_MAX: usize = 256;
/// Bytes of sources and results at a time: some of the largest pictures, or very many others. What finds no room is refused.
const BYTES_MAX: u64 = 1 << 30;
/// Pictures that wait for their turn: the last of more would wait longer than the CPU takes.
const WAITING_MAX: usize = 16;
/// Pictures that wait longer for their turn are refused: before their children take this process for one that hangs.
const TURN_MAX: Duration = Duration::from_secs(8);
/// A child that is there reads and writes faster.
const CHILD_SILENCE_MAX: Duration = Duration::from_secs(30);
/// Between two signs of life.
const SIGN_EVERY: Duration = Duration::from_millis(250);
/// Samples that are sent at a time.
const PIECE_SAMPLES: usize = 1 << 18;
/// The longest reason that is sent.
const REASON_BYTES_MAX: usize = 1_000;

/// Says over the worker's socket what this process is.
///
/// # Errors
/// When the worker is gone.
pub fn announce(control: &mut impl Write, announcement: &Announcement) -> io::Result<()> {
    send(control, announcement)
}

/// Serves children, whose ends of sockets come over `control`, until the worker closes that.
///
/// # Errors
/// When the device broke: this process must end, and a new one may do better.
pub fn serve_device(
    control: impl AsFd,
    device: &Arc<dyn Device>,
    known: KnownNetworks,
) -> io::Result<()> {
    let shop = Arc::new(Shop {
        device: Arc::clone(device),
        known,
        control: control.as_fd().try_clone_to_owned()?,
        is_busy: Mutex::new(false),
        is_free: Condvar::new(),
        children: AtomicUsize::new(0),
        waiting: AtomicUsize::new(0),
        bytes: AtomicU64::new(0),
        broken: Mutex::new(None),
    });
    while let Some(end) = receive_end(&control)? {
        if shop.children.load(Ordering::Relaxed) >= CHILDREN_MAX {
            continue;
        }
        shop.children.fetch_add(1, Ordering::Relaxed);
        let at_work = Arc::clone(&shop);
        let started = thread::Builder::new().spawn(move || {
            at_work.serve(end);
            at_work.children.fetch_sub(1, Ordering::Relaxed);
        });
        if started.is_err() {
            shop.children.fetch_sub(1, Ordering::Relaxed);
        }
    }
    let broken = shop
        .broken
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    broken.map_or(Ok(()), |why| Err(io::Error::other(why)))
}

/// What all children's threads share.
struct Shop {
    device: Arc<dyn Device>,
    known: KnownNetworks,
    control: OwnedFd,
    /// Whether a picture is on the device; who waits for its end is woken.
    is_busy: Mutex<bool>,
    is_free: Condvar,
    children: AtomicUsize,
    waiting: AtomicUsize,
    bytes: AtomicU64,
    /// Why the device broke.
    broken: Mutex<Option<String>>,
}

impl Shop {
    /// One child's orders, one after another. It is its own loss when the socket breaks.
    fn serve(&self, end: OwnedFd) {
        let mut socket = File::from(end);
        while self.serve_one(&mut socket).is_ok() {}
    }

    fn serve_one(&self, socket: &mut File) -> io::Result<()> {
        // An order may be long in coming, its samples may not.
        set_socket_timeout(&*socket, Timeout::Recv, None)?;
        let order: Order = receive(socket)?;
        for timeout in [Timeout::Recv, Timeout::Send] {
            set_socket_timeout(&*socket, timeout, Some(CHILD_SILENCE_MAX))?;
        }
        let (source_bytes, result_bytes) = self.check(&order)?;
        let room = Room::reserve(&self.bytes, source_bytes + result_bytes);
        if room.is_none() {
            // Read all the same, or the next order would begin in the middle of it.
            io::copy(&mut socket.take(source_bytes), &mut io::sink())?;
            return send(
                socket,
                &Reply::Refused("it has too many pictures".to_owned()),
            );
        }
        let source = read_source(socket, &order)?;
        match self.upscale(&order, &source, result_bytes, socket) {
            Ok(samples) => {
                drop(source);
                send_rows(socket, &samples, samples.len() / self.result_rows(&order))
            }
            Err(DeviceError::Cancelled) => Err(io::ErrorKind::BrokenPipe.into()),
            Err(DeviceError::Refused(why)) => send(socket, &Reply::Refused(cut(&why))),
            Err(DeviceError::Failed(why)) => {
                let sent = send(socket, &Reply::Failed(cut(&why)));
                self.end_because(why);
                sent
            }
        }
    }

    /// How many bytes the source has, and the result.
    fn check(&self, order: &Order) -> io::Result<(u64, u64)> {
        let invalid = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what);
        let network = self
            .known
            .find(order.network)
            .ok_or_else(|| invalid("an unknown network"))?;
        let pixels = u64::from(order.width) * u64::from(order.height);
        if pixels == 0 || pixels > SOURCE_PIXELS_MAX || !matches!(order.channels, 1 | 3) {
            return Err(invalid("a picture that no child has"));
        }
        let source = pixels * u64::from(order.channels) * 4;
        Ok((source, source * (network.scale() * network.scale()) as u64))
    }

    fn result_rows(&self, order: &Order) -> usize {
        let scale = self
            .known
            .find(order.network)
            .map_or(1, |network| network.scale());
        order.height as usize * scale
    }

    fn upscale(
        &self,
        order: &Order,
        source: &Pixels,
        result_bytes: u64,
        socket: &File,
    ) -> Result<Vec<f32>, DeviceError> {
        let Some(network) = self.known.find(order.network) else {
            return Err(DeviceError::Refused("an unknown network".to_owned()));
        };
        let _turn = self.wait_for_turn()?;
        let mut samples = Vec::with_capacity((result_bytes / 4) as usize);
        let mut keep = |rows: upscale_core::Rows<'_>| {
            samples.extend_from_slice(rows.samples);
            ControlFlow::Continue(())
        };
        let last = Mutex::new(None);
        // Tells the child that it goes on; a child that is gone wants nothing more.
        let is_gone = || {
            let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
            let now = wall();
            if last.is_some_and(|last| now - last < SIGN_EVERY) {
                return false;
            }
            *last = Some(now);
            send(&mut &*socket, &Reply::Working).is_err()
        };
        if is_gone() {
            return Err(DeviceError::Cancelled);
        }
        let work = DeviceWork {
            network,
            condition: order.condition.into(),
            source,
        };
        self.device.upscale(&work, &mut keep, &is_gone)?;
        if samples.len() as u64 * 4 != result_bytes {
            return Err(DeviceError::Failed(format!(
                "{} samples came of it",
                samples.len()
            )));
        }
        Ok(samples)
    }

    fn wait_for_turn(&self) -> Result<OnDevice<'_>, DeviceError> {
        let refused = |why: &str| Err(DeviceError::Refused(why.to_owned()));
        let before = self.waiting.fetch_add(1, Ordering::Relaxed);
        let _waiting = Waiting(&self.waiting);
        if before >= WAITING_MAX {
            return refused("too many wait for it");
        }
        let busy = self.is_busy.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .is_free
            .wait_timeout_while(busy, TURN_MAX, |busy| *busy);
        let (mut busy, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if *busy {
            return refused("others are on it for too long");
        }
        *busy = true;
        Ok(OnDevice(self))
    }

    /// Ends the loop that takes new children, and with it the process.
    fn end_because(&self, why: String) {
        let mut broken = self.broken.lock().unwrap_or_else(PoisonError::into_inner);
        broken.get_or_insert(why);
        let _ = shutdown(&self.control, Shutdown::Both);
    }
}

/// The device, for one picture.
struct OnDevice<'a>(&'a Shop);

impl Drop for OnDevice<'_> {
    fn drop(&mut self) {
        let mut busy = self
            .0
            .is_busy
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *busy = false;
        self.0.is_free.notify_one();
    }
}

/// One of those who wait, until it is dropped.
struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Bytes of the memory for pictures, given back when it is dropped.
struct Room<'a> {
    taken: &'a AtomicU64,
    bytes: u64,
}

impl<'a> Room<'a> {
    fn reserve(taken: &'a AtomicU64, bytes: u64) -> Option<Self> {
        let room = Self { taken, bytes };
        let before = taken.fetch_add(bytes, Ordering::Relaxed);
        (before + bytes <= BYTES_MAX).then_some(room)
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        self.taken.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

fn read_source(socket: &mut File, order: &Order) -> io::Result<Pixels> {
    let (width, height) = (order.width as usize, order.height as usize);
    let channels = usize::from(order.channels);
    let mut samples = vec![0.0_f32; width * height * channels];
    socket.read_exact(bytemuck::cast_slice_mut(&mut samples))?;
    Pixels::new(width, height, channels, samples).map_err(io::Error::other)
}

fn send_rows(socket: &mut File, samples: &[f32], row_samples: usize) -> io::Result<()> {
    let rows = (PIECE_SAMPLES / row_samples).max(1);
    for piece in samples.chunks(rows * row_samples) {
        send(socket, &Reply::Rows((piece.len() / row_samples) as u32))?;
        socket.write_all(bytemuck::cast_slice(piece))?;
    }
    send(socket, &Reply::Done)
}

fn cut(why: &str) -> String {
    why[..why.floor_char_boundary(REASON_BYTES_MAX)].to_owned()
}

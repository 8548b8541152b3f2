//! A line to the database that can be cut: everything that is connected, or the one that says COMMIT, before the server
//! hears it or before the client hears what came of it; or for a while, with or without a word.

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

/// What a line that is down does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outage {
    /// Anyone who is connected is cut off, anyone who connects is hung up on.
    HangsUp,
    /// Not a byte passes, and no one is told; what was sent arrives when the line is up again.
    Silent,
}

/// Passes connections on to a port of loopback.
pub(crate) struct Cutter {
    pub(crate) port: u16,
    line: Arc<Line>,
}

#[derive(Default)]
struct Line {
    target: u16,
    connections: Mutex<Vec<TcpStream>>,
    /// Commits still to be cut.
    planned: AtomicU64,
    cut: AtomicU64,
    down: Mutex<Option<Outage>>,
}

impl Cutter {
    pub(crate) fn start(target: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let line = Arc::new(Line {
            target,
            ..Line::default()
        });
        let accepting = Arc::clone(&line);
        // Ends with the process, as the tests do.
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                accepting.connect(client);
            }
        });
        Self { port, line }
    }

    /// Everything that is connected now.
    pub(crate) fn cut_all(&self) {
        for socket in self.line.connections.lock().unwrap().drain(..) {
            // It may have ended by itself.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    /// From now on the line is down, or up again.
    pub(crate) fn set_down(&self, outage: Option<Outage>) {
        *self.line.down.lock().unwrap() = outage;
        if outage == Some(Outage::HangsUp) {
            self.cut_all();
        }
    }

    /// The next so many commits.
    pub(crate) fn cut_commits(&self, commits: u64) {
        self.line.planned.store(commits, Ordering::Relaxed);
    }

    /// Commits that were cut so far.
    pub(crate) fn commits_cut(&self) -> u64 {
        self.line.cut.load(Ordering::Relaxed)
    }
}

impl Line {
    /// Without a server there is nothing to connect to, and the client sees just that.
    fn connect(self: &Arc<Self>, client: TcpStream) {
        if self.is_down(Outage::HangsUp) {
            return;
        }
        let Ok(server) = TcpStream::connect(("127.0.0.1", self.target)) else {
            return;
        };
        for socket in [&client, &server] {
            socket.set_nodelay(true).unwrap();
            let kept = socket.try_clone().unwrap();
            self.connections.lock().unwrap().push(kept);
        }
        let (to_client, to_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
        let line = Arc::clone(self);
        thread::spawn(move || line.pass_on(client, to_server, true));
        let line = Arc::clone(self);
        thread::spawn(move || line.pass_on(server, to_client, false));
    }

    fn pass_on(&self, mut from: TcpStream, mut to: TcpStream, to_server: bool) {
        let mut bytes = [0; 16 * 1024];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            while self.is_down(Outage::Silent) {
                thread::sleep(Duration::from_millis(5));
            }
            let cut = to_server && is_commit(&bytes[..count]) && self.takes_one();
            // Every other one is heard by the server, and only its answer is lost.
            let is_passed = !cut || self.cut.fetch_add(1, Ordering::Relaxed).is_multiple_of(2);
            if is_passed && to.write_all(&bytes[..count]).is_err() || cut {
                break;
            }
        }
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    }

    fn is_down(&self, outage: Outage) -> bool {
        *self.down.lock().unwrap() == Some(outage)
    }

    fn takes_one(&self) -> bool {
        let one_less = |planned: u64| planned.checked_sub(1);
        self.planned
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less)
            .is_ok()
    }
}

fn is_commit(bytes: &[u8]) -> bool {
    bytes.windows(6).any(|word| word == b"COMMIT")
}

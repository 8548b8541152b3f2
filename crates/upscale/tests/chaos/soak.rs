//! Everything at once: customers, hostile accounts, slow sockets, children killed, storage and database gone for moments;
//! and whether the processes stay as large as they were. The short form takes seconds; `UPSCALE_SOAK_SECONDS=3600` is the
//! real one, and only it compares its last quarter with its second.

use std::{
    fs,
    io::Write,
    net::{TcpListener, TcpStream},
    thread,
    time::{Duration, Instant},
};

use rustix::process::Signal;

use super::{
    cutter::Outage,
    dice::Dice,
    figures::{Deeds, print_figures},
    fleet::Fleet,
    load::{buyers, is_long, rounds_and_dice, under_load},
};
use crate::harness::{
    World,
    bucket::Fault,
    client::{Client, order},
    figure::print_figure,
    image_host::Behaviour,
    pictures::Picture,
    serve::{children_of, signal},
};

const VARIABLE: &str = "UPSCALE_SOAK_SECONDS";
const SECONDS: u64 = 15;
/// Slow sources are waited for until then; the short form has no time to.
fn deadline() -> &'static str {
    if is_long(VARIABLE) { "120" } else { "40" }
}

/// Between two deeds.
const PAUSE: Duration = Duration::from_secs(1);
/// How long a storage, a database or a frozen child is away.
const BLINK: Duration = Duration::from_secs(2);
/// Sockets that are opened at a time and never finish their head.
const SOCKETS: usize = 200;
/// Hostile accounts; each has at most 20 tasks open.
const HOSTILE: usize = 3;
/// Every process, at every moment, also of the short form.
const MEMORY_MAX_KIB: u64 = 512 * 1_024;
const FILES_MAX: u64 = 2_000;
/// The last quarter beside the second: what an allocator keeps of one burst may be this much more.
const MEMORY_SPARE_KIB: u64 = 24 * 1_024;
const FILES_SPARE: u64 = 64;

/// What one process held at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Held {
    memory_kib: u64,
    files: u64,
    threads: u64,
}

impl Held {
    fn by(pid: u32) -> Self {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let field = |name: &str| -> u64 {
            let line = status.lines().find(|line| line.starts_with(name)).unwrap();
            let number = line[name.len()..].trim_matches(|c: char| !c.is_ascii_digit());
            number.parse().unwrap()
        };
        Self {
            memory_kib: field("VmRSS:"),
            files: fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count() as u64,
            threads: field("Threads:"),
        }
    }
}

/// One process, and what it held from second to second.
struct Watched {
    name: &'static str,
    pid: u32,
    held: Vec<Held>,
}

impl Watched {
    fn new(name: &'static str, pid: u32) -> Self {
        Self {
            name,
            pid,
            held: Vec::new(),
        }
    }

    fn look(&mut self) {
        let held = Held::by(self.pid);
        assert!(held.memory_kib < MEMORY_MAX_KIB, "{}: {held:?}", self.name);
        assert!(held.files < FILES_MAX, "{}: {held:?}", self.name);
        self.held.push(held);
    }

    /// Of a quarter, 0 to 3: the medians, and the fewest descriptors. The 200 slow sockets come and go by chance: the
    /// median of a quarter is with or without them (21 and 216 within seven minutes), a leak lifts the fewest as well.
    fn in_quarter(&self, quarter: usize) -> Held {
        let length = self.held.len() / 4;
        let sorted = |figure: fn(&Held) -> u64| {
            let quarter = self.held[quarter * length..][..length].iter();
            let mut figures: Vec<u64> = quarter.map(figure).collect();
            figures.sort_unstable();
            figures
        };
        Held {
            memory_kib: sorted(|held| held.memory_kib)[length / 2],
            files: sorted(|held| held.files)[0],
            threads: sorted(|held| held.threads)[length / 2],
        }
    }

    fn judge(&self) {
        let (before, after) = (self.in_quarter(1), self.in_quarter(3));
        let figure = |held: Held| {
            format!(
                "{:.0} MiB, at least {} descriptors, {} threads",
                held.memory_kib as f64 / 1_024.0,
                held.files,
                held.threads
            )
        };
        print_figure(
            &format!("soak: the second and the last quarter, {}", self.name),
            "the same",
            &format!("{} → {}", figure(before), figure(after)),
            &format!("{} samples", self.held.len()),
        );
        if is_long(VARIABLE) {
            assert!(after.memory_kib <= before.memory_kib + MEMORY_SPARE_KIB);
            assert!(after.files <= before.files + FILES_SPARE);
            assert!(after.threads <= before.threads + 2);
        }
    }
}

/// Accounts whose sources are slow, silent, broken or wrong.
struct Hostile {
    accounts: Vec<Client>,
    urls: Vec<String>,
    ordered: usize,
}

impl Hostile {
    /// `silent` is a host that accepts and says nothing.
    fn of(world: &World) -> Self {
        let cut = Picture::render(200, 200, 1).png();
        let zeros = Behaviour::Zeros {
            declared: Some(19_000_000),
            sent: 19_000_000,
        };
        let behaviours = [
            ("/soak-slow.png", Behaviour::Slow(38_000)),
            ("/soak-gone.png", Behaviour::Status(404)),
            ("/soak-busy.png", Behaviour::Status(503)),
            ("/soak-zeros.png", zeros),
            ("/soak-cut.png", Behaviour::Truncated(cut)),
            ("/soak-page.png", Behaviour::Page),
        ];
        let set = behaviours.map(|(path, behaviour)| world.host.set(path, behaviour));
        Self {
            accounts: (0..HOSTILE).map(|_| world.customer("2000")).collect(),
            urls: [
                &set[..],
                &["https://silent.upscale-tests.org/a.png".to_owned()],
            ]
            .concat(),
            ordered: 0,
        }
    }

    /// Some orders of one account; what is refused is refused.
    fn order(&mut self, dice: &mut Dice) {
        let account = dice.choose(&self.accounts).clone();
        for _ in 0..4 {
            self.ordered += 1;
            let body = order(dice.choose::<String>(&self.urls), 2);
            account.try_create(&format!("hostile-order-{}", self.ordered), &body);
        }
    }
}

/// Heads that never end. They last until the next ones come.
fn slow_sockets(address: &str) -> Vec<TcpStream> {
    let address = address.trim_start_matches("http://");
    let opened = (0..SOCKETS).map_while(|_| TcpStream::connect(address).ok());
    let begun = opened.map(|mut socket| {
        // Who is displaced at once is displaced.
        let _ = socket.write_all(b"POST /api/v1/upscales HTTP/1.1\r\nHost: a\r\nX-Slow: ");
        socket
    });
    begun.collect()
}

/// What is done again and again, and its name.
type Doing<'a> = (&'static str, Box<dyn FnMut(&mut Dice) + 'a>);

/// One deed after another by chance, all processes looked at after each, until the time is over.
fn soak(seconds: u64, dice: &mut Dice, watched: &mut [Watched], doings: &mut [Doing<'_>]) -> Deeds {
    let begun = Instant::now();
    let mut deeds = Deeds::of(1);
    while begun.elapsed() < Duration::from_secs(seconds) {
        let chosen = dice.below(doings.len() as u64) as usize;
        let (name, doing) = &mut doings[chosen];
        doing(dice);
        deeds.did(name);
        thread::sleep(PAUSE);
        watched.iter_mut().for_each(Watched::look);
    }
    deeds
}

fn kill_a_child(parent: u32, dice: &mut Dice) {
    let children = children_of(parent);
    if !children.is_empty() {
        signal(*dice.choose(&children), Signal::KILL);
    }
}

fn freeze_a_child(parent: u32, dice: &mut Dice) {
    let children = children_of(parent);
    if !children.is_empty() {
        let child = *dice.choose(&children);
        signal(child, Signal::STOP);
        thread::sleep(BLINK);
        signal(child, Signal::CONT);
    }
}

/// Its name and the address that stands for it. It lives as long as the listener.
fn silent_host() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (listener, format!("silent.upscale-tests.org:443={address}"))
}

#[test]
fn one_machine_stays_as_large_as_it_was_under_everything_at_once() {
    let (seconds, mut dice) = rounds_and_dice(VARIABLE, SECONDS);
    let (_silent, connect_to) = silent_host();
    let flags = [
        "--workers",
        "3",
        "--deadline",
        deadline(),
        "--source-connect-to",
        &connect_to,
    ];
    let mut world = World::start_with(&flags);
    let buyers = buyers(&world, &mut dice);
    let mut hostile = Hostile::of(&world);
    let (pid, api) = (world.serve().pid(), world.serve().api.clone());
    let mut watched = [Watched::new("serve on SQLite and files", pid)];
    let mut sockets = Vec::new();
    let deeds = under_load(buyers, || {
        let mut doings: [Doing<'_>; 4] = [
            ("hostile orders, four", Box::new(|dice| hostile.order(dice))),
            ("child killed", Box::new(|dice| kill_a_child(pid, dice))),
            (
                "child frozen for 2 s",
                Box::new(|dice| freeze_a_child(pid, dice)),
            ),
            (
                "200 slow sockets",
                Box::new(|_| sockets = slow_sockets(&api)),
            ),
        ];
        soak(seconds, &mut dice, &mut watched, &mut doings)
    });
    drop(sockets);
    world.finish();
    watched.iter().for_each(Watched::judge);
    let what = format!("everything at once for {seconds} s on one machine");
    print_figures(&world, &deeds, &what, ("", ""));
}

#[test]
fn a_fleet_stays_as_large_as_it_was_under_everything_at_once() {
    let (seconds, mut dice) = rounds_and_dice(VARIABLE, SECONDS);
    let (_silent, connect_to) = silent_host();
    let Some(mut fleet) = Fleet::prepare(&["--deadline", deadline()]) else {
        return;
    };
    fleet.start_api();
    fleet.start_worker(3, &["--source-connect-to", &connect_to]);
    let buyers = buyers(&fleet.world, &mut dice);
    let mut hostile = Hostile::of(&fleet.world);
    let (worker, api) = (fleet.workers[0].pid(), fleet.apis[0].api.clone());
    let mut watched = [
        Watched::new("api on PostgreSQL and a bucket", fleet.apis[0].pid()),
        Watched::new("worker on PostgreSQL and a bucket", worker),
    ];
    let mut sockets = Vec::new();
    let deeds = under_load(buyers, || {
        let (bucket, cutter) = (&fleet.bucket, &fleet.cutter);
        let mut doings: [Doing<'_>; 5] = [
            ("hostile orders, four", Box::new(|dice| hostile.order(dice))),
            ("child killed", Box::new(|dice| kill_a_child(worker, dice))),
            (
                "200 slow sockets",
                Box::new(|_| sockets = slow_sockets(&api)),
            ),
            (
                "storage away for 2 s",
                Box::new(|dice| {
                    bucket.fail_all(Some(*dice.choose(&[
                        Fault::Refuses,
                        Fault::HangsUp,
                        Fault::Hangs,
                    ])));
                    thread::sleep(BLINK);
                    bucket.fail_all(None);
                }),
            ),
            (
                "database away for 2 s",
                Box::new(|dice| {
                    cutter.set_down(Some(*dice.choose(&[Outage::HangsUp, Outage::Silent])));
                    thread::sleep(BLINK);
                    cutter.set_down(None);
                }),
            ),
        ];
        soak(seconds, &mut dice, &mut watched, &mut doings)
    });
    drop(sockets);
    fleet.stop();
    fleet.world.finish();
    watched.iter().for_each(Watched::judge);
    let what = format!("everything at once for {seconds} s in a fleet");
    print_figures(&fleet.world, &deeds, &what, ("", ""));
}

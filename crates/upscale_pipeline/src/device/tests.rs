//! Both ends of the socket, with a CPU in the place of the device: what comes back, and what becomes of a picture whose
//! device lies, hangs, breaks or is gone; and what a child with other intentions can do to the device's process.

use std::{
    fs::File,
    io::{Read, Write},
    ops::ControlFlow,
    os::{fd::OwnedFd, unix::net::UnixStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use upscale_core::{Condition, Parameters, Pixels, Rows, Scale};
use upscale_engine::{Device, DeviceError, DeviceWork, Engine, EngineOptions};
use upscale_image::raster::Rgb8;

use super::{
    KnownNetworks,
    ends::{receive_end, send_end},
    remote::RemoteDevice,
    serve::serve_device,
    wire::{Order, Reply, receive, send},
};
use crate::{DeviceUse, FallbackLevel, ModelPaths, PictureOptions, Upscaled, upscale_image, wall};

/// What a CPU in the place of a device does.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Manner {
    Honest,
    /// One pixel in a hundred is three levels too bright.
    Lies,
    Hangs,
    Breaks,
    TooSmall,
}

#[derive(Debug)]
struct Fake {
    manner: Manner,
    pictures: AtomicUsize,
}

impl Device for Fake {
    fn upscale(
        &self,
        work: &DeviceWork<'_>,
        sink: &mut dyn FnMut(Rows<'_>) -> ControlFlow<()>,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<(), DeviceError> {
        self.pictures.fetch_add(1, Ordering::Relaxed);
        match self.manner {
            Manner::Breaks => return Err(DeviceError::Failed("it is lost".to_owned())),
            Manner::TooSmall => return Err(DeviceError::Refused("too little memory".to_owned())),
            Manner::Hangs => thread::sleep(Duration::from_secs(2)),
            Manner::Honest | Manner::Lies => {}
        }
        let options = EngineOptions {
            threads: 2,
            ..EngineOptions::default()
        };
        let engine = Engine::shipped_but(Arc::clone(work.network), options).unwrap();
        let scale = Scale::from_factor(work.network.scale() as i64).unwrap();
        let mut spoil = |rows: Rows<'_>| {
            assert!(!cancelled(), "the child is there");
            let mut samples = rows.samples.to_vec();
            if self.manner == Manner::Lies {
                samples
                    .iter_mut()
                    .step_by(301)
                    .for_each(|v| *v += 3.0 / 255.0);
            }
            sink(Rows {
                samples: &samples,
                ..rows
            })
        };
        engine
            .upscale(work.source, scale, work.condition, &mut spoil)
            .unwrap();
        Ok(())
    }
}

/// A device's process, as a thread; and the worker's end of its socket.
fn start(
    manner: Manner,
) -> (
    UnixStream,
    Arc<Fake>,
    thread::JoinHandle<std::io::Result<()>>,
) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let fake = Arc::new(Fake {
        manner,
        pictures: AtomicUsize::new(0),
    });
    let device: Arc<dyn Device> = Arc::clone(&fake) as Arc<dyn Device>;
    let known = KnownNetworks::load(Default::default(), ModelPaths::default()).unwrap();
    let process = thread::spawn(move || serve_device(theirs, &device, known));
    (ours, fake, process)
}

fn connect(control: &UnixStream) -> OwnedFd {
    let (ours, theirs) = UnixStream::pair().unwrap();
    send_end(control, theirs).unwrap();
    ours.into()
}

/// 170 x 160 pixels: enough to be worth a device, and for its first network some 10^10 multiplications.
fn picture() -> Vec<u8> {
    let wave = |v: usize, step: usize| ((v * step) % 256) as u8;
    let picture = Rgb8::paint(170, 160, |x, y| [wave(x, 3), wave(y, 2), wave(x + y, 1)]);
    picture.to_png().unwrap()
}

fn upscaled(device: Option<&Arc<dyn Device>>) -> Upscaled {
    let options = PictureOptions {
        device,
        pixels_max: 1 << 20,
        ..PictureOptions::shipped(Parameters::at(Scale::X2), 2, wall).unwrap()
    };
    upscale_image(picture(), &options, &mut |_| ()).unwrap()
}

fn remote(control: &UnixStream, silence: Duration) -> Arc<dyn Device> {
    Arc::new(RemoteDevice::with_silence(connect(control), silence).unwrap())
}

fn furthest(one: &Upscaled, other: &Upscaled) -> u8 {
    let rgb = |upscaled: &Upscaled| {
        Rgb8::of_source(&upscale_image::decode(&upscaled.png, 1 << 20).unwrap())
    };
    let (one, other) = (rgb(one), rgb(other));
    let pairs = one.samples().iter().zip(other.samples());
    pairs.map(|(a, b)| a.abs_diff(*b)).max().unwrap()
}

#[test]
fn the_device_of_another_process_makes_the_picture() {
    let (control, fake, process) = start(Manner::Honest);
    let device = remote(&control, Duration::from_secs(10));
    let by_device = upscaled(Some(&device));
    assert_eq!(
        (by_device.level, by_device.device),
        (FallbackLevel::Device, DeviceUse::Made)
    );
    assert!(fake.pictures.load(Ordering::Relaxed) >= 1);
    let by_cpu = upscaled(None);
    assert_eq!(
        (by_cpu.level, by_cpu.device),
        (FallbackLevel::Fast, DeviceUse::None)
    );
    assert!(furthest(&by_device, &by_cpu) <= 1);
    drop((device, control));
    process.join().unwrap().unwrap();
}

/// Whatever the device does, the picture is the CPU's.
#[test]
fn a_device_that_lies_hangs_breaks_or_refuses_costs_time_and_nothing_else() {
    let by_cpu = upscaled(None);
    for (manner, use_of_it) in [
        (Manner::Lies, DeviceUse::Failed),
        (Manner::Hangs, DeviceUse::Failed),
        (Manner::Breaks, DeviceUse::Failed),
        (Manner::TooSmall, DeviceUse::Refused),
    ] {
        let (control, fake, process) = start(manner);
        let device = remote(&control, Duration::from_millis(700));
        let made = upscaled(Some(&device));
        assert_eq!(
            (made.level, made.device),
            (FallbackLevel::Fast, use_of_it),
            "{manner:?}"
        );
        assert!(
            fake.pictures.load(Ordering::Relaxed) >= 1,
            "{manner:?} was asked"
        );
        assert_eq!(made.png, by_cpu.png, "{manner:?}");
        if manner == Manner::Breaks {
            let ended = process.join().unwrap().unwrap_err();
            assert_eq!(ended.to_string(), "it is lost", "its process ends");
        }
    }
}

#[test]
fn a_device_that_is_gone_is_no_device() {
    let (control, _, process) = start(Manner::Honest);
    let (ours, theirs) = UnixStream::pair().unwrap();
    let device: Arc<dyn Device> = Arc::new(RemoteDevice::new(ours.into()).unwrap());
    drop((theirs, control));
    process.join().unwrap().unwrap();
    let made = upscaled(Some(&device));
    assert_eq!(
        (made.level, made.device),
        (FallbackLevel::Fast, DeviceUse::Failed)
    );
}

fn network() -> Arc<upscale_engine::Network> {
    let engine = Engine::shipped(EngineOptions::default()).unwrap();
    Arc::new(engine.network_for(Scale::X2, Condition::CLEAN).clone())
}

fn small() -> Pixels {
    Pixels::new(4, 3, 3, vec![0.5; 36]).unwrap()
}

/// What a process that is no device's, or one gone mad, may say.
#[test]
fn replies_that_cannot_be_are_failures() {
    type Script = fn(&mut File) -> std::io::Result<()>;
    fn rows(to: &mut File, count: u32, samples: usize) -> std::io::Result<()> {
        send(to, &Reply::Rows(count))?;
        to.write_all(&vec![0; samples * 4])
    }
    let scripts: [(&str, Script); 7] = [
        ("more rows than there are", |to| rows(to, 7, 7 * 24)),
        ("no rows", |to| rows(to, 0, 0)),
        ("rows beyond the last", |to| {
            rows(to, 6, 144).and_then(|()| rows(to, 1, 24))
        }),
        ("an early end", |to| {
            rows(to, 5, 120).and_then(|()| send(to, &Reply::Done))
        }),
        ("half a row", |to| rows(to, 1, 12)),
        ("a refusal in the middle", |to| {
            rows(to, 1, 24).and_then(|()| send(to, &Reply::Refused(String::new())))
        }),
        ("no frame", |to| to.write_all(&[0xff; 64])),
    ];
    for (what, script) in scripts {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let device = RemoteDevice::new(ours.into()).unwrap();
        let peer = thread::spawn(move || {
            let mut peer = File::from(OwnedFd::from(theirs));
            let order: Order = receive(&mut peer).unwrap();
            assert_eq!((order.width, order.height, order.channels), (4, 3, 3));
            peer.read_exact(&mut [0; 144]).unwrap();
            let _ = script(&mut peer);
        });
        let (network, source) = (network(), small());
        let work = DeviceWork {
            network: &network,
            condition: Condition::CLEAN,
            source: &source,
        };
        let mut go_on = |_: Rows<'_>| ControlFlow::Continue(());
        let ended = device.upscale(&work, &mut go_on, &|| false);
        assert!(
            matches!(ended, Err(DeviceError::Failed(_))),
            "{what}: {ended:?}"
        );
        peer.join().unwrap();
        let again = device.upscale(&work, &mut go_on, &|| false);
        assert!(
            matches!(again, Err(DeviceError::Refused(_))),
            "{what}: a second picture"
        );
    }
}

#[test]
fn a_hostile_child_ends_its_own_connection_and_nothing_else() {
    let (control, fake, process) = start(Manner::Honest);
    let fair = Order {
        network: network().fingerprint(),
        condition: Condition::CLEAN.into(),
        width: 4,
        height: 3,
        channels: 3,
    };
    let orders = [
        Order { network: 1, ..fair },
        Order { width: 0, ..fair },
        Order {
            width: u32::MAX,
            height: u32::MAX,
            ..fair
        },
        Order {
            width: 2_000,
            height: 2_000,
            ..fair
        },
        Order {
            channels: 2,
            ..fair
        },
    ];
    for order in orders {
        let mut child = File::from(connect(&control));
        send(&mut child, &order).unwrap();
        let ended = receive::<Reply>(&mut child);
        assert!(ended.is_err(), "{order:?}: {ended:?}");
    }
    for garbage in [&[0xff_u8; 64][..], &[1, 0, 0, 0, 9], &[]] {
        let mut child = File::from(connect(&control));
        child.write_all(garbage).unwrap();
    }
    // Half of its samples, and then it is gone.
    let mut child = File::from(connect(&control));
    send(&mut child, &fair).unwrap();
    child.write_all(&[0; 60]).unwrap();
    drop(child);
    assert_eq!(
        fake.pictures.load(Ordering::Relaxed),
        0,
        "none of it came to the device"
    );
    // The next honest one is served.
    let device = RemoteDevice::new(connect(&control)).unwrap();
    let (network, source) = (network(), small());
    let work = DeviceWork {
        network: &network,
        condition: Condition::CLEAN,
        source: &source,
    };
    let rows = Mutex::new(0);
    let mut count = |made: Rows<'_>| {
        *rows.lock().unwrap() += made.row_count;
        ControlFlow::Continue(())
    };
    device.upscale(&work, &mut count, &|| false).unwrap();
    assert_eq!(*rows.lock().unwrap(), 6);
    drop((device, control));
    process.join().unwrap().unwrap();
}

#[test]
fn many_children_share_a_device_and_each_gets_its_own_picture() {
    let (control, fake, _process) = start(Manner::Honest);
    let network = network();
    let mut children = Vec::new();
    for shade in 1..=12_u8 {
        let device = RemoteDevice::new(connect(&control)).unwrap();
        let network = Arc::clone(&network);
        children.push(thread::spawn(move || {
            let level = f32::from(shade) / 16.0;
            let source = Pixels::new(9, 7, 3, vec![level; 189]).unwrap();
            let work = DeviceWork {
                network: &network,
                condition: Condition::CLEAN,
                source: &source,
            };
            let mut far = 0.0_f32;
            let mut look = |rows: Rows<'_>| {
                far = rows
                    .samples
                    .iter()
                    .fold(far, |far, v| far.max((v - level).abs()));
                ControlFlow::Continue(())
            };
            device.upscale(&work, &mut look, &|| false).unwrap();
            assert!(far < 0.05, "a flat picture of {level} differs by {far}");
        }));
    }
    children.into_iter().for_each(|child| child.join().unwrap());
    assert_eq!(fake.pictures.load(Ordering::Relaxed), 12);
}

#[test]
fn ends_come_one_by_one_and_a_closed_socket_has_none() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let mut kept = Vec::new();
    for number in 0..3_u8 {
        let (mut near, far) = UnixStream::pair().unwrap();
        send_end(&ours, far).unwrap();
        near.write_all(&[number]).unwrap();
        kept.push(near);
    }
    for number in 0..3_u8 {
        let mut end = File::from(receive_end(&theirs).unwrap().unwrap());
        let mut byte = [9];
        end.read_exact(&mut byte).unwrap();
        assert_eq!(byte, [number]);
    }
    drop(ours);
    assert!(receive_end(&theirs).unwrap().is_none());
}

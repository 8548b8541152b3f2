//! A disk that is full, again and again, under load: what was acknowledged is there, what cannot be written is put off,
//! and with room again everything goes on by itself.

use std::{
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use super::{
    figures::{Deeds, print_figures},
    load::{buyers, rounds_and_dice, under_load},
};
use crate::harness::{
    World,
    client::{order, send},
    image_host::Behaviour,
    pictures::Picture,
    serve::wait_for,
};

/// Rounds of the short form; `UPSCALE_DISK_ROUNDS` asks for another number.
const ROUNDS: u64 = 6;
const SIZE: &str = "size=24m,mode=700";
const RECOVERS_WITHIN: Duration = Duration::from_secs(60);

/// A file system of its own over a directory, gone when dropped.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// None, said aloud, where mounting is not allowed.
    fn mount(over: PathBuf) -> Option<Self> {
        fs::create_dir_all(&over).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", SIZE, "tmpfs"]).arg(&over);
        let output = mount.output();
        if output.as_ref().is_ok_and(|output| output.status.success()) {
            return Some(Self(over));
        }
        eprintln!("left out: a full disk, for nothing may be mounted here: {output:?}");
        None
    }

    fn fill(&self) {
        let mut filler = File::create(self.0.join("filler")).unwrap();
        for size in [1 << 16, 1 << 10, 1] {
            let block = vec![1; size];
            while filler.write_all(&block).is_ok() {}
        }
    }

    fn make_room(&self) {
        fs::remove_file(self.0.join("filler")).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// Until the service says that it can commit; how long that took.
fn wait_until_ready(api: &str) -> Duration {
    let begun = Instant::now();
    loop {
        let answer = send("GET", &format!("{api}/readyz"), &[], None);
        if answer.is_some_and(|answer| answer.status == 200) {
            return begun.elapsed();
        }
        assert!(begun.elapsed() < RECOVERS_WITHIN, "it never recovered");
        thread::sleep(Duration::from_millis(50));
    }
}

fn world_on(flags: &[&str]) -> Option<(SmallDisk, World)> {
    let world = World::prepare(flags);
    let disk = SmallDisk::mount(world.data())?;
    Some((disk, world))
}

#[test]
fn a_disk_that_fills_up_under_load_loses_nothing() {
    let (rounds, mut dice) = rounds_and_dice("UPSCALE_DISK_ROUNDS", ROUNDS);
    let Some((disk, mut world)) = world_on(&["--workers", "1", "--lease", "5"]) else {
        return;
    };
    world.serve_again();
    let buyers = buyers(&world, &mut dice);
    let api = world.serve().api.clone();
    let deeds = under_load(buyers, || {
        let mut deeds = Deeds::of(rounds);
        for _ in 0..rounds {
            thread::sleep(Duration::from_millis(dice.between(200, 1_500)));
            disk.fill();
            thread::sleep(Duration::from_millis(dice.between(100, 2_500)));
            disk.make_room();
            let took = wait_until_ready(&api);
            deeds.recovered_after(took);
            deeds.did("disk full for a while");
        }
        deeds
    });
    world.finish();
    print_figures(
        &world,
        &deeds,
        "disk full under load, to the last byte",
        ("room again → ready", "≤ 10 s"),
    );
    drop(disk);
}

#[test]
fn a_result_that_finds_no_room_is_stored_when_there_is() {
    let Some((disk, mut world)) = world_on(&["--workers", "1"]) else {
        return;
    };
    world.serve_again();
    let customer = world.customer("1");
    let bytes = Picture::render(64, 48, 2).png();
    let url = world.serve_so("/held.png", Behaviour::Held(bytes), (64, 48));
    let id = customer
        .create("no-room-yet", &order(&url, 4))
        .expect(202, "")
        .id();
    wait_for("the download", || world.host.hits("/held.png") > 0);
    disk.fill();
    world.host.open_gate();
    wait_for("the full disk", || {
        world.logs().contains("a result could not be stored yet")
    });
    disk.make_room();
    assert_eq!(customer.wait(&id).json()["status"], "succeeded");
    assert_eq!(world.operator.money(&customer.account), (300, 0, 700));
    assert_eq!(
        world.host.hits("/held.png"),
        1,
        "the work is not done twice"
    );
    assert!(no_half_file(&world.data().join("results")));
    world.finish();
    drop(disk);
}

/// The write that found no room left nothing behind under a result's name.
fn no_half_file(results: &Path) -> bool {
    let files = fs::read_dir(results).unwrap().flatten();
    let names = files.map(|file| file.file_name().to_string_lossy().into_owned());
    // A full disk may have kept the thumbnail out; a task does not wait for it.
    let named = names.filter(|name| name.ends_with(".png") && !name.ends_with(".thumb.png"));
    named.count() == 1
}

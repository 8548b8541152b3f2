//! A service with a GPU, which is Mesa's lavapipe here: Vulkan on the processor, right and slow. Pictures that are worth it
//! go there, out of children whose sandbox opens nothing; without one everything is as it was.

use std::{collections::BTreeMap, process::Output};

use super::metrics::scrape;
use crate::harness::{
    World,
    client::order,
    pictures::Picture,
    serve::{has_gpu, upscale, wait_for},
};

/// 1.1 * 10^9 multiplications at 2x: a debug build hands over what has 10^9. Of 8.6 * 10^9 lavapipe took 17 s on two slow cores,
/// and in CI, beside other tests, it made none of six in the time it is given.
const WORTHY: (u32, u32) = (56, 50);

/// A picture that takes over 40 s the CPU does, as it should.
const TRIES: usize = 6;

fn pictures_by(samples: &BTreeMap<String, f64>, path: &str) -> f64 {
    let series = format!("upscale_device_pictures_total{{path=\"{path}\"}}");
    samples.get(&series).copied().unwrap_or(0.0)
}

fn is_up(world: &World) -> bool {
    scrape(world).1.get("upscale_device_up") == Some(&1.0)
}

#[test]
fn a_gpu_makes_what_is_worth_it_and_the_cpu_the_rest() {
    if !has_gpu() {
        return;
    }
    let flags = ["--metrics-listen", "127.0.0.1:0", "--workers", "1"];
    let world = World::start_with(&[&flags[..], &["--device", "gpu:0"]].concat());
    wait_for("the GPU", || is_up(&world));
    let customer = world.customer("10");
    let large = world.picture("/large.png", WORTHY.0, WORTHY.1);
    let small = world.picture("/small.png", 30, 20);
    let by_gpu = (0..TRIES).find_map(|number| {
        wait_for("the GPU", || is_up(&world));
        let task = customer.upscale(&format!("a-key-for-gpu-{number}"), &order(&large, 2));
        (pictures_by(&scrape(&world).1, "device") == 1.0).then_some(task)
    });
    customer.upscale("a-key-for-cpu", &order(&small, 2));
    let (_, samples) = scrape(&world);
    let made = ["device", "cpu"].map(|path| pictures_by(&samples, path));
    assert_eq!(made, [1.0, 1.0]);
    assert!(samples["upscale_device_buffer_bytes"] > 0.0);
    let result = customer.fetch("GET", &by_gpu.unwrap().result_url(), &[]);
    let result = Picture::from_png(&result.body).unwrap();
    assert_eq!((result.width, result.height), (2 * WORTHY.0, 2 * WORTHY.1));
    assert!(world.logs().contains("a GPU upscales pictures"));
}

#[test]
fn a_gpu_that_is_not_there_or_slower_leaves_the_service_as_it_was() {
    for (device, logged) in [
        ("gpu:99", "gpu:99 does not exist"),
        // Every driver here computes on the processor, or there is none at all.
        ("auto", "no GPU is used"),
    ] {
        let flags = ["--metrics-listen", "127.0.0.1:0", "--workers", "1"];
        let world = World::start_with(&[&flags[..], &["--device", device]].concat());
        wait_for(logged, || world.logs().contains(logged));
        let customer = world.customer("2");
        let url = world.picture("/large.png", WORTHY.0, WORTHY.1);
        customer.upscale("a-key-for-cpu", &order(&url, 2));
        let (_, samples) = scrape(&world);
        assert_eq!(pictures_by(&samples, "device"), 0.0);
        assert_eq!(samples.get("upscale_device_up"), Some(&0.0), "{device}");
    }
}

fn file(folder: &std::path::Path, device: &str, out: &str) -> Output {
    upscale()
        .args(["file", "in.png", out, "--device", device])
        .current_dir(folder)
        .output()
        .unwrap()
}

#[test]
fn file_makes_the_same_on_a_gpu_as_on_the_cpu() {
    if !has_gpu() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = Picture::render(WORTHY.0, WORTHY.1, 3);
    std::fs::write(folder.path().join("in.png"), source.png()).unwrap();
    for (device, out) in [("cpu", "cpu.png"), ("gpu:0", "gpu.png")] {
        let done = file(folder.path(), device, out);
        assert!(
            done.status.success(),
            "{}",
            String::from_utf8_lossy(&done.stderr)
        );
    }
    let read = |name: &str| {
        let bytes = std::fs::read(folder.path().join(name)).unwrap();
        Picture::from_png(&bytes).unwrap()
    };
    let (by_cpu, by_gpu) = (read("cpu.png"), read("gpu.png"));
    let pairs = by_cpu.rgb.iter().zip(&by_gpu.rgb);
    let apart: Vec<f64> = pairs.map(|(a, b)| f64::from(a.abs_diff(*b))).collect();
    // A CPU without AMX computes in integers, within 0.4 levels (rms) of what a GPU does; a restoring network was 3 levels
    // off in single pixels.
    let furthest = apart.iter().copied().fold(0.0, f64::max);
    let rms = (apart.iter().map(|one| one * one).sum::<f64>() / apart.len() as f64).sqrt();
    assert!(
        rms < 0.5 && furthest <= 4.0,
        "{rms} levels, {furthest} at most"
    );
    let absent = file(folder.path(), "gpu:99", "none.png");
    let error = String::from_utf8_lossy(&absent.stderr);
    assert!(
        !absent.status.success() && error.contains("gpu:99 does not exist"),
        "{error}"
    );
}

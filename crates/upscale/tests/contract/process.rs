//! The process itself: how it starts and stops, what it costs when idle, and the commands beside it.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use crate::harness::{
    World,
    client::{Client, order},
    image_host::Behaviour,
    pictures::Picture,
    serve::{upscale, wait_for},
};

/// An idle service stays below this, in kB.
const IDLE_RESIDENT_KB_MAX: u64 = 60 * 1024;

/// Resident memory of a process in kB, as the kernel counts it.
fn resident_kb(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn an_idle_service_uses_less_than_60_megabytes_before_and_after_its_work() {
    let world = World::start();
    let before = resident_kb(world.serve().pid());
    let customer = world.customer("5");
    for number in 0..3 {
        let url = world.picture(&format!("/{number}.png"), 200, 150);
        customer.upscale(&format!("memory-key-{number}"), &order(&url, 2));
    }
    let after = resident_kb(world.serve().pid());
    println!("idle: {before} kB before, {after} kB after three tasks");
    assert!(
        before < IDLE_RESIDENT_KB_MAX && after < IDLE_RESIDENT_KB_MAX,
        "{before}, {after} kB"
    );
}

#[test]
fn sigterm_in_the_middle_of_a_task_ends_with_0_and_the_task_goes_on_after_the_next_start() {
    let mut world = World::start();
    let customer = world.customer("2");
    let bytes = Picture::render(8, 8, 2).png();
    let url = world.serve_so("/held.png", Behaviour::Held(bytes), (8, 8));
    let id = customer
        .create("long-key", &order(&url, 2))
        .expect(202, "")
        .id();
    wait_for("the download", || world.host.hits("/held.png") > 0);
    let status = world.take_serve().stop();
    assert_eq!(status.code(), Some(0));
    world.host.open_gate();
    world.serve_again();
    assert_eq!(customer.wait(&id).json()["status"], "succeeded");
}

#[test]
fn a_second_serve_on_a_directory_is_refused_and_told_by_whom() {
    let mut world = World::start();
    let second = |flags: &[&str]| {
        let mut serve = upscale();
        serve.args(["serve", "--listen", "127.0.0.1:0", "--results-listen"]);
        serve.args(["127.0.0.1:0", "--data"]).arg(world.data());
        serve.args(flags).output().unwrap()
    };
    for flags in [&[][..], &["--share-data"]] {
        let refused = second(flags);
        assert_eq!(refused.status.code(), Some(1));
        assert!(refused.stdout.is_empty(), "it is never ready");
        let words = String::from_utf8_lossy(&refused.stderr).into_owned();
        let holder = format!("process {} already runs `serve`", world.serve().pid());
        assert!(words.contains(&holder), "{words}");
        assert!(words.contains("--share-data"), "{words}");
    }
    let customer = world.customer("2");
    let url = world.picture("/small.png", 8, 8);
    customer.upscale("first-key", &order(&url, 2));
    // Who was killed holds nothing.
    world.take_serve().kill();
    world.serve_again();
    customer.upscale("second-key", &order(&url, 2));
}

#[test]
fn the_command_line_works_before_while_and_after_serve_runs() {
    let mut world = World::prepare(&[]);
    let customer = world.customer("1");
    world.serve_again();
    let url = world.picture("/small.png", 8, 8);
    let id = customer.upscale("first-key", &order(&url, 2)).id();
    assert_eq!(world.operator.audit_breaches(), Vec::<String>::new());
    assert_eq!(world.take_serve().stop().code(), Some(0));

    assert_eq!(world.operator.money(&customer.account), (300, 0, 700));
    let later = world.operator.create_key(&customer.account, Some("read"));
    world.serve_again();
    customer.with_key(&later.key).read(&id).expect(200, "");
}

/// The golden image takes a moment after the ready line, longer on a busy machine.
fn wait_until_ready(visitor: &Client) {
    let begun = Instant::now();
    loop {
        let answer = visitor.send("GET", "/readyz", &[], None);
        if answer.status == 200 {
            return;
        }
        answer.expect(503, "service_unavailable");
        assert!(begun.elapsed() < Duration::from_secs(60), "never ready");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn health_readiness_and_the_description_need_no_key() {
    let world = World::start();
    let visitor = world.visitor();
    assert_eq!(visitor.send("GET", "/healthz", &[], None).status, 200);
    wait_until_ready(&visitor);
    let description = visitor.send("GET", "/openapi.json", &[], None).json();
    assert!(
        description["openapi"].as_str().unwrap().starts_with("3.1"),
        "{description}"
    );
    let paths = description["paths"].as_object().unwrap();
    for path in ["/api/v1/upscales", "/api/v1/upscales/{id}"] {
        assert!(paths.contains_key(path), "{path} is not described");
    }
}

#[test]
fn the_help_names_every_flag_and_its_variable() {
    let output = upscale().args(["serve", "--help"]).output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    for flag in [
        "data",
        "listen",
        "results-listen",
        "base-url",
        "result-url",
        "workers",
        "source-ca",
        "source-connect-to",
    ] {
        assert!(
            help.contains(&format!("--{flag}")),
            "--{flag} is missing:\n{help}"
        );
        let variable = format!("UPSCALE_{}", flag.to_uppercase().replace('-', "_"));
        assert!(help.contains(&variable), "{variable} is missing:\n{help}");
    }
}

#[test]
fn settings_come_from_variables_and_from_a_file_too() {
    let folder = tempfile::TempDir::new().unwrap();
    let data = folder.path().join("data");
    let config = folder.path().join("upscale.toml");
    fs::write(&config, format!("data = {data:?}\njson = true\n")).unwrap();
    let made = upscale()
        .args(["account", "create", "Ann"])
        .envs([
            ("UPSCALE_DATA", data.as_os_str()),
            ("UPSCALE_JSON", "true".as_ref()),
        ])
        .output()
        .unwrap();
    let made: serde_json::Value = serde_json::from_slice(&made.stdout).unwrap();
    let listed = upscale()
        .args(["account", "list", "--config"])
        .arg(&config)
        .output()
        .unwrap();
    let listed: serde_json::Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(
        listed["accounts"][0]["account"], made["account"],
        "{listed}"
    );

    fs::write(&config, "no-such-flag = 1\n").unwrap();
    let output = upscale()
        .args(["account", "list", "--config"])
        .arg(&config)
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && error.contains("no-such-flag"),
        "{error}"
    );
}

fn upscale_file(folder: &Path, arguments: &[&str]) -> std::process::Output {
    upscale()
        .arg("file")
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap()
}

#[test]
fn a_file_is_upscaled_without_a_service() {
    let folder = tempfile::TempDir::new().unwrap();
    let source = Picture::render(30, 20, 6);
    fs::write(folder.path().join("in.png"), source.png()).unwrap();
    fs::write(folder.path().join("in.jpg"), source.jpeg()).unwrap();
    for (arguments, scale) in [
        (vec!["in.png", "out.png"], 2),
        (vec!["in.png", "out.png", "--scale", "4"], 4),
        (
            vec!["in.jpg", "out.png", "--scale", "2", "--threads", "1"],
            2,
        ),
        (vec!["in.png", "out.png", "--face-enhance"], 2),
    ] {
        let output = upscale_file(folder.path(), &arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {error}");
        let result = Picture::from_png(&fs::read(folder.path().join("out.png")).unwrap()).unwrap();
        assert_eq!(
            (result.width, result.height),
            (30 * scale, 20 * scale),
            "{arguments:?}"
        );
        assert!(
            result.shrunk(scale).mean_difference(&source) < 6.0,
            "{arguments:?}"
        );
        fs::remove_file(folder.path().join("out.png")).unwrap();
    }
}

#[test]
fn a_file_that_cannot_be_upscaled_is_refused_with_a_reason_and_leaves_nothing() {
    let folder = tempfile::TempDir::new().unwrap();
    fs::write(folder.path().join("words.png"), "no picture at all").unwrap();
    fs::write(
        folder.path().join("good.png"),
        Picture::render(4, 4, 1).png(),
    )
    .unwrap();
    for arguments in [
        vec!["words.png", "out.png"],
        vec!["not-there.png", "out.png"],
        vec!["good.png", "out.png", "--scale", "3"],
    ] {
        let output = upscale_file(folder.path(), &arguments);
        assert!(!output.status.success(), "{arguments:?}");
        assert!(!output.stderr.is_empty(), "{arguments:?}");
        assert!(!folder.path().join("out.png").exists(), "{arguments:?}");
    }
}

#[test]
fn the_demo_shows_a_whole_customers_day_and_leaves_its_pictures() {
    let folder = tempfile::TempDir::new().unwrap();
    let source = folder.path().join("mine.png");
    fs::write(&source, Picture::render(48, 32, 6).png()).unwrap();
    let output = upscale()
        .args(["demo", "mine.png"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let (text, error) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert_eq!(output.status.code(), Some(0), "{text}\n{error}");
    assert!(text.contains("0.7"), "the ledger is shown:\n{text}");
    let out = folder.path().join("upscale-demo");
    let page = fs::read_to_string(out.join("demo.html")).unwrap();
    assert!(text.contains("demo.html"), "its path is told:\n{text}");
    for reported in ["returned 404", "refund", "charge", "1-mine at 4x"] {
        assert!(
            page.contains(reported),
            "the page says nothing of {reported}"
        );
    }
    let made = fs::read_dir(out).unwrap().map(|file| file.unwrap().path());
    let mut sizes: Vec<(u32, u32)> = made
        .filter(|path| path.extension().is_some_and(|ending| ending == "png"))
        .map(|path| Picture::from_png(&fs::read(path).unwrap()).unwrap())
        .map(|picture| (picture.width, picture.height))
        .collect();
    sizes.sort_unstable();
    // The source, 2x, 4x, and the before/after picture, whatever its size.
    for size in [(96, 64), (192, 128)] {
        assert!(sizes.contains(&size), "{sizes:?}\n{text}");
    }
    assert!(sizes.len() > 2, "{sizes:?}\n{text}");
}

#[test]
fn the_most_talkative_log_holds_no_secret() {
    let mut world = World::start_with(&["--log", "trace"]);
    let customer = world.customer("3");
    let url = world.picture("/small.png", 8, 8);
    let ended = customer.upscale("a-secret-key-of-ours", &order(&url, 2));
    let file = customer.fetch("GET", &ended.result_url(), &[]);
    assert_eq!(file.status, 200);
    customer
        .create("a-secret-key-of-ours", &order(&url, 4))
        .expect(409, "idempotency_conflict");
    let unknown = customer.with_key("usk_live_which_is_no_key_at_all");
    unknown.read("ups_x").expect(401, "invalid_api_key");
    let gone = world.host.set("/gone.png", Behaviour::Status(404));
    let gone = format!("{gone}?token=canary-of-a-failure");
    world
        .recorder
        .keep_secret("query of an image URL", "token=canary-of-a-failure");
    customer.fail("another-secret-key", &order(&gone, 2));
    // The judge of every world reads the logs; here there must be some to read.
    world.finish();
    assert!(
        world.logs().contains("TRACE"),
        "nothing talkative was logged"
    );
}

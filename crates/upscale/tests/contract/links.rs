//! Result links are never dead: on the API's own listener, on one of their own, and refused at the start where neither
//! could work. A file in a bucket comes through its link with all that the contract says, or by a redirect that leads on.

use std::{fs, io::Read, net::TcpStream, path::Path, process::Command};

use rusqlite::Connection;

use crate::harness::{
    World,
    client::{Answer, order, send},
    serve::{signal, upscale, wait_for},
};

fn ask(method: &str, url: &str, headers: &[(&str, &str)]) -> Answer {
    send(method, url, headers, None).unwrap()
}

/// A finished 2x of 12 × 9, and its result URL.
fn finished(world: &World) -> String {
    let url = world.picture("/small.png", 12, 9);
    let ended = world
        .customer("1")
        .upscale("one-of-a-kind", &order(&url, 2));
    ended.result_url()
}

#[test]
fn by_default_links_lead_to_the_api_and_with_a_listener_of_their_own_to_that_and_both_serve() {
    let mut world = World::start();
    assert_eq!(world.serve().results, world.serve().api);
    let link = finished(&world);
    assert!(
        link.starts_with(&format!("{}/r/", world.serve().api)),
        "{link}"
    );
    let whole = ask("GET", &link, &[]);
    assert_eq!(whole.status, 200);
    let path = link[link.find("/r/").unwrap()..].to_owned();

    assert_eq!(world.take_serve().stop().code(), Some(0));
    world.flags(&["--results-listen", "127.0.0.1:0"]);
    world.serve_again();
    let (api, results) = (&world.serve().api, &world.serve().results);
    assert_ne!(api, results);
    // A link of before, whichever listener it names.
    for listener in [api, results] {
        let again = ask("GET", &format!("{listener}{path}"), &[]);
        assert_eq!(
            (again.status, &again.body),
            (200, &whole.body),
            "{listener}"
        );
    }
    let elsewhere = ask("GET", &format!("{results}/api/v1/upscales/ups_0"), &[]);
    assert_eq!(
        elsewhere.status, 404,
        "the listener of the files has no API"
    );
}

/// What a start says that must not come to be.
fn refusal(data: &Path, flags: &[&str], variables: &[(String, String)]) -> String {
    let mut command = upscale();
    command
        .args(["serve", "--workers", "0", "--data"])
        .arg(data);
    command.args(flags).envs(variables.iter().cloned());
    let output = command.output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{flags:?}: {words}");
    assert!(output.stdout.is_empty(), "it said it is ready");
    words
}

#[test]
fn a_service_whose_links_could_not_work_does_not_start_and_touches_nothing() {
    let folder = tempfile::TempDir::new().unwrap();
    let data = folder.path().join("data");
    let api = "https://api.example.com";
    for (flags, remedy) in [
        (&["--listen", "0.0.0.0:0"][..], "--base-url"),
        (&["--listen", "[::]:0"], "--base-url"),
        (
            &[
                "--listen",
                "127.0.0.1:0",
                "--result-url",
                "https://files.example.com",
            ],
            "--base-url",
        ),
        (
            &[
                "--listen",
                "0.0.0.0:0",
                "--base-url",
                api,
                "--results-listen",
                "0.0.0.0:0",
            ],
            "--result-url",
        ),
        (
            &[
                "--listen",
                "127.0.0.1:0",
                "--base-url",
                api,
                "--results-listen",
                "127.0.0.1:0",
            ],
            "--result-url",
        ),
        (
            &[
                "--listen",
                "127.0.0.1:0",
                "--base-url",
                "http://0.0.0.0:8080",
            ],
            "--base-url",
        ),
    ] {
        let words = refusal(&data, flags, &[]);
        assert!(words.contains(remedy), "{flags:?}: {words}");
        assert!(!data.exists(), "{flags:?}");
    }
}

#[test]
fn a_redirect_to_where_no_customer_can_go_does_not_start() {
    let (bucket, world) = World::start_in_bucket(&[]);
    let data = world.path("another");
    let flags = [
        "--listen",
        "127.0.0.1:0",
        "--base-url",
        "https://api.example.com",
        "--result-delivery",
        "redirect",
    ];
    let words = refusal(&data, &flags, &bucket.place());
    assert!(words.contains("--storage-public-url"), "{words}");
    let mut secrets = bucket.place().into_iter();
    let (_, secret) = secrets.find(|(name, _)| name.contains("SECRET")).unwrap();
    assert!(
        !words.contains(&secret) && !words.contains("X-Amz"),
        "{words}"
    );
}

#[test]
fn a_file_in_a_bucket_comes_through_its_link_with_all_headers_and_ranges() {
    let (bucket, world) = World::start_in_bucket(&[]);
    let link = finished(&world);
    let before = bucket.requests().0;
    let head = ask("HEAD", &link, &[]);
    assert_eq!(bucket.requests().0, before, "the record answers HEAD");
    let whole = ask("GET", &link, &[]);
    assert_eq!(
        whole.body,
        fs::read(bucket.file(&bucket.objects()[0])).unwrap()
    );
    for answer in [&head, &whole] {
        assert_eq!(answer.status, 200);
        for (name, value) in [
            ("content-type", "image/png"),
            ("x-content-type-options", "nosniff"),
            ("content-security-policy", "sandbox; default-src 'none'"),
            ("accept-ranges", "bytes"),
            ("content-length", &whole.body.len().to_string()),
        ] {
            assert_eq!(answer.header(name), value);
        }
        assert!(
            answer
                .header("content-disposition")
                .starts_with("attachment")
        );
    }
    let tag = whole.header("etag").to_owned();
    assert_eq!(
        tag.len(),
        66,
        "a SHA-256 in quotes, which the world compares: {tag}"
    );
    let size = whole.body.len();
    for (range, from, to) in [
        ("bytes=0-3".to_owned(), 0, 4),
        ("bytes=10-".to_owned(), 10, size),
        ("bytes=-5".to_owned(), size - 5, size),
    ] {
        let part = ask("GET", &link, &[("range", &range)]);
        assert_eq!(
            (part.status, &part.body[..]),
            (206, &whole.body[from..to]),
            "{range}"
        );
        assert_eq!(
            part.header("content-range"),
            format!("bytes {from}-{}/{size}", to - 1)
        );
    }
    assert_eq!(ask("GET", &link, &[("range", "bytes=999999-")]).status, 416);
    assert_eq!(ask("GET", &link, &[("if-none-match", &tag)]).status, 304);
    assert_eq!(
        ask("GET", &link.replace("expires=", "expires=9"), &[]).status,
        404
    );

    let object = bucket.file(&bucket.objects()[0]);
    let bytes = fs::read(&object).unwrap();
    fs::remove_file(&object).unwrap();
    let gone = ask("GET", &link, &[]);
    assert_eq!(gone.expect(410, "result_expired").status, 410);
    fs::write(&object, bytes).unwrap();
}

/// MiB of the stand-in for a large result; four stalled downloads of it would be half a gigabyte.
const LARGE_MIB: usize = 128;
const LARGE_BYTES: usize = LARGE_MIB << 20;
const STALLED: usize = 4;

fn resident_mib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
    kib / 1024
}

fn set_size(world: &World, size_bytes: u32) -> u32 {
    let database = Connection::open(world.data().join("upscale.db")).unwrap();
    database
        .busy_timeout(std::time::Duration::from_secs(30))
        .unwrap();
    let read = "SELECT result_size FROM task WHERE result_size IS NOT NULL";
    let before: u32 = database.query_row(read, [], |row| row.get(0)).unwrap();
    let write = "UPDATE task SET result_size = ?1 WHERE result_size IS NOT NULL";
    assert_eq!(database.execute(write, [size_bytes]).unwrap(), 1);
    before
}

#[test]
fn large_files_of_a_bucket_pass_in_little_memory_and_each_download_holds_a_place() {
    let (bucket, world) = World::start_in_bucket(&[]);
    let link = finished(&world);
    let object = bucket.file(&bucket.objects()[0]);
    let small = fs::read(&object).unwrap();
    fs::write(&object, vec![7; LARGE_BYTES]).unwrap();
    let size_bytes = set_size(&world, LARGE_BYTES as u32);

    let before = resident_mib(world.serve().pid());
    let mut stalled: Vec<TcpStream> = (0..STALLED).map(|_| begin(&link)).collect();
    let during = resident_mib(world.serve().pid());
    let grown = during.saturating_sub(before);
    assert!(
        grown < LARGE_MIB as u64 / 2,
        "{before} MiB grew to {during} MiB"
    );
    // Who goes on reading gets all of it.
    let mut first = stalled.remove(0);
    let mut rest = Vec::new();
    first.read_to_end(&mut rest).unwrap();
    assert!(
        rest.len() >= LARGE_BYTES - 64 * 1024,
        "{} bytes",
        rest.len()
    );
    assert!(rest.iter().rev().take(1 << 20).all(|&byte| byte == 7));

    drop(stalled);
    fs::write(&object, small).unwrap();
    set_size(&world, size_bytes);
}

/// A download of which the first bytes were read.
fn begin(link: &str) -> TcpStream {
    use std::io::Write;
    let rest = link.strip_prefix("http://").unwrap();
    let (host, path) = rest.split_at(rest.find('/').unwrap());
    let mut stream = TcpStream::connect(host).unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut first = [0; 1024];
    let count = stream.read(&mut first).unwrap();
    assert!(first[..count].starts_with(b"HTTP/1.1 200 OK"));
    stream
}

/// `upscale health` and what it says.
fn health(flags: &[&str]) -> (Option<i32>, String) {
    let output = Command::output(upscale().arg("health").args(flags)).unwrap();
    let words = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(words).unwrap())
}

fn address(url: &str) -> &str {
    url.strip_prefix("http://").unwrap()
}

#[test]
fn health_asks_the_process_itself_and_says_why_it_is_not_ready() {
    let mut world = World::start_with(&["--metrics-listen", "127.0.0.1:0"]);
    finished(&world);
    let api = address(&world.serve().api).to_owned();
    let metrics = address(world.serve().metrics.as_deref().unwrap()).to_owned();
    // The golden image takes a moment after the ready line.
    wait_for("the engine", || health(&["--listen", &api]).0 == Some(0));
    let (code, reported) = health(&["--listen", &api]);
    assert_eq!(
        (code, reported),
        (Some(0), format!("http://{api} is ready\n"))
    );
    // Where no API listens, as in a worker, the metrics' listener is asked.
    let no_one = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = no_one.local_addr().unwrap().to_string();
    drop(no_one);
    let (code, reported) = health(&["--listen", &silent, "--metrics-listen", &metrics]);
    assert_eq!(
        (code, reported),
        (Some(0), format!("http://{metrics} is ready\n"))
    );
    let (code, reported) = health(&["--listen", &silent]);
    assert_eq!(code, Some(1));
    assert!(reported.contains("no response"), "{reported}");

    // A database that was taken away.
    let data = world.data();
    fs::rename(data.join("upscale.db"), data.join("away")).unwrap();
    wait_for("readiness to go", || {
        health(&["--listen", &api]).0 == Some(1)
    });
    let (_, reported) = health(&["--listen", &api]);
    assert!(reported.contains("503"), "{reported}");
    assert_eq!(
        health(&["--listen", &silent, "--metrics-listen", &metrics]).0,
        Some(1)
    );
    fs::rename(data.join("away"), data.join("upscale.db")).unwrap();
    wait_for("readiness", || health(&["--listen", &api]).0 == Some(0));
    assert_eq!(world.take_serve().stop().code(), Some(0));
}

#[test]
fn while_it_drains_requests_are_taken_for_a_while_and_readiness_says_to_send_no_more() {
    let mut world = World::start_with(&["--drain-delay", "4"]);
    let customer = world.customer("2");
    let url = world.picture("/small.png", 8, 8);
    let serve = world.take_serve();
    wait_for("readiness", || {
        customer.send("GET", "/readyz", &[], None).status == 200
    });
    signal(serve.pid(), rustix::process::Signal::TERM);
    wait_for("draining", || {
        customer.send("GET", "/readyz", &[], None).status == 503
    });
    customer
        .create("while-draining", &order(&url, 2))
        .expect(202, "");
    assert_eq!(serve.ended().code(), Some(0));
    world.serve_again();
}

//! Results in a bucket: with redirects no byte of them passes through the service, and a storage that fails costs time, not
//! money. How they pass through it by default is in `links.rs`.

use std::fs;

use crate::harness::{
    World,
    bucket::{Bucket, Fault},
    client::{Answer, order, send},
    figure::print_figure,
    pictures::Picture,
    serve::{upscale, wait_for},
};

fn ask(method: &str, url: &str, headers: &[(&str, &str)]) -> Answer {
    send(method, url, headers, None).unwrap()
}

/// A finished 2x of 12 × 9, and its result URL.
fn finished(world: &World, key: &str) -> String {
    let customer = world.customer("1");
    let url = world.picture("/small.png", 12, 9);
    let id = customer.create(key, &order(&url, 2)).expect(202, "").id();
    let ended = customer.wait(&id);
    assert_eq!(ended.json()["status"], "succeeded");
    assert_eq!(world.operator.money(&customer.account), (300, 0, 700));
    ended.result_url()
}

/// What the operator of very many results asks for.
const REDIRECT: [&str; 2] = ["--result-delivery", "redirect"];

#[test]
fn with_redirects_a_result_in_a_bucket_is_downloaded_from_the_bucket() {
    let (bucket, world) = World::start_in_bucket(&REDIRECT);
    let url = finished(&world, "in-a-bucket");
    let sent_on = ask("GET", &url, &[]);
    assert_eq!((sent_on.status, sent_on.body.len()), (307, 0));
    assert_eq!(sent_on.header("cache-control"), "no-store");
    let link = sent_on.header("location").to_owned();
    let (_, signature) = link.split_once("X-Amz-Signature=").unwrap();
    world.recorder.keep_secret("signature of a link", signature);
    assert!(link.starts_with(&bucket.variables()[0].1), "{link}");
    let got = ask("GET", &link, &[]);
    assert_eq!((got.status, got.header("content-type")), (200, "image/png"));
    assert!(got.header("content-disposition").starts_with("attachment"));
    let picture = Picture::from_png(&got.body).unwrap();
    assert_eq!((picture.width, picture.height), (24, 18));
    assert_eq!(
        fs::read(bucket.file(&bucket.objects()[0])).unwrap(),
        got.body
    );
    assert!(
        !world.data().join("results").exists(),
        "nothing is kept here"
    );

    let part = ask("GET", &link, &[("range", "bytes=0-3")]);
    assert_eq!((part.status, part.body), (206, got.body[..4].to_vec()));
    let head = ask("HEAD", ask("HEAD", &url, &[]).header("location"), &[]);
    assert_eq!(head.header("content-length"), got.body.len().to_string());
    assert_eq!(
        ask("GET", &url.replace("expires=", "expires=9"), &[]).status,
        404
    );
    assert_ne!(ask("GET", link.split('?').next().unwrap(), &[]).status, 200);
}

#[test]
fn a_storage_that_fails_for_a_while_costs_time_and_nothing_else() {
    let (bucket, world) = World::start_in_bucket(&[]);
    // Two writes' worth of refusals (each is sent three times), and an answer that is lost after the deed.
    bucket.fail_next_puts(&[
        Fault::Refuses,
        Fault::HangsUp,
        Fault::Refuses,
        Fault::Refuses,
        Fault::LosesAnswer,
    ]);
    finished(&world, "after-faults");
    assert_eq!(
        world.host.hits("/small.png"),
        1,
        "the work is not done twice"
    );
    assert_eq!(bucket.requests().1, 5);
}

#[test]
fn a_storage_that_is_gone_ends_in_a_refund() {
    let (bucket, world) = World::start_in_bucket(&["--deadline", "8"]);
    let customer = world.customer("1");
    let url = world.picture("/small.png", 12, 9);
    bucket.fail_all(Some(Fault::Refuses));
    let id = customer.create("no-storage", &order(&url, 2)).id();
    let ended = customer.wait(&id).json();
    let message = ended["error"]["message"].as_str().unwrap();
    assert_eq!(
        message,
        "The image could not be processed within 8 seconds: the result was still being stored. \
         No credits were charged."
    );
    assert_eq!(world.operator.money(&customer.account), (1_000, 0, 0));
    bucket.fail_all(None);
}

#[test]
fn a_storage_that_is_down_at_the_start_takes_no_tasks_and_is_found_once_it_is_up() {
    let (bucket, mut world) = World::start_in_bucket(&[]);
    assert_eq!(world.take_serve().stop().code(), Some(0));
    for fault in [Fault::Refuses, Fault::HangsUp, Fault::Hangs] {
        bucket.fail_all(Some(fault));
        world.serve_again();
        let customer = world.customer("1");
        let url = world.picture("/small.png", 12, 9);
        let key = format!("down-at-start-{fault:?}");
        let refused = customer.create(&key, &order(&url, 2));
        let refused = refused.expect(503, "service_unavailable");
        assert!(refused.find_header("retry-after").is_some());
        let ready = || customer.send("GET", "/readyz", &[], None).status == 200;
        assert!(!ready(), "{fault:?}");
        assert_eq!(world.operator.money(&customer.account), (1_000, 0, 0));
        bucket.fail_all(None);
        wait_for("readiness", ready);
        customer.upscale(&key, &order(&url, 2));
        assert_eq!(world.take_serve().stop().code(), Some(0));
    }
}

/// Orders of every kind, results that the judge fetches by their links, and a range and a HEAD of one of them.
#[test]
fn tasks_go_through_another_storage() {
    let Ok(endpoint) = std::env::var("UPSCALE_SECOND_STORAGE") else {
        eprintln!(
            "left out: UPSCALE_SECOND_STORAGE names no second storage (checks/moto.sh starts one)"
        );
        return;
    };
    let variables = [
        ("AWS_ENDPOINT_URL", endpoint.as_str()),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ACCESS_KEY_ID", "AKIASECONDSTORAGE000"),
        ("AWS_SECRET_ACCESS_KEY", "a secret of the second storage"),
        ("UPSCALE_STORAGE", "s3://results/second"),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let folder = tempfile::TempDir::new().unwrap();
    let mut world = World::prepare_in(folder, &REDIRECT, variables.to_vec());
    world.serve_again();
    let customer = world.customer("10");
    let sizes = [("/a.png", 12, 9), ("/b.jpg", 40, 31), ("/c.webp", 7, 15)];
    let orders = sizes.iter().flat_map(|&(path, width, height)| {
        let url = world.picture(path, width, height);
        [2, 4].map(|scale| (format!("second-{path}-{scale}"), order(&url, scale)))
    });
    let orders: Vec<_> = orders.collect();
    for (key, order) in &orders {
        let id = customer.create(key, order).expect(202, "").id();
        let ended = customer.wait(&id);
        assert_eq!(ended.json()["status"], "succeeded", "{key}");
        let url = ended.result_url();
        let link = ask("GET", &url, &[]).header("location").to_owned();
        let whole = ask("GET", &link, &[]);
        let part = ask("GET", &link, &[("range", "bytes=0-3")]);
        assert_eq!((part.status, part.body), (206, whole.body[..4].to_vec()));
        let head = ask("HEAD", ask("HEAD", &url, &[]).header("location"), &[]);
        assert_eq!(head.header("content-length"), whole.body.len().to_string());
    }
    let left = 10_000 - 700 * orders.len() as i64;
    let money = world.operator.money(&customer.account);
    assert_eq!(money, (left, 0, 700 * orders.len() as i64));
    world.finish();
    print_figure(
        "tasks through another S3 server than the tests' own",
        "succeeded, links, ranges and HEAD answered",
        "all",
        &format!("{} tasks", orders.len()),
    );
}

#[test]
fn the_operator_can_try_the_storage_out() {
    let folder = tempfile::TempDir::new().unwrap();
    let bucket = Bucket::start(folder.path());
    let check = || {
        let mut command = upscale();
        command.args(["storage", "check"]).envs(bucket.place());
        let output = command.output().unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap(),
        )
    };
    let (code, reported) = check();
    assert_eq!(
        (code, reported.matches("ok   ").count()),
        (Some(0), 10),
        "{reported}"
    );
    bucket.fail_all(Some(Fault::Refuses));
    let (code, reported) = check();
    assert_eq!(code, Some(1), "{reported}");
    assert!(
        reported.contains("FAILED  write a file") && reported.contains("cannot use"),
        "{reported}"
    );
}

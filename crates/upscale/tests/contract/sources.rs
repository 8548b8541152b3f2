//! Sources that misbehave: each fails its task with a reason, or is tried again, and never costs anything. No reason
//! tells where the service looked.

use crate::harness::{
    World,
    client::order,
    image_host::{Behaviour, HOST_NAME},
    pictures::Picture,
};

const MEGABYTE: u64 = 1024 * 1024;

#[track_caller]
fn assert_tells_no_address(message: &str) {
    assert!(message.ends_with("No credits were charged."), "{message}");
    assert!(
        !message.contains("127.0.0.1") && !message.contains("443"),
        "{message}"
    );
    assert!(!message.contains("Log in to see it"), "{message}");
}

#[test]
fn a_source_that_says_no_fails_its_task_at_once() {
    let world = World::start();
    let customer = world.customer("5");
    for status in [400, 401, 403, 404, 410] {
        let path = format!("/says-{status}.png");
        let url = world.host.set(&path, Behaviour::Status(status));
        let message = customer.fail(&format!("source-says-{status}"), &order(&url, 2));
        assert!(message.contains(&status.to_string()), "{message}");
        assert_tells_no_address(&message);
        assert_eq!(world.host.hits(&path), 1, "a clear no is not asked again");
    }
}

#[test]
fn a_source_that_stumbles_is_asked_again() {
    let world = World::start();
    let customer = world.customer("2");
    let bytes = Picture::render(9, 9, 5).png();
    for status in [500, 429] {
        let path = format!("/stumbles-{status}.png");
        let behaviour = Behaviour::FailFirst {
            times: 1,
            status,
            bytes: bytes.clone(),
        };
        let url = world.serve_so(&path, behaviour, (9, 9));
        customer.upscale(&format!("stumbles-{status}"), &order(&url, 2));
        assert_eq!(world.host.hits(&path), 2);
    }
}

#[test]
fn a_source_that_never_recovers_is_given_up_on() {
    // Of its ninety seconds only those before the deadline are waited for here.
    let world = World::start_with(&[
        "--deadline",
        "20",
        "--source-connect-to",
        "gone.upscale-tests.org:443=127.0.0.1:1",
    ]);
    let customer = world.customer("3");
    let bytes = Picture::render(9, 9, 5).png();
    let broken = world.host.set("/broken.png", Behaviour::Status(503));
    let cut = world.host.set("/cut.png", Behaviour::Truncated(bytes));
    let gone = "https://gone.upscale-tests.org/a.png".to_owned();
    let ids: Vec<String> = [
        ("broken-source", broken),
        ("cut-source", cut),
        ("gone-source", gone),
    ]
    .iter()
    .map(|(key, url)| customer.create(key, &order(url, 2)).expect(202, "").id())
    .collect();
    for id in ids {
        let ended = customer.wait(&id).json();
        assert_eq!(ended["status"], "failed", "{ended}");
        assert_tells_no_address(ended["error"]["message"].as_str().unwrap());
    }
    assert!(world.host.hits("/broken.png") > 1, "a 503 is asked again");
}

#[test]
fn a_page_in_place_of_a_picture_is_refused_as_one() {
    let world = World::start();
    let customer = world.customer("1");
    let url = world.host.set("/page.png", Behaviour::Page);
    let message = customer.fail("page-for-picture", &order(&url, 2));
    assert_tells_no_address(&message);
}

#[test]
fn a_file_over_20_megabytes_is_refused_whether_it_says_so_or_not() {
    let world = World::start();
    let customer = world.customer("2");
    let declared = Behaviour::Zeros {
        declared: Some(20 * MEGABYTE + 1),
        sent: MEGABYTE,
    };
    let endless = Behaviour::Zeros {
        declared: None,
        sent: 24 * MEGABYTE,
    };
    for (path, behaviour) in [("/declared.png", declared), ("/endless.png", endless)] {
        let url = world.host.set(path, behaviour);
        let message = customer.fail(
            &format!("too-large{}", path.replace('/', "-")),
            &order(&url, 2),
        );
        assert!(message.contains("20"), "{message}");
        assert_tells_no_address(&message);
    }
}

#[test]
fn a_redirect_is_followed_by_the_rules_and_not_for_ever() {
    let world = World::start();
    let customer = world.customer("5");
    let target = world.picture("/target.png", 9, 9);
    let one = world.serve_so("/one.png", Behaviour::Redirect(target), (9, 9));
    customer.upscale("one-redirect", &order(&one, 2));

    let itself = format!("https://{HOST_NAME}/loop.png");
    for (path, location) in [
        ("/loop.png", itself.as_str()),
        ("/plain.png", "http://images.upscale-tests.org/target.png"),
        ("/inside.png", "https://127.0.0.1/target.png"),
        ("/metadata.png", "http://169.254.169.254/latest/meta-data"),
    ] {
        let url = world
            .host
            .set(path, Behaviour::Redirect(location.to_owned()));
        let message = customer.fail(
            &format!("redirect{}", path.replace('/', "-")),
            &order(&url, 2),
        );
        assert_tells_no_address(&message);
        assert!(!message.contains("169.254"), "{message}");
    }
    assert_eq!(world.host.hits("/target.png"), 1);
}

//! The operators' console of the real service, by its socket and by loopback with a token: what is done there stands in
//! the ledger and in the audit trail that the commands show, and what must not start does not.

use std::{
    collections::BTreeMap,
    fs,
    io::{Read, Write},
    net::TcpStream,
    os::unix::{
        fs::{FileTypeExt, PermissionsExt},
        net::UnixStream,
    },
    path::PathBuf,
    process::Output,
    time::{Duration, Instant},
};

use crate::harness::{World, client::order, serve::upscale};

const TOKEN: &str = "canary-of-the-admin-token-of-the-whole-service";

/// One browser: a request a connection, cookies kept, the page's hidden fields sent with its form.
struct Browser {
    at: String,
    cookies: BTreeMap<String, String>,
    hidden: BTreeMap<String, String>,
}

struct Page {
    status: u16,
    location: String,
    text: String,
}

impl Browser {
    fn at(address: &str) -> Self {
        Self {
            at: address.to_owned(),
            cookies: BTreeMap::new(),
            hidden: BTreeMap::new(),
        }
    }

    fn host(&self) -> &str {
        self.at.strip_prefix("http://").unwrap_or("localhost")
    }

    fn get(&mut self, path: &str) -> Page {
        self.send(&format!("GET {path} HTTP/1.1\r\n"), "")
    }

    fn post(&mut self, path: &str, fields: &[(&str, &str)]) -> Page {
        let mut all = self.hidden.clone();
        all.extend(
            fields
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
        );
        let body = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(all)
            .finish();
        let head = format!(
            "POST {path} HTTP/1.1\r\nOrigin: http://{}\r\nContent-Length: {}\r\n",
            self.host(),
            body.len()
        );
        self.send(&head, &body)
    }

    fn send(&mut self, head: &str, body: &str) -> Page {
        let cookies: Vec<String> = self
            .cookies
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let request = format!(
            "{head}Host: {}\r\nCookie: {}\r\nConnection: close\r\n\r\n{body}",
            self.host(),
            cookies.join("; ")
        );
        let answer = match self.at.strip_prefix("unix:") {
            Some(path) => exchange(UnixStream::connect(path).unwrap(), &request),
            None => exchange(TcpStream::connect(self.host()).unwrap(), &request),
        };
        self.read(&answer)
    }

    fn read(&mut self, answer: &str) -> Page {
        let (head, text) = answer.split_once("\r\n\r\n").unwrap();
        let header = |name: &'static str| {
            head.lines().filter_map(move |line| {
                let (found, value) = line.split_once(": ")?;
                found.eq_ignore_ascii_case(name).then(|| value.to_owned())
            })
        };
        for cookie in header("set-cookie") {
            let (name, value) = cookie.split_once('=').unwrap();
            let value = value.split(';').next().unwrap();
            self.cookies.insert(name.to_owned(), value.to_owned());
        }
        for field in text.split("<input type=\"hidden\" name=\"").skip(1) {
            let (name, rest) = field.split_once("\" value=\"").unwrap();
            let value = rest.split('"').next().unwrap();
            self.hidden.insert(name.to_owned(), value.to_owned());
        }
        Page {
            status: head.split(' ').nth(1).unwrap().parse().unwrap(),
            location: header("location").next().unwrap_or_default(),
            text: text.to_owned(),
        }
    }
}

impl Page {
    #[track_caller]
    fn has(&self, text: &str) -> &Self {
        assert!(
            self.text.contains(text),
            "no {text:?}: {} {}",
            self.status,
            self.text
        );
        self
    }
}

fn exchange(mut stream: impl Read + Write, request: &str) -> String {
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn world_by_token() -> World {
    let variables = vec![("UPSCALE_ADMIN_TOKEN".to_owned(), TOKEN.to_owned())];
    let folder = tempfile::TempDir::new().unwrap();
    let flags = [
        "--admin-listen",
        "127.0.0.1:0",
        "--console-listen",
        "127.0.0.1:0",
    ];
    let mut world = World::prepare_in(folder, &flags, variables);
    world
        .recorder
        .keep_secret("token of the operators' console", TOKEN);
    world.serve_again();
    world
}

/// A socket in a folder of its own; the world starts on it.
fn world_by_socket(mode: &str) -> (tempfile::TempDir, PathBuf, World) {
    let folder = tempfile::TempDir::new().unwrap();
    let socket = folder.path().join("admin.sock");
    let address = format!("unix:{}", socket.display());
    let world = World::start_with(&["--admin-listen", &address, "--admin-socket-mode", mode]);
    (folder, socket, world)
}

/// Looks at every page about a new customer, changes what can be changed, and reads it all back by command.
fn look_and_change(world: &World, ann: &mut Browser) {
    let account = look(world, ann);
    change(world, ann, &account);
}

/// A customer with a task of either end, on every page; the account.
fn look(world: &World, ann: &mut Browser) -> String {
    let customer = world.customer("10");
    let source = world.picture("/a.png", 40, 30);
    let task = customer
        .upscale("first-key-of-admin", &order(&source, 2))
        .id();
    let gone = world.host.set(
        "/gone.png",
        crate::harness::image_host::Behaviour::Status(404),
    );
    customer.fail("second-key-of-admin", &order(&gone, 2));
    ann.get("/")
        .has("balanced")
        .has("<strong>0.7</strong><span class=\"muted\">1 succeeded")
        .has("1 failed")
        .has(">live<");
    ann.get("/accounts?q=customer").has(&customer.account);
    let account = format!("/accounts/{}", customer.account);
    ann.get(&account).has("id=\"available\">9.3<").has(&task);
    ann.get(&format!("/tasks/{task}"))
        .has("80 × 60 pixels")
        .has("Downloading the source")
        .has("<td>charge</td>");
    ann.get(&format!("{account}/tasks?state=failed")).has("404");
    ann.get(&format!("{account}/ledger")).has("<td>refund</td>");
    customer.account
}

/// An adjustment, sent twice, and limits; then what the commands say of it.
fn change(world: &World, ann: &mut Browser, id: &str) {
    let account = format!("/accounts/{id}");
    ann.get(&account);
    let unconfirmed = [("credits", "-2.5"), ("reason", "credited twice")];
    let fields = [&unconfirmed[..], &[("confirm", "yes")]].concat();
    let wrong = ann.post(
        &format!("{account}/adjust"),
        &[("credits", "-2.5"), ("reason", "")],
    );
    assert_eq!(wrong.status, 422);
    wrong.has("A reason has 1 to 500 characters");
    let asked = ann.post(&format!("{account}/adjust"), &unconfirmed);
    assert_eq!(asked.status, 422);
    asked.has("removes 2.5 credits from the account");
    let hidden = ann.hidden.clone();
    for done in ["adjusted", "before"] {
        ann.hidden.clone_from(&hidden);
        let page = ann.post(&format!("{account}/adjust"), &fields);
        assert_eq!(page.location, format!("{account}?done={done}"));
    }
    assert_eq!(world.operator.money(id), (6_800, 0, 700));
    let limits = [
        ("requests", "7"),
        ("active", ""),
        ("daily", ""),
        ("reason", "too many"),
    ];
    ann.post(&format!("{account}/limits"), &limits);
    let shown = world.operator.show(id);
    assert_eq!(shown["limits"]["requests_per_minute"], 7);
    let actions = world.operator.run(&["account", "actions", id]);
    let actions = actions["actions"].as_array().unwrap();
    assert_eq!(actions.len(), 2, "{actions:?}");
    assert_eq!(
        (&actions[0]["action"], &actions[1]["action"]),
        (&"limits".into(), &"adjust".into())
    );
    assert!(actions[1]["operator"].as_str().unwrap().starts_with("Ann"));
    assert_eq!(actions[1]["reason"], "credited twice");
    ann.get("/actions").has("credited twice").has("too many");
    // The command's adjustment back, so that the world's own reckoning of purchases fits.
    let back = [
        "account",
        "adjust",
        id,
        "2.5",
        "--reason",
        "it was right",
        "--operator",
        "Bob",
    ];
    world.operator.run(&back);
    ann.get(&account).has("it was right").has("Bob");
}

#[test]
fn by_the_socket_its_permissions_decide_and_changes_are_kept_with_the_users_number() {
    let (_folder, socket, world) = world_by_socket("600");
    let address = world.serve().admin.clone().unwrap();
    assert_eq!(address, format!("unix:{}", socket.display()));
    let found = fs::metadata(&socket).unwrap();
    assert!(found.file_type().is_socket());
    assert_eq!(found.permissions().mode() & 0o777, 0o600);
    let mut ann = Browser::at(&address);
    // To look no one has to say who they are; `curl --unix-socket FILE http://localhost/` is enough.
    ann.get("/").has("Say who you are");
    ann.get("/sign-in");
    assert_eq!(ann.post("/sign-in", &[("name", "Ann")]).status, 303);
    look_and_change(&world, &mut ann);
    let uid = rustix::process::getuid().as_raw();
    ann.get("/actions").has(&format!("Ann (uid {uid})"));
}

#[test]
fn by_loopback_the_token_is_asked_for_and_stands_in_no_log() {
    let world = world_by_token();
    let address = world.serve().admin.clone().unwrap();
    let mut ann = Browser::at(&address);
    let page = ann.get("/");
    assert_eq!((page.status, page.location.as_str()), (303, "/sign-in"));
    ann.get("/sign-in");
    let page = ann.post("/sign-in", &[("name", "Ann"), ("token", "wrong")]);
    assert_eq!(page.status, 422);
    assert_eq!(
        ann.post("/sign-in", &[("name", "Ann"), ("token", TOKEN)])
            .status,
        303
    );
    look_and_change(&world, &mut ann);
    // A link of a customer's console leads there.
    let customer = world.visitor();
    let create = [
        "user",
        "create",
        "ann@example.org",
        "--account",
        &customer.account,
        "--console-url",
        "https://c.example.org",
    ];
    let link = world.operator.run(&create);
    world
        .recorder
        .keep_secret("link for a password", link["link"].as_str().unwrap());
    let account = format!("/accounts/{}", customer.account);
    let page = ann.get(&account);
    let user = page
        .text
        .split("/users/")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    let user = format!("{account}/users/{user}");
    ann.get(&user);
    let page = ann.post(&user, &[("reason", "she called")]);
    let console = world.serve().console.clone().unwrap();
    page.has(&format!("{console}/reset/"));
    world
        .recorder
        .keep_secret("link for a password", &ann.hidden["secret"]);
    let log = world.logs();
    assert!(
        log.contains("an operator signed in")
            && log.contains("\"route\":\"/accounts/{id}/adjust\""),
        "{log}"
    );
}

#[test]
fn a_socket_goes_with_its_process_and_one_of_a_killed_process_is_replaced() {
    let (_folder, socket, mut world) = world_by_socket("660");
    assert_eq!(
        fs::metadata(&socket).unwrap().permissions().mode() & 0o777,
        0o660
    );
    world.take_serve().kill();
    assert!(socket.exists(), "no one was left to remove it");
    world.serve_again();
    Browser::at(&world.serve().admin.clone().unwrap())
        .get("/")
        .has("Overview");
    assert_eq!(world.take_serve().stop().code(), Some(0));
    assert!(!socket.exists());
    world.serve_again();
}

/// `serve` with these flags on a fresh directory; it must end by itself.
fn refused(flags: &[&str], token: Option<&str>) -> Output {
    let folder = tempfile::TempDir::new().unwrap();
    let mut command = upscale();
    command.args([
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--results-listen",
        "127.0.0.1:0",
        "--data",
    ]);
    command.arg(folder.path()).args(flags);
    command.envs(token.map(|token| ("UPSCALE_ADMIN_TOKEN", token)));
    command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(
            begun.elapsed() < Duration::from_secs(90),
            "it started: {flags:?}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    child.wait_with_output().unwrap()
}

#[test]
fn what_others_could_reach_or_guess_does_not_start() {
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("notes.txt");
    fs::write(&file, "of someone").unwrap();
    let taken = format!("unix:{}", file.display());
    let nowhere = format!("unix:{}/no/folder/admin.sock", folder.path().display());
    for (flags, token, sentence) in [
        (
            vec!["--admin-listen", "0.0.0.0:0"],
            Some(TOKEN),
            "reached from other machines",
        ),
        (
            vec!["--admin-listen", "[::]:0"],
            Some(TOKEN),
            "reached from other machines",
        ),
        (
            vec!["--admin-listen", "192.0.2.1:8083"],
            Some(TOKEN),
            "reached from other machines",
        ),
        (
            vec!["--admin-listen", "127.0.0.1:0"],
            None,
            "UPSCALE_ADMIN_TOKEN",
        ),
        (
            vec!["--admin-listen", "127.0.0.1:0"],
            Some("too short"),
            "needs 32",
        ),
        (
            vec![
                "--admin-listen",
                "127.0.0.1:0",
                "--admin-token-file",
                "/nowhere/token",
            ],
            None,
            "/nowhere/token",
        ),
        (vec!["--admin-listen", &taken], None, "not a socket"),
        (vec!["--admin-listen", &nowhere], None, "cannot listen"),
        (
            vec![
                "--admin-listen",
                "unix:/tmp/s",
                "--admin-socket-mode",
                "666",
            ],
            None,
            "600",
        ),
    ] {
        let output = refused(&flags, token);
        let reported = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && output.stdout.is_empty(),
            "{flags:?}"
        );
        assert!(reported.contains(sentence), "{flags:?}: {reported}");
        assert!(!reported.contains("too short"), "{reported}");
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "of someone");
}

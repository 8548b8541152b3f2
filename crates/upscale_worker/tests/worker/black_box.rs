//! The whole fetch in a network of its own, in which **every** address of both protocols leads to listeners
//! of this test: whatever is connected to is seen. The corpus runs against it with a hostile name server
//! and a hostile source; nothing but public addresses may ever be reached.

use std::{
    net::{IpAddr, SocketAddr},
    process::Command,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::net::{TcpListener, TcpStream};
use upscale_core::{AccountId, AttemptFailure, SourceUrl, parse_target};
use upscale_worker::{FetchBudgets, FetchOptions, Fetcher};

use crate::{
    certificates::Certificate,
    name_server::{NameServer, Records},
    source::{NAME, Source, Step, answer},
};

const TABLE: &str = include_str!("../guard_cases.tsv");
const TEST: &str = "black_box::nothing_but_public_addresses_is_ever_reached";
const INSIDE: &str = "UPSCALE_TEST_IN_ITS_OWN_NETWORK";
/// What the set-up exits with when this machine cannot make such a network.
const CANNOT: i32 = 97;
/// Every address is local to the loopback device; one belongs to the host as an interface's own; names
/// are asked of the test. `$1` is a file to stand for the resolver's configuration.
const SET_UP: &str = "
    ip link set lo up && ip addr add 198.35.26.96/32 dev lo &&
    ip route add local 0.0.0.0/0 dev lo && ip -6 route add local ::/0 dev lo &&
    mount --bind \"$1\" /etc/resolv.conf || exit 97
    shift; exec \"$@\"";
/// Where else someone could be lured to.
const OTHER_PORTS: [u16; 6] = [80, 22, 3128, 6379, 8080, 8443];
/// The source's own address; public, and not of this host.
const PUBLIC: &str = "93.184.216.34";

#[test]
fn nothing_but_public_addresses_is_ever_reached() {
    if std::env::var_os(INSIDE).is_some() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        return runtime.block_on(inside());
    }
    let folder = tempfile::tempdir().unwrap();
    let resolver = folder.path().join("resolv.conf");
    std::fs::write(
        &resolver,
        "nameserver 127.0.0.1\nsearch internal.upscale-tests.org\n",
    )
    .unwrap();
    let proxy = "http://127.0.0.1:3128";
    let run = Command::new("unshare")
        .args([
            "--map-root-user",
            "--net",
            "--mount",
            "--",
            "sh",
            "-c",
            SET_UP,
            "sh",
        ])
        .arg(&resolver)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", TEST, "--nocapture"])
        .env(INSIDE, "1")
        .envs([
            ("HTTPS_PROXY", proxy),
            ("https_proxy", proxy),
            ("ALL_PROXY", proxy),
        ])
        .output();
    let left_out = |why: &str| {
        eprintln!("LEFT OUT: {TEST}: this machine makes no network namespace: {why}");
    };
    match run {
        Err(error) => left_out(&error.to_string()),
        Ok(output) => {
            let reported = String::from_utf8_lossy(&output.stderr);
            match output.status.code() {
                Some(0) => eprintln!("{reported}"),
                Some(CANNOT) => left_out(&reported),
                _ if reported.starts_with("unshare:") => left_out(&reported),
                _ => panic!("{reported}\n{}", String::from_utf8_lossy(&output.stdout)),
            }
        }
    }
}

struct Trap {
    source: Source,
    names: NameServer,
    elsewhere: Arc<Mutex<Vec<SocketAddr>>>,
    fetcher: Fetcher,
    account: AccountId,
}

async fn inside() {
    let trap = Trap::set().await;
    trap.prove_that_it_springs().await;
    let resolved = trap.try_answers().await;
    let redirected = trap.try_redirects().await;
    trap.try_rebinding().await;
    trap.try_an_alias_to_the_inside().await;
    trap.try_names_that_lead_nowhere().await;
    // Whatever was begun and not waited for arrives by now.
    tokio::time::sleep(Duration::from_millis(100)).await;
    trap.assert_untouched("the end");
    eprintln!("{resolved} answers and {redirected} redirects: no forbidden address was reached");
}

impl Trap {
    async fn set() -> Self {
        let listener = TcpListener::bind("[::]:443").await.unwrap();
        let source = Source::on(listener, Certificate::Good);
        let elsewhere = Arc::new(Mutex::new(Vec::new()));
        for port in OTHER_PORTS {
            let listener = TcpListener::bind(("::", port)).await.unwrap();
            let elsewhere = Arc::clone(&elsewhere);
            tokio::spawn(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    elsewhere.lock().unwrap().push(stream.local_addr().unwrap());
                }
            });
        }
        let options = FetchOptions {
            ca_files: vec![source.root.clone()],
            denied: vec!["52.1.0.0/16".parse().unwrap()],
            nat64_prefixes: vec!["2a00:64::/96".parse().unwrap()],
            budgets: FetchBudgets::default(),
            ..FetchOptions::default()
        };
        let trap = Self {
            fetcher: Fetcher::new(&options).unwrap(),
            names: NameServer::start("127.0.0.1:53").await,
            account: AccountId::random().unwrap(),
            source,
            elsewhere,
        };
        trap.lead(NAME, &[PUBLIC]);
        trap
    }

    fn lead(&self, name: &str, to: &[&str]) {
        let addresses = to.iter().map(|address| address.parse().unwrap()).collect();
        self.names.set(
            name,
            Records {
                in_turn: vec![addresses],
                ..Records::default()
            },
        );
    }

    async fn download(&self, url: &str) -> Result<(), String> {
        let url = SourceUrl::parse(url).unwrap();
        let downloaded = self.fetcher.download(self.account, &url).await;
        downloaded.map(drop).map_err(|error| error.to_string())
    }

    /// A trap that catches nothing would prove nothing.
    async fn prove_that_it_springs(&self) {
        for canary in [
            "127.0.0.1:443",
            "169.254.169.254:443",
            "10.0.0.1:443",
            "192.168.0.1:443",
            "100.64.0.1:443",
            "198.35.26.96:443",
            "[::1]:443",
            "[fd00::1]:443",
            "[64:ff9b::a9fe:a9fe]:443",
            "[2002:7f00:1::]:443",
        ] {
            let address: SocketAddr = canary.parse().unwrap();
            let stream = TcpStream::connect(address).await.unwrap();
            drop(stream);
            let reached = loop {
                let reached = self.source.take_reached_at();
                if !reached.is_empty() {
                    break reached;
                }
                tokio::task::yield_now().await;
            };
            assert_eq!(reached, [address.ip()]);
        }
    }

    fn assert_untouched(&self, case: &str) {
        assert_eq!(self.source.take_reached_at(), [] as [IpAddr; 0], "{case}");
        self.assert_nothing_elsewhere(case);
    }

    fn assert_nothing_elsewhere(&self, case: &str) {
        let elsewhere = self.elsewhere.lock().unwrap();
        assert!(elsewhere.is_empty(), "{case}: {elsewhere:?}");
    }

    async fn try_answers(&self) -> usize {
        let mut count = 0;
        for (input, refused) in cases("resolve") {
            let name = format!("case-{count}.upscale-tests.org");
            let answers: Vec<&str> = input.split(',').filter(|text| !text.is_empty()).collect();
            self.lead(&name, &answers);
            let found = vec![Step::Send(answer("200 OK", "", b"x"))];
            self.source.answer("/a.png", found);
            let downloaded = self.download(&format!("https://{name}/a.png")).await;
            assert_eq!(downloaded.is_err(), refused, "{input}: {downloaded:?}");
            if refused {
                self.assert_untouched(&input);
            } else {
                let reached = self.source.take_reached_at();
                assert_eq!(reached.len(), 1, "{input}");
                assert!(
                    answers.contains(&reached[0].to_string().as_str()),
                    "{input}"
                );
            }
            assert_eq!(self.names.take_asked(), [name.as_str(), &name], "{input}");
            count += 1;
        }
        count
    }

    /// Every URL of the corpus that is refused by itself, as the target of a redirect.
    async fn try_redirects(&self) -> usize {
        let public: IpAddr = PUBLIC.parse().unwrap();
        let urls = cases("parse").into_iter().map(|(input, _)| input);
        // A Location may lack the scheme and have blanks around it; an image_url may not.
        let urls = urls.filter(|input| !input.starts_with("//") && input.trim() == input);
        let urls = urls.filter(|input| parse_target(input).is_err());
        let redirects = cases("redirect")
            .into_iter()
            .filter(|(_, refused)| *refused);
        let mut count = 0;
        for location in urls.chain(redirects.map(|(input, _)| input)) {
            let lines = format!("Location: {location}\r\n");
            let moved = vec![Step::Send(answer("302 Found", &lines, b""))];
            self.source.answer("/a.png", moved);
            let downloaded = self.download(&format!("https://{NAME}/a.png")).await;
            assert!(downloaded.is_err(), "{location}");
            let reached = self.source.take_reached_at();
            assert!(
                reached.iter().all(|at| *at == public),
                "{location}: {reached:?}"
            );
            self.assert_nothing_elsewhere(&location);
            let asked = self.names.take_asked();
            assert!(
                asked.iter().all(|name| name == NAME),
                "{location}: {asked:?}"
            );
            count += 1;
        }
        count
    }

    /// The second hop asks again and hears another address; the first is pinned to what it heard.
    async fn try_rebinding(&self) {
        let public: IpAddr = PUBLIC.parse().unwrap();
        let inside: IpAddr = "127.0.0.1".parse().unwrap();
        let name = "rebinding.upscale-tests.org";
        let records = Records {
            in_turn: vec![vec![public], vec![inside]],
            ..Records::default()
        };
        self.names.set(name, records.clone());
        self.source.answer(
            "/b.png",
            vec![Step::Send(answer("302 X", "Location: /b.png\r\n", b""))],
        );
        let downloaded = self.download(&format!("https://{name}/b.png")).await;
        assert!(downloaded.unwrap_err().contains("not allowed"));
        assert_eq!(self.source.take_reached_at(), [public]);

        self.names.take_asked();
        self.names.set(name, records);
        self.source
            .answer("/b.png", vec![Step::Send(answer("200 OK", "", b"x"))]);
        assert_eq!(
            self.download(&format!("https://{name}/b.png")).await,
            Ok(())
        );
        assert_eq!(self.source.take_reached_at(), [public]);
        assert_eq!(self.names.take_asked().len(), 2, "one query of each kind");
    }

    async fn try_an_alias_to_the_inside(&self) {
        let records = Records {
            in_turn: vec![vec!["10.0.0.1".parse().unwrap()]],
            alias: Some("db.internal.upscale-tests.org".to_owned()),
            ..Records::default()
        };
        let name = "alias.upscale-tests.org";
        self.names.set(name, records);
        let downloaded = self.download(&format!("https://{name}/a.png")).await;
        assert!(downloaded.unwrap_err().contains("not allowed"));
        self.assert_untouched(name);
        self.names.take_asked();
        // A name that is nowhere is not looked for in the operator's own zone.
        let no_one = "nobody.upscale-tests.org";
        self.lead(
            "nobody.upscale-tests.org.internal.upscale-tests.org",
            &[PUBLIC],
        );
        let downloaded = self.download(&format!("https://{no_one}/a.png")).await;
        assert!(downloaded.unwrap_err().contains("Could not resolve"));
        self.assert_untouched(no_one);
        assert!(self.names.take_asked().iter().all(|name| name == no_one));
    }

    /// A name that does not exist, or has no addresses, ends the task; a name server that fails may be well again.
    async fn try_names_that_lead_nowhere(&self) {
        let silent = Records {
            fails: true,
            ..Records::default()
        };
        self.names.set("failing.upscale-tests.org", silent);
        let without = Records::default();
        self.names.set("without.upscale-tests.org", without);
        for (name, expected) in [
            ("nowhere.upscale-tests.org", AttemptFailure::Permanent),
            ("without.upscale-tests.org", AttemptFailure::Permanent),
            ("failing.upscale-tests.org", AttemptFailure::Transient),
        ] {
            let url = SourceUrl::parse(&format!("https://{name}/a.png")).unwrap();
            let failed = self.fetcher.download(self.account, &url).await;
            let failed = failed.unwrap_err();
            assert_eq!(failed.failure, expected, "{name}: {failed}");
            self.assert_untouched(name);
        }
    }
}

/// As `fetch/guard_table.rs` reads them, but for repetitions, which need no network.
fn cases(level: &str) -> Vec<(String, bool)> {
    let lines = TABLE
        .lines()
        .map(|line| line.split('\t').collect::<Vec<_>>());
    let of_level = lines.filter(|fields| fields[0] == level && !fields[1].contains("{repeat:"));
    let text = |input: &str| input.replace("{space}", " ").replace("{tab}", "\t");
    of_level
        .map(|fields| (text(fields[1]), fields[2] == "refuse"))
        .collect()
}

//! A whole API on loopback for one test, with a clock that the test turns. When the test is done the store
//! is audited and the log is searched for every secret the test used: neither can be forgotten, for the
//! application is only lent.

use std::{
    fs::OpenOptions,
    io::Write,
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, Mutex, OnceLock},
};

use axum::{
    Router,
    body::Bytes,
    http::{Method, Request},
};
use tempfile::TempDir;
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle};
use upscale_api::{
    ApiLimits, ApiState, Listener, ServeLimits, Stripe, api_router, results_router, serve,
};
use upscale_core::{
    AccountId, ApiKey, Clock, Credits, FailureMessage, Permission, ResultFile, TaskId, Timestamp,
    hex, random_token,
};
use upscale_store::{Account, Results, Settlement, Store, StoreOptions};

use crate::client::{Answer, send};

/// 2026-01-15 12:00:00 UTC: the start of a minute, half a day from midnight.
pub(crate) const NOON: i64 = 1_768_478_400;
pub(crate) const IMAGE: &str = "https://images.example.org/a.png";

/// Everything one test needs.
pub(crate) struct App {
    pub(crate) store: Store,
    pub(crate) results: Results,
    pub(crate) clock: Clock,
    pub(crate) account: AccountId,
    pub(crate) key: String,
    pub(crate) api: SocketAddr,
    pub(crate) files: SocketAddr,
    pub(crate) state: ApiState,
    secrets: Mutex<Vec<String>>,
    directory: TempDir,
}

/// What a test may want otherwise.
#[derive(Default)]
pub(crate) struct Settings {
    pub(crate) api: ApiLimits,
    pub(crate) serve: ServeLimits,
    pub(crate) store: StoreOptions,
    pub(crate) stripe: Option<Stripe>,
}

impl Settings {
    /// With other limits of the API.
    pub(crate) fn limited(api: ApiLimits) -> Self {
        Self {
            api,
            ..Self::default()
        }
    }
}

/// Runs a test on an application with one paid account of 100 credits.
pub(crate) async fn with_app(test: impl AsyncFnOnce(&App)) {
    with_app_set(Settings::default(), test).await;
}

/// The same with other settings.
pub(crate) async fn with_app_set(settings: Settings, test: impl AsyncFnOnce(&App)) {
    let log = log();
    let directory = TempDir::new().unwrap();
    let clock = Clock::manual(Timestamp::from_micros(NOON * 1_000_000));
    let store = Store::open_sqlite(directory.path(), clock.clone(), settings.store)
        .await
        .unwrap();
    let results = Results::local(&directory.path().join("results")).unwrap();
    let (api_listener, api) = listen().await;
    let (files_listener, files) = listen().await;
    let mut state = ApiState::new(
        store.clone(),
        results.clone(),
        &format!("http://{api}/"),
        &format!("http://{files}"),
        settings.api,
    );
    if let Some(stripe) = settings.stripe {
        state = state.with_stripe(stripe);
    }
    let servers = [
        Server::start(api_listener, api_router(state.clone()), &settings.serve),
        Server::start(
            files_listener,
            results_router(state.clone()),
            &settings.serve,
        ),
    ];
    let (account, key) = paid_account(&store, "100").await;
    let secrets = Mutex::new(vec![key.clone()]);
    let app = App {
        store,
        results,
        clock,
        account,
        key,
        api,
        files,
        state,
        secrets,
        directory,
    };
    test(&app).await;
    for server in servers {
        server.stop().await;
    }
    app.check_world(log).await;
}

/// A paid account and one key that may do all.
pub(crate) async fn paid_account(store: &Store, credits: &str) -> (AccountId, String) {
    let account = store.accounts().create("test").await.unwrap().id;
    let credits = Credits::parse(credits).unwrap();
    let reference = format!("payment of {account}");
    store
        .accounts()
        .credit(&account, credits, &reference)
        .await
        .unwrap();
    let (_, key) = store
        .accounts()
        .create_key(&account, Permission::All, "")
        .await
        .unwrap()
        .made()
        .unwrap();
    (account, key.reveal().to_owned())
}

async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// One running listener.
pub(crate) struct Server {
    stop: oneshot::Sender<()>,
    running: JoinHandle<std::io::Result<()>>,
}

impl Server {
    pub(crate) fn start(
        listener: impl Into<Listener> + Send + 'static,
        router: Router,
        limits: &ServeLimits,
    ) -> Self {
        let (stop, stopped) = oneshot::channel::<()>();
        let shutdown = async move { drop(stopped.await) };
        let running = tokio::spawn(serve(listener, router, limits.clone(), shutdown));
        Self { stop, running }
    }

    /// Asks it to drain and waits until it has.
    pub(crate) async fn stop(self) {
        drop(self.stop);
        self.running.await.unwrap().unwrap();
    }
}

impl App {
    /// A request with a key, anything else left to the test.
    pub(crate) fn request(&self, method: &str, path: &str) -> Asking<'_> {
        let asking = self.request_without_key(method, path);
        let bearer = format!("Bearer {}", self.key);
        asking.header("authorization", &bearer)
    }

    pub(crate) fn request_without_key(&self, method: &str, path: &str) -> Asking<'_> {
        Asking {
            app: self,
            to: self.api,
            method: method.parse().unwrap(),
            path: path.to_owned(),
            headers: Vec::new(),
            body: Bytes::new(),
        }
    }

    /// Lets this many hours pass, two more while the service runs, and sweeps as it does; how many files went.
    pub(crate) async fn sweep_after_hours(&self, hours: i64) -> u32 {
        let sweep = async || self.store.sweep(&self.results).await.unwrap();
        self.clock.advance_seconds(hours * 3_600);
        let mut removed = sweep().await;
        for _ in 0..3 {
            for _ in 0..60 {
                self.clock.advance_seconds(60);
                self.store.look_at_clock().await.unwrap();
            }
            removed += sweep().await;
        }
        removed
    }

    /// The account as it stands.
    pub(crate) async fn account_now(&self) -> Account {
        let found = self.store.accounts().find(&self.account).await;
        found.unwrap().unwrap()
    }

    /// A create request that is right in every point but for what the test changes.
    pub(crate) fn create(&self, idempotency_key: &str, body: &str) -> Asking<'_> {
        self.request("POST", "/api/v1/upscales")
            .header("content-type", "application/json")
            .header("idempotency-key", idempotency_key)
            .body(body)
    }

    /// Creates a task of one image and returns its id.
    pub(crate) async fn created(&self, idempotency_key: &str) -> TaskId {
        let answer = self.create(idempotency_key, &image_body("")).send().await;
        answer.expect(202, "");
        TaskId::parse(answer.json()["id"].as_str().unwrap()).unwrap()
    }

    /// The status of a create.
    pub(crate) async fn created_with_status(&self, idempotency_key: &str) -> u16 {
        let asked = self.create(idempotency_key, &image_body(""));
        asked.send().await.status
    }

    pub(crate) async fn read(&self, id: &TaskId) -> Answer {
        self.request("GET", &format!("/api/v1/upscales/{id}"))
            .send()
            .await
    }

    /// A request to the listener of the result files; `url` is a whole result URL.
    pub(crate) fn download(&self, method: &str, url: &str) -> Asking<'_> {
        let base = format!("http://{}", self.files);
        let path = url.strip_prefix(&base).unwrap_or(url);
        if let Some((_, query)) = path.split_once('?') {
            self.keep_secret(query);
        }
        let asking = self.request_without_key(method, path);
        Asking {
            to: self.files,
            ..asking
        }
    }

    /// Claims the oldest job as a worker would and ends it well, with these bytes as its result.
    pub(crate) async fn succeed_next(&self, bytes: &[u8]) -> ResultFile {
        self.succeed_next_shown(bytes, b"").await
    }

    /// The same, with this thumbnail beside it; of an older program, where it is empty.
    pub(crate) async fn succeed_next_shown(&self, bytes: &[u8], small: &[u8]) -> ResultFile {
        let claim = self
            .store
            .tasks()
            .claim("test", 1, &[])
            .await
            .unwrap()
            .remove(0);
        let file = ResultFile {
            name: random_token().unwrap(),
            sha256: hex(&sha2_of(bytes)),
            size_bytes: bytes.len() as u64,
            width: 2,
            height: 2,
            look: Some(upscale_core::Look::Natural),
            preview: (!small.is_empty()).then_some(upscale_core::Preview {
                thumbnail_bytes: small.len() as u32,
                focus_permille: [125, 875],
            }),
        };
        if !small.is_empty() {
            let small = Bytes::copy_from_slice(small);
            let put = self.results.put_thumbnail(&file.name, small);
            put.await.unwrap();
        }
        self.results
            .put(&file.name, Bytes::copy_from_slice(bytes))
            .await
            .unwrap();
        let settlement = Settlement::Succeeded(file.clone());
        self.store
            .tasks()
            .settle(
                &claim.task_id,
                claim.attempt,
                settlement,
                upscale_store::Spent::slot(1.0),
            )
            .await
            .unwrap();
        file
    }

    /// Claims the oldest job and fails it.
    pub(crate) async fn fail_next(&self, what: &str) {
        let claim = self
            .store
            .tasks()
            .claim("test", 1, &[])
            .await
            .unwrap()
            .remove(0);
        let settlement = Settlement::Failed(FailureMessage::new(what));
        self.store
            .tasks()
            .settle(
                &claim.task_id,
                claim.attempt,
                settlement,
                upscale_store::Spent::slot(1.0),
            )
            .await
            .unwrap();
    }

    /// Remembers a text that no log line may hold; shorter ones could stand there by chance.
    pub(crate) fn keep_secret(&self, text: &str) {
        if text.len() >= 8 {
            self.secrets.lock().unwrap().push(text.to_owned());
        }
    }

    /// Where the store keeps its file.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    async fn check_world(&self, log: &Mutex<Vec<u8>>) {
        let audit = self.store.audit(Some(&self.results)).await.unwrap();
        assert_eq!(audit.breaches, [], "{}", self.directory.path().display());
        let log = String::from_utf8_lossy(&log.lock().unwrap()).into_owned();
        keep_for_search(&log, &self.secrets.lock().unwrap());
        for secret in self.secrets.lock().unwrap().iter() {
            assert!(!log.contains(secret), "the log holds {secret:?}");
        }
    }
}

/// Where `UPSCALE_TEST_LOGS` names a directory: the log so far and the secrets go there, for one search over all logs of
/// the whole suite (`checks/leaks.sh`).
fn keep_for_search(log: &str, secrets: &[String]) {
    let Some(folder) = std::env::var_os("UPSCALE_TEST_LOGS").map(PathBuf::from) else {
        return;
    };
    let name = format!("api-{}.log", std::process::id());
    std::fs::write(folder.join(name), log).unwrap();
    let lines: String = secrets
        .iter()
        .map(|secret| format!("secret of the API's tests\t{secret}\n"))
        .collect();
    // One write: other tests append at the same time.
    let planted = OpenOptions::new()
        .create(true)
        .append(true)
        .open(folder.join("planted.tsv"));
    let mut planted = planted.unwrap();
    planted.write_all(lines.as_bytes()).unwrap();
}

/// A request being put together.
pub(crate) struct Asking<'a> {
    app: &'a App,
    to: SocketAddr,
    method: Method,
    path: String,
    headers: Vec<(String, Vec<u8>)>,
    body: Bytes,
}

impl Asking<'_> {
    /// To another listener.
    pub(crate) fn to(mut self, listener: SocketAddr) -> Self {
        self.to = listener;
        self
    }

    /// One more header.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers
            .push((name.to_owned(), value.as_bytes().to_vec()));
        self
    }

    /// All headers of a name are replaced by these.
    pub(crate) fn headers(mut self, name: &str, values: &[&[u8]]) -> Self {
        self.headers.retain(|(known, _)| known != name);
        let new = values.iter().map(|value| (name.to_owned(), value.to_vec()));
        self.headers.extend(new);
        self
    }

    pub(crate) fn key(self, key: &str) -> Self {
        let bearer = format!("Bearer {key}");
        self.headers("authorization", &[bearer.as_bytes()])
    }

    pub(crate) fn body(mut self, body: impl AsRef<[u8]>) -> Self {
        self.body = Bytes::copy_from_slice(body.as_ref());
        self
    }

    pub(crate) async fn send(self) -> Answer {
        let mut request = Request::builder()
            .method(self.method)
            .uri(&self.path)
            .header("host", "api.example.org");
        for (name, value) in &self.headers {
            if matches!(name.as_str(), "idempotency-key" | "authorization") {
                self.app.keep_secret(&String::from_utf8_lossy(value));
            }
            request = request.header(name, value.as_slice());
        }
        send(self.to, request.body(self.body).unwrap()).await
    }
}

/// `{"image_url": …}` with more fields (`,"scale":4`).
pub(crate) fn image_body(more: &str) -> String {
    format!(r#"{{"image_url":"{IMAGE}"{more}}}"#)
}

/// A key that the store never made.
pub(crate) fn unknown_key() -> String {
    ApiKey::random().unwrap().reveal().to_owned()
}

fn sha2_of(bytes: &[u8]) -> Vec<u8> {
    use sha2::Digest;
    sha2::Sha256::digest(bytes).to_vec()
}

/// Every log line of this test process, at the level the service runs with and one below.
pub(crate) fn log() -> &'static Mutex<Vec<u8>> {
    static LOG: OnceLock<Arc<Mutex<Vec<u8>>>> = OnceLock::new();
    LOG.get_or_init(|| {
        let log = Arc::new(Mutex::new(Vec::new()));
        let writer = Arc::clone(&log);
        tracing_subscriber::fmt()
            .json()
            .with_max_level(tracing::Level::DEBUG)
            .with_writer(move || Line(Arc::clone(&writer)))
            .init();
        log
    })
}

struct Line(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Line {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

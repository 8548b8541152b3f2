//! An S3-compatible storage in this process (s3s-fs: objects are files), that fails on demand: refuses, never
//! answers, or does what it was asked and hangs up.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto::Builder,
};
use s3s::{Body, HttpResponse, auth::SimpleAuth, service::S3ServiceBuilder};
use tokio::{net::TcpListener, sync::oneshot};

pub const BUCKET: &str = "results";
const PREFIX: &str = "kept";
const ACCESS_KEY: &str = "AKIATESTSTESTSTESTS0";
const SECRET_KEY: &str = "a secret that only tests know, planted to be looked for";
/// Longer than anyone waits.
const NEVER: Duration = Duration::from_secs(600);

/// What the storage does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// 503 SlowDown, nothing done.
    Refuses,
    /// No answer, nothing done.
    Hangs,
    /// Does what it was asked, then closes the connection without a word.
    LosesAnswer,
    /// Closes the connection at once, nothing done.
    HangsUp,
}

pub const FAULTS: [Fault; 4] = [
    Fault::Refuses,
    Fault::Hangs,
    Fault::LosesAnswer,
    Fault::HangsUp,
];

/// A running storage; ends with the last that holds it.
pub struct Bucket {
    address: SocketAddr,
    folder: PathBuf,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
}

#[derive(Default)]
struct Shared {
    /// The next writes' faults, and what all other requests get.
    planned: Mutex<(Vec<Option<Fault>>, Option<Fault>)>,
    requests: AtomicU64,
    faulty: AtomicU64,
}

impl Bucket {
    /// Listens on a free port of loopback; objects stand under `folder`.
    pub fn start(folder: &Path) -> Self {
        let folder = folder.join("storage");
        fs::create_dir_all(folder.join(BUCKET)).unwrap();
        let shared = Arc::new(Shared::default());
        let (stop, stopped) = oneshot::channel();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let serving = serve(listener, folder.clone(), Arc::clone(&shared), stopped);
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = { runtime }.enable_all().build().unwrap();
            runtime.block_on(serving);
        });
        Self {
            address,
            folder,
            shared,
            stop: Some(stop),
        }
    }

    /// For `--storage`.
    pub fn url(&self) -> String {
        format!("s3://{BUCKET}/{PREFIX}")
    }

    /// What a process that uses it needs in its environment.
    pub fn variables(&self) -> Vec<(String, String)> {
        [
            ("AWS_ENDPOINT_URL", format!("http://{}", self.address)),
            ("AWS_ALLOW_HTTP", "true".to_owned()),
            ("AWS_REGION", "us-east-1".to_owned()),
            ("AWS_ACCESS_KEY_ID", ACCESS_KEY.to_owned()),
            ("AWS_SECRET_ACCESS_KEY", SECRET_KEY.to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .to_vec()
    }

    /// What makes a process of the service keep its results here.
    pub fn place(&self) -> Vec<(String, String)> {
        let mut variables = self.variables();
        variables.push(("UPSCALE_STORAGE".to_owned(), self.url()));
        variables
    }

    /// Names of the results under the prefix.
    pub fn objects(&self) -> Vec<String> {
        let folder = self.folder.join(BUCKET).join(PREFIX);
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| is_result(name)).collect()
    }

    /// The file behind an object.
    pub fn file(&self, object: &str) -> PathBuf {
        self.folder.join(BUCKET).join(PREFIX).join(object)
    }

    /// The next objects that are written fail so, one each; other requests are left alone.
    pub fn fail_next_puts(&self, faults: &[Fault]) {
        self.plan_puts(faults.iter().copied().map(Some).collect());
    }

    /// What becomes of the next objects that are written, one after the other; none: nothing but what it should.
    pub fn plan_puts(&self, faults: Vec<Option<Fault>>) {
        self.shared.planned.lock().unwrap().0 = faults;
    }

    /// From now on all requests fail so, or none.
    pub fn fail_all(&self, fault: Option<Fault>) {
        self.shared.planned.lock().unwrap().1 = fault;
    }

    /// Requests so far, and how many of them met a fault.
    pub fn requests(&self) -> (u64, u64) {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (count(&self.shared.requests), count(&self.shared.faulty))
    }
}

impl Drop for Bucket {
    fn drop(&mut self) {
        // The storage may have ended by itself.
        let _ = self.stop.take().map(|stop| stop.send(()));
    }
}

impl Shared {
    fn next_fault(&self, is_put: bool) -> Option<Fault> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let mut planned = self.planned.lock().unwrap();
        let fault = if is_put && !planned.0.is_empty() {
            planned.0.remove(0)
        } else {
            planned.1
        };
        self.faulty
            .fetch_add(u64::from(fault.is_some()), Ordering::Relaxed);
        fault
    }
}

async fn serve(
    listener: std::net::TcpListener,
    folder: PathBuf,
    shared: Arc<Shared>,
    mut stopped: oneshot::Receiver<()>,
) {
    let mut service = S3ServiceBuilder::new(s3s_fs::FileSystem::new(folder).unwrap());
    service.set_auth(SimpleAuth::from_single(ACCESS_KEY, SECRET_KEY));
    let service = service.build();
    listener.set_nonblocking(true).unwrap();
    let listener = TcpListener::from_std(listener).unwrap();
    loop {
        let socket = tokio::select! {
            accepted = listener.accept() => accepted.unwrap().0,
            _ = &mut stopped => return,
        };
        let (service, shared) = (service.clone(), Arc::clone(&shared));
        let answering = hyper::service::service_fn(move |request: Asked| {
            // What only tries whether the storage can be written takes none of the planned faults.
            let is_put = request.method() == hyper::Method::PUT;
            let fault = shared.next_fault(is_put && is_result(request.uri().path()));
            answer(request, service.clone(), fault)
        });
        tokio::spawn(async move {
            // A client that hangs up is a client's right.
            let connection = Builder::new(TokioExecutor::new());
            drop(
                connection
                    .serve_connection(TokioIo::new(socket), answering)
                    .await,
            );
        });
    }
}

/// No thumbnail, which lies beside its result.
fn is_result(name: &str) -> bool {
    name.ends_with(".png") && !name.ends_with(".thumb.png")
}

type Asked = hyper::Request<hyper::body::Incoming>;

/// An error closes the connection.
async fn answer(
    request: Asked,
    service: s3s::service::S3Service,
    fault: Option<Fault>,
) -> Result<HttpResponse, Box<dyn std::error::Error + Send + Sync>> {
    match fault {
        Some(Fault::Refuses) => {
            let body = "<Error><Code>SlowDown</Code></Error>".to_owned();
            let refusal = hyper::Response::builder().status(503);
            Ok(refusal.body(Body::from(body))?)
        }
        Some(Fault::Hangs) => {
            tokio::time::sleep(NEVER).await;
            Err("no one waited so long".into())
        }
        Some(Fault::HangsUp) => Err("hung up".into()),
        Some(Fault::LosesAnswer) => {
            let done = hyper::service::Service::call(&service, request).await;
            drop(done);
            Err("the answer is lost".into())
        }
        None => Ok(hyper::service::Service::call(&service, request).await?),
    }
}

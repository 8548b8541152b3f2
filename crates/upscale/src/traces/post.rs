//! How batches reach the collector: one request at a time, on the thread that the batches have, with a time for
//! everything; and the count of what arrived.

use std::{
    fmt,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use metrics::counter;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::SpanExporter as Otlp;
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    trace::{SpanData, SpanExporter},
};
use rustls::crypto::ring;
use ureq::tls::{RootCerts, TlsConfig};

/// One request, from the name's look-up to the last byte of the answer. The exporter's own time (10 s, or
/// OTEL_EXPORTER_OTLP_TIMEOUT) holds for a batch with its retries.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// A collector's answer is a few bytes.
const ANSWER_BYTES_MAX: u64 = 64 * 1024;

/// The HTTP client: blocking, for its caller is a thread that does nothing else. No redirects: headers may hold the
/// collector's key.
pub(super) struct Post(ureq::Agent);

impl Post {
    pub(super) fn new() -> Self {
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::PlatformVerifier)
            .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()))
            .build();
        let agent = ureq::Agent::config_builder()
            .tls_config(tls)
            .timeout_global(Some(REQUEST_TIMEOUT))
            .http_status_as_error(false)
            .max_redirects(0)
            .build()
            .new_agent();
        Self(agent)
    }

    fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (parts, body) = request.into_parts();
        let request = Request::from_parts(parts, body.to_vec());
        let (parts, mut body) = self.0.run(request)?.into_parts();
        let body = body.with_config().limit(ANSWER_BYTES_MAX).read_to_vec()?;
        Ok(Response::from_parts(parts, body.into()))
    }
}

impl fmt::Debug for Post {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Post")
    }
}

impl HttpClient for Post {
    // As `async_trait` writes it, whose macro would be one more thing to trust for one function.
    fn send_bytes<'life0, 'async_trait>(
        &'life0 self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'async_trait>>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        Box::pin(async move { self.send(request) })
    }
}

/// The exporter, its batches counted by how they ended.
#[derive(Debug)]
pub(super) struct Counted {
    exporter: Otlp,
    waiting: Arc<AtomicUsize>,
    is_failing: AtomicBool,
}

impl Counted {
    pub(super) fn new(exporter: Otlp, waiting: Arc<AtomicUsize>) -> Self {
        Self {
            exporter,
            waiting,
            is_failing: AtomicBool::new(false),
        }
    }

    /// One line when it begins and one when it is over, not one a batch. The error names a status, no address.
    fn note(&self, sent: &OTelSdkResult) {
        match (sent, self.is_failing.swap(sent.is_err(), Ordering::Relaxed)) {
            (Err(error), false) => tracing::warn!(%error, "traces cannot be sent and are dropped"),
            (Ok(()), true) => tracing::info!("traces are sent again"),
            _ => {}
        }
    }
}

impl SpanExporter for Counted {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len();
        let sent = self.exporter.export(batch).await;
        self.waiting.fetch_sub(spans, Ordering::Relaxed);
        let end = if sent.is_ok() { "sent" } else { "failed" };
        counter!("upscale_spans_total", "end" => end).increment(spans as u64);
        self.note(&sent);
        sent
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}
